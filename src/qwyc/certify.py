"""Certificate: what is known about how often a classifier differs from the full ensemble."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qwyc.policy import Decisions, Policy


@dataclass(frozen=True)
class Certificate:
    """How often decisions differ from the full ensemble's, and on what that statement rests."""

    alpha: float  # the share that was asked for
    confidence: float | None  # with which the bound holds on new rows; None: no such promise
    rows: int  # how many rows it rests on
    disagreements: int  # how many of them were decided differently
    upper_bound: float | None  # on the share among new rows, at `confidence`
    mean_models: float  # base models evaluated per row, on the same rows
    mean_cost: float  # what they cost, by the policy's costs
    full_cost: float  # what all base models cost
    how: str  # "in-sample": measured on the very rows that the policy was fitted on

    @property
    def observed(self) -> float:
        """The share of the rows that was decided differently."""
        return self.disagreements / self.rows

    def __str__(self) -> str:
        return (
            f"In-sample, not a promise for new rows: {self.observed:.2%} of the {self.rows:,} rows it "
            f"was fitted on are decided differently (asked: at most {self.alpha:.2%})."
        )


def in_sample(
    alpha: float, policy: Policy, decisions: Decisions, positive: npt.NDArray[np.bool_]
) -> Certificate:
    """What `decisions` on the fitting rows show, against their full decisions (N,)."""
    return Certificate(
        alpha=alpha,
        confidence=None,
        rows=len(decisions),
        disagreements=int(np.count_nonzero(decisions.label.astype(bool) != positive)),
        upper_bound=None,
        mean_models=float(decisions.steps.mean()),
        mean_cost=policy.mean_cost(decisions.steps),
        full_cost=float(policy.costs.sum()),
        how="in-sample",
    )
