"""The rule of Fan et al. (2002), as the paper's appendix describes it. Twin of
src/qwyc/policy/fit/fan.py and of the function `apply_fan` of the native module."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

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
