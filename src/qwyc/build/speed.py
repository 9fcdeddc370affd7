"""Whether quitting early is worth its own bookkeeping: measured, since no count of base models tells."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from qwyc.model.ensemble import Ensemble
from qwyc.policy.policy import Policy
from qwyc.rows.selection import row_count, take

FEWEST_ROWS = 2048  # a shorter batch says little about long ones
ROWS = 8192  # that are timed
ROUNDS = 5
MARGIN = 0.8  # full evaluation must take less than this share of quitting's time to be preferred


@dataclass(frozen=True)
class Speed:
    """Time for one row, in microseconds, on one thread of this machine."""

    quit: float  # rows quit early
    full: float  # every base model on every row
    rows: int  # measured on

    @property
    def quitting_pays(self) -> bool:
        """Whether rows should quit early."""
        return self.full >= MARGIN * self.quit

    def __str__(self) -> str:
        if self.quitting_pays:
            where = f"one thread, {self.rows:,} rows, this machine"
            return f"{self.full / self.quit:.1f} times as fast as qwyc in full ({where})"
        return f"quitting early would be slower here ({self.quit:.2f} µs a row against {self.full:.2f})"


def measure(ensemble: Ensemble, policy: Policy, X: Any) -> Speed | None:
    """Time both ways on the same rows, turn by turn, and take each one's best round: whatever else the
    machine does only ever adds. None where X has too few rows to tell."""
    if row_count(X) < FEWEST_ROWS:
        return None
    rows = ensemble.matrix(take(X, np.arange(min(row_count(X), ROWS))))
    quitting, never = ensemble.quitter(policy), ensemble.quitter(policy.without_quitting())
    ways: tuple[Callable[[], object], ...] = (
        lambda: quitting.decide(rows, 1),
        lambda: never.decide(rows, 1),
    )
    best = [np.inf, np.inf]
    for _ in range(ROUNDS):
        for i, way in enumerate(ways):
            started = time.perf_counter()
            way()
            best[i] = min(best[i], time.perf_counter() - started)
    quit, full = (1e6 * seconds / len(rows) for seconds in best)
    return Speed(quit, full, len(rows))
