"""How long decisions take on this machine, for the report."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from qwyc.model.ensemble import Ensemble
from qwyc.policy.rule import StoppingRule
from qwyc.promise.certified import Certified

ROWS = 8192  # in a call
FEWEST_ROWS = 2048  # a shorter batch says little about long ones
SECONDS = 0.08  # for one policy
FEWEST_CALLS, MOST_CALLS = 3, 50


def microseconds_of_policy(
    ensemble: Ensemble, policy: StoppingRule, survival: Any, rows: Any
) -> float:
    """Microseconds per row with early decisions, one thread, rows converted beforehand. `survival` (T,) is
    the share of rows that reach each step."""
    runner = ensemble.runner(policy, survival)
    some = rows[:ROWS]
    return _best(lambda: runner.decide(some, threads=1), len(some))


def microseconds_in_full(certified: Certified, rows: Any) -> float:
    """Microseconds per row of the full ensemble."""
    some, models = rows[:ROWS], certified.ensemble.base_models
    return _best(lambda: models.score_full(some, threads=1), len(some))


def _best(call: Callable[[], object], rows: int) -> float:
    """The best of several calls: whatever else the machine does only ever adds."""
    call()  # set-up
    best, spent, calls = float("inf"), 0.0, 0
    while calls < FEWEST_CALLS or (spent < SECONDS and calls < MOST_CALLS):
        started = time.perf_counter()
        call()
        took = time.perf_counter() - started
        best, spent, calls = min(best, took), spent + took, calls + 1
    return 1e6 * best / rows
