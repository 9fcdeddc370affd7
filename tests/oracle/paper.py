"""The paper's Algorithm 1 (Optimize Order) and Algorithm 2 (Optimize Thresholds).

Twin of native/fit/algorithms.cpp, which src/qwyc/policy/fit/paper.py calls.

Shapes: F is (N, T) scores, `positive` (N,) full decisions, `order` (T,), thresholds (T,).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from oracle.between import between
from oracle.costs import Shared, marginal_cost

Array = npt.NDArray[Any]


def optimize_order(
    F: Array,
    base: float,
    positive: Array,
    costs: Array,
    budget: int,
    quit: str,
    split: bool = False,
    shared: Shared | None = None,
) -> tuple[Array, Array, Array]:
    """Algorithm 1, "Optimize Order": each step takes the base model with the smallest evaluation time
    ratio J_r. Returns (order, lower, upper), each (T,).

    `budget` is the number of rows that may be decided differently. `quit` is "both", "negative" or
    "positive". `costs` is (T,); with `shared` parts, c_t is what base model t adds to those before it."""
    T = F.shape[1]
    order: list[int] = []
    lower, upper = np.full(T, -np.inf), np.full(T, np.inf)
    undecided = np.arange(len(F))  # C_{r-1}
    sums = np.full(len(F), base, dtype=np.float64)
    for r in range(T - 1):  # at the last step the full score decides
        if not len(undecided):
            break
        best = (np.inf, -1)
        unused = [k for k in range(T) if k not in order]
        for k in unused:
            s = sums[undecided] + F[undecided, k]
            low, high = optimize_thresholds(s, positive[undecided], budget, quit, split)
            quits = np.sum((s < low) | (s > high))
            c = marginal_cost(costs, shared, order, k)
            J = c * len(s) / quits if quits else np.inf
            if best[0] > J:
                best = (J, k)
        k = best[1] if best[1] >= 0 else unused[0]  # no row can quit: the natural order
        order.append(k)
        sums[undecided] += F[undecided, k]
        lower[r], upper[r], stays, used = fit_step(
            sums[undecided], positive[undecided], budget, quit, split
        )
        undecided, budget = undecided[stays], budget - used
    order += [k for k in range(T) if k not in order]
    return np.array(order, dtype=np.int32), lower, upper


def optimize_thresholds(
    s: Array, y: Array, budget: int, quit: str, split: bool = False
) -> tuple[float, float]:
    """Algorithm 2, "Optimize Thresholds", for one step: cuts (low, high) such that the most rows quit and
    at most `budget` of them are decided differently. The low cut is chosen first.

    Rows with s < low quit negative and rows with s > high quit positive. Both cuts are order statistics,
    so the paper's binary search is not needed. With `split`, negative quits may use half of the budget
    only. `s` is (n,) running sums and `y` is (n,) full decisions, both of the undecided rows."""
    low, high = -np.inf, np.inf
    if quit in ("both", "negative"):
        low_budget = budget // 2 if split and quit == "both" else budget
        full_positive = np.sort(s[y])
        if len(full_positive) <= low_budget:
            return np.inf, np.inf
        low = full_positive[low_budget]
        budget -= int(np.sum(full_positive < low))
    if quit in ("both", "positive"):
        full_negative = np.sort(s[~y & (s >= low)])[::-1]
        high = full_negative[budget] if len(full_negative) > budget else -np.inf
    return low, high


def fit_step(
    s: Array, y: Array, budget: int, quit: str, split: bool
) -> tuple[float, float, Array, int]:
    """Thresholds of one step, the rows that stay undecided (n,), and the part of the budget used."""
    lower, upper = place_thresholds(*optimize_thresholds(s, y, budget, quit, split), s)
    quits_negative, quits_positive = s < lower, s > upper
    used = int(np.sum(quits_negative & y) + np.sum(quits_positive & ~y))
    return lower, upper, ~(quits_negative | quits_positive), used


def place_thresholds(low: float, high: float, s: Array) -> tuple[float, float]:
    """Thresholds that separate the same rows as the cuts do. They are halfway to the next sum."""
    lower, upper = -np.inf, np.inf
    if low == np.inf:
        lower = np.nextafter(s.max(), np.inf)
    elif (s < low).any():
        lower = between(s[s < low].max(), low, low)
    if high == -np.inf:
        upper = lower if lower > -np.inf else np.nextafter(s.min(), -np.inf)
    elif (s > high).any():
        upper = between(high, s[s > high].min(), high)
    return lower, upper


def thresholds_along(
    F: Array,
    base: float,
    positive: Array,
    order: Array,
    budget: int,
    quit: str,
    split: bool = False,
) -> tuple[Array, Array]:
    """Algorithm 2 at every step of a given order: (lower, upper), each (T,)."""
    T = F.shape[1]
    lower, upper = np.full(T, -np.inf), np.full(T, np.inf)
    undecided = np.arange(len(F))
    sums = np.full(len(F), base, dtype=np.float64)
    for r in range(T - 1):
        if not len(undecided):
            break
        sums[undecided] += F[undecided, order[r]]
        lower[r], upper[r], stays, used = fit_step(
            sums[undecided], positive[undecided], budget, quit, split
        )
        undecided, budget = undecided[stays], budget - used
    return lower, upper
