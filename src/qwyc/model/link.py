"""From scores to probabilities, and back, as the source library computes them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from qwyc import _native
from qwyc.errors import OptionError
from qwyc.target.boundary import smallest_positive


@dataclass(frozen=True)
class Link:
    """From a score to the probability of the positive class, as the source library computes it."""

    kind: str = "logistic"  # "identity": the score is the probability; "none": there is none
    scale: float = 1.0  # logistic: 1 / (1 + exp(-scale * score))
    dtype: str = "float64"  # in which the source computes that

    def probability(self, score: float) -> float:
        """The probability of the positive class at a score."""
        if self.kind == "none":
            raise OptionError("the model gives no probabilities; pass threshold as a score")
        if self.kind == "identity":
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
        try:
            return smallest_positive(
                lambda score: self.probability(score) >= probability,
                np.float32 if self.dtype == "float32" else np.float64,
            )
        except ValueError:
            raise OptionError(
                f"no score has a probability that turns at {probability!r}; pass threshold as a score"
            ) from None


LOGISTIC = Link()
