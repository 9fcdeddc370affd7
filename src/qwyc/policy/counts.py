"""Early decisions against full ones, counted.

Counts are plain sums over rows, so those of parts of a data set add up to those of the whole."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def count_flips(decided: Mask, full: Mask) -> tuple[int, int]:
    """How many full-positive rows were called negative, and how many full-negative ones positive."""
    return int(np.count_nonzero(~decided & full)), int(np.count_nonzero(decided & ~full))


@dataclass(frozen=True)
class Tally:
    """How a classifier did on some rows."""

    rows: int
    full_positive: int  # of them
    negative: int  # full-positive rows called negative
    positive: int  # full-negative rows called positive
    steps: int  # base models evaluated in all

    SIZE: ClassVar[int] = 5

    def numbers(self) -> Floats:
        """As SIZE numbers that can be added up, exact up to 2**53."""
        return np.array(astuple(self), dtype=np.float64)

    @classmethod
    def of(cls, numbers: Floats) -> Tally:
        """From such numbers."""
        return cls(*(int(value) for value in numbers))


@dataclass(frozen=True, eq=False)
class PathTally:
    """How all K members of a path did on some rows."""

    rows: int
    full_positive: int  # of them
    flips: npt.NDArray[np.int64]  # (K, 2) full-positive called negative, and the reverse
    steps: Floats  # (K,) base models evaluated in all
    cost: Floats  # (K,) what they cost in all

    @property
    def mean_models(self) -> Floats:
        """Base models per row, (K,); 0 for no rows."""
        return self.steps / max(self.rows, 1)

    @property
    def mean_cost(self) -> Floats:
        """What they cost per row, (K,); 0 for no rows."""
        return self.cost / max(self.rows, 1)

    @staticmethod
    def size(K: int) -> int:
        """How many numbers K members take."""
        return 2 + 4 * K

    def numbers(self) -> Floats:
        """As numbers that can be added up, (size(K),)."""
        counts = [self.rows, self.full_positive]
        return np.concatenate([counts, self.flips.ravel(), self.steps, self.cost])

    @classmethod
    def of(cls, numbers: Floats) -> PathTally:
        """From such numbers."""
        K = (len(numbers) - 2) // 4
        counts, flips, steps, cost = np.split(numbers, [2, 2 + 2 * K, 2 + 3 * K])
        rows, full_positive = (int(count) for count in counts)
        return cls(rows, full_positive, flips.astype(np.int64).reshape(K, 2), steps, cost)
