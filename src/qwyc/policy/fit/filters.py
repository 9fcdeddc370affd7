"""Filters for one of K classes, by the method of two classes.

What a filter compares after a step is one number: by how much its class is ahead of the best other one.
The differences of this number from step to step are scores of two classes, along a fixed order, whose rows
may quit negative; so optimal stopping and Algorithm 2 of two classes find the thresholds. They are no
scores of base models: which class is the best other one depends on what was added before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError
from qwyc.policy.costs import Costs
from qwyc.policy.filter_path import FilterPath
from qwyc.policy.filter_policy import FilterPolicy, best_others
from qwyc.policy.fit.lead_orders import lead_order
from qwyc.policy.fit.lead_problem import LeadProblem
from qwyc.policy.fit.orders import Order, fixed_order
from qwyc.policy.fit.paper import fit_thresholds
from qwyc.policy.fit.problem import Problem
from qwyc.policy.fit.stopping import fit_path
from qwyc.policy.scores import ScoreMatrix
from qwyc.runtime.arguments import check_choice
from qwyc.runtime.memory import check_path_capacity
from qwyc.runtime.progress import ProgressOption

ORDERS = ("auto", "natural", "random", "correlation")
RULES = ("threshold", "stopping")
COMPARED = ("natural", "correlation")  # by order="auto"; the first of equal ones is taken
# Shares of the rows of the class that are lost, at which two paths are compared.
COMPARED_AT = (0.01, 0.02, 0.05, 0.1)
# Penalties of a path fall in fine steps where about so many base models are at stake. Filters of fewer need
# smaller penalties: rows leave soon, and then all of them do.
USUAL_MODELS = 500
LEAST = float(np.finfo(np.float64).tiny)  # the threshold: above 0, the full decision is the class

Orders = list[npt.NDArray[np.int32]]


def fit_filter_path(
    problem: LeadProblem,
    only: int,
    *,
    order: Order,
    seed: int,
    progress: ProgressOption,
    anew: bool = False,
) -> FilterPath:
    """A path of filters for class `only` by optimal stopping; with order="auto", the better one of two
    orders on the fitting rows. `anew`: a row that completes is evaluated once more, in full, so no row
    leaves at late steps where that costs more than it saves."""
    paths = [_path(problem, only, fixed, progress) for fixed in _orders(problem, only, order, seed)]
    best = min(paths, key=lambda path: _mean_cost(problem, path)) if len(paths) > 1 else paths[0]
    return _shortened(problem, best) if anew else best


def _shortened(problem: LeadProblem, path: FilterPath) -> FilterPath:
    """The same filters up to the step after which a row is better evaluated in full at once: all of its
    class come to the end, and pay for the steps before twice."""
    gap = path.gap.copy()
    paid = np.cumsum(path.costs[path.order])  # (T,) after so many steps
    for k in range(1, len(path)):
        steps = path[k].apply(problem.matrix, threads=problem.threads).steps
        left = np.bincount(steps - 1, minlength=len(paid))[:-1]  # (T - 1,) at each step, early
        leaving = np.cumsum(left)
        rest = len(steps) - leaving
        cost = np.cumsum(left * paid[:-1]) + rest * (paid[:-1] + paid[-1])
        gap[k, int(np.argmin(cost)) + 1 :] = np.inf
    return replace(path, gap=gap)


def fit_filter(
    problem: LeadProblem,
    only: int,
    allowed: int,
    *,
    order: Order,
    rule: str,
    seed: int,
    progress: ProgressOption,
) -> FilterPolicy:
    """A filter for class `only` that loses at most `allowed` rows of the sample."""
    if rule not in RULES:
        raise OptionError(f'rule must be "threshold" or "stopping" for one class; got {rule!r}')
    found = []
    for fixed in _orders(problem, only, order, seed):
        if rule == "stopping":
            path = _path(problem, only, fixed, progress)
            at = path.boldest_within(allowed, problem.matrix, threads=problem.threads)
            found.append(path[at])
            continue
        steps = np.arange(len(fixed), dtype=np.int32)
        policy = fit_thresholds(along(problem, only, fixed), steps, allowed, progress=progress)
        found.append(_filter(problem, only, fixed, policy.lower))
    costs = [p.mean_cost(p.apply(problem.matrix, threads=problem.threads).steps) for p in found]
    return found[int(np.argmin(costs))]


def along(problem: LeadProblem, only: int, order: npt.NDArray[np.int32]) -> Problem:
    """Step r of an order as base model r of two classes: positive is class `only`."""
    matrix, base = problem.matrix, problem.base
    needed = 8 * problem.n_rows * problem.n_models
    check_path_capacity(problem.n_rows, problem.n_models, needed=needed)
    sums = np.tile(base, (problem.n_rows, 1))
    before = -best_others(base[np.newaxis], only)[1]  # (1,)
    values = np.empty((problem.n_models, problem.n_rows))
    start = float(before[0])
    for r, t in enumerate(order):
        sums += matrix.values[:, t]
        ahead = -best_others(sums, only)[1]
        values[r] = ahead - before
        before = ahead
    costs = Costs.of(problem.costs.along(order)[order], problem.n_models)
    scores = ScoreMatrix(values.T, start, LEAST, _full(problem, only))
    return Problem(scores, LEAST, costs, "negative", problem.threads)


def _full(problem: LeadProblem, only: int) -> npt.NDArray[np.float64]:
    """By how much class `only` is ahead in full, (N,): above 0 where it is the full decision, which ties
    may decide otherwise than the scores."""
    ahead = -best_others(problem.full, only)[1]
    won = problem.winner == only
    return np.where(won, np.maximum(ahead, LEAST), np.minimum(ahead, 0.0))


def _orders(problem: LeadProblem, only: int, order: Order, seed: int) -> Orders:
    """The orders to fit along and choose from."""
    if isinstance(order, str):
        check_choice("order", order, ORDERS)
        if order == "auto":
            return [_order(problem, only, name, seed) for name in COMPARED]
    return [_order(problem, only, order, seed)]


def _order(problem: LeadProblem, only: int, order: Order, seed: int) -> npt.NDArray[np.int32]:
    if not isinstance(order, str) or order != "correlation":
        return lead_order(problem, order, seed=seed, names=ORDERS)
    # The order of two classes, on the class against the best other one in full: these scores add up.
    other, rows = best_others(problem.full, only)[0], np.arange(problem.n_rows)
    values = np.empty((problem.n_models, problem.n_rows))
    for t in range(problem.n_models):
        of_model = problem.matrix.values[:, t]
        values[t] = of_model[:, only].astype(np.float64) - of_model[rows, other]
    scores = ScoreMatrix(values.T, 0.0, LEAST, _full(problem, only))
    return fixed_order(Problem(scores, LEAST, problem.costs, "negative", problem.threads), order)


def _path(
    problem: LeadProblem, only: int, order: npt.NDArray[np.int32], progress: ProgressOption
) -> FilterPath:
    steps = np.arange(len(order), dtype=np.int32)
    weight = len(order) / USUAL_MODELS
    made = along(problem, only, order)
    path = fit_path(made, steps, weights=(weight, weight), progress=progress)
    gap = -path.lower
    gap[:, -1] = np.inf  # complete: the full scores decide
    costs, matrix = problem.costs.along(order), problem.matrix
    penalty = weight * path.penalty
    return FilterPath(order, gap, penalty, costs, only, problem.n_classes, matrix.ties)


def _filter(
    problem: LeadProblem,
    only: int,
    order: npt.NDArray[np.int32],
    lower: npt.NDArray[np.float64],
) -> FilterPolicy:
    costs, matrix = problem.costs.along(order), problem.matrix
    return FilterPolicy(order, -lower, costs, only, problem.n_classes, matrix.ties)


def _mean_cost(problem: LeadProblem, path: FilterPath) -> float:
    done = path.sums(problem.matrix, threads=problem.threads).counts()
    rows = max(done.by_class[path.only], 1)
    share = np.maximum.accumulate(done.differences[:, path.only]) / rows
    return float(np.mean(np.interp(COMPARED_AT, share, done.mean_cost)))
