"""Thresholds on the lead of many classes by optimal stopping: a family of policies along one order,
cautious to bold.

It is the method of `stopping.py`. A row can quit for the class that leads only, so there is one threshold
for each step, on the lead (native/fit/lead_stopping.cpp; its NumPy twin is tests/oracle/leads.py). All
classes share it unless disagreements have weights, since most classes have too few rows for thresholds of
their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import OptionError
from qwyc.policy.fit.lead_problem import LeadProblem
from qwyc.policy.fit.stopping import (
    DEFAULT,
    FIRST_PENALTY,
    MOST_MEMBERS,
    SCHEDULE,
    WIDER,
    Settings,
)
from qwyc.policy.lead_path import LeadPath
from qwyc.runtime.memory import check_path_capacity
from qwyc.runtime.progress import ProgressOption, progress_reporter

# Shares of rows decided differently at which two paths are compared.
COMPARED_AT = (0.002, 0.005, 0.01, 0.02)
BYTES_PER_LEAD = 16  # `Candidate` in native/fit/lead_stopping.hpp


def fit_lead_path(
    problem: LeadProblem,
    order: npt.NDArray[np.int32],
    *,
    weights: Sequence[float] | None = None,
    settings: Settings = DEFAULT,
    progress: ProgressOption = False,
) -> LeadPath:
    """The whole path on a sample. `weights` (K,) multiply the penalty of a disagreement, by the full
    decision that is lost; with weights that differ, each class has thresholds of its own. A class that
    leads fewer than `settings.fewest_rows` rows at a step keeps its threshold, which is inf at first."""
    N, T, costs = problem.n_rows, problem.n_models, problem.costs.along(order)
    check_path_capacity(N, T, needed=BYTES_PER_LEAD * N * T)
    fit, pool = lead_fit(problem, order, weights, settings)
    cores, unit = problem.cores, float(costs.mean())
    leads, penalties = [np.full((T, problem.n_classes), np.inf)], [np.inf]
    penalty, sweeps = FIRST_PENALTY, settings.first_sweeps
    with progress_reporter(progress, "Fitting thresholds", MOST_MEMBERS) as report:
        while len(penalties) < MOST_MEMBERS:
            for _ in range(sweeps):
                found, differing, steps = fit.sweep(penalty * unit, cores)
            lead = found[:, pool]
            if len(penalties) == 1:
                # between it and "never quit", for alphas far below what it risks
                leads += [(1 + by) * lead for by in WIDER]
                penalties += [np.inf] * len(WIDER)
            leads.append(lead)
            penalties.append(penalty)
            report(len(penalties))
            if differing > settings.boldest * N or steps <= N:
                break
            penalty *= next(factor for above, factor in SCHEDULE if penalty > above)
            sweeps = settings.sweeps
        report(MOST_MEMBERS)
    return LeadPath(order, np.array(leads), np.array(penalties), costs, problem.matrix.ties)


def lead_fit(
    problem: LeadProblem,
    order: npt.NDArray[np.int32],
    weights: Sequence[float] | None,
    settings: Settings,
) -> tuple[_native.LeadFit, npt.NDArray[np.int32]]:
    """Sweeps over a sample, each from the thresholds of the one before; and the pool of each class."""
    K = problem.n_classes
    weight = np.ones(K) if weights is None else np.asarray(weights, dtype=np.float64)
    if weight.shape != (K,) or not (np.isfinite(weight) & (weight > 0)).all():
        raise OptionError(f"weights must be {K} positive numbers, one per class; got {weights!r}")
    alike = bool((weight == weight[0]).all())
    pool = np.zeros(K, dtype=np.int32) if alike else np.arange(K, dtype=np.int32)
    fit = _native.LeadFit(
        problem.matrix.by_model,
        problem.base,
        problem.full,
        order,
        problem.costs.along(order),
        pool,
        weight,
        problem.cores,
        **settings.forecast,
    )
    return fit, pool


def better_path(problem: LeadProblem, paths: Sequence[LeadPath]) -> LeadPath:
    """The path that costs the least on the fitting rows, on average over some shares of rows that are
    decided differently; the first of equal ones."""
    return min(paths, key=lambda path: _mean_cost(problem, path))


def _mean_cost(problem: LeadProblem, path: LeadPath) -> float:
    done = path.sums(problem.matrix, threads=problem.threads).counts()
    share = np.maximum.accumulate(done.differences.sum(axis=1)) / problem.n_rows
    return float(np.mean(np.interp(COMPARED_AT, share, done.mean_cost)))
