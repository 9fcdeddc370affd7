"""How the correlation order counts parts that base models share.

    python -m qwyc_experiments.shared_parts [--seeds 101 ...] [--only WORD ...]

Four ways to count the parts of a candidate: all of them ("fixed"); those that no chosen base model needs
("marginal"); and the same with each part's cost divided by the number of base models that need it ("shared
out"), or by the root of that number ("root"). Each gives an order; thresholds are then fitted along it with
the true costs. Each line has the mean true cost on held-out rows over that of "fixed", at 0.5 and 2% of
decisions changed: geometric means over seeds; below 1 is better.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lightgbm
import numpy as np
import xgboost
from rich import box
from rich.console import Console
from rich.table import Table
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

import qwyc

from .internals import Problem, correlation
from .levels import at_level
from .paper import data
from .variants import points_of

TRAIN, FIT, TEST = 8000, 6000, 20_000  # rows; data sets with fewer have fewer to test on
LEVELS = (0.005, 0.02)
SEEDS = (101, 102, 103, 201, 202, 203)
RULES = ("fixed", "marginal", "shared out", "root")


def seen_by_search(costs: qwyc.Costs, rule: str) -> qwyc.Costs:
    """The costs to give to the correlation order so that it counts parts by this rule."""
    if rule == "fixed":
        return qwyc.Costs(costs.own + costs.needs @ costs.parts)
    users = np.maximum(costs.needs.sum(axis=0), 1)
    power = {"marginal": 0.0, "root": 0.5, "shared out": 1.0}[rule]
    return qwyc.Costs(costs.own, costs.parts / users**power, costs.needs)


@dataclass(frozen=True)
class Lattices:
    """T lattices over d of D features each, trained by least squares on made rows. Own costs are 1."""

    T: int
    d: int
    D: int
    part: float  # cost of a calibrator
    groups: int  # that features are in; a lattice has its features from one
    boosted: bool  # trained on what those before it leave; else alone, on a third of the rows

    def __call__(self, rng: np.random.Generator) -> tuple[np.ndarray, qwyc.Costs]:
        """Scores (FIT + TEST, T) and costs."""
        N, T, d, D = TRAIN + FIT + TEST, self.T, self.d, self.D
        X = rng.normal(size=(N, 4)) @ rng.normal(size=(4, D)) / 2 + rng.normal(size=(N, D))
        U = np.argsort(np.argsort(X, axis=0), axis=0) / (N - 1)  # calibrated to [0, 1]
        a, b = rng.integers(0, D, size=(2, D))
        signal = (U - 0.5) @ rng.exponential(size=D) + 4 * (U[:, a] - 0.5) * (U[:, b] - 0.5) @ (
            rng.normal(size=D)
        )
        y = np.sign(signal - np.median(signal) + 0.3 * signal.std() * rng.normal(size=N))
        groups = np.array_split(rng.permutation(D), self.groups)
        F, needs, left = np.empty((N, T)), np.zeros((T, D), dtype=bool), y[:TRAIN].copy()
        for t in range(T):
            needs[t, rng.choice(groups[t % len(groups)], d, replace=False)] = True
            B = np.ones((N, 1))  # (N, 2^d) weights of the vertices
            for column in np.flatnonzero(needs[t]):
                u = U[:, column, None]
                B = np.hstack([B * (1 - u), B * u])
            rows = np.arange(TRAIN) if self.boosted else rng.choice(TRAIN, TRAIN // 3)
            A = B[rows]
            values = np.linalg.solve(A.T @ A + np.eye(2**d), A.T @ left[rows])
            F[:, t] = B @ values * (0.3 if self.boosted else 1 / T)
            if self.boosted:
                left -= F[:TRAIN, t]
        return F[TRAIN:], qwyc.Costs(np.ones(T), np.full(D, self.part), needs)


@dataclass(frozen=True)
class Trees:
    """A trained tree ensemble whose columns cost something. Own costs are 1."""

    rows: str  # "adult", "nomao" or "made"
    model: Callable[[int], Any]
    part: float  # mean cost of a column
    spread: float = 0.0  # deviation of its log

    def __call__(self, rng: np.random.Generator) -> tuple[qwyc.ScoreMatrix, qwyc.Costs]:
        """Scores of FIT + TEST rows, and costs."""
        seed = int(rng.integers(2**31))
        if self.rows == "made":
            X, y = make_classification(
                TRAIN + FIT + TEST,
                30,
                n_informative=12,
                n_redundant=8,
                flip_y=0.05,
                random_state=seed,
            )
        else:
            found = data.load(self.rows, None)
            X, y = np.vstack([found.X, found.X_test]), np.concatenate([found.y, found.y_test])
        X = np.nan_to_num(X, nan=-1).astype(np.float32)
        rows = rng.permutation(len(X))[: TRAIN + FIT + TEST]
        X, y = X[rows], y[rows]
        ensemble = qwyc.read_model(self.model(seed).fit(X[:TRAIN], y[:TRAIN]))
        trees = ensemble.base_models.trees
        T, D = ensemble.base_models.n_models, X.shape[1]
        needs = np.zeros((T, D), dtype=bool)
        for t in range(T):
            needs[t, trees.feature[trees.node_begin[t] : trees.node_begin[t + 1]]] = True
        parts = np.exp(self.spread * rng.normal(size=D))
        return ensemble.scores(X[TRAIN:]), qwyc.Costs(
            np.ones(T), self.part * parts / parts.mean(), needs
        )


def grouped(rng: np.random.Generator) -> tuple[np.ndarray, qwyc.Costs]:
    """30 base models in 6 groups: those of a group need the same dear part, and are not alike."""
    group = rng.permutation(np.repeat(np.arange(6), 5))
    F = 0.4 * rng.normal(size=(FIT + TEST, 1)) + rng.normal(size=(FIT + TEST, 30))
    needs = group[:, None] == np.arange(6)
    return rng.uniform(0.6, 1.0, 30) * F, qwyc.Costs(np.ones(30), np.full(6, 12.0), needs)


def xgb(trees: int, depth: int) -> Callable[[int], Any]:
    return lambda s: xgboost.XGBClassifier(
        n_estimators=trees, max_depth=depth, learning_rate=0.1, n_jobs=1, random_state=s
    )


def forest(trees: int, depth: int) -> Callable[[int], Any]:
    return lambda s: RandomForestClassifier(trees, max_depth=depth, random_state=s)


def lgb(trees: int, leaves: int) -> Callable[[int], Any]:
    return lambda s: lightgbm.LGBMClassifier(
        n_estimators=trees, num_leaves=leaves, n_jobs=1, random_state=s, verbose=-1
    )


CASES: dict[
    str, Callable[[np.random.Generator], tuple[np.ndarray | qwyc.ScoreMatrix, qwyc.Costs]]
] = {
    "20 lattices, 2 of 16, random, 0.1": Lattices(20, 2, 16, 0.1, 1, False),
    "50 lattices, 4 of 16, random, 1": Lattices(50, 4, 16, 1.0, 1, False),
    "100 lattices, 4 of 24, random, 10, boosted": Lattices(100, 4, 24, 10.0, 1, True),
    "300 lattices, 6 of 40, random, 0.1, boosted": Lattices(300, 6, 40, 0.1, 1, True),
    "60 lattices, 3 of 30, clustered, 10": Lattices(60, 3, 30, 10.0, 6, False),
    "150 lattices, 5 of 40, clustered, 1, boosted": Lattices(150, 5, 40, 1.0, 5, True),
    "40 lattices, 8 of 32, clustered, 10": Lattices(40, 8, 32, 10.0, 3, False),
    "200 lattices, 2 of 20, random, 1, boosted": Lattices(200, 2, 20, 1.0, 1, True),
    "Adult, XGBoost, 100 of depth 3, 10": Trees("adult", xgb(100, 3), 10.0),
    "Adult, forest, 100 of depth 6, 3": Trees("adult", forest(100, 6), 3.0, 1.0),
    "Nomao, LightGBM, 200 of 8 leaves, 10": Trees("nomao", lgb(200, 8), 10.0),
    "made rows, XGBoost, 300 of depth 2, 1": Trees("made", xgb(300, 2), 1.0, 1.0),
    "grouped": grouped,
    # Added after the first three seeds of the others had been seen.
    "96 lattices, 12 pairs of columns, 10": Lattices(96, 2, 24, 10.0, 12, False),
    "96 lattices, 12 pairs of columns, 10, boosted": Lattices(96, 2, 24, 10.0, 12, True),
    "made rows, forest, 100 of depth 6, 3": Trees("made", forest(100, 6), 3.0, 1.0),
    # Added with the rule "root", before it was measured on seeds 301 to 303.
    "120 lattices, 3 of 20, random, 3": Lattices(120, 3, 20, 3.0, 1, False),
    "80 lattices, 4 of 24, clustered, 10, boosted": Lattices(80, 4, 24, 10.0, 4, True),
    "Nomao, forest, 60 of depth 8, 3": Trees("nomao", forest(60, 8), 3.0, 1.0),
    "Adult, LightGBM, 150 of 16 leaves, 5": Trees("adult", lgb(150, 16), 5.0, 1.0),
}


def run(name: str, seed: int) -> np.ndarray:
    """(rules, levels) mean true cost on held-out rows."""
    scores, costs = CASES[name](np.random.default_rng(seed))
    matrix = scores if isinstance(scores, qwyc.ScoreMatrix) else qwyc.ScoreMatrix.from_array(scores)
    fit, test = (matrix.take(r) for r in np.split(np.arange(len(matrix.full)), [FIT]))
    found = []
    for rule in RULES:
        searched = Problem(fit, fit.threshold, seen_by_search(costs, rule), "both", 1)
        path = qwyc.fit_path(fit, order=correlation(searched), costs=costs, threads=1)
        found.append([at_level(points_of(path, test), level) for level in LEVELS])
    return np.array(found)


def main() -> None:
    """Run every case and seed; print ratios to "fixed"."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--only", nargs="*", default=None, help="words in the names of cases")
    options = parser.parse_args()
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("case", *RULES[1:], "worst seed"):
        table.add_column(column, justify="left" if column == "case" else "right")
    every = []
    for name in CASES:
        if options.only is not None and not any(word in name for word in options.only):
            continue
        cost = np.log([run(name, seed) for seed in options.seeds])  # (seeds, rules, levels)
        ratio = cost[:, 1:] - cost[:, :1]
        every.append(ratio.mean(axis=0))
        worst = np.exp(ratio.mean(axis=2).max(axis=0))
        table.add_row(name, *_shown(every[-1]), " / ".join(f"{w:.3f}" for w in worst))
    table.add_row("all", *_shown(np.mean(every, axis=0)), "")
    Console(width=110).print(table)


def _shown(ratios: np.ndarray) -> list[str]:
    """Ratios at each level by rule, of logs (rules, levels)."""
    return [" / ".join(f"{r:.3f}" for r in row) for row in np.exp(ratios)]


if __name__ == "__main__":
    main()
