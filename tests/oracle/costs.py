"""Costs where base models share parts, from their definition. Twin of src/qwyc/policy/costs.py and of
MarginalCosts in native/fit/search.hpp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Shared = tuple[
    Array, Array
]  # what shared parts cost, (P,), and which base models need them, (T, P)


def marginal_cost(own: Array, shared: Shared | None, chosen: Sequence[int], k: int) -> float:
    """What base model k costs after those `chosen`: its own cost, of (T,), and that of the parts which
    it needs and none of them does."""
    if shared is None:
        return float(own[k])
    parts, needs = shared
    paid = {p for t in chosen for p in np.flatnonzero(needs[t])}
    return float(own[k]) + sum(float(parts[p]) for p in np.flatnonzero(needs[k]) if p not in paid)


def costs_along(own: Array, shared: Shared | None, order: Sequence[int]) -> Array:
    """What each base model costs where they run in this order, (T,), by base model."""
    costs = np.empty(len(own))
    for r, k in enumerate(order):
        costs[k] = marginal_cost(own, shared, order[:r], k)
    return costs
