"""Two classes around a threshold: the full decision is positive where the full score reaches it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from qwyc.target.target import Decided, Floats

NEGATIVE, POSITIVE = 0, 1  # indices of the classes
DIFFERENCES = ("negative", "positive")


@dataclass(frozen=True)
class TwoClasses:
    """Decisions are 0 (negative) and 1 (positive).

    A row differs "negative" where the full decision is positive and the early one is not, and
    "positive" the other way round: the name is that of the early decision."""

    threshold: float  # the paper's beta

    kind: ClassVar[str] = "two-classes"
    n_classes: ClassVar[int] = 2
    differences: ClassVar[tuple[str, ...]] = DIFFERENCES
    only: ClassVar[int | None] = None  # which class a filter rejects is known to the policy
    at_risk: ClassVar[tuple[int, ...]] = (NEGATIVE, POSITIVE)

    def decide(self, full: Floats) -> Decided:
        """The full decision of every row, (N,). This is the decision rule; native/core/target.hpp has
        the same one."""
        return np.asarray(full >= self.threshold, dtype=np.intp)

    def count_classes(self, full: Decided) -> npt.NDArray[np.int64]:
        """Full-negative and full-positive rows, (2,)."""
        positive = int(np.count_nonzero(full))
        return np.array([len(full) - positive, positive], dtype=np.int64)

    def count_differences(self, decided: Any, full: Decided) -> npt.NDArray[np.int64]:
        """Full-positive rows decided negative, and full-negative rows decided positive, (2,)."""
        positive, full_positive = np.asarray(decided, dtype=bool), np.asarray(full, dtype=bool)
        lost = np.count_nonzero(~positive & full_positive)
        gained = np.count_nonzero(positive & ~full_positive)
        return np.array([lost, gained], dtype=np.int64)

    @staticmethod
    def differing(decided: Any, full: Decided) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """The rows that are decided differently, and in which way each: the index of the early
        decision."""
        early = np.asarray(decided, dtype=bool)
        rows = np.flatnonzero(early != np.asarray(full, dtype=bool))
        return rows, early[rows].astype(np.intp)

    @staticmethod
    def lost_from(index: int) -> tuple[int, ...]:
        """The ways in which a row of a class, by its full decision, can be decided differently."""
        return (1 - index,)
