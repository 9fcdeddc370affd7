"""What a source library gives for full scores: the values that its `predict` returns, or the probabilities
of its classes. Every kind is computed as the source computes it, to the last bit."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import OptionError
from qwyc.runtime.threads import thread_count
from qwyc.target.ties import Ties

# By kind and dtype, the number in native/core/outputs.hpp, which says how each is computed with the C
# library's functions.
CODES = {
    ("identity", "float64"): 0,
    ("identity", "float32"): 1,
    ("logistic", "float64"): 2,
    ("logistic", "float32"): 3,
    ("exponential", "float64"): 4,
    ("exponential", "float32"): 5,
    ("signed square", "float64"): 6,
    ("log of 1 + exponential", "float64"): 7,
    ("sign", "float32"): 8,
    ("wide exponential", "float32"): 9,
    ("table exponential", "float64"): 10,
    ("halving", "float64"): 11,
    ("halving", "float32"): 12,
}
# These the source computes with NumPy, whose exp rounds differently from the C library's: so do we.
# "by column": sums over classes are added up column by column, which rounds differently for 8 classes or
# more. "halves": the softmax of -score / 2 and score / 2.
BY_NUMPY = (
    "numpy exponential",
    "numpy softmax",
    "numpy softmax by column",
    "numpy softmax of halves",
    "path length",
)
# In float32 by the C library's exp. "single softmax": classes are added up one after the other; "mirrored":
# the logistic function of two classes, each by itself; "both shares": 1 - score and the score (trees of
# ONNX Runtime). "share": not above 1 (YDF).
# "quotient": the score by `scale`. "signed square": x |x| (Treelite). "plain logistic": 1 / (1 + exp(-x)),
# which is 0 where the exponential is infinite (YDF, Treelite); in "logistic" it never is (XGBoost).
SINGLE = (
    "single softmax",
    "mirrored",
    "both shares",
    "share",
    "quotient",
    "signed square",
    "plain logistic",
)
# CatBoost's: its own exponentials, added up class by class.
BY_TABLE = "softmax by table"
# CatBoost's: the first score, and the exponential of twice the second.
MEAN_AND_VARIANCE = "mean and variance"
# The outputs of all classes together, with the kinds and dtypes of `Ties`.
BY_TIES = "classes"


@dataclass(frozen=True)
class Output:
    """From full scores, (N,) or (N, K), to the source's own outputs."""

    kind: str = "identity"
    dtype: str = "float64"  # of the outputs
    # logistic: 1 / (1 + exp(-scale * score)); path length, halving, quotient and softmax by NumPy: what
    # divides scores
    scale: float = 1.0

    def __post_init__(self) -> None:
        known = (self.kind, self.dtype) in CODES or (
            self.kind in BY_NUMPY
            and (self.dtype == "float64" or (self.dtype, self.kind) == ("float32", "numpy softmax"))
        )
        known = known or (self.kind in (BY_TABLE, MEAN_AND_VARIANCE) and self.dtype == "float64")
        known = known or (self.kind in SINGLE and self.dtype == "float32")
        if not known and not (self.kind == BY_TIES and self.dtype in ("float32", "float64")):
            raise OptionError(f"there is no kind of output {self.kind!r} in {self.dtype}")

    def values(
        self, scores: npt.NDArray[np.float64], ties: Ties, threads: int | None = None
    ) -> npt.NDArray[Any]:
        """The outputs, of the shape of the scores. `ties` says how classes' probabilities are computed."""
        found: npt.NDArray[Any]
        if self.kind == BY_TIES:
            found = ties.probabilities(scores, threads=thread_count(threads))
        elif self.kind in SINGLE and self.dtype == "float32":
            found = self._single(scores, ties, threads)
        elif self.kind in BY_NUMPY:
            found = self._by_numpy(scores)
        elif self.kind == BY_TABLE:
            shifted = scores - scores.max(axis=1, keepdims=True)
            found = Output("table exponential").values(shifted, ties, threads)
            found /= sum(found.T[1:], start=found[:, 0]).reshape(-1, 1)
        elif self.kind == MEAN_AND_VARIANCE:
            variance = Output("table exponential").values(2.0 * scores[:, 1], ties, threads)
            found = np.column_stack([scores[:, 0], variance])
        else:
            flat = np.ascontiguousarray(scores, dtype=np.float64).reshape(-1)
            code = CODES[self.kind, self.dtype]
            found = _native.apply_output(flat, code, self.scale, thread_count(threads))
            found = found.reshape(scores.shape)
        return found.astype(self.dtype, copy=False)

    def _single(
        self, scores: npt.NDArray[np.float64], ties: Ties, threads: int | None
    ) -> npt.NDArray[Any]:
        one, x = np.float32(1), scores.astype(np.float32)
        if self.kind == "both shares":
            return np.column_stack([1 - scores, scores]).astype(np.float32)
        if self.kind == "share":
            return np.minimum(x, one)
        if self.kind == "quotient":
            return np.asarray(x / np.float32(self.scale))
        if self.kind == "signed square":
            return np.asarray(np.copysign(x * x, x))
        power = Output("exponential", "float32")
        if self.kind == "single softmax":
            shifted = (x - x.max(axis=1, keepdims=True)).astype(np.float64)
            found = power.values(shifted, ties, threads)
            return np.asarray(found / sum(found.T[1:], start=found[:, 0]).reshape(-1, 1))
        if self.kind == "plain logistic":
            return np.asarray(one / (one + power.values(-x.astype(np.float64), ties, threads)))
        # Of one score, both classes; of K scores, each class by itself.
        both = np.column_stack([-x, x]) if x.ndim == 1 else x
        high = one / (one + power.values(-np.abs(both).astype(np.float64), ties, threads))
        return np.where(both < 0, one - high, high)

    def _by_numpy(self, scores: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        if self.kind == "numpy exponential":
            return np.asarray(np.exp(scores))
        if self.kind == "path length":  # of an isolation forest
            return np.asarray(-(2.0 ** -(scores / self.scale)))
        if self.kind == "numpy softmax of halves":
            scores = np.vstack([-scores, scores]).T / 2
        elif self.scale != 1:
            scores = scores / self.scale
        order: Any = "F" if self.kind == "numpy softmax by column" else "K"
        shifted = np.array(scores, dtype=self.dtype, order=order)
        shifted -= np.max(shifted, axis=1).reshape(-1, 1)
        np.exp(shifted, out=shifted)
        shifted /= np.sum(shifted, axis=1).reshape(-1, 1)
        return shifted

    def facts(self) -> dict[str, Any]:
        """What a file holds of it."""
        return asdict(self)


IDENTITY = Output()
PROBABILITIES = Output(BY_TIES)  # in float64
