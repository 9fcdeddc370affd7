"""From scores to probabilities, and back, as the source library computes them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import OptionError
from qwyc.target.boundary import smallest_positive

Floats = npt.NDArray[np.float64]

ROUNDING = 1e-6  # relative; of the greatest output
LARGEST_32 = float(np.finfo(np.float32).max)
NEAR = 1e-12  # relative; scores further apart have probabilities in the same order
NEARBY = 64  # steps of at least 2**-54, within which a softmax may rise and fall again

# How a library computes 1 / (1 + exp(-x)); the results differ in their last bits. "plain": as written here.
# "softmax": exp(x) / (1 + exp(x)) below 0 (AdaBoost of scikit-learn). "mirrored": 1 - 1 / (1 + exp(x))
# below 0 (trees of ONNX Runtime). "approximate": not known to the last bit (Sigmoid of ONNX Runtime).
FORMS = ("plain", "softmax", "mirrored", "approximate")


@dataclass(frozen=True)
class Link:
    """From a score to the probability of the positive class, as the source library computes it.

    A model with an output calibration (kind "piecewise") has outputs that are not its scores: its output
    at a score is interpolated between `points`."""

    kind: str = "logistic"  # "identity": the score is the probability; "none": there is none
    scale: float = 1.0  # logistic: 1 / (1 + exp(-scale * score))
    # In which the source computes that. Identity: "float32" rounds the score.
    dtype: str = "float64"
    points: tuple[float, ...] = ()  # piecewise: scores, rising
    outputs: tuple[float, ...] = ()  # piecewise: the model's outputs at the points, never falling
    means: str = "identity"  # piecewise: an output is a probability; or "logistic" or "none"
    form: str = "plain"  # logistic: one of FORMS

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

    @property
    def score_is_no_probability(self) -> bool:
        """Whether there are probabilities, and a threshold on them is another than one on outputs."""
        return (self.means if self.kind == "piecewise" else self.kind) == "logistic"

    def probability(self, score: float) -> float:
        """The probability of the positive class at a score."""
        kind = self.means if self.kind == "piecewise" else self.kind
        if kind == "none":
            raise OptionError("the model gives no probabilities; pass threshold as a score")
        score = self.output(score)
        if kind == "identity" and self.dtype == "float32":
            return float(np.float32(np.clip(score, -LARGEST_32, LARGEST_32)))
        return score if kind == "identity" else self._logistic(score)

    def _logistic(self, score: float) -> float:
        if self.form == "softmax":  # scikit-learn computes it with NumPy's own exp
            ratio = float(np.exp(-abs(score)))
            return (1.0 if score >= 0 else ratio) / (1.0 + ratio)
        if self.dtype == "float32":
            one = np.float32(1)  # where exp would overflow the probability is 0 in float32 too
            mirrored = self.form == "mirrored" and score < 0
            power = min(score if mirrored else -score, 88.7)
            probability = one / (one + np.float32(_native.exp_f32(power)))
            return float(one - probability if mirrored else probability)
        try:
            return 1.0 / (1.0 + math.exp(-self.scale * score))
        except OverflowError:
            return 0.0

    def score_at(self, probability: float) -> float:
        """The smallest score at which the source gives the positive class this probability or more."""
        self.probability(0.0)  # raises where the model gives no probabilities
        if self.form == "approximate":
            raise OptionError(
                "how the model's runtime rounds probabilities is not known to the last bit, so the score "
                f"at which they reach {probability!r} is not known exactly; pass threshold as a score"
            )
        if self.kind == "identity" and self.dtype == "float64":
            return probability

        def reaches(score: float) -> bool:
            return self.probability(score) >= probability

        at = self._turns(
            reaches,
            f"no score has a probability that turns at {probability!r}; pass threshold as "
            + ("a number" if self.kind == "piecewise" else "a score"),
        )
        return _first_nearby(reaches, at) if self.form == "softmax" else at

    def score_among(self, scores: Floats, probability: float) -> float:
        """The same for rows with these scores, (N,). A library's rounding may give a greater score a
        probability that is smaller in its last bit: the result then lies where these rows are decided by
        their probabilities. OptionError where no score separates them."""
        at = self.score_at(probability)
        near = np.unique(scores[np.abs(scores - at) <= NEAR * max(1.0, abs(at))])
        reaches = np.array([self.probability(float(s)) >= probability for s in near], dtype=bool)
        below, above = near[~reaches].max(initial=-np.inf), near[reaches].min(initial=np.inf)
        if below > above:
            raise OptionError(
                f"rows of X have probabilities next to {probability!r} that fall where scores rise, by "
                "the model's own rounding, so no score separates them; pass a probability a little "
                "above or below"
            )
        return float(np.clip(at, np.nextafter(below, np.inf), above))

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
            # Where a score is rounded to float32 first, it may have been a float64.
            narrow = self.dtype == "float32" and self.kind != "identity" and self.form == "plain"
            return smallest_positive(is_positive, np.float32 if narrow else np.float64)
        except ValueError:
            raise OptionError(message) from None

    def facts(self) -> dict[str, Any]:
        """What a file holds of it: points, outputs and their meaning of a piecewise link only, and the
        form where it is not plain."""
        facts = asdict(self)
        form = {} if self.form == "plain" else {"form": self.form}
        names = ["kind", "scale", "dtype"] + ["means"] * (self.kind == "piecewise")
        kept = {name: facts[name] for name in names} | form
        if self.kind == "piecewise":
            kept |= {"points": list(self.points), "outputs": list(self.outputs)}
        return kept


def _first_nearby(reaches: Callable[[float], bool], at: float) -> float:
    """The smallest score that `reaches`, close to one below which it mostly does not.

    exp(x) / (1 + exp(x)) is rounded twice, so that it falls by a last bit where the sum is rounded up.
    Equal results cover 2**-53 of x or more: steps of half that miss none."""
    step = max(float(np.spacing(abs(at))), 2.0**-54)
    first = at
    for k in range(1, NEARBY + 1):
        if reaches(at - k * step):
            first = at - k * step
    low, high = first - step, first
    while (middle := low + (high - low) / 2) not in (low, high):
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


LOGISTIC = Link()
