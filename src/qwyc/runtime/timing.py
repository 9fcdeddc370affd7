"""Timing several ways to do one thing on a machine that does other things as well.

Contestants take turns, so that noise hits all of them, and medians are reported. Every call is timed
by itself, so percentiles are those of calls, not of averages.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Name = TypeVar("Name")

TURN_SECONDS = 0.02  # a turn is as many calls as fit into this, and at least one
TURN_CALLS = 500  # but no more than these
LEAST_CALLS = 3  # of every contestant, but for those that are very slow
CALLS_FOR_P99 = 200  # with fewer, a 99th percentile is close to the maximum


@dataclass(frozen=True)
class Contestant:
    """One way to do it: `call` is called with one of `inputs` after the other, in a cycle."""

    call: Callable[[Any], object]
    inputs: Sequence[Any]
    rows: int = 1  # in each of the inputs


@dataclass(frozen=True, eq=False)
class Timing:
    """How long calls took."""

    seconds: npt.NDArray[np.float64]  # (calls,)
    rows: int  # in each call

    @property
    def calls(self) -> int:
        """How many calls were timed."""
        return len(self.seconds)

    @property
    def median(self) -> float:
        """Median seconds of a call."""
        return float(np.median(self.seconds))

    @property
    def microseconds(self) -> float:
        """Median microseconds per row."""
        return self.median / self.rows * 1e6

    @property
    def rows_per_second(self) -> float:
        """Rows per second, from the median."""
        return self.rows / self.median

    def percentile(self, q: float) -> float | None:
        """Microseconds of a call at percentile q; None where so few calls do not show it."""
        if self.calls < CALLS_FOR_P99:
            return None
        return float(np.percentile(self.seconds, q) * 1e6)


def interleave(
    contestants: Mapping[Name, Contestant],
    *,
    seconds: float,
    patience: float = 8.0,
    pause: float = 0.0,
    clock: Callable[[], float] = time.perf_counter,
    report: Callable[[float], None] = lambda share: None,
) -> dict[Name, Timing]:
    """Time contestants in turn until each has spent `seconds`, and at least three calls each.

    A contestant that takes more than `patience` seconds for one call is timed once. The first call of
    a turn finds the caches full of the others' data and is not counted, unless a turn is one call.
    `pause` is slept before each turn: threads of the one before may still be spinning. With
    `time.process_time` for a `clock`, what other programs take from a busy machine is not counted.
    `report` is called with the share of the time that has passed.
    """
    spent: dict[Name, list[float]] = {name: [] for name in contestants}
    turn: dict[Name, int] = {}
    at = dict.fromkeys(contestants, 0)

    def call(name: Name) -> float:
        contestant = contestants[name]
        rows = contestant.inputs[at[name] % len(contestant.inputs)]
        at[name] += 1
        started = clock()
        contestant.call(rows)
        return clock() - started

    def wanted(name: Name) -> bool:
        times = spent[name]
        if not times:
            return True
        if max(times) > patience:
            return False
        return len(times) < LEAST_CALLS or sum(times) < seconds

    with _without_garbage_collection():
        for name in contestants:  # one call to warm up, and to find how many calls a turn has
            first = call(name)
            if first < 1:
                first = call(name)  # the very first call may include set-up
            if first > TURN_SECONDS:  # slow enough that being the first makes little difference
                spent[name].append(first)
            turn[name] = max(1, min(TURN_CALLS, int(TURN_SECONDS / max(first, 1e-7))))
        names = list(contestants)
        while waiting := [name for name in names if wanted(name)]:
            for name in waiting:
                if pause:
                    time.sleep(pause)
                if turn[name] > 1:
                    call(name)
                for _ in range(turn[name]):
                    spent[name].append(call(name))
            names = names[1:] + names[:1]  # so that no contestant always follows the same one
            report(sum(min(1.0, sum(times) / seconds) for times in spent.values()) / len(spent))
    return {name: Timing(np.array(times), contestants[name].rows) for name, times in spent.items()}


def clock_microseconds() -> float:
    """What timing a call that does nothing shows, at the median."""
    empty = interleave({"": Contestant(lambda _: None, [None])}, seconds=0.002)
    return empty[""].microseconds


def batches(X: npt.NDArray[Any], rows: int) -> list[npt.NDArray[Any]]:
    """Consecutive parts of X, each with `rows` rows; X itself where it has no more than that."""
    most = max(1, min(1000, len(X) // rows))
    return [X[i * rows : (i + 1) * rows] for i in range(most)]


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
