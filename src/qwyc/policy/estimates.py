"""Estimates: what the full score of a row is expected to be, from the step at which it quits and its
running sum there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import OptionError
from qwyc.runtime.threads import thread_count

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Estimates:
    """At each step a line in the running sum, plus an offset that is interpolated between knots and
    constant beyond them. native/core/estimates.hpp has the same arrays."""

    slope: Floats  # (T,) of the line
    begin: npt.NDArray[np.int64]  # (T + 1,) step r owns knots begin[r]:begin[r + 1]
    knots: Floats  # (n,) running sums, ascending within a step
    offsets: Floats  # (n,) full score less the line

    def __post_init__(self) -> None:
        kinds = {"slope": float, "begin": np.int64, "knots": float, "offsets": float}
        for name, dtype in kinds.items():
            array = np.array(getattr(self, name), dtype=dtype)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        T, n = self.slope.size, self.knots.size
        shapes = ((self.slope, T), (self.begin, T + 1), (self.knots, n), (self.offsets, n))
        if T == 0 or any(array.shape != (size,) for array, size in shapes):
            raise OptionError("estimates need a slope per step, and an offset per knot")
        counts = np.diff(self.begin)
        if self.begin[0] != 0 or self.begin[-1] != n or (counts < 0).any():
            raise OptionError("the knots of the steps do not follow each other")
        if not all(np.isfinite(a).all() for a in (self.slope, self.knots, self.offsets)):
            raise OptionError("estimates must be finite numbers")
        rising = np.diff(self.knots) > 0
        rising[self.begin[(self.begin > 0) & (self.begin < n)] - 1] = True  # the next step begins
        if not rising.all():
            raise OptionError("the knots of a step must be in ascending order")

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """The steps that have an estimate, (T,)."""
        return np.diff(self.begin) > 0

    def scores(
        self, steps: npt.NDArray[np.int32], sums: Floats, *, threads: int | None = None
    ) -> Floats:
        """The expected full scores, (N,), of rows that took `steps` (N,) base models and have the running
        sums (N,); the full scores of complete rows as they are."""
        return _native.estimate_scores(
            steps, sums, self.slope, self.begin, self.knots, self.offsets, thread_count(threads)
        )
