"""EstimatePolicy: two thresholds for each step, and what the full score of a row that quits is expected to
be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError
from qwyc.policy.decisions import Decisions
from qwyc.policy.estimates import Estimates, Floats
from qwyc.policy.policy import Policy
from qwyc.target.within import Within


@dataclass(frozen=True, eq=False, repr=False)
class EstimatePolicy(Policy):
    """After step r a row quits where its running sum is below lower[r] or above upper[r]. Its answer is the
    output of the full score that is estimated from the running sum. The threshold separates the classes of
    a model that has them; quitting does not depend on it."""

    estimates: Estimates
    within: Within

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.estimates.slope) != self.n_models:
            raise OptionError(
                f"estimates are for {len(self.estimates.slope)} base models; the policy has {self.n_models}"
            )
        quits = (self.lower > -np.inf) | (self.upper < np.inf)
        if (quits[:-1] & ~self.estimates.known[:-1]).any() or quits[-1]:
            raise OptionError("rows quit at a step without an estimate of the full score")

    @property
    def target(self) -> Within:  # type: ignore[override]  # of a policy that decides between classes
        """When an early answer is the same as the full one."""
        return self.within

    def without_quitting(self) -> EstimatePolicy:
        """The same order, every row evaluated in full."""
        never = np.full(self.n_models, np.inf)
        return EstimatePolicy(
            self.order, -never, never, self.threshold, self.costs, self.estimates, self.within
        )

    def off(
        self,
        steps: npt.NDArray[np.int32],
        sums: Floats,
        full: Floats,
        *,
        threads: int | None = None,
    ) -> npt.NDArray[np.bool_]:
        """Which rows that took `steps` and have the running sums are off by more than the tolerance, given
        their full scores: (N,)."""
        return self.within.is_off(self.estimates.scores(steps, sums, threads=threads), full)

    def apply(self, scores: Any, *, threads: int | None = None) -> Decisions:
        """Rows whose scores are known: steps, and the estimated full scores. The label is the index of the
        class that the estimate decides."""
        early = super().apply(scores, threads=threads)
        estimated = self.estimates.scores(early.steps, early.score, threads=threads)
        label = (estimated >= self.threshold).astype(np.int64)
        return Decisions(label, early.steps, estimated, early.complete)

    def __repr__(self) -> str:
        return (
            f"EstimatePolicy({self.n_models} base models, quits {self.quit}, "
            f"tolerance {self.within.tolerance:g})"
        )
