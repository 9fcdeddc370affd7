"""Orders that know what features cost, against the default order, which does not.

    python -m qwyc_experiments.feature_costs [--half select|report] [--costs 0.5 1 ...] [--rules RULE ...]
        [--seeds 2] [--only WORD ...]

Base models cost 1 each and every feature the same, in base models, where a row first needs it. The rules
are ways in which the order counts the features of a candidate that no chosen base model needs: their cost
("marginal"), half of it ("half"), or it divided by the root of the number of base models that need the
feature ("root"). "thresholds" keeps the default order, and only thresholds know the costs. Halves, models
and rows are those of `research`; rules are chosen on "select" rows and read on "report" rows.

Each line is at 0.5% of test decisions changed: base models and features that a row needs on average, and
their cost over that of the default order and thresholds. Means are geometric, over seeds.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import qwyc

from .frontier import Pair, pairs
from .internals import Problem, correlation
from .levels import at_level
from .research import FIT_ROWS, HALVES, TEST_ROWS, TREES

LEVEL = 0.005
COSTS = (0.5, 1.0, 2.0, 5.0)
RULES = ("marginal", "half", "root", "thresholds")
ONLY = ("Adult, XGBoost, lr 0.05", "Adult, LightGBM", "Nomao", "Covertype, XGBoost")


@dataclass(frozen=True, eq=False)
class Case:
    """Scores of one model on rows to fit on and rows to measure on, and what its trees look at."""

    fit: qwyc.ScoreMatrix
    test: qwyc.ScoreMatrix
    quit: str
    needs: np.ndarray  # (T, n_features) booleans

    def costs(self, feature: float) -> qwyc.Costs:
        """Base models cost 1 and features this much."""
        T, D = self.needs.shape
        return qwyc.Costs(np.ones(T), np.full(D, feature), self.needs)


@dataclass(frozen=True)
class Point:
    """One policy on the test rows."""

    differ: float
    models: float
    features: float


def case_of(name: str, pair: Pair, half: str, seed: int, cache: Path) -> Case:
    """Train and score, as `research` does, and keep the scores."""
    load, make, quit, n_train = pair
    file = cache / f"features {name} {half} {seed}.npz"
    if not file.exists():
        X, y = load(0)
        rows = np.arange(HALVES.index(half), len(X), 2)
        rows = rows[np.random.default_rng(1000 + seed).permutation(len(rows))]
        n_train = min(n_train // 2, 40_000)
        ensemble = qwyc.read_model(make(seed).fit(X[rows[:n_train]], y[rows[:n_train]]))
        rest = X[rows[n_train:]]
        n_fit = min(FIT_ROWS, len(rest) // 2)
        fit, test = ensemble.scores(rest[:n_fit]), ensemble.scores(rest[n_fit:][:TEST_ROWS])
        needs = np.zeros((ensemble.n_models, X.shape[1]), dtype=bool)
        needs[ensemble.base_models.feature_needs()] = True
        about = {"base": fit.base, "threshold": fit.threshold, "average": fit.average}
        arrays = {"fit": fit.values, "fit_full": fit.full, "test": test.values}
        np.savez(file, **arrays, test_full=test.full, needs=needs, **about)
    kept = np.load(file)
    about = (float(kept["base"]), float(kept["threshold"]))
    fit, test = (
        qwyc.ScoreMatrix(
            np.asfortranarray(kept[part]), *about, kept[f"{part}_full"], bool(kept["average"])
        )
        for part in ("fit", "test")
    )
    return Case(fit, test, quit, kept["needs"])


def order_by(case: Case, rule: str, feature: float) -> np.ndarray:
    """The correlation order that counts features by a rule."""
    users = np.maximum(case.needs.sum(axis=0), 1)
    seen = {
        "marginal": np.full(len(users), feature),
        "half": np.full(len(users), feature / 2),
        "root": feature / np.sqrt(users),
        "thresholds": np.zeros(len(users)),
    }[rule]
    costs = qwyc.Costs(np.ones(len(case.needs)), seen, case.needs)
    return correlation(Problem(case.fit, case.fit.threshold, costs, case.quit))


def points_of(case: Case, path: qwyc.Path) -> list[Point]:
    """Every policy of a path on the test rows."""
    T = len(path.order)
    new = np.zeros(T + 1)  # features needed by rows that take so many steps
    seen = np.zeros(case.needs.shape[1], dtype=bool)
    for r, t in enumerate(path.order):
        seen |= case.needs[t]
        new[r + 1] = seen.sum()
    full = case.test.positive
    found = []
    for k in range(len(path)):
        done = path[k].apply(case.test)
        differ = float(np.mean(done.label != full))
        found.append(Point(differ, float(done.steps.mean()), float(new[done.steps].mean())))
    return found


def at(points: list[Point], feature: float) -> np.ndarray:
    """Cost, base models and features at LEVEL, (3,). Base models and features are read off by their share
    of the cost, so that they add up to it."""
    cost = [(p.differ, p.models + feature * p.features) for p in points]
    found = at_level(cost, LEVEL)
    whole, models = np.array([[c, p.models] for (_, c), p in zip(cost, points, strict=True)]).T
    order = np.argsort(whole)
    trees = float(np.interp(found, whole[order], models[order]))
    return np.array([found, trees, (found - trees) / feature])


def run(case: Case, costs: list[float], rules: list[str]) -> dict[tuple[str, float], np.ndarray]:
    """What `at` gives for the default and for each rule, by rule and cost."""
    plain = points_of(case, qwyc.fit_path(case.fit, quit=case.quit, progress=False))
    found = {}
    for feature in costs:
        found["default", feature] = at(plain, feature)
        for rule in rules:
            order = order_by(case, rule, feature)
            path = qwyc.fit_path(
                case.fit, order=order, quit=case.quit, costs=case.costs(feature), progress=False
            )
            found[rule, feature] = at(points_of(case, path), feature)
    return found


def main() -> None:
    """Run every pair on one half; print a line for each pair, rule and cost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=HALVES, default="select")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--costs", type=float, nargs="+", default=list(COSTS))
    parser.add_argument("--rules", choices=RULES, nargs="+", default=["marginal"])
    parser.add_argument("--only", nargs="*", default=list(ONLY), help="words in the names of pairs")
    parser.add_argument("--trees", type=int, default=TREES)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    table = Table(title=f"{options.half} rows, {os.cpu_count()} cores", box=box.SIMPLE_HEAD)
    for column in ("pair", "cost", "rule", "base models", "features", "cost over the default's"):
        table.add_column(column, justify="left" if column == "pair" else "right")
    ratios: dict[tuple[str, float], list[float]] = {}
    for name, pair in pairs(options.trees).items():
        if not any(word in name for word in options.only):
            continue
        runs = [
            run(
                case_of(name, pair, options.half, seed, options.cache),
                options.costs,
                options.rules,
            )
            for seed in range(options.seeds)
        ]
        for feature in options.costs:
            mean = {
                rule: np.exp(np.mean([np.log(one[rule, feature]) for one in runs], axis=0))
                for rule in ("default", *options.rules)
            }
            for rule in options.rules:
                _, before, needed = mean["default"]
                cost, models, features = mean[rule]
                ratio = cost / mean["default"][0]
                ratios.setdefault((rule, feature), []).append(ratio)
                table.add_row(
                    name, f"{feature:g}", rule, f"{before:.1f} to {models:.1f}",
                    f"{needed:.1f} to {features:.1f}", f"{ratio:.3f}",
                )  # fmt: skip
    for (rule, feature), found in ratios.items():
        table.add_row("all", f"{feature:g}", rule, "", "", f"{np.exp(np.mean(np.log(found))):.3f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
