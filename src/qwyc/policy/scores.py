"""ScoreMatrix: what every base model says about every row of a sample."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import InputError
from qwyc.target.many_classes import ManyClasses
from qwyc.target.ties import BY_SCORES, Ties
from qwyc.target.two_classes import TwoClasses


@dataclass(frozen=True, eq=False)
class ScoreMatrix:
    """Per-model scores of N rows, and the full score they add up to.

    `full` is summed as the source library does it, so it may differ from `base + values.sum(1)` in
    the last bits. Where there are K classes with a score each, the full decision is the class with the
    largest full score."""

    # (N, T), or (N, T, K) for K classes; float32 or float64, one base model after the other in memory
    values: npt.NDArray[Any]
    base: Any  # what the running sum starts from: a float, or (K,)
    threshold: float  # the paper's beta; not used for K classes
    full: npt.NDArray[np.float64]  # (N,) or (N, K)
    average: bool = False  # the full score is a mean of T votes, and values are votes over T
    ties: Ties = BY_SCORES  # which of K classes wins that are equal

    @cached_property
    def target(self) -> TwoClasses | ManyClasses:
        """What the full scores decide."""
        if self.by_class:
            return ManyClasses(self.values.shape[2], self.ties)
        return TwoClasses(self.threshold)

    @property
    def by_class(self) -> bool:
        """Whether there is a score for each of K classes."""
        return self.values.ndim == 3

    @property
    def by_model(self) -> npt.NDArray[Any]:
        """Scores one base model after the other, (T, N) or (T, N, K), as the native core takes them."""
        return np.ascontiguousarray(np.swapaxes(self.values, 0, 1))

    @property
    def positive(self) -> npt.NDArray[np.bool_]:
        """Where the full decision is positive, (N,), of two classes."""
        if self.by_class:
            raise InputError("scores have several classes; target.decide(full) has the decisions")
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
        return replace(self, values=_model_after_model(self.values[rows]), full=self.full[rows])

    @classmethod
    def of(
        cls, scores: Any, *, n_models: int | None = None, n_classes: int | None = None
    ) -> ScoreMatrix:
        """A ScoreMatrix as it is, or an array wrapped as one; of `n_models` base models where given, and
        with a score for each of `n_classes` classes, or with one score for two classes."""
        matrix = cls.wrap(scores)
        found = matrix.values.shape[2] if matrix.by_class else None
        if found != n_classes:
            expected = "one score" if n_classes is None else f"{n_classes} scores"
            got = "one" if found is None else f"{found}, one for each class"
            raise InputError(f"expected {expected} per row and base model; there are {got}")
        if n_models is not None and matrix.values.shape[1] != n_models:
            raise InputError(
                f"scores have {matrix.values.shape[1]} base models; the policy has {n_models}"
            )
        return matrix

    @classmethod
    def wrap(cls, scores: Any) -> ScoreMatrix:
        """A ScoreMatrix as it is, or an array wrapped as one, of any number of base models and classes."""
        if not isinstance(scores, ScoreMatrix):
            return cls.from_array(scores)
        if scores.by_class:
            N, _, K = scores.values.shape
            base, full = np.shape(scores.base), np.shape(scores.full)
            if base != (K,) or full != (N, K):
                raise InputError(
                    f"for scores of {K} classes base must have shape ({K},) and full ({N}, {K}); got "
                    f"{base} and {full}"
                )
        return scores

    @classmethod
    def from_array(
        cls, values: Any, *, base: Any = 0.0, threshold: float = 0.0, average: bool = False
    ) -> ScoreMatrix:
        """Wrap a plain array of per-model scores, whatever made it: (N, T), or (N, T, K) for K classes of
        which the one with the largest sum is decided; then `base` is a number or one for each class."""
        try:
            array = np.asarray(values)
        except ValueError:
            raise InputError("scores must be a table: every row of the same length") from None
        if array.ndim not in (2, 3) or array.shape[1] == 0:
            raise InputError(
                "scores must be a table of N rows by T base models, T at least 1; "
                f"got an array of shape {array.shape}"
            )
        if array.ndim == 3 and array.shape[2] < 2:
            raise InputError(
                "scores of classes must have 2 classes or more, N rows by T base models by K classes; "
                f"got an array of shape {array.shape}"
            )
        if array.dtype not in (np.float32, np.float64):
            if array.dtype.kind not in "biufO":  # text and complex numbers could be cast
                raise InputError(f"scores must be numbers; got {array.dtype}")
            try:
                array = array.astype(np.float64)
            except (TypeError, ValueError):
                raise InputError(f"scores must be numbers; got {array.dtype}") from None
        array = _model_after_model(array)
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            at = tuple(bad[0])
            where = f"row {at[0]}, base model {at[1]}" + "".join(f", class {k}" for k in at[2:])
            raise InputError(
                f"scores must be finite; {where} is {array[at]}. Leave such rows out of the sample."
            )
        if array.ndim == 3:
            if threshold != 0:
                raise InputError("a threshold is for two classes; classes with scores have none")
            base = _base_of_classes(base, array.shape[2])
        full = np.full(array[:, 0].shape, base, dtype=np.float64)
        for t in range(array.shape[1]):
            full += array[:, t]  # one after the other: the order of the sum is part of the contract
        return cls(values=array, base=base, threshold=threshold, full=full, average=average)


def _model_after_model(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same array, with the scores of a base model next to each other in memory."""
    return np.swapaxes(np.ascontiguousarray(np.swapaxes(values, 0, 1)), 0, 1)


def _base_of_classes(base: Any, n_classes: int) -> npt.NDArray[np.float64]:
    """What running sums of classes start from, (K,), from a number or one for each class."""
    try:
        start = np.array(np.broadcast_to(np.asarray(base, dtype=np.float64), (n_classes,)))
    except (TypeError, ValueError):
        start = np.full(1, np.nan)
    if not np.isfinite(start).all():
        raise InputError(
            f"base must be a finite number, or one for each of {n_classes} classes; got {base!r}"
        )
    return start
