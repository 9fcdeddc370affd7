"""Within: the answer is an output, a probability or a value, and the same where it is close enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError
from qwyc.runtime.arguments import check_number
from qwyc.target.target import Decided, Floats

OFF = 1  # an early answer that is not close enough; the full answer is 0

# From full scores (N,) to the source's own outputs (N,), which never fall where scores rise.
ScoreToOutput = Callable[[Floats], npt.NDArray[Any]]


@dataclass(frozen=True)
class Within:
    """An early output is the same as the full one where it is off by no more than `tolerance`.

    Outputs are compared, and there are no classes to decide among: all full decisions are 0, and an early
    decision is `OFF` where the output is further off. So there is one way to differ."""

    tolerance: float  # in the output's own unit
    output: ScoreToOutput = field(compare=False, repr=False)

    kind: ClassVar[str] = "within"
    n_classes: ClassVar[int] = 1
    differences: ClassVar[tuple[str, ...]] = ("off",)
    only: ClassVar[int | None] = None
    at_risk: ClassVar[tuple[int, ...]] = ()  # no classes of which rows could be lost

    def __post_init__(self) -> None:
        tolerance = check_number("tolerance", self.tolerance)
        if not 0 < tolerance < np.inf:
            raise OptionError(
                f"tolerance must be a number above 0, in the unit of the model's output; got {tolerance!r}"
            )
        object.__setattr__(self, "tolerance", tolerance)

    def is_off(self, estimated: Floats, full: Floats) -> npt.NDArray[np.bool_]:
        """Where the outputs of estimated full scores are off by more than the tolerance, (N,)."""
        off = np.zeros(len(full), dtype=bool)
        differ = np.flatnonzero(estimated != full)  # also NaN
        early, exact = (self.output(scores[differ]) for scores in (estimated, full))
        gap = np.abs(early.astype(np.float64) - exact.astype(np.float64))
        off[differ] = ~(gap <= self.tolerance) & ~(early == exact)
        return off

    def decide(self, full: Floats) -> Decided:
        """Zeros, (N,)."""
        return np.zeros(len(full), dtype=np.intp)

    def count_classes(self, full: Decided) -> npt.NDArray[np.int64]:
        """The number of rows, (1,)."""
        return np.array([len(full)], dtype=np.int64)

    def count_differences(self, decided: Any, full: Decided) -> npt.NDArray[np.int64]:
        """The number of rows that are off, (1,)."""
        return np.array([np.count_nonzero(decided)], dtype=np.int64)

    def differing(
        self, decided: Any, full: Decided
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """The rows that are off, and 0 for each."""
        rows = np.flatnonzero(decided)
        return rows, np.zeros(len(rows), dtype=np.intp)

    def lost_from(self, index: int) -> tuple[int, ...]:
        """The one way to differ."""
        return (index,)
