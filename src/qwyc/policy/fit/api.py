"""fit_policy: from a score matrix to a policy, by any order and rule."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError, QwycWarning
from qwyc.policy.fan_policy import FanPolicy
from qwyc.policy.filter_path import ClassPath
from qwyc.policy.filter_policy import ClassPolicy
from qwyc.policy.fit import fan, stopping
from qwyc.policy.fit.filters import fit_filter, fit_filter_path
from qwyc.policy.fit.lead_problem import LeadProblem
from qwyc.policy.fit.leads import fit_leads, fit_path_of_leads, refuse_options_of_two_classes
from qwyc.policy.fit.orders import FIXED, Order, fixed_order
from qwyc.policy.fit.paper import fit_thresholds
from qwyc.policy.fit.problem import Problem
from qwyc.policy.path import Path
from qwyc.policy.policy import Policy
from qwyc.policy.scores import ScoreMatrix
from qwyc.runtime.arguments import allowed_disagreements, check_alpha, check_choice, check_count
from qwyc.runtime.progress import ProgressOption

ORDERS = ("joint", "joint-fan", *FIXED)
RULES = ("threshold", "fan", "stopping")
BUDGETS = ("paper", "split")
ALPHA_NEEDED = "alpha is needed: the share of decisions that may differ, such as 0.005"


def fit_policy(
    scores: Any,
    *,
    alpha: float | None = None,
    order: Order = "joint",
    rule: str = "threshold",
    quit: str = "both",
    threshold: float | None = None,
    costs: Any = None,
    labels: Any = None,
    seed: int = 0,
    budget: str = "paper",
    gamma: float | None = None,
    bin_width: float | None = None,
    only: int | None = None,
    threads: int | None = None,
    progress: ProgressOption = None,
) -> Policy | FanPolicy | ClassPolicy:
    """Fit an order and thresholds on the scores of a sample.

    At most a share `alpha` of the rows *in this sample* is decided differently from the full ensemble. On
    new rows it will be more, because order and thresholds are fitted to this sample. For scores of K
    classes, threshold, labels, budget, gamma and bin_width are refused, and `quit` must be "both".

    Parameters
    ----------
    scores : a ScoreMatrix, or any array (N, T) of per-model scores; the full score is their sum. An array
        (N, T, K) has a score for each of K classes, of which the largest sum decides; this gives a
        LeadPolicy.
    alpha : share of the sample that may be decided differently, from 0 to below 1.
    order : "joint" (the paper's Algorithm 1), "correlation" (with the full score; the best where
        rows are new), "natural", "random" (by `seed`), "individual-mse" and "greedy-mse" (both need
        `labels`), or a permutation. "joint-fan" is Algorithm 1 with Fan's rule at `gamma` in place of
        its thresholds, whatever `rule` is fitted along the order. For K classes "joint", "natural",
        "random", "correlation", a permutation, or "auto": the cheaper of natural and correlation here.
    rule : "threshold" (Algorithm 2), "stopping" (optimal stopping, all steps together; the best where
        rows are new) or "fan" (Fan et al. 2002), which gives a FanPolicy and is for two classes.
    quit : "both", "negative" (a filter: what is not rejected gets its full score) or "positive".
    threshold : the full decision is score >= threshold; None is the matrix's own, 0 for an array.
    costs : cost of each base model, (T,), or a `Costs` where base models share parts; None is 1 for
        all. Orders that look at costs ("joint", "joint-fan", "correlation") count what a base model adds
        to those before it.
    labels : the true class of every row, 0 or 1; only the two MSE orders use it.
    budget : how disagreements are shared between the two kinds of quits at a step: "paper" lets negative
        quits spend all that is left and positive quits the rest; "split" lets negative quits spend half of
        what is left.
    gamma, bin_width : parameters of the rule "fan" and of the order "joint-fan", which needs a gamma. For
        the rule, gamma is by default the smallest that keeps `alpha` in the sample, and bin_width is 1% of
        the full score's deviation.
    only : for scores of K classes, the index of one of them: a filter for this class, a FilterPolicy. Rows
        that almost certainly belong to another class leave early. `alpha` is the share of the sample that
        is lost: rows of the class that leave. The order "joint" cannot be used for filters.
    """
    check_choice("rule", rule, RULES)
    check_choice("budget", budget, BUDGETS)
    seed = check_count("seed", seed, least=0)
    scores = ScoreMatrix.wrap(scores)
    if scores.by_class:
        refuse_options_of_two_classes(
            threshold=threshold,
            quit=quit,
            labels=labels,
            budget=budget,
            gamma=gamma,
            bin_width=bin_width,
        )
        if alpha is None:
            raise OptionError(ALPHA_NEEDED)
        leads = LeadProblem.of(scores, costs, threads)
        allowed = allowed_disagreements(alpha, leads.n_rows)
        if rule == "stopping":
            _warn_of_few_rows(leads.n_rows)
        if only is not None:
            own = leads.class_index(only)
            return fit_filter(
                leads, own, allowed, order=order, rule=rule, seed=seed, progress=progress
            )
        return fit_leads(leads, allowed, order=order, rule=rule, seed=seed, progress=progress)
    refuse_only(only)
    problem = Problem.of(scores, threshold, costs, quit, threads)
    joint, joint_fan = (isinstance(order, str) and order == name for name in ("joint", "joint-fan"))
    if alpha is not None:
        check_alpha(alpha)
    elif rule != "fan" or joint or gamma is None:
        raise OptionError(ALPHA_NEEDED)
    if not joint_fan and rule != "fan" and (gamma is not None or bin_width is not None):
        raise OptionError('gamma and bin_width belong to rule="fan" and order="joint-fan"')

    allowed = allowed_disagreements(alpha or 0.0, problem.n_rows)
    fixed = None
    if joint_fan:
        fixed = _joint_fan(problem, gamma, bin_width, progress)
    elif not joint:
        fixed = fixed_order(problem, order, labels=labels, seed=seed, names=ORDERS)
    if rule == "threshold" or fixed is None:
        split = budget == "split"
        policy = fit_thresholds(problem, fixed, allowed, split_budget=split, progress=progress)
        if rule == "threshold":
            return policy
        fixed = policy.order  # Algorithm 1's order, with the thresholds of another rule
    if rule == "stopping":
        _warn_of_few_rows(problem.n_rows)
        path = stopping.fit_path(problem, fixed, progress=progress)
        return stopping.at_alpha(path, problem.matrix, allowed, threads=threads)
    fitted = fan.fit_fan(problem, fixed, bin_width)
    if gamma is not None:
        return fan.at_gamma(fitted, gamma)
    return fan.at_alpha(fitted, problem.matrix, allowed, threads=threads)


def _joint_fan(
    problem: Problem, gamma: float | None, bin_width: float | None, progress: ProgressOption
) -> npt.NDArray[np.int32]:
    if gamma is None:
        raise OptionError(
            'order="joint-fan" searches an order for one gamma: pass gamma, such as 1.5; fit_fan_path '
            "takes several"
        )
    return fan.joint_order(problem, gamma, bin_width, progress=progress)


def fit_fan_path(
    scores: Any,
    gammas: Iterable[float],
    *,
    order: Order = "individual-mse",
    quit: str = "both",
    threshold: float | None = None,
    costs: Any = None,
    labels: Any = None,
    seed: int = 0,
    bin_width: float | None = None,
    threads: int | None = None,
    progress: ProgressOption = None,
) -> list[FanPolicy]:
    """Policies by Fan's rule, one for each gamma; a larger gamma is more cautious. Options as for
    `fit_policy`.

    The order may be any except "joint", which needs an alpha. "joint-fan" searches a separate order for
    each gamma; the other orders are the same for all."""
    problem = Problem.of(scores, threshold, costs, quit, threads)
    if isinstance(order, str) and order == "joint-fan":
        path = []
        for gamma in gammas:
            found = fan.joint_order(problem, gamma, bin_width, progress=progress)
            path.append(fan.at_gamma(fan.fit_fan(problem, found, bin_width), gamma))
        return path
    names = (*FIXED, "joint-fan")
    fixed = fixed_order(problem, order, labels=labels, seed=seed, names=names)
    fitted = fan.fit_fan(problem, fixed, bin_width)
    return [fan.at_gamma(fitted, gamma) for gamma in gammas]


def fit_path(
    scores: Any,
    *,
    order: Order | None = None,
    quit: str = "both",
    threshold: float | None = None,
    costs: Any = None,
    labels: Any = None,
    seed: int = 0,
    only: int | None = None,
    threads: int | None = None,
    progress: ProgressOption = None,
) -> Path | ClassPath:
    """Policies by optimal stopping, from one that never quits to one that quits at once. Options as for
    `fit_policy`.

    The order may be any except "joint", which needs an alpha. None is "correlation". For scores of K
    classes, None is "auto", and the result is a LeadPath, or with `only`, the index of one of the classes,
    a FilterPath."""
    scores = ScoreMatrix.wrap(scores)
    if scores.by_class:
        refuse_options_of_two_classes(threshold=threshold, quit=quit, labels=labels)
        seed = check_count("seed", seed, least=0)
        leads = LeadProblem.of(scores, costs, threads)
        _warn_of_few_rows(leads.n_rows)
        wanted = "auto" if order is None else order
        if only is not None:
            own = leads.class_index(only)
            return fit_filter_path(leads, own, order=wanted, seed=seed, progress=progress)
        return fit_path_of_leads(leads, order=wanted, seed=seed, progress=progress)
    refuse_only(only)
    order = "correlation" if order is None else order
    problem = Problem.of(scores, threshold, costs, quit, threads)
    fixed = fixed_order(problem, order, labels=labels, seed=seed)
    _warn_of_few_rows(problem.n_rows)
    return stopping.fit_path(problem, fixed, progress=progress)


def refuse_only(only: Any) -> None:
    """Raise OptionError for a filter for one class, where one score decides between two."""
    if only is not None:
        raise OptionError(
            f"only={only!r} is for scores of K classes, (N, T, K); of two classes with one score, "
            'quit="negative" is such a filter'
        )


def _warn_of_few_rows(rows: int) -> None:
    """Warn where optimal stopping finds no threshold, because no step has the rows that it takes."""
    needed = stopping.DEFAULT.fewest_rows
    if rows < needed:
        warnings.warn(
            f"optimal stopping needs {needed} rows to find a threshold, and the sample has {rows}: no row "
            'will quit. Pass more rows, or fit a policy with rule="threshold"',
            QwycWarning,
            stacklevel=3,
        )
