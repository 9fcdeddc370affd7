"""One experiment, stage by stage: everything that its pages and pictures are made of."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from . import margins, methods, votes
from .bench import Bench
from .curves import LEVEL, ORDERS, QWYC, Curve, Outcome, Point, Promised, Results, Timed
from .data import Data
from .ensembles import prepare
from .experiments import Experiment
from .promise import promised
from .setting import Setting
from .store import Store
from .timing import timed

FIRST = "full ensemble"  # the stage whose time includes training
Report = Callable[[str, int, int], None]  # what, done, total; total 0: not known


class Run:
    """An experiment under way. Stages that are in the store are not computed again."""

    def __init__(
        self, experiment: Experiment, setting: Setting, data: Data, state: Path, report: Report
    ) -> None:
        self.experiment, self.setting, self.data = experiment, setting, data
        self.store, self.report = Store(state, experiment, setting, data), report
        self.seconds: dict[str, float] = {}

    @cached_property
    def bench(self) -> Bench:
        """The ensemble and its scores; made when the first stage needs it."""
        return prepare(self.experiment, self.setting, self.data, self.progress)

    def progress(self, what: str, total: int) -> Callable[[], None]:
        """A task of so many steps, each of which takes about as long as the others."""
        steps = itertools.count(1)
        self.report(f"{self.experiment.name}: {what}", 0, total)
        return lambda: self.report(f"{self.experiment.name}: {what}", next(steps), total)

    def stage(self, name: str, total: int, work: Callable[[Bench, methods.Done], Any]) -> Any:
        """The result of a stage, from the store or computed now; its time is kept with it."""

        def compute() -> tuple[Any, float]:
            started = time.perf_counter()
            bench = self.bench
            if name != FIRST:  # a resumed run trains again, which is not this stage's time
                started = time.perf_counter()
            result = work(bench, self.progress(name, total))
            return result, time.perf_counter() - started

        result, self.seconds[name] = self.store.get(f"{self.experiment.name}-{name}", compute)
        return result

    def outcome(self) -> Outcome:
        """All stages."""
        setting = self.setting
        facts = self.stage(FIRST, 0, _full)
        fixed = self.stage("orders", 0, lambda bench, _: methods.orders(bench))
        points: list[Point] = self.stage("default method", 1 + setting.members, methods.default)
        points += self.stage("QWYC*", len(setting.alphas), methods.joint)
        points += self.stage(
            "Algorithm 2", len(fixed), lambda bench, done: methods.thresholds(bench, fixed, done)
        )
        n_orders = len(fixed) - 1 + len(ORDERS)
        more, chosen = self.stage("Fan's rule", n_orders, lambda b, done: _fan(b, fixed, done))
        points += more
        order = _order_of_qwyc(points)
        more, searched = self.stage(
            "Fan's rule in the search",
            1 + len(setting.search_gammas),
            lambda bench, done: _searched(bench, order, done),
        )
        points += more
        widths, bins = self.stage(
            "Bin widths of Fan*",
            len(setting.bin_widths),
            lambda b, done: methods.Fan(b).widths(fixed["individual-mse", None], done),
        )
        points += self.stage("Smaller ensembles", len(setting.sizes), methods.smaller)
        if self.experiment.family in RIVALS:
            points += self.stage("Rivals", 0, RIVALS[self.experiment.family])
        results = Results(points=tuple(points), **facts["results"])
        times: list[Timed] = self.stage(
            "Timing", setting.runs, lambda bench, done: timed(bench, results, done)
        )
        kept: list[Promised] = self.stage("Promise", setting.splits, promised)
        return Outcome(
            results,
            times,
            kept,
            widths,
            bins,
            chosen | searched,
            facts["correlation"],
            facts["facts"],
            self.seconds,
        )


def _full(bench: Bench, _: methods.Done) -> dict[str, Any]:
    """The full ensemble by itself."""
    fitted, full = bench.full_evaluation()
    testing = bench.testing
    own = [np.corrcoef(column, testing.full)[0, 1] for column in testing.values.T if np.ptp(column)]
    return {
        "results": {
            "name": bench.experiment.name,
            "n_models": bench.ensemble.n_models,
            "n_fit": len(bench.data.y),
            "n_test": len(bench.data.y_test),
            "fitted": fitted,
            "full": full,
            "positive": testing.positive,
            "truth": bench.data.y_test.astype(bool),
        },
        "correlation": float(np.mean(own)),
        "facts": bench.facts | _about(bench),
    }


def _about(bench: Bench) -> dict[str, str]:
    data = bench.data
    return {
        "features": f"{data.X.shape[1]}: {', '.join(data.names)}",
        "called negative": f"{np.mean(~bench.testing.positive):.1%} of the test rows",
        "source": data.source,
    }


def _fan(
    bench: Bench, fixed: methods.Fixed, done: methods.Done
) -> tuple[list[Point], dict[str, float]]:
    fan = methods.Fan(bench)
    return without_policies(fan.along(fixed, done)), fan.chosen


def _searched(bench: Bench, order: Any, done: methods.Done) -> tuple[list[Point], dict[str, float]]:
    fan = methods.Fan(bench)
    return without_policies(fan.searched(order, done)), fan.chosen


def without_policies(points: list[Point]) -> list[Point]:
    """The same points; of each curve only the one that is timed keeps its policy. Those of Fan's rule
    take hundreds of megabytes."""
    timed_ones = {
        key: Curve([p for p in points if p.key == key]).nearest("differ", LEVEL)
        for key in {p.key for p in points}
    }
    return [p if p is timed_ones[p.key] else replace(p, policy=None) for p in points]


def _order_of_qwyc(points: list[Point]) -> Any:
    """Of the alpha that is nearest to 0.5%."""
    joint = [point for point in points if point.key == QWYC]
    return min(joint, key=lambda point: abs(point.knob - 0.005)).policy.order


def _margin_rivals(bench: Bench, _: methods.Done) -> list[Point]:
    """LightGBM's own rule."""
    found = []
    for method, every in (("margin", 1), ("margin-10", 10)):
        policies = margins.early_stop_policies(bench.fitting, bench.setting.margins, every)
        found += [bench.point(p, method, "natural", margin) for margin, p in policies]
    return found


def _vote_rivals(bench: Bench, _: methods.Done) -> list[Point]:
    """Rules for votes."""
    best = votes.optimal_vote_policies(bench.fitting, bench.setting.penalties)
    ballots = votes.Votes.of(bench.fitting)
    bayes = votes.bayes_vote_policies(
        ballots.T, bench.setting.confidences, unit=ballots.unit, threshold=ballots.threshold
    )
    return [bench.point(p, "best-votes", "natural", knob) for knob, p in best] + [
        bench.point(p, "bayes-votes", "natural", knob) for knob, p in bayes
    ]


RIVALS = {"lightgbm": _margin_rivals, "forest": _vote_rivals}
