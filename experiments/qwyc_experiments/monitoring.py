"""Does a monitor stay quiet while the promise holds, and how soon does it alarm when it breaks?

    python -m qwyc_experiments.monitoring [--streams 1000] [--changes 500] [--rows 120000]

Streams of checked rows, of which each differs with a known probability. The monitor's test and its interval
are looked at after every row. For comparison: an exact binomial test at the same level after every window
of a fixed number of rows, without a correction, and with the level divided by the number of windows in the
stream. Changes begin where a window begins, which is where such a test is fastest. Prints Markdown.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import numpy as np

from .internals import SLOPES, RateTest

ALPHA, CONFIDENCE = 0.01, 0.95
QUIET = 0.5  # of alpha: the rate before a change
CHANGES = (2, 3, 5)  # of alpha: the rate after it
AFTER = (0, 10_000, 100_000)  # rows before a change
WINDOWS = (500, 1_000, 2_000)


def stream(seed: int, rates: list[tuple[int, float]]) -> np.ndarray:
    """Which rows differ, (n,): so many rows at each rate, in turn."""
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.random(rows) < rate for rows, rate in rates])


def monitor_alarm(differs: np.ndarray) -> int | None:
    """After how many rows the monitor's test alarms."""
    test = RateTest(ALPHA)
    return test.after(test.start, differs, 1 / (1 - CONFIDENCE))[1]


@dataclass(frozen=True)
class Windows:
    """A binomial test after every so many rows."""

    rows: int
    corrected: bool
    horizon: int  # rows of the stream

    def alarms(self, differs: np.ndarray) -> np.ndarray:
        """After how many rows it alarms, each time."""
        from scipy.stats import binom

        tests = self.horizon // self.rows if self.corrected else 1
        level = (1 - CONFIDENCE) / tests
        least = int(binom.isf(level, self.rows, ALPHA)) + 1  # as many as this are too many
        n = len(differs) // self.rows
        counts = differs[: n * self.rows].reshape(n, self.rows).sum(axis=1)
        return (np.flatnonzero(counts >= least) + 1) * self.rows

    def __str__(self) -> str:
        return f"windows of {self.rows:,}" + (", corrected" if self.corrected else "")


def share(happened: list[bool]) -> str:
    """A share with its standard error."""
    p, n = float(np.mean(happened)), len(happened)
    return f"{p:.1%} ± {np.sqrt(p * (1 - p) / n):.1%}"


def false_alarms(streams: int, horizon: int, naive: list[Windows]) -> None:
    """Streams in which the rate never exceeds alpha."""
    rates = (1.0, 0.75, QUIET)
    found: dict[str, list[str]] = {name: [] for name in ["monitor", *map(str, naive)]}
    for rate in rates:
        alarms: dict[str, list[bool]] = {name: [] for name in found}
        for seed in range(streams):
            differs = stream(seed, [(horizon, rate * ALPHA)])
            alarms["monitor"].append(monitor_alarm(differs) is not None)
            for test in naive:
                alarms[str(test)].append(len(test.alarms(differs)) > 0)
        for name in found:
            found[name].append(share(alarms[name]))
    print(f"\nStreams with an alarm, {streams:,} streams of {horizon:,} checked rows:\n")
    print("| test | " + " | ".join(f"rate {rate:g} alpha" for rate in rates) + " |")
    print("|---|" + "---:|" * len(rates))
    for name, shares in found.items():
        print(f"| {name} | " + " | ".join(shares) + " |")


def delays(streams: int, horizon: int, naive: list[Windows]) -> None:
    """Streams in which the rate rises from below alpha to above it."""
    cases = [(k, times) for k in AFTER for times in CHANGES]
    found: dict[str, list[str]] = {name: [] for name in ["monitor", *map(str, naive)]}
    for k, times in cases:
        waited: dict[str, list[float]] = {name: [] for name in found}
        for seed in range(streams):
            rates = [(k, QUIET * ALPHA), (horizon - k, times * ALPHA)]
            differs = stream(10**6 + seed, rates)
            alarm = monitor_alarm(differs)
            if alarm is None or alarm > k:  # otherwise it is a false alarm, which others count
                waited["monitor"].append(np.inf if alarm is None else alarm - k)
            for test in naive:
                later = test.alarms(differs)
                later = later[later > k]
                waited[str(test)].append(later[0] - k if len(later) else np.inf)
        for name in found:
            median = float(np.median(waited[name]))
            found[name].append(f"{median:,.0f}" if np.isfinite(median) else "not found")
    print(
        f"\nMedian checked rows from the change to the alarm, {streams:,} streams of {horizon:,}:\n"
    )
    print("| test | " + " | ".join(f"{times} alpha after {k:,}" for k, times in cases) + " |")
    print("|---|" + "---:|" * len(cases))
    for name, medians in found.items():
        print(f"| {name} | " + " | ".join(medians) + " |")


def coverage(streams: int, horizon: int) -> None:
    """Streams in which the interval ever missed the average rate so far."""
    rows = np.arange(1, horizon + 1)
    rates = {
        "rate alpha": np.full(horizon, ALPHA),
        "rate from alpha / 2 to 3 alpha, in a straight line": np.linspace(0.5, 3, horizon) * ALPHA,
        "rate alpha / 2 and 3 alpha, 1,000 rows each": np.where(rows // 1000 % 2, 3, 0.5) * ALPHA,
    }
    needed = np.log(2 / (1 - CONFIDENCE))
    print(f"\nStreams in which the interval ever missed the average rate, {streams:,} streams of "
          f"{horizon:,} rows:\n")  # fmt: skip
    print("| rate | missed |\n|---|---:|")
    for name, rate in rates.items():
        average = np.cumsum(rate) / rows
        # Logarithms of what the evidence divides by, for both sides, (slopes, n).
        low = np.array([np.log1p(average * np.expm1(slope)) for slope in SLOPES]) * rows
        high = np.array([np.log1p((1 - average) * np.expm1(slope)) for slope in SLOPES]) * rows
        missed = []
        for seed in range(streams):
            count = np.cumsum(np.random.default_rng(seed).random(horizon) < rate)
            above = np.logaddexp.reduce(np.outer(SLOPES, count) - low, axis=0)
            below = np.logaddexp.reduce(np.outer(SLOPES, rows - count) - high, axis=0)
            missed.append(bool(max(above.max(), below.max()) - np.log(len(SLOPES)) >= needed))
        print(f"| {name} | {share(missed)} |")


def main() -> None:
    """Run all parts and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--changes", type=int, default=500)
    parser.add_argument("--rows", type=int, default=120_000)
    parser.add_argument("--coverage-rows", type=int, default=5_000)
    options = parser.parse_args()
    started = time.perf_counter()
    naive = [Windows(w, corrected, options.rows) for corrected in (False, True) for w in WINDOWS]
    print(f"alpha {ALPHA:.0%}, confidence {CONFIDENCE:.0%}; {QUIET:g} alpha before changes")
    false_alarms(options.streams, options.rows, naive)
    delays(options.changes, options.rows, naive)
    coverage(options.streams, options.coverage_rows)
    print(f"\n{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
