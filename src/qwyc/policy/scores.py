"""ScoreMatrix: what every base model says about every row of a sample."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import InputError
from qwyc.target.two_classes import TwoClasses


@dataclass(frozen=True, eq=False)
class ScoreMatrix:
    """Per-model scores of N rows, and the full score they add up to.

    `full` is summed as the source library does it, so it may differ from `base + values.sum(1)` in
    the last bits."""

    values: npt.NDArray[Any]  # (N, T) float32 or float64, column-major
    base: float  # what the running sum starts from
    threshold: float  # the paper's beta
    full: npt.NDArray[np.float64]  # (N,)
    average: bool = False  # the full score is a mean of T votes, and values are votes over T

    @cached_property
    def target(self) -> TwoClasses:
        """What the full scores decide."""
        return TwoClasses(self.threshold)

    @property
    def positive(self) -> npt.NDArray[np.bool_]:
        """Where the full decision is positive, (N,)."""
        return self.target.decide(self.full).astype(bool)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the full scores: which rows, seen through the model, these are."""
        return hashlib.sha256(self.full_bytes).hexdigest()

    @property
    def full_bytes(self) -> bytes:
        """The full scores as bytes, of which digests are made."""
        return np.ascontiguousarray(self.full).tobytes()

    def take(self, rows: npt.NDArray[np.intp]) -> ScoreMatrix:
        return replace(self, values=np.asfortranarray(self.values[rows]), full=self.full[rows])

    @classmethod
    def of(cls, scores: Any, *, n_models: int | None = None) -> ScoreMatrix:
        """A ScoreMatrix as it is, or an array wrapped as one; of `n_models` base models where given."""
        matrix = scores if isinstance(scores, ScoreMatrix) else cls.from_array(scores)
        if n_models is not None and matrix.values.shape[1] != n_models:
            raise InputError(
                f"scores have {matrix.values.shape[1]} base models; the policy has {n_models}"
            )
        return matrix

    @classmethod
    def from_array(
        cls, values: Any, *, base: float = 0.0, threshold: float = 0.0, average: bool = False
    ) -> ScoreMatrix:
        """Wrap a plain (N, T) array of per-model scores, whatever made it."""
        try:
            array = np.asarray(values)
        except ValueError:
            raise InputError("scores must be a table: every row of the same length") from None
        if array.ndim != 2 or array.shape[1] == 0:
            raise InputError(
                "scores must be a table of N rows by T base models, T at least 1; "
                f"got an array of shape {array.shape}"
            )
        if array.dtype not in (np.float32, np.float64):
            try:
                array = array.astype(np.float64)
            except (TypeError, ValueError):
                raise InputError(f"scores must be numbers; got {array.dtype}") from None
        array = np.asfortranarray(array)
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            i, t = bad[0]
            raise InputError(
                f"scores must be finite; row {i}, base model {t} is {array[i, t]}. "
                "Leave such rows out of the sample."
            )
        full = np.full(len(array), base, dtype=np.float64)
        for t in range(array.shape[1]):
            full += array[:, t]  # one after the other: the order of the sum is part of the contract
        return cls(values=array, base=base, threshold=threshold, full=full, average=average)
