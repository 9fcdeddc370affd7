"""Outputs within a tolerance: what they take, against the first base models alone.

    python -m qwyc_experiments.tolerance [--only WORD ...] [--trees 300] [--rows 20000]

One XGBoost model for each data set: the probability of a class, or the value of a regression, whose
tolerance is a share of the output's standard deviation. Each is optimised on rows that it was not trained
on, for alpha = 0.5% at 95% confidence, and measured on others. The columns:

    trees       mean base models per row on the test rows
    off         share of the test rows whose output is off by more than the tolerance
    at 0.5%     mean base models of the boldest policy of the path with at most 0.5% of test rows off
    first       share off where every row takes the first trees only, as many as the mean above, and its
                score is a line through their sum, fitted on the sample
    quit, full  microseconds per row on one thread, of outputs that quit and of exact ones
    chosen      what `optimize` chooses by its cost model
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xgboost
from rich.console import Console

import qwyc

from .frontier import _joined, _shuffled, adult, covertype
from .validity import print_table

ALPHA = 0.005
Data = Callable[[], tuple[np.ndarray, np.ndarray]]


def elevation() -> tuple[np.ndarray, np.ndarray]:
    """Covertype's first column, the elevation in metres, from the others."""
    X, _ = covertype()
    return X[:, 1:], X[:, 0]


# Name -> data, training rows, tolerances; those of a regression are shares of the deviation.
CASES: dict[str, tuple[Data, int, tuple[float, ...]]] = {
    "Adult": (lambda: adult(0), 16_000, (0.05, 0.02)),
    "Nomao": (lambda: _shuffled(*_joined("nomao")), 12_000, (0.05, 0.02)),
    "Covertype": (covertype, 40_000, (0.05, 0.02)),
    "Census": (lambda: _shuffled(*_joined("census_income_kdd")), 40_000, (0.05, 0.02)),
    "Elevation": (elevation, 40_000, (0.2, 0.1)),
}


@dataclass(frozen=True)
class Result:
    """What one tolerance took."""

    trees: float
    off: float
    on_path: float
    first: float
    quit: float
    full: float
    chosen: str


def measured(model: Any, sample: np.ndarray, test: np.ndarray, tolerance: float) -> Result:
    """Optimise on the sample and measure on the test rows."""
    made = qwyc.optimize(
        model, sample, tolerance=tolerance, alpha=ALPHA, repeats="independent", progress=False
    )
    chosen = "quit" if made.evaluation.quits and made.policy.quit != "never" else "full"
    made = made.at(alpha=ALPHA)  # quits, whatever the cost model says
    exact, found = made.full(), made.decide(test)
    own = exact.decide(test).score
    read = qwyc.read_model(model)
    seen, new = read.scores(sample), read.scores(test)
    assert made.choices is not None  # the policy was chosen from a path
    sums = made.choices.path.sums(new)
    within = sums.differences[:, 0] <= ALPHA * len(test)
    n = max(1, round(float(found.steps.mean())))
    line = np.polyfit(_first(seen, n), seen.full, 1)
    expected = np.polyval(line, _first(new, n))
    if read.has_classes:
        expected = 1 / (1 + np.exp(-expected))
    return Result(
        float(found.steps.mean()),
        float(np.mean(np.abs(found.score - own) > tolerance)),
        float(sums.steps[within].min() / len(test)),
        float(np.mean(np.abs(expected - own) > tolerance)),
        _microseconds(made, test),
        _microseconds(exact, test),
        chosen,
    )


def _first(scores: qwyc.ScoreMatrix, n: int) -> np.ndarray:
    """The sum of the first n base models, (N,)."""
    return np.asarray(scores.values[:, :n].sum(axis=1, dtype=np.float64))


def _microseconds(made: qwyc.Approximation, X: np.ndarray, rounds: int = 25) -> float:
    """Of a row on one thread, by processor time: the machine may be busy."""
    output = made.predict_proba if made.ensemble.has_classes else made.predict
    best = np.inf
    for _ in range(rounds):
        started = time.process_time()
        output(X, threads=1)
        best = min(best, time.process_time() - started)
    return 1e6 * best / len(X)


def main() -> None:
    """Run the data sets that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD")
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--rows", type=int, default=20_000, help="of the sample, and of the test")
    options = parser.parse_args()
    table = []
    for name, (data, n_train, tolerances) in CASES.items():
        if options.only and not any(word in name for word in options.only):
            continue
        X, y = data()
        is_value = len(np.unique(y[:1000])) > 2
        kind = xgboost.XGBRegressor if is_value else xgboost.XGBClassifier
        model = kind(n_estimators=options.trees, max_depth=5, learning_rate=0.1, n_jobs=2)
        model.fit(X[:n_train], y[:n_train])
        n = min(options.rows, (len(X) - n_train) // 2)
        sample, test = X[n_train : n_train + n], X[n_train + n : n_train + 2 * n]
        deviation = float(np.std(model.predict(sample))) if is_value else 1.0
        for share in tolerances:
            found = measured(model, sample, test, share * deviation)
            table.append(
                [
                    name,
                    f"{share:g} sd" if is_value else f"{share:g}",
                    f"{found.trees:.0f}",
                    f"{found.off:.2%}",
                    f"{found.on_path:.0f}",
                    f"{found.first:.1%}",
                    f"{found.quit:.2f}",
                    f"{found.full:.2f}",
                    found.chosen,
                ]
            )
            print("\t".join(table[-1]), flush=True)
    columns = ["data", "tolerance", "trees", "off", "at 0.5%", "first", "quit", "full", "chosen"]
    title = f"{options.trees} trees, alpha = {ALPHA:.1%} at 95% confidence, on test rows"
    print_table(Console(width=110), title, columns, table)


if __name__ == "__main__":
    main()
