"""alpha = 0 against a million random inputs per kind of model: does any decision differ?

    python -m qwyc_experiments.proof [--rows 1000000] [--trees 100]

Inputs are random, not data: normal numbers of several sizes, values on thresholds, missing values and,
where the library takes them, infinities. Thresholds other than the model's own are tried as well, at full
scores that occur, so that ties with the threshold are common.
"""

from __future__ import annotations

import argparse

import catboost
import lightgbm
import numpy as np
import xgboost
from rich import box
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier

import qwyc
from qwyc.datasets import load_adult


def models(trees: int) -> dict:
    """One of every kind, not fitted."""
    return {
        "XGBoost": xgboost.XGBClassifier(n_estimators=trees, max_depth=5, learning_rate=0.1),
        "XGBoost forest": xgboost.XGBRFClassifier(n_estimators=trees, max_depth=8),
        "LightGBM": lightgbm.LGBMClassifier(n_estimators=trees, verbose=-1),
        "random forest": RandomForestClassifier(trees, max_depth=10, random_state=0),
        "extra trees": ExtraTreesClassifier(trees, max_depth=10, random_state=0),
        "gradient boosting": GradientBoostingClassifier(n_estimators=trees, max_depth=4),
        "hist gradient boosting": HistGradientBoostingClassifier(max_iter=trees, random_state=0),
        "CatBoost": catboost.CatBoostClassifier(
            iterations=trees, verbose=0, allow_writing_files=False
        ),
        "bagging of trees": BaggingClassifier(
            DecisionTreeClassifier(max_depth=8), trees, random_state=0
        ),
        "AdaBoost of trees": AdaBoostClassifier(
            DecisionTreeClassifier(max_depth=2), n_estimators=trees, random_state=0
        ),
    }


def random_inputs(rng: np.random.Generator, X: np.ndarray, n: int, inputs) -> np.ndarray:
    """Rows (n, columns) of which every cell is noise, a value of X, or something odd."""
    cells = rng.normal(size=(n, X.shape[1])) * rng.choice([1.0, 100.0, 1e5], (n, 1))
    borrowed = X[rng.integers(len(X), size=(n, X.shape[1])), np.arange(X.shape[1])]
    rows = np.where(rng.random(cells.shape) < 0.6, borrowed, cells)
    odd = [0.0, -1.0, 1e-30]
    odd += [np.nan] if inputs.accepts_missing else []
    odd += [np.inf, -np.inf] if inputs.accepts_infinity else []
    return np.where(rng.random(cells.shape) < 0.1, rng.choice(odd, cells.shape), rows).astype(
        np.float32
    )


def main() -> None:
    """Fit each kind on Adult, try the inputs, print one row per kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--trees", type=int, default=100)
    options = parser.parse_args()
    train = load_adult("train")
    X = np.nan_to_num(train.codes(), nan=-1.0)
    table = Table(title="alpha = 0, random inputs", box=box.SIMPLE_HEAD, title_justify="left")
    table.add_column("model")
    for name in ("inputs", "thresholds", "decisions that differ", "base models per row"):
        table.add_column(name, justify="right")
    for name, model in models(options.trees).items():
        ensemble = qwyc.read_model(model.fit(X, train.label))
        rng = np.random.default_rng(0)
        rows = random_inputs(rng, X, options.rows, ensemble.schema)
        full = ensemble.score_full(rows)
        thresholds = [ensemble.threshold, *rng.choice(full, 3)]
        differ, steps = 0, []
        for threshold in thresholds:
            fast = qwyc.optimize(ensemble, alpha=0, threshold=qwyc.Score(float(threshold)))
            decisions = fast.decide(rows)
            differ += int(np.sum((decisions.label == 1) != (full >= threshold)))
            steps.append(decisions.steps.mean())
        table.add_row(
            name,
            f"{len(rows):,}",
            str(len(thresholds)),
            f"{differ:,}",
            f"{steps[0]:.1f} of {ensemble.n_models}",
        )
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
