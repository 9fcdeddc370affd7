"""A policy with thresholds, applied to known scores. Twin of native/core/apply.cpp, of native/core/path.cpp
for every policy of a path, and of the early-exit engine, native/core/engine_quit.cpp."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def apply_policy(
    F: Array, base: float, full: Array, order: Array, lower: Array, upper: Array, threshold: float
) -> tuple[Array, Array, Array]:
    """Decide every row: (positive, steps, score), each (N,).

    F is (N, T) scores and `full` is (N,) full scores. At the last step the full score decides."""
    N, T = F.shape
    positive, score = full >= threshold, np.array(full, dtype=np.float64)
    steps = np.full(N, T, dtype=np.int32)
    undecided, sums = np.arange(N), np.full(N, base, dtype=np.float64)
    for r in range(T - 1):
        sums[undecided] += F[undecided, order[r]]
        s = sums[undecided]
        quits = (s < lower[r]) | (s > upper[r])
        positive[undecided[quits]] = s[quits] > upper[r]
        steps[undecided[quits]] = r + 1
        score[undecided[quits]] = s[quits]
        undecided = undecided[~quits]
    return positive, steps, score
