"""Policies that rule classes out, for base models with a tree for each class: a row then needs only the
trees of classes that can still win.

Finding the rows of each class takes as long as some trees, so rows are tested after a few steps only. The
steps between two tests are one base model to the fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from qwyc.policy.costs import Costs
from qwyc.policy.fit.lead_problem import LeadProblem
from qwyc.policy.fit.lead_stopping import fit_lead_path
from qwyc.policy.lead_path import LeadPath
from qwyc.runtime.progress import ProgressOption

# After which shares of the steps rows are tested, and once more before the last step. The first test rules
# most classes out.
TESTED_AT = (0.05, 0.2, 0.5)
# A class is ruled out if it is this much further behind than a row needs to quit.
RULED_OUT_AT = 1.3


def fit_ruling_out(
    problem: LeadProblem,
    order: npt.NDArray[np.int32],
    *,
    weights: Sequence[float] | None = None,
    progress: ProgressOption = False,
) -> LeadPath:
    """A path along an order whose policies rule classes out. `weights` are those of `fit_lead_path`."""
    T, K = problem.n_models, problem.n_classes
    ends = steps_with_tests(T)  # the last step of each part
    matrix, costs = problem.matrix, problem.costs.along(order)
    by_model = matrix.by_model  # (T, N, K)
    values = np.empty((len(matrix.full), len(ends) + 1, K))
    sums = np.broadcast_to(problem.base, (len(matrix.full), K)).copy()
    before, begin = sums.copy(), 0
    for part, end in enumerate([*ends, T - 1]):
        for step in range(begin, end + 1):
            sums += by_model[order[step]]
        values[:, part] = sums - before
        before, begin = sums.copy(), end + 1
    firsts = [0, *(end + 1 for end in ends)]
    parts = replace(
        problem,
        matrix=replace(matrix, values=values),
        costs=Costs.of(np.add.reduceat(costs, firsts), len(firsts)),
    )
    found = fit_lead_path(
        parts, np.arange(len(firsts), dtype=np.int32), weights=weights, progress=progress
    )
    lead = np.full((len(found), T, K), np.inf)
    lead[:, ends] = found.lead[:, :-1]
    drop = RULED_OUT_AT * lead.max(axis=2)  # the threshold of the class that needs the most
    return LeadPath(order, lead, found.penalty, costs, matrix.ties, drop)


def steps_with_tests(n_steps: int) -> list[int]:
    """The steps after which rows are tested; none where there is one step."""
    steps = [max(round(share * n_steps) - 1, 0) for share in TESTED_AT]
    return sorted({step for step in [*steps, n_steps - 2] if 0 <= step < n_steps - 1})
