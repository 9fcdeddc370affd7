"""A filter for one of K classes, applied to known scores. Twin of what native/core/apply_leads.cpp and
native/core/lead_worker.hpp do for a filter.

Shapes: F is (N, T, K) scores, `base` (K,), `full` (N, K) full scores, `order` and `gap` (T,)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def apply_filter(
    F: Array, base: Array, full: Array, order: Array, gap: Array, only: int
) -> tuple[Array, Array, Array]:
    """Decide every row: labels (N,), steps (N,) and scores (N, K). A row leaves where the best other class
    is ahead of `only` by more than the gap of the step."""
    N, T, K = F.shape
    label, steps, score = full.argmax(axis=1), np.full(N, T), np.array(full, dtype=np.float64)
    others = [k for k in range(K) if k != only]
    for i in range(N):
        sums = np.array(base, dtype=np.float64)
        for r in range(T - 1):
            sums = sums + F[i, order[r]]
            best = max(others, key=lambda k: (sums[k], -k))
            if sums[best] - sums[only] > gap[r]:
                label[i], steps[i], score[i] = best, r + 1, sums
                break
    return label, steps, score
