"""The interface of a stopping rule: an order of the base models, and what a running sum means at a step.

A new way to stop is a new file beside `policy.py` (two thresholds per step), `fan_policy.py` (two
thresholds per step and bin) and `lead_policy.py` (a threshold per step and class) with these members. What
a step compares, and what a quitting row is decided as, is known to the rule alone."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from qwyc.policy.decisions import Decisions
from qwyc.target.target import Target
from qwyc.target.two_classes import NEGATIVE, POSITIVE, TwoClasses

# What a rule says of a row after a step, besides the index of the class that the row quits with.
GO_ON = -1  # evaluate the next base model
IN_FULL = -2  # evaluate every base model; the row no longer quits


class StoppingRule(Protocol):
    """When rows quit, and with which decision."""

    @property
    def order(self) -> npt.NDArray[np.int32]:
        """The base model that runs at each step, (T,)."""

    @property
    def costs(self) -> npt.NDArray[np.float64]:
        """What each base model costs along the order, (T,), by base model."""

    @property
    def n_models(self) -> int:
        """Number of base models, T."""

    @property
    def target(self) -> Target:
        """What decides a row that never quits."""

    @property
    def quit(self) -> str:
        """Which rows may quit: "both", "negative", "positive" or "never"."""

    def outcomes(
        self, step: int, sums: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.signedinteger[Any]]:
        """What becomes of rows whose running sums after a step are these: the index of the class that a
        row quits with, GO_ON or IN_FULL."""

    def apply(self, scores: Any, *, threads: int | None = None) -> Decisions:
        """Decide rows whose scores are known: a ScoreMatrix, or an array (N, T) or (N, T, K)."""


def compare(sums: npt.NDArray[np.float64], lower: Any, upper: Any) -> npt.NDArray[np.int8]:
    """The comparison of every rule: NEGATIVE below `lower`, POSITIVE above `upper`, else GO_ON. The native
    core compares the same way (native/core/rule.hpp)."""
    outcome = np.where(sums < lower, NEGATIVE, GO_ON)
    return np.where(sums > upper, POSITIVE, outcome).astype(np.int8)


def cost_of_steps(
    order: npt.NDArray[np.int32], costs: npt.NDArray[np.float64], steps: npt.NDArray[np.int32]
) -> npt.NDArray[np.float64]:
    """What each row cost, (N,), that took the first `steps` base models of `order`."""
    return np.concatenate([[0.0], np.cumsum(costs[order])])[steps]


class AlongOrder:
    """What every rule along one order has."""

    order: npt.NDArray[np.int32]  # (T,)
    costs: npt.NDArray[np.float64]  # (T,)

    @property
    def n_models(self) -> int:
        """Number of base models, T."""
        return len(self.order)

    def mean_cost(self, steps: npt.NDArray[np.int32]) -> float:
        """Mean cost of rows that took `steps` base models each; NaN for no rows."""
        return float(cost_of_steps(self.order, self.costs, steps).mean()) if len(steps) else np.nan


class OrderedRule(AlongOrder):
    """What every rule along one order around one threshold has."""

    threshold: float

    @cached_property
    def target(self) -> TwoClasses:
        """What decides a row that never quits."""
        return TwoClasses(self.threshold)
