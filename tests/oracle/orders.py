"""Orders that are fixed before thresholds are fitted. Twin of src/qwyc/policy/fit/orders.py and
native/fit/gram.cpp."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from oracle.costs import Shared, marginal_cost

Array = npt.NDArray[Any]


def correlation_order(
    F: Array,
    full: Array,
    threshold: float,
    costs: Array,
    width: float,
    ridge: float,
    shared: Shared | None = None,
) -> Array:
    """Greedy weighted correlation with the full score, from its definition. Each step takes the base
    model whose addition increases cov(sum, full)^2 / var(sum) most per cost that it adds. Returns
    (T,)."""
    T = F.shape[1]
    w = np.exp(-np.abs(full - threshold) / (width * np.std(full)))
    w /= w.sum()
    D = np.sqrt(w)[:, None] * (F - w @ F)  # weighted and centred
    total = D.sum(axis=1)
    own = ridge * (D**2).sum(axis=0)
    order: list[int] = []

    def score(chosen: list[int]) -> float:
        part = D[:, chosen].sum(axis=1)
        covariance = part @ total
        return float(covariance**2 / (part @ part + own[chosen].sum())) if covariance > 0 else -1

    for _ in range(T):
        now = score(order) if order else 0.0
        unused = [k for k in range(T) if k not in order]
        gains = {
            k: score([*order, k]) - now for k in unused if D[:, [*order, k]].sum(axis=1) @ total > 0
        }
        adds = {k: marginal_cost(costs, shared, order, k) for k in gains}
        worth = {k: g / adds[k] if g > 0 else g * adds[k] for k, g in gains.items()}
        order.append(max(worth, key=lambda k: worth[k]) if worth else unused[0])
    return np.array(order)


def greedy_mse(F: Array, target: Array, average: bool) -> Array:
    """Each step takes the base model that leaves the smallest squared error of the partial sum, or of
    the partial average. Returns (T,)."""
    T = F.shape[1]
    order: list[int] = []
    total = np.zeros(len(F))
    for r in range(T):
        scale = T / (r + 1) if average else 1.0
        errors = {
            k: np.mean((scale * (total + F[:, k]) - target) ** 2)
            for k in range(T)
            if k not in order
        }
        k = min(errors, key=lambda k: errors[k])
        order.append(k)
        total += F[:, k]
    return np.array(order)


def widest_first(width: Array, costs: Array, shared: Shared | None) -> Array:
    """The order of a proof: each step takes the base model with the widest range (T,) per cost that it
    adds. Twin of src/qwyc/promise/proof.py. Returns (T,)."""
    order: list[int] = []
    for _ in range(len(width)):
        worth = {
            k: width[k] / marginal_cost(costs, shared, order, k)
            for k in range(len(width))
            if k not in order
        }
        order.append(max(worth, key=lambda k: worth[k]))
    return np.array(order)
