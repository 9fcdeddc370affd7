"""What methods take in the native engine, on one thread, measured in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .bench import Bench
from .curves import FAN_JOINT, FAN_STAR, JOINT_FAN, LEVEL, OURS, QWYC, Key, Point, Results, Timed

TIMED = (QWYC, OURS, FAN_STAR, ("fan", "greedy-mse"), FAN_JOINT, JOINT_FAN)


class WrongDecisionsError(RuntimeError):
    """The engine and the measured points do not agree."""


def timed(bench: Bench, results: Results, done: Callable[[], None]) -> list[Timed]:
    """The full ensemble, and each method where its test differences are nearest to 0.5%: microseconds
    per test row, all test rows in one call. The engine's decisions are checked first."""
    rows = bench.ensemble.rows(bench.data.X_test)
    chosen: dict[Key | None, Point | None] = {None: None}
    for key in TIMED:
        if key in results.curves:
            chosen[key] = results.curves[key].nearest("differ", LEVEL)
    calls = {key: _call(bench, rows, point) for key, point in chosen.items()}
    for key, point in chosen.items():
        if point is not None:
            _check(bench, calls[key](), key, point)
    taken: dict[Key | None, list[float]] = {key: [] for key in calls}
    for _ in range(bench.setting.runs):  # in turn, so that noise hits all of them
        for key, call in calls.items():
            started = time.perf_counter()
            call()
            taken[key].append(1e6 * (time.perf_counter() - started) / len(rows))
        done()
    return [
        Timed(key, results.full if point is None else point.test, np.array(taken[key]))
        for key, point in chosen.items()
    ]


def _call(bench: Bench, rows: Any, point: Point | None) -> Callable[[], Any]:
    models = bench.ensemble.base_models
    if point is None:
        return lambda: models.score_full(rows, threads=1)
    runner = bench.ensemble.runner(point.policy)
    return lambda: runner.decide(rows, threads=1)


def _check(bench: Bench, found: Any, key: Key | None, point: Point) -> None:
    label, steps, _ = found
    if not (np.array_equal(label, point.label) and np.array_equal(steps, point.steps)):
        raise WrongDecisionsError(f"{bench.experiment.name}: the engine does not decide like {key}")


@contextmanager
def stopwatch(seconds: dict[str, float], stage: str) -> Iterator[None]:
    """Add what a stage takes to a table."""
    started = time.perf_counter()
    yield
    seconds[stage] = seconds.get(stage, 0.0) + time.perf_counter() - started
