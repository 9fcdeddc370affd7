"""The paper's Algorithms 1 and 2, done in native/fit/algorithms.cpp. tests/oracle/paper.py has both as the
paper writes them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.policy.fit.problem import Problem
from qwyc.policy.policy import Policy
from qwyc.runtime.progress import ProgressOption, progress_reporter


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
    costs = problem.costs
    with progress_reporter(progress, "Fitting order and thresholds", problem.n_models) as report:
        found, lower, upper = _native.fit_thresholds(
            problem.by_model,
            problem.matrix.base,
            problem.positive.view(np.uint8),
            costs.own,
            costs.parts,
            costs.need_begin,
            costs.needed_parts,
            np.empty(0, dtype=np.int32) if order is None else order,
            allowed,
            *problem.sides,
            split_budget,
            problem.cores,
            report,
        )
    return Policy(found, lower, upper, problem.threshold, costs.along(found))
