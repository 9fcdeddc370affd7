"""Fitting for many classes, as `fit_policy` and `fit_path` do it for scores (N, T, K)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import OptionError
from qwyc.policy.fit.lead_orders import LEAD_ORDERS, lead_order
from qwyc.policy.fit.lead_problem import LeadProblem
from qwyc.policy.fit.lead_stopping import better_path, fit_lead_path
from qwyc.policy.fit.orders import Order
from qwyc.policy.fit.ruling_out import fit_ruling_out
from qwyc.policy.lead_path import LeadPath
from qwyc.policy.lead_policy import LeadPolicy
from qwyc.runtime.arguments import check_choice
from qwyc.runtime.progress import ProgressOption, progress_reporter

Orders = list[npt.NDArray[np.int32]]
RULES = ("threshold", "stopping")
COMPARED = ("natural", "correlation")  # by order="auto"; the first of equal ones is taken


def refuse_options_of_two_classes(
    *,
    threshold: Any,
    quit: Any,
    labels: Any,
    budget: Any = "paper",
    gamma: Any = None,
    bin_width: Any = None,
) -> None:
    """Raise OptionError for options that mean nothing where each class has a score."""
    if threshold is not None:
        raise OptionError(
            "threshold is for two classes: with a score for each class the largest one decides"
        )
    if not isinstance(quit, str) or quit != "both":
        raise OptionError(
            f'quit must be "both" for scores of many classes, where rows quit for any class; got {quit!r}'
        )
    if labels is not None:
        raise OptionError("labels are for two classes: no order of many classes compares with them")
    if gamma is not None or bin_width is not None:
        raise OptionError("gamma and bin_width belong to Fan's rule, which is for two classes")
    if budget != "paper":
        raise OptionError(
            f'budget must be "paper" for scores of many classes, which have one threshold; got {budget!r}'
        )


def fit_leads(
    problem: LeadProblem,
    allowed: int,
    *,
    order: Order,
    rule: str,
    seed: int,
    progress: ProgressOption,
) -> LeadPolicy:
    """A policy by any order and rule that decides at most `allowed` rows of the sample differently."""
    if rule not in RULES:
        raise OptionError(
            f'rule must be "threshold" or "stopping" for scores of many classes; got {rule!r}'
        )
    orders = _orders(problem, order, seed)
    if not orders:
        policy = search(problem, None, allowed, progress=progress)
        if rule == "threshold":
            return policy
        orders = [policy.order]  # Algorithm 1's order, with the thresholds of another rule
    if rule == "threshold":
        policies = [search(problem, fixed, allowed, progress=progress) for fixed in orders]
        return _cheapest(problem, policies)
    paths = [fit_lead_path(problem, fixed, progress=progress) for fixed in orders]
    boldest = [
        path[path.boldest_within(allowed, problem.matrix, threads=problem.threads)]
        for path in paths
    ]
    return _cheapest(problem, boldest)


def fit_path_of_leads(
    problem: LeadProblem,
    *,
    order: Order,
    seed: int,
    progress: ProgressOption,
    weights: Sequence[float] | None = None,
    rule_out: bool = False,
) -> LeadPath:
    """A path by optimal stopping; with order="auto", the better one of two orders. `weights` are those of
    `fit_lead_path`. With `rule_out`, rows are tested after a few steps, which rule classes out."""
    fit = fit_ruling_out if rule_out else fit_lead_path
    orders = _orders(problem, order, seed, names=LEAD_ORDERS[1:])
    paths = [fit(problem, fixed, weights=weights, progress=progress) for fixed in orders]
    return paths[0] if len(paths) == 1 else better_path(problem, paths)


def search(
    problem: LeadProblem,
    order: npt.NDArray[np.int32] | None,
    allowed: int,
    *,
    progress: ProgressOption = False,
) -> LeadPolicy:
    """The paper's Algorithm 2 along an order, or Algorithm 1 where there is none, on leads
    (native/fit/lead_search.cpp): a threshold per step for all classes; at most `allowed` rows of the sample
    are decided differently."""
    costs = problem.costs
    with progress_reporter(progress, "Fitting order and thresholds", problem.n_models) as report:
        found, lead = _native.search_leads(
            problem.matrix.by_model,
            problem.base,
            problem.winner,
            costs.own,
            costs.parts,
            costs.need_begin,
            costs.needed_parts,
            np.empty(0, dtype=np.int32) if order is None else order,
            allowed,
            problem.cores,
            report,
        )
    by_class = np.repeat(lead[:, np.newaxis], problem.n_classes, axis=1)
    return LeadPolicy(found, by_class, costs.along(found), problem.matrix.ties)


def _orders(
    problem: LeadProblem, order: Order, seed: int, names: tuple[str, ...] = LEAD_ORDERS
) -> Orders:
    """The orders to fit along and choose from; none where Algorithm 1 is to find one."""
    if isinstance(order, str):
        check_choice("order", order, names)
        if order == "joint":
            return []
        if order == "auto":
            return [lead_order(problem, name, seed=seed) for name in COMPARED]
    return [lead_order(problem, order, seed=seed, names=names)]


def _cheapest(problem: LeadProblem, policies: list[LeadPolicy]) -> LeadPolicy:
    """The policy with the smallest mean cost on the sample, the first of equal ones."""
    if len(policies) == 1:
        return policies[0]
    return min(
        policies,
        key=lambda p: p.mean_cost(p.apply(problem.matrix, threads=problem.threads).steps),
    )
