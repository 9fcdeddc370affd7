"""The paper's Algorithms 1 and 2 (native/fit/algorithms.cpp; as the paper has them in `reference.py`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.policy import Policy
from qwyc.problem import Problem
from qwyc.progress import ProgressOption, progress_reporter


def fit_thresholds(
    problem: Problem,
    order: npt.NDArray[np.int32] | None,
    allowed: int,
    *,
    split_budget: bool = False,
    progress: ProgressOption = False,
) -> Policy:
    """Algorithm 2 along an order, or Algorithm 1 where there is none; at most `allowed` rows of the
    sample are decided differently."""
    with progress_reporter(progress, "Fitting order and thresholds", problem.n_models) as report:
        found, lower, upper = _native.fit_thresholds(
            problem.by_model,
            problem.matrix.base,
            problem.positive.view(np.uint8),
            problem.costs,
            np.empty(0, dtype=np.int32) if order is None else order,
            allowed,
            *problem.sides,
            split_budget,
            problem.cores,
            report,
        )
    return Policy(found, lower, upper, problem.threshold, problem.costs)
