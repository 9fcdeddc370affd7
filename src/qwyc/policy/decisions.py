"""Decisions: what was decided about rows, and how much it took."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Decisions:
    """The decisions about N rows, and how many base models they took."""

    # (N,) the class; its index where no classes are known. Of a filter for one class, the best other class
    # so far where the row left early: it says "not this class", and no more.
    label: npt.NDArray[Any]
    steps: npt.NDArray[np.int32]  # (N,) base models evaluated
    # (N,) the full score where complete, else the running sum; (N, K) where each class has a score
    score: npt.NDArray[np.float64]
    complete: npt.NDArray[np.bool_]  # (N,) every base model was evaluated
    # (N,) of objects with unseen="flag": why a row was not decided, None for the others; else None. A row
    # that was not decided has the label None, 0 steps and the score NaN.
    reason: npt.NDArray[Any] | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def decided(self) -> npt.NDArray[np.bool_]:
        """Which rows were decided, (N,): all, unless unseen="flag" left some out."""
        return self.steps > 0 if self.reason is not None else np.ones(len(self), bool)

    @property
    def not_decided(self) -> int:
        """How many rows were not decided."""
        return 0 if self.reason is None else int(np.count_nonzero(self.steps == 0))

    def among(self, reason: npt.NDArray[Any], kept: npt.NDArray[np.bool_] | None) -> Decisions:
        """These decisions about n rows as decisions about all N rows, of which `kept` (N,) are the n that
        were decided; None: all of them."""
        if kept is None or kept.all():
            label = self.label.astype(object)
            return Decisions(label, self.steps, self.score, self.complete, reason=reason)
        spread = (
            np.full(len(kept), None, object),
            np.zeros(len(kept), np.int32),
            np.full((len(kept), *self.score.shape[1:]), np.nan),
            np.zeros(len(kept), bool),
        )
        own = (self.label.tolist(), self.steps, self.score, self.complete)
        for array, values in zip(spread, own, strict=True):
            array[kept] = values
        return Decisions(*spread, reason=reason)

    def __repr__(self) -> str:
        if not len(self):
            return "Decisions(0 rows)"
        left_out = self.not_decided
        if left_out == len(self):
            return f"Decisions({len(self):,} rows, none decided)"
        steps, complete = self.steps, self.complete
        if left_out:
            steps, complete = steps[self.decided], complete[self.decided]
        return (
            f"Decisions({len(self):,} rows, {steps.mean():.1f} base models on average, "
            f"{complete.mean():.1%} complete{f', {left_out:,} not decided' if left_out else ''})"
        )
