"""Whether quitting early is worth its own bookkeeping: by the cost model, and by the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from qwyc.promise.certified import Certified
from qwyc.promise.evaluation import Expected, Speed

# What quitting adds to the cost of the base models that a row takes, where the family has no cost model.
BOOKKEEPING = 0.05

FEWEST_ROWS = 2048  # a shorter batch says little about long ones
ROWS = 8192  # that are timed
ROUNDS = 5

Measure = Callable[[Certified, Any], Speed | None]


def expected(certified: Certified) -> Expected:
    """What both ways cost by the family's cost model, given how many rows of the certificate reach each
    step. A family without one counts the costs that the policy was fitted with, on the rows of the
    certificate, and `BOOKKEEPING`."""
    quit, full = certified.runner.expected_cost(), certified.ensemble.base_models.expected_cost()
    if quit is not None and full is not None:
        return Expected(quit, full)
    seen = certified.certificate
    adds = 0.0 if certified.policy.quit == "never" else BOOKKEEPING
    return Expected((1 + adds) * seen.mean_cost, seen.full_cost)


def measure(certified: Certified, rows: Any) -> Speed | None:
    """Time both ways on the same rows, in turn, and take each one's best round: whatever else the machine
    does only ever adds. `rows` are as the base models take them; None where there are too few to tell."""
    if len(rows) < FEWEST_ROWS:
        return None
    some, runner, models = rows[:ROWS], certified.runner, certified.ensemble.base_models
    ways: tuple[Callable[[], object], ...] = (
        lambda: runner.decide(some, threads=1),
        lambda: models.score_full(some, threads=1),
    )
    best = [np.inf, np.inf]
    for _ in range(ROUNDS):
        for i, way in enumerate(ways):
            started = time.perf_counter()
            way()
            best[i] = min(best[i], time.perf_counter() - started)
    quit, full = (1e6 * seconds / len(some) for seconds in best)
    return Speed(quit, full, len(some))
