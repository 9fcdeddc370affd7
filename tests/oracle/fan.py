"""The rule of Fan et al. (2002), as the paper's appendix describes it, and Algorithm 1 with it. Twin of
src/qwyc/policy/fit/fan.py, of the function `apply_fan` of the native module and of
native/fit/fan_order.cpp."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from oracle.costs import Shared, marginal_cost

Array = npt.NDArray[Any]


def fit_and_apply_fan(
    F: Array,
    base: float,
    full: Array,
    new_F: Array,
    new_full: Array,
    order: Array,
    threshold: float,
    gamma: float,
    bin_width: float,
) -> tuple[Array, Array]:
    """The rule fitted on F (N, T) and applied to new_F (M, T): (positive, steps), each (M,)."""
    T = F.shape[1]
    positive, steps = new_full >= threshold, np.full(len(new_F), T, dtype=np.int32)
    g, new_g = np.full(len(F), base), np.full(len(new_F), base)
    open_rows = np.ones(len(new_F), dtype=bool)
    for r in range(T - 1):
        g, new_g = g + F[:, order[r]], new_g + new_F[:, order[r]]
        table: dict[float, tuple[float, float]] = {}
        bins = np.floor(g / bin_width)
        for b in np.unique(bins):
            gap = (g - full)[bins == b]
            table[b] = (float(gap.mean()), float(np.sqrt(np.mean((gap - gap.mean()) ** 2))))
        for i in np.flatnonzero(open_rows):
            b = np.floor(new_g[i] / bin_width)
            if b not in table:
                open_rows[i] = False  # no sample row fell into this bin: evaluate in full
                continue
            mu, sigma = table[b]
            if new_g[i] > threshold + mu + gamma * sigma:
                positive[i], steps[i], open_rows[i] = True, r + 1, False
            elif new_g[i] < threshold + mu - gamma * sigma:
                positive[i], steps[i], open_rows[i] = False, r + 1, False
    return positive, steps


def fan_order(
    F: Array,
    base: float,
    full: Array,
    threshold: float,
    gamma: float,
    bin_width: float,
    costs: Array,
    quit: str,
    shared: Shared | None = None,
) -> Array:
    """Algorithm 1 with Fan's rule, fitted at each step to the undecided rows: the order, (T,).

    Each step takes the base model with the smallest evaluation time ratio J, the first of them on ties,
    and the first of all where no row quits. `costs` is (T,); with `shared` parts, c_t is what base model
    t adds to those before it."""
    T = F.shape[1]
    order: list[int] = []
    undecided, sums = np.arange(len(F)), np.full(len(F), base, dtype=np.float64)
    for _ in range(T - 1):  # at the last step the full score decides
        if not len(undecided):
            break
        best = (np.inf, -1)
        unused = [k for k in range(T) if k not in order]
        for k in unused:
            s = sums[undecided] + F[undecided, k]
            quits = np.sum(fan_quits(s, full[undecided], threshold, gamma, bin_width, quit))
            c = marginal_cost(costs, shared, order, k)
            J = c * len(s) / quits if quits else np.inf
            if best[0] > J:
                best = (J, k)
        k = best[1] if best[1] >= 0 else unused[0]
        order.append(k)
        sums[undecided] += F[undecided, k]
        gone = fan_quits(sums[undecided], full[undecided], threshold, gamma, bin_width, quit)
        undecided = undecided[~gone]
    order += [k for k in range(T) if k not in order]
    return np.array(order, dtype=np.int32)


def fan_quits(
    s: Array, full: Array, threshold: float, gamma: float, bin_width: float, quit: str
) -> Array:
    """Which rows quit, (n,), by Fan's rule fitted to these rows: running sums (n,), full scores (n,)."""
    quits = np.zeros(len(s), dtype=bool)
    bins = np.floor(s / bin_width)
    for b in np.unique(bins):
        rows = np.flatnonzero(bins == b)
        gap = s[rows] - full[rows]
        mu = added(gap) / len(rows)
        sigma = np.sqrt(added((gap - mu) ** 2) / len(rows))
        if quit in ("both", "negative"):
            quits[rows] |= s[rows] < threshold + mu - gamma * sigma
        if quit in ("both", "positive"):
            quits[rows] |= s[rows] > threshold + mu + gamma * sigma
    return quits


def added(values: Array) -> float:
    """Their sum, one after the other: NumPy adds in another order."""
    total = 0.0
    for value in values.tolist():
        total += value
    return total
