"""From scores to probabilities, and back, as the source library computes them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from qwyc import _native
from qwyc.errors import OptionError
from qwyc.target.boundary import smallest_positive

ROUNDING = 1e-6  # relative; of the greatest output


@dataclass(frozen=True)
class Link:
    """From a score to the probability of the positive class, as the source library computes it.

    A model with an output calibration (kind "piecewise") has outputs that are not its scores: its output
    at a score is interpolated between `points`."""

    kind: str = "logistic"  # "identity": the score is the probability; "none": there is none
    scale: float = 1.0  # logistic: 1 / (1 + exp(-scale * score))
    dtype: str = "float64"  # in which the source computes that
    points: tuple[float, ...] = ()  # piecewise: scores, rising
    outputs: tuple[float, ...] = ()  # piecewise: the model's outputs at the points, never falling
    means: str = "identity"  # piecewise: an output is a probability; or "logistic" or "none"

    def __post_init__(self) -> None:
        if self.kind != "piecewise":
            return
        steps, rises = np.diff(self.points), np.diff(self.outputs)
        if len(steps) < 1 or len(steps) != len(rises):
            raise ValueError("a piecewise link needs two or more points and an output for each")
        if not (np.isfinite(self.points).all() and np.isfinite(self.outputs).all()):
            raise ValueError("the points and outputs of a piecewise link must be finite")
        if steps.min() <= 0 or rises.min() < 0:
            raise ValueError("the points of a piecewise link must rise, and its outputs not fall")

    def output(self, score: float) -> float:
        """The model's own output at a score: the score itself but for an output calibration."""
        if self.kind != "piecewise":
            return score
        x, y = self.points, self.outputs
        if score <= x[0]:
            return y[0]
        if score >= x[-1]:
            return y[-1]
        k = bisect_right(x, score) - 1
        # The clamp keeps it from falling at a keypoint by a rounding.
        return min(
            max(y[k] + (score - x[k]) * ((y[k + 1] - y[k]) / (x[k + 1] - x[k])), y[k]), y[k + 1]
        )

    def probability(self, score: float) -> float:
        """The probability of the positive class at a score."""
        kind = self.means if self.kind == "piecewise" else self.kind
        if kind == "none":
            raise OptionError("the model gives no probabilities; pass threshold as a score")
        score = self.output(score)
        if kind == "identity":
            return score
        if self.dtype == "float32":
            one = np.float32(1)  # where exp would overflow the probability is 0 in float32 too
            return float(one / (one + np.float32(_native.exp_f32(min(-score, 88.7)))))
        return 1.0 / (1.0 + math.exp(min(-self.scale * score, 700.0)))

    def score_at(self, probability: float) -> float:
        """The smallest score at which the source gives the positive class this probability or more."""
        self.probability(0.0)  # raises where the model gives no probabilities
        if self.kind == "identity":
            return probability
        return self._turns(
            lambda score: self.probability(score) >= probability,
            f"no score has a probability that turns at {probability!r}; pass threshold as "
            + ("a number" if self.kind == "piecewise" else "a score"),
        )

    def score_of_output(self, output: float) -> float:
        """The smallest score at which the model's own output is this or more."""
        if self.kind != "piecewise":
            return output
        greatest = self.outputs[-1]
        if greatest < output <= greatest + ROUNDING * max(1.0, abs(greatest)):
            output = greatest  # the model itself adds its outputs up in float32
        return self._turns(
            lambda score: self.output(score) >= output,
            f"threshold={output!r} is compared with the model's own output, which lies between "
            f"{self.outputs[0]!r} and {self.outputs[-1]!r}, so that every row would be decided alike; pass "
            "a threshold above the least and up to the greatest output",
        )

    def _turns(self, is_positive: Callable[[float], bool], message: str) -> float:
        try:
            return smallest_positive(
                is_positive, np.float32 if self.dtype == "float32" else np.float64
            )
        except ValueError:
            raise OptionError(message) from None

    def facts(self) -> dict[str, Any]:
        """What a file holds of it; the last three fields are those of a piecewise link only."""
        facts = asdict(self)
        if self.kind == "piecewise":
            return facts | {"points": list(self.points), "outputs": list(self.outputs)}
        return {name: facts[name] for name in ("kind", "scale", "dtype")}


LOGISTIC = Link()
