"""Full evaluation and quitting on UCI Adult, against the libraries that trained the models.

    make bench        or        python benchmarks/adult.py [--trees 500] [--repeats 15] [--threads 1]

Contestants run in turn, several times, in one process; medians are reported. Every contestant's answers
are checked: full scores bit for bit, and the share of decisions that quitting changes on the test rows,
which neither the model nor the policy has seen.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import time

import lightgbm
import numpy as np
import xgboost
from rich import box
from rich.console import Console
from rich.table import Table

import qwyc
from qwyc.datasets import load_adult

TRAINING_ROWS = 16_000  # of 32,561; the others are for optimising


def medians(contestants, repeats):
    """Median seconds by name; one after the other in every round."""
    times = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, call in contestants.items():
            started = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - started)
    return {name: float(np.median(spent)) for name, spent in times.items()}


def xgboost_case(trees, threads, train, test):
    """The paper's Experiment 1 model and its own ways to evaluate it."""
    X, X_test = train.codes(), test.codes(like=train)
    model = xgboost.XGBClassifier(
        n_estimators=trees,
        max_depth=5,
        learning_rate=0.05,
        enable_categorical=True,
        feature_types=train.feature_types,
    ).fit(X[:TRAINING_ROWS], train.label[:TRAINING_ROWS])
    booster = model.get_booster()
    booster.set_param({"nthread": threads})
    margin = booster.inplace_predict(X_test, predict_type="margin")
    own = {"XGBoost inplace_predict": lambda: booster.inplace_predict(X_test)}
    return model, X, X_test, margin, model.predict(X_test), own


def lightgbm_case(trees, threads, train, test):
    """The same data, 31 leaves a tree, and LightGBM's own early stop."""
    X, X_test = train.codes(), test.codes(like=train)
    model = lightgbm.LGBMClassifier(n_estimators=trees, learning_rate=0.05, verbose=-1)
    categorical = [i for i, kind in enumerate(train.feature_types) if kind == "c"]
    rows = slice(TRAINING_ROWS)
    model.fit(X[rows], train.label[rows], categorical_feature=categorical)
    booster = model.booster_
    raw = booster.predict(X_test, raw_score=True)
    stop = {"pred_early_stop": True, "pred_early_stop_margin": 4.0, "pred_early_stop_freq": 10}
    own = {
        "LightGBM": lambda: booster.predict(X_test, num_threads=threads),
        "LightGBM pred_early_stop, margin 4": lambda: booster.predict(
            X_test, num_threads=threads, **stop
        ),
    }
    return model, X, X_test, raw, model.predict(X_test), own


def run(name, case, options, console):
    """One model: check answers, time the contestants, print the table."""
    train, test = load_adult("train"), load_adult("test")
    model, X, X_test, scores, labels, own = case(options.trees, options.threads, train, test)
    fast = qwyc.optimize(model, X[TRAINING_ROWS:], alpha=options.alpha, progress=False)
    if not np.array_equal(fast.score_full(X_test), scores):
        raise SystemExit(f"{name}: full scores differ from the library's own")
    decisions = fast.decide(X_test)
    contestants = own | {
        "qwyc, full": lambda: fast.score_full(X_test, threads=options.threads),
        "qwyc, quitting": lambda: fast.decide(X_test, threads=options.threads),
    }
    times = medians(contestants, options.repeats)
    baseline = times[next(iter(own))]
    table = Table(title=f"{name}, {options.trees} trees", box=box.SIMPLE_HEAD, title_justify="left")
    for column in ("", "µs per row", "times as fast"):
        table.add_column(column, justify="left" if not column else "right")
    for contestant, seconds in times.items():
        table.add_row(contestant, f"{seconds / len(X_test) * 1e6:.2f}", f"{baseline / seconds:.1f}")
    console.print(table)
    console.print(
        f"Full scores equal {name}'s bit for bit. Quitting: {decisions.steps.mean():.1f} base models "
        f"per row, {np.mean(decisions.label != labels):.2%} of decisions differ on {len(labels):,} "
        f"test rows. {fast.certificate}\n"
    )


def main() -> None:
    """Parse the command line and run both cases."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--alpha", type=float, default=0.005)
    options = parser.parse_args()
    versions = ", ".join(
        f"{p} {importlib.metadata.version(p)}" for p in ("qwyc", "xgboost-cpu", "lightgbm", "numpy")
    )
    console = Console(width=100)
    console.print(
        f"{versions}; Python {platform.python_version()}, {platform.machine()}; "
        f"{options.threads} thread(s), median of {options.repeats}\n"
    )
    run("XGBoost", xgboost_case, options, console)
    run("LightGBM", lightgbm_case, options, console)


if __name__ == "__main__":
    main()
