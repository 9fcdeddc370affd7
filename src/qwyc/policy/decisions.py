"""Decisions: what was decided about rows, and how much it took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Decisions:
    """What was decided about N rows, and how much it took."""

    label: npt.NDArray[Any]  # (N,) the class; its index where no classes are known
    steps: npt.NDArray[np.int32]  # (N,) base models evaluated
    # (N,) the full score where complete, else the running sum; (N, K) where each class has a score
    score: npt.NDArray[np.float64]
    complete: npt.NDArray[np.bool_]  # (N,) every base model was evaluated

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        if not len(self):
            return "Decisions(0 rows)"
        return (
            f"Decisions({len(self):,} rows, {self.steps.mean():.1f} base models on average, "
            f"{self.complete.mean():.1%} complete)"
        )
