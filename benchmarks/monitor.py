"""What monitoring costs: `Monitor.predict` against `Classifier.predict`, answers checked.

    python -m benchmarks.monitor [--trees 500] [--rate 0.01] [--seconds 6] [--tiny]

One thread. A turn decides the same rows either way, in batches of one size. Turns alternate. Means of
processor time are compared, not medians, since only some turns contain the full evaluation of rows that
have waited."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import qwyc
from qwyc.check.benchmark import machine
from qwyc.runtime.timing import Contestant, interleave

from .cache import trained
from .cases import LEARNING_RATE, TRAINING_ROWS, adult, train_xgboost
from .contest import WrongAnswer

BATCHES = (1, 16, 256, 8_192, 100_000)
ROWS_OF_A_TURN = 50_000  # or one batch; fewer where batches are small
CALLS_OF_A_TURN = 10_000


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--seconds", type=float, default=6.0, help="for each of a pair")
    parser.add_argument("--tiny", action="store_true", help="only see that it runs")
    chosen = parser.parse_args()
    trees = 20 if chosen.tiny else chosen.trees
    seconds = 0.001 if chosen.tiny else chosen.seconds
    fast, test = classifier(trees)
    print(", ".join(f"{name}: {value}" for name, value in machine().items()))
    print(
        f"XGBoost, {trees} trees, depth 5; {fast.certificate.mean_models:.1f} base models per row"
    )
    print(f"{'batch':>12}  {'classifier':>10}  {'monitor':>10}  {'slower by':>9}")
    sizes = (1, 16) if chosen.tiny else BATCHES
    for name, turn in {"predict_one": None, **{f"{size:,}": size for size in sizes}}.items():
        plain, monitored = measured(fast, test, turn, chosen.rate, seconds)
        print(
            f"{name:>12}  {plain:>8.3f} µs  {monitored:>8.3f} µs  {monitored / plain - 1:>9.1%}",
            flush=True,
        )


def classifier(trees: int) -> tuple[qwyc.Classifier, Any]:
    """A classifier of XGBoost's model of UCI Adult, and 100,000 rows drawn from the test rows."""
    rows, _, test = adult()
    model = trained(train_xgboost, trees=trees, depth=5, learning_rate=LEARNING_RATE).model
    fast = qwyc.optimize(model, rows[TRAINING_ROWS:], alpha=0.01, evaluation="quit", progress=False)
    drawn = np.random.default_rng(0).integers(len(test), size=max(BATCHES))
    return fast, np.ascontiguousarray(test[drawn])


def measured(
    fast: qwyc.Classifier, test: Any, size: int | None, rate: float, seconds: float
) -> tuple[float, float]:
    """Microseconds per row of the classifier and of a monitor, in batches of `size` rows; None is
    `predict_one`."""
    monitor = qwyc.Monitor(fast, rate=rate)
    n = min(CALLS_OF_A_TURN * (size or 1), max(size or 1, ROWS_OF_A_TURN), len(test))
    n -= n % (size or 1)
    parts = list(test[:n]) if size is None else [test[i : i + size] for i in range(0, n, size)]
    calls: list[Callable[[Any], Any]] = [
        way.predict_one if size is None else partial(way.predict, threads=1)
        for way in (fast, monitor)
    ]
    answers = [np.hstack([call(part) for part in parts]) for call in calls]
    if not np.array_equal(*answers):
        raise WrongAnswer("the monitor decides differently from its classifier")
    if monitor.rows_seen != n or not monitor.rows_checked:
        raise WrongAnswer(f"the monitor has seen {monitor.rows_seen} rows of {n}")
    timings = interleave(
        {i: Contestant(partial(_turn, call), [parts], n) for i, call in enumerate(calls)},
        seconds=seconds,
        clock=time.process_time,
    )
    plain, monitored = (float(timings[i].seconds.mean()) / n * 1e6 for i in range(2))
    return plain, monitored


def _turn(call: Callable[[Any], Any], parts: list[Any]) -> None:
    for part in parts:
        call(part)


if __name__ == "__main__":
    main()
