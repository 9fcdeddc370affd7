"""A decision threshold given as a probability."""

from __future__ import annotations

from dataclasses import dataclass

from qwyc.errors import OptionError
from qwyc.runtime.arguments import check_number


@dataclass(frozen=True)
class Probability:
    """A decision threshold given as a probability instead of a score."""

    value: float

    def __post_init__(self) -> None:
        if not 0 < check_number("a probability", self.value) < 1:
            raise OptionError(f"a probability is above 0 and below 1; got {self.value!r}")
