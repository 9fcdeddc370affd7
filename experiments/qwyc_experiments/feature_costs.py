"""Orders that know what features cost, against the default order, which does not.

    python -m qwyc_experiments.feature_costs [--half select|report] [--costs 0.5 1 ...] [--rules RULE ...]
        [--seeds 2] [--only WORD ...]

Base models cost 1 each. Every feature costs the same, in base models, where a row first needs it; or, with
"dear", a third of the features at random cost 30 and the others nothing. The rules are ways in which the
order counts the features of a candidate that no chosen base model needs: their cost ("marginal"), half of
it ("half"), it divided by a power of the number of base models that need the feature ("quarter": the fourth
root; "root"), or divided by the number of 16 usual base models that need the feature ("spread").
"thresholds" keeps the default order, and only thresholds know the costs. Halves, models and rows are those
of `research`: rules are chosen on "select" rows and measured on "report" rows.

Each line is at 0.5% of test decisions changed: base models and features that a row needs on average, and
their cost over that of the default order and thresholds. Means are geometric, over seeds.
"""

from __future__ import annotations

import argparse
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
COSTS = ("0.5", "1", "2", "5", "100", "dear")
RULES = ("marginal", "half", "quarter", "root", "spread", "thresholds")
DEAR = "dear"  # instead of a cost: a third of the features cost 30, the others nothing
ONLY = ("Adult, XGBoost, lr 0.05", "Adult, LightGBM", "Nomao", "Covertype, XGBoost")


@dataclass(frozen=True, eq=False)
class Case:
    """Scores of one model on rows to fit on and rows to measure on, and what its trees look at."""

    fit: qwyc.ScoreMatrix
    test: qwyc.ScoreMatrix
    quit: str
    needs: np.ndarray  # (T, n_features) booleans

    def costs(self, cost: str) -> qwyc.Costs:
        """Base models cost 1 and features this much."""
        T, D = self.needs.shape
        if cost != DEAR:
            return qwyc.Costs(np.ones(T), np.full(D, float(cost)), self.needs)
        dear = np.random.default_rng(D).random(D) < 1 / 3
        return qwyc.Costs(np.ones(T), np.where(dear, 30.0, 0.0), self.needs)


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


def order_by(case: Case, rule: str, costs: qwyc.Costs) -> np.ndarray:
    """The correlation order that counts features by a rule."""
    users = np.maximum(case.needs.sum(axis=0), 1)
    divisor = {
        "marginal": 1.0,
        "half": 2.0,
        "quarter": users**0.25,
        "root": users**0.5,
        "spread": np.maximum(16 * users / len(case.needs), 1.0),
        "thresholds": np.inf,
    }[rule]
    seen = qwyc.Costs(costs.own, costs.parts / divisor, costs.needs)
    return correlation(Problem(case.fit, case.fit.threshold, seen, case.quit))


@dataclass(frozen=True, eq=False)
class Points:
    """Every policy of a path on the test rows, (K,) each."""

    differ: np.ndarray
    models: np.ndarray
    features: np.ndarray
    paid: np.ndarray  # what the features cost

    def at_level(self) -> np.ndarray:
        """Cost, base models and features at LEVEL, (3,)."""
        cost = self.models + self.paid
        found = at_level(list(zip(self.differ.tolist(), cost.tolist(), strict=True)), LEVEL)
        order = np.argsort(cost)
        return np.array(
            [
                found,
                *(np.interp(found, cost[order], a[order]) for a in (self.models, self.features)),
            ]
        )


def points_of(case: Case, path: qwyc.Path, costs: qwyc.Costs) -> Points:
    """What the policies of a path take, with these costs of features."""
    T = len(path.order)
    needed, paid = np.zeros(T + 1), np.zeros(T + 1)  # of rows that take so many steps
    seen = np.zeros(case.needs.shape[1], dtype=bool)
    for r, t in enumerate(path.order):
        seen |= case.needs[t]
        needed[r + 1], paid[r + 1] = seen.sum(), costs.parts[seen].sum()
    done = [path[k].apply(case.test) for k in range(len(path))]
    return Points(
        np.array([np.mean(d.label != case.test.positive) for d in done]),
        np.array([d.steps.mean() for d in done]),
        np.array([needed[d.steps].mean() for d in done]),
        np.array([paid[d.steps].mean() for d in done]),
    )


def run(case: Case, costs: list[str], rules: list[str]) -> dict[tuple[str, str], np.ndarray]:
    """What `at_level` gives for the default and for each rule, by rule and cost."""
    plain = qwyc.fit_path(case.fit, quit=case.quit, progress=False)
    found = {}
    for cost in costs:
        true = case.costs(cost)
        found["default", cost] = points_of(case, plain, true).at_level()
        for rule in rules:
            order = order_by(case, rule, true)
            path = qwyc.fit_path(case.fit, order=order, quit=case.quit, costs=true, progress=False)
            found[rule, cost] = points_of(case, path, true).at_level()
    return found


def main() -> None:
    """Run every pair on one half; print a line for each pair, rule and cost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=HALVES, default="select")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--costs", nargs="+", default=list(COSTS))
    parser.add_argument("--rules", choices=RULES, nargs="+", default=["marginal"])
    parser.add_argument("--only", nargs="*", default=list(ONLY), help="words in the names of pairs")
    parser.add_argument("--trees", type=int, default=TREES)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    table = Table(title=f"{options.half} rows", box=box.SIMPLE_HEAD)
    for column in ("pair", "cost", "rule", "base models", "features", "cost over the default's"):
        table.add_column(column, justify="left" if column == "pair" else "right")
    ratios: dict[tuple[str, str], list[float]] = {}
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
        for cost in options.costs:
            mean = {
                rule: np.exp(np.mean([np.log(one[rule, cost]) for one in runs], axis=0))
                for rule in ("default", *options.rules)
            }
            for rule in options.rules:
                _, before, needed = mean["default"]
                after, models, features = mean[rule]
                ratio = after / mean["default"][0]
                ratios.setdefault((rule, cost), []).append(ratio)
                table.add_row(
                    name, cost, rule, f"{before:.1f} to {models:.1f}",
                    f"{needed:.1f} to {features:.1f}", f"{ratio:.3f}",
                )  # fmt: skip
    for (rule, cost), found in ratios.items():
        table.add_row("all", cost, rule, "", "", f"{np.exp(np.mean(np.log(found))):.3f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
