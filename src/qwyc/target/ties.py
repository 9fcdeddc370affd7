"""Ties: which of K classes wins where their scores are equal, or so close that probabilities are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import OptionError

# By kind and dtype, the number of the rule in native/core/ties.hpp, which says how each is computed.
CODES = {
    ("scores", "float64"): 0,
    ("softmax", "float64"): 1,
    ("softmax", "float32"): 2,
    ("sigmoid", "float64"): 3,
    ("exponentials", "float32"): 4,
    ("softmax", "mixed"): 5,
}
OVERFLOWS = 80.0  # from here on a float32 exponential, or a sum of some, may be infinite


@dataclass(frozen=True)
class Ties:
    """What the source library compares: scores, or the probabilities that it makes of them. The first of
    equal ones wins. Probabilities are rounded, so that classes may tie whose scores do not."""

    # "exponentials": a softmax that does not take the largest score off first (YDF)
    kind: str = "scores"
    # of probabilities; "mixed": float32 exponentials of float64 scores (Treelite)
    dtype: str = "float64"
    scale: float = 1.0  # of a sigmoid: 1 / (1 + exp(-scale * score))

    def __post_init__(self) -> None:
        if (self.kind, self.dtype) not in CODES:
            raise OptionError(f"there is no rule for ties of {self.kind} in {self.dtype}")

    @property
    def code(self) -> int:
        """The number of this rule in native/core/ties.hpp."""
        return CODES[self.kind, self.dtype]

    def decide(self, full: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
        """The class of each row, (N,), from its full scores (N, K)."""
        scores = np.ascontiguousarray(full, dtype=np.float64)
        return _native.decide_classes(scores, self.code, self.scale)

    def probabilities(
        self, scores: npt.NDArray[np.float64], *, threads: int = 1
    ) -> npt.NDArray[np.float64]:
        """The probabilities of the classes, (K,) or (N, K) as the scores are, as the source library
        computes them; the scores where it compares those."""
        rows = np.ascontiguousarray(np.atleast_2d(scores), dtype=np.float64)
        found = _native.class_probabilities(rows, self.code, self.scale, threads)
        return found.reshape(np.shape(scores))

    def margin(self, largest: float) -> float:
        """How far scores can be apart that the source takes for equal, if no score is larger in size than
        `largest`."""
        if self.kind == "scores":
            return 0.0
        unsafe = self.kind == "exponentials" and not largest < OVERFLOWS
        return math.inf if self.kind == "sigmoid" or unsafe else 1e-5


BY_SCORES = Ties()
