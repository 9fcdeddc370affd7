"""Every method of the comparison, fitted on the training rows and measured on both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

import qwyc

from ..internals import GO_ON, IN_FULL
from .bench import Bench, measured
from .curves import LEVEL, ORDERS, Curve, Point

Done = Callable[[], None]  # a step is done
Fixed = dict[tuple[str, int | None], npt.NDArray[np.int32]]  # name and seed -> order, (T,)


def default(bench: Bench, done: Done) -> list[Point]:
    """What `qwyc.optimize` chooses from: one order, and thresholds by optimal stopping."""
    path = qwyc.fit_path(bench.fitting, quit=bench.experiment.quit, progress=False)
    done()
    chosen = np.unique(np.linspace(0, len(path) - 1, bench.setting.members).round().astype(int))
    points = []
    for k in chosen.tolist():
        points.append(bench.point(path[k], "default", "correlation", path.penalty[k]))
        done()
    return points


def joint(bench: Bench, done: Done) -> list[Point]:
    """QWYC*: Algorithm 1, order and thresholds together."""
    points = []
    for alpha in bench.setting.alphas:
        policy = qwyc.fit_policy(
            bench.fitting, alpha=alpha, quit=bench.experiment.quit, progress=False
        )
        points.append(bench.point(policy, "qwyc", "joint", alpha))
        done()
    return points


def orders(bench: Bench) -> Fixed:
    """The orders of the paper that are fixed beforehand, and one by accuracy alone."""
    found: Fixed = {}
    for name in ORDERS:
        for seed in bench.setting.seeds if name == "random" else (None,):
            policy = qwyc.fit_policy(
                bench.fitting,
                alpha=0.0,
                order=name,
                quit=bench.experiment.quit,
                labels=bench.data.y,
                seed=seed or 0,
                progress=False,
            )
            found[name, seed] = policy.order
    found["accuracy", None] = by_accuracy(bench)
    return found


def by_accuracy(bench: Bench) -> npt.NDArray[np.int32]:
    """Base models by their own accuracy on the training rows, the most accurate first.

    A base model of a sum decides by itself where its score is at least (threshold - base) / T, its share
    of what the sum needs, so that a constant offset of all base models does not matter."""
    matrix, truth = bench.fitting, bench.data.y.astype(bool)
    share = (matrix.threshold - matrix.base) / matrix.values.shape[1]
    accuracy = [np.mean((column >= share) == truth) for column in matrix.values.T]
    return np.argsort(-np.array(accuracy), kind="stable").astype(np.int32)


def thresholds(bench: Bench, fixed: Fixed, done: Done) -> list[Point]:
    """Algorithm 2 along orders that are fixed beforehand."""
    points = []
    for (name, seed), order in fixed.items():
        for alpha in bench.setting.alphas:
            policy = qwyc.fit_policy(
                bench.fitting,
                alpha=alpha,
                order=order,
                quit=bench.experiment.quit,
                progress=False,
            )
            points.append(bench.point(policy, "algorithm-2", name, alpha, seed=seed))
        done()
    return points


class Fan:
    """Fan's rule: bin widths are in deviations of the full score."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.deviation = float(np.std(bench.fitting.full))
        self.chosen: dict[str, float] = {}  # order -> bin width

    def path(
        self, matrix: qwyc.ScoreMatrix, order: Any, width: float, gammas: Sequence[float]
    ) -> list[qwyc.FanPolicy]:
        """A policy for each gamma."""
        return qwyc.fit_fan_path(
            matrix,
            gammas,
            order=order,
            quit=self.bench.experiment.quit,
            bin_width=width * self.deviation,
        )

    def points(
        self, order: Any, name: str, width: float, gammas: Sequence[float], seed: int | None = None
    ) -> list[Point]:
        """What the rule does along an order, at each gamma."""
        return [
            self.bench.point(policy, "fan", name, policy.gamma, seed=seed, bin_width=width)
            for policy in self.path(self.bench.fitting, order, width, gammas)
        ]

    def choose_width(self, name: str, order: npt.NDArray[np.int32]) -> float:
        """The bin width that needs the fewest base models at 0.5% differences on the validation rows
        when fitted on the other training rows.

        On the rows it was fitted on, the narrowest would always seem best: bins with one row each."""
        bench = self.bench
        rest, held_out = bench.without_validation, bench.validation
        truth = bench.data.y[bench.data.validation]
        needed = []
        for width in bench.setting.bin_widths:
            points = []
            for policy in self.path(rest, order, width, bench.setting.gammas):
                seen = policy.apply(held_out)
                found = measured(seen.label, seen.steps, held_out.positive, truth)
                points.append(
                    Point(
                        "fan", name, policy.gamma, None, width, found, found, seen.steps, seen.label
                    )
                )
            curve = Curve(points)
            needed.append((curve.models_at(LEVEL) or np.inf, curve.differ.min(), width))
        self.chosen[name] = min(needed)[-1]
        return self.chosen[name]

    def along(self, fixed: Fixed, done: Done) -> list[Point]:
        """Along the paper's fixed orders, each with its own bin width."""
        points = []
        for (name, seed), order in fixed.items():
            if name not in ORDERS:
                continue
            if name not in self.chosen:  # for random orders, chosen with the first
                self.choose_width(name, order)
                done()
            gammas = self.bench.setting.gammas
            found = self.points(order, name, self.chosen[name], gammas, seed)
            if name == "individual-mse":  # Fan*
                testing = self.bench.testing
                found = [replace(p, unknown=unknown_bins(p.policy, testing)) for p in found]
            points += found
            done()
        return points

    def searched(self, order_of_qwyc: npt.NDArray[np.int32], done: Done) -> list[Point]:
        """The two answers to the paper's question whether the order search gains from this rule: its
        thresholds along the order of QWYC*, and an order searched with this rule inside Algorithm 1."""
        width = self.choose_width("joint", order_of_qwyc)
        self.chosen["joint-fan"] = width
        points = self.points(order_of_qwyc, "joint", width, self.bench.setting.gammas)
        done()
        for gamma in self.bench.setting.search_gammas:
            points += self.points("joint-fan", "joint-fan", width, [gamma])
            done()
        return points

    def widths(
        self, order: npt.NDArray[np.int32], done: Done
    ) -> tuple[list[Point], dict[float, float]]:
        """Fan* at every bin width and gamma, and the mean number of bins of a step by bin width."""
        points, bins = [], {}
        for width in self.bench.setting.bin_widths:
            found = self.points(order, "individual-mse", width, self.bench.setting.gammas)
            bins[width] = len(found[-1].policy.bin) / max(1, len(order) - 1)
            for point in found:
                unknown = unknown_bins(point.policy, self.bench.testing)
                points.append(replace(point, unknown=unknown, policy=None))
            done()
        return points, bins


def unknown_bins(policy: qwyc.FanPolicy, matrix: qwyc.ScoreMatrix) -> int:
    """Rows that fall into a bin that no fitted row fell into, before they quit."""
    running = np.full(len(matrix.full), matrix.base)
    left = np.arange(len(running))
    count = 0
    for step, t in enumerate(policy.order[:-1]):
        running[left] += matrix.values[left, t]
        outcome = policy.outcomes(step, running[left])
        count += int(np.count_nonzero(outcome == IN_FULL))
        left = left[outcome == GO_ON]
        if not len(left):
            break
    return count


def smaller(bench: Bench, done: Done) -> list[Point]:
    """Ensembles trained with fewer base models, always evaluated in full."""
    data, points = bench.data, []
    for size, decide in bench.smaller.items():
        seen, new = decide(data.X), decide(data.X_test)
        points.append(
            Point(
                "smaller",
                "natural",
                float(size),
                None,
                None,
                measured(seen, size, bench.fitting.positive, data.y),
                measured(new, size, bench.testing.positive, data.y_test),
                np.full(len(new), size, dtype=np.int16),
                new.astype(bool),
            )
        )
        done()
    return points
