"""A decision threshold of which it is said whether it is a score or a probability."""

from __future__ import annotations

import math
from dataclasses import dataclass

from qwyc.errors import OptionError
from qwyc.runtime.arguments import check_number


@dataclass(frozen=True)
class Probability:
    """A decision threshold given as a probability of the positive class.

    Parameters
    ----------
    value : above 0 and below 1.
    """

    value: float

    def __post_init__(self) -> None:
        if not 0 < check_number("a probability", self.value) < 1:
            raise OptionError(f"a probability is above 0 and below 1; got {self.value!r}")


@dataclass(frozen=True)
class Score:
    """A decision threshold given in the unit of the model's full score: log-odds for most boosted trees, a
    share of votes for forests. For a model with an output calibration it is compared with the output.

    Parameters
    ----------
    value : any finite number.
    """

    value: float

    def __post_init__(self) -> None:
        if not math.isfinite(check_number("a score", self.value)):
            raise OptionError(f"a score is a finite number; got {self.value!r}")


Threshold = float | Score | Probability
