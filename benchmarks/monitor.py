"""What monitoring costs: `Monitor.predict` against `Classifier.predict`, answers checked.

    python -m benchmarks.monitor [--trees 200 500] [--rate 0.01] [--seconds 10] [--tiny]

One thread. A turn decides the same rows either way, in batches of one size. It ends with a look at the
monitor, which evaluates the rows in full that still wait, so that every turn has all of its costs. Within
a turn, the two alternate after some milliseconds, and take turns at coming first: other work on the
machine then disturbs both alike. "slower by" compares the turns at the first decile of each, which other
work has disturbed least. "of throughput" is the share of the rows per second that the monitor takes: the
median of the turns, with an interval of 95% confidence. Times are processor time."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from itertools import cycle, islice
from typing import Any

import numpy as np
import numpy.typing as npt

import qwyc
from qwyc.check.benchmark import machine

from .cache import trained
from .cases import LEARNING_RATE, TRAINING_ROWS, adult, train_xgboost
from .contest import WrongAnswer

BATCHES = (1, 4, 16, 64, 256, 1_024, 8_192, 100_000)
CHECKED_ROWS_OF_A_TURN = 16_384  # two groups or more
CALLS_OF_A_TURN = 200_000
PIECES_OF_A_TURN = 16  # after which the other one goes on
LEAST_TURNS = 3
QUIET = 0.1  # the decile


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=int, nargs="+", default=[200, 500])
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each batch size")
    parser.add_argument("--tiny", action="store_true", help="only see that it runs")
    chosen = parser.parse_args()
    print(", ".join(f"{name}: {value}" for name, value in machine().items()))
    for trees in [20] if chosen.tiny else chosen.trees:
        fast, test = classifier(trees)
        print(
            f"XGBoost, {trees} trees, depth 5; {fast.certificate.mean_models:.1f} base models per row"
        )
        print(
            f"{'batch':>12}  {'classifier':>11}  {'monitor':>11}  {'slower by':>9}  {'of throughput':>13}  "
            f"{'95% interval':>15}  turns"
        )
        sizes = (1, 16) if chosen.tiny else BATCHES
        for name, size in {"predict_one": None, **{f"{size:,}": size for size in sizes}}.items():
            plain, monitored = measured(
                fast, test, size, chosen.rate, 0.0 if chosen.tiny else chosen.seconds
            )
            least = [float(np.quantile(times, QUIET)) for times in (plain, monitored)]
            lost = 1 - plain / monitored
            low, high = median_interval(lost)
            print(
                f"{name:>12}  {least[0]:>8.4f} µs  {least[1]:>8.4f} µs  {least[1] / least[0] - 1:>9.1%}  "
                f"{np.median(lost):>13.1%}  {f'{low:.1%} to {high:.1%}':>15}  {len(plain):>5}",
                flush=True,
            )
    if hasattr(os, "getloadavg"):
        print(f"Load at the end {os.getloadavg()[0]:.2f}.")


def classifier(trees: int) -> tuple[qwyc.Classifier, Any]:
    """A classifier of XGBoost's model of UCI Adult, and 100,000 rows drawn from the test rows."""
    rows, _, test = adult()
    model = trained(train_xgboost, trees=trees, depth=5, learning_rate=LEARNING_RATE).model
    fast = qwyc.optimize(model, rows[TRAINING_ROWS:], alpha=0.01, evaluation="quit", progress=False)
    drawn = np.random.default_rng(0).integers(len(test), size=max(BATCHES))
    return fast, np.ascontiguousarray(test[drawn])


def measured(
    fast: qwyc.Classifier, test: Any, size: int | None, rate: float, seconds: float
) -> tuple[Any, Any]:
    """Microseconds per row of the classifier and of a monitor in each turn, (turns,) each, in batches of
    `size` rows; None is `predict_one`."""
    monitor = qwyc.Monitor(fast, rate=rate)
    each = size or 1
    parts = list(test) if size is None else [test[i : i + size] for i in range(0, len(test), size)]
    parts = [part for part in parts if size is None or len(part) == size]
    wanted = min(int(CHECKED_ROWS_OF_A_TURN / rate), CALLS_OF_A_TURN * each)
    if not seconds:
        wanted = 2_000  # enough to see that it runs
    parts = list(islice(cycle(parts), max(1, wanted // each)))
    n = len(parts) * each
    calls: list[Callable[[Any], Any]] = [
        way.predict_one if size is None else partial(way.predict, threads=1)
        for way in (fast, monitor)
    ]
    looks: list[Callable[[], Any]] = [lambda: None, lambda: monitor.rows_checked]
    answers = [np.hstack([call(part) for part in parts]) for call in calls]
    if not np.array_equal(*answers):
        raise WrongAnswer("the monitor decides differently from its classifier")
    if monitor.rows_seen != n or not monitor.rows_checked:
        raise WrongAnswer(f"the monitor has seen {monitor.rows_seen} rows of {n}")
    length = -(-len(parts) // PIECES_OF_A_TURN)
    pieces = [parts[i : i + length] for i in range(0, len(parts), length)]
    spent: list[list[float]] = []
    end = time.perf_counter() + seconds
    while len(spent) < LEAST_TURNS or time.perf_counter() < end:
        pair = [0.0, 0.0]
        for k, piece in enumerate(pieces):
            for i in (0, 1) if (k + len(spent)) % 2 else (1, 0):  # neither always comes first
                started = time.process_time()
                _decide(calls[i], piece)
                pair[i] += time.process_time() - started
        for i in (0, 1):
            started = time.process_time()
            looks[i]()
            pair[i] += time.process_time() - started
        spent.append([seconds / n * 1e6 for seconds in pair])
    plain, monitored = np.array(spent).T
    return plain, monitored


def _decide(call: Callable[[Any], Any], parts: list[Any]) -> None:
    for part in parts:
        call(part)


def median_interval(values: npt.NDArray[Any]) -> tuple[float, float]:
    """The median of what the values are drawn from lies between these with about 95% confidence; of fewer
    than six values, between the least and the largest with less."""
    ordered, n = np.sort(values), len(values)
    out = max(0, int(np.floor((n - 1.96 * np.sqrt(n)) / 2)))
    return float(ordered[out]), float(ordered[n - 1 - out])


if __name__ == "__main__":
    main()
