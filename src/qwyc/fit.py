"""fit_policy: from a score matrix to a policy. The algorithms themselves are native (native/fit.cpp)
and, as the paper writes them, in `reference.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native, stopping
from qwyc.errors import InputError, OptionError
from qwyc.fan import FanPolicy, at_alpha, at_gammas, fit_fan
from qwyc.options import (
    allowed_disagreements,
    check_alpha,
    check_choice,
    check_costs,
    check_count,
    check_number,
)
from qwyc.orders import FIXED, fixed_order
from qwyc.policy import Policy
from qwyc.progress import ProgressOption, progress_reporter
from qwyc.scores import ScoreMatrix
from qwyc.threads import thread_count

ORDERS = ("joint", *FIXED)
RULES = ("threshold", "fan", "stopping")
QUITS = ("both", "negative", "positive")
BUDGETS = ("paper", "split")

Order = str | Sequence[int] | npt.NDArray[Any]


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
    threads: int | None = None,
    progress: ProgressOption = None,
) -> Policy | FanPolicy:
    """Fit an order and thresholds on the scores of a sample.

    At most a share `alpha` of the rows *in this sample* is decided differently from the full
    ensemble; on new rows it will be more, since order and thresholds are fitted to these very rows.

    Parameters
    ----------
    scores : a ScoreMatrix, or any array (N, T) of per-model scores; the full score is their sum.
    alpha : share of the sample that may be decided differently, from 0 to below 1.
    order : "joint" (the paper's Algorithm 1), "correlation" (with the full score; the best where
        rows are new), "natural", "random" (by `seed`), "individual-mse" and "greedy-mse" (both need
        `labels`), or a permutation.
    rule : "threshold" (Algorithm 2), "stopping" (optimal stopping, all steps together; the best where
        rows are new) or "fan" (Fan et al. 2002), which gives a FanPolicy.
    quit : "both", "negative" (a filter: what is not rejected gets its full score) or "positive".
    threshold : the full decision is score >= threshold; None is the matrix's own, 0 for an array.
    costs : cost of each base model, (T,); None is 1 for all.
    labels : the truth, 0 or 1 for every row; only the two MSE orders look at it.
    budget : of disagreements at a step: "paper" lets negative quits spend all that is left and
        positive quits the rest; "split" lets negative quits spend half of what is left.
    gamma, bin_width : of rule "fan". Without gamma, the smallest that keeps `alpha` in the sample;
        without bin_width, 1% of the full score's deviation.
    """
    matrix, beta, c = _check(scores, threshold, costs)
    check_choice("rule", rule, RULES)
    check_choice("quit", quit, QUITS)
    check_choice("budget", budget, BUDGETS)
    if isinstance(order, str):
        check_choice("order", order, ORDERS)
    joint = isinstance(order, str) and order == "joint"
    if alpha is not None:
        check_alpha(alpha)
    elif rule != "fan" or joint or gamma is None:
        raise OptionError("alpha is needed: the share of decisions that may differ, such as 0.005")
    if rule != "fan" and (gamma is not None or bin_width is not None):
        raise OptionError('gamma and bin_width belong to rule="fan"')

    seed = check_count("seed", seed, least=0)
    fixed = None
    if not joint:
        fixed = fixed_order(
            order, matrix, threshold=beta, costs=c, labels=labels, seed=seed, threads=threads
        )
    if rule == "fan" and fixed is not None:
        return _fit_fan(matrix, fixed, beta, c, quit, alpha, gamma, bin_width, threads)
    if rule == "stopping" and fixed is not None:
        return _fit_stopping(matrix, fixed, beta, c, quit, alpha, threads, progress)
    T = matrix.values.shape[1]
    with progress_reporter(progress, "Fitting order and thresholds", T) as report:
        found, lower, upper = _native.fit_thresholds(
            np.ascontiguousarray(matrix.values.T),
            matrix.base,
            (matrix.full >= beta).view(np.uint8),
            c,
            np.empty(0, dtype=np.int32) if fixed is None else fixed,
            allowed_disagreements(alpha or 0.0, len(matrix.full)),
            quit in ("both", "negative"),
            quit in ("both", "positive"),
            budget == "split",
            thread_count(threads),
            report,
        )
    if rule == "fan":  # Algorithm 1's order, Fan's thresholds
        return _fit_fan(matrix, found, beta, c, quit, alpha, gamma, bin_width, threads)
    if rule == "stopping":  # Algorithm 1's order, thresholds by optimal stopping
        return _fit_stopping(matrix, found, beta, c, quit, alpha, threads, progress)
    return Policy(order=found, lower=lower, upper=upper, threshold=beta, costs=c)


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
) -> list[FanPolicy]:
    """Fan's rule at every gamma, cautious where gamma is large; options as for `fit_policy`.

    The order may be any but "joint", which needs an alpha."""
    matrix, beta, c = _check(scores, threshold, costs)
    check_choice("quit", quit, QUITS)
    if isinstance(order, str):
        check_choice("order", order, FIXED)
    fixed = fixed_order(
        order, matrix, threshold=beta, costs=c, labels=labels, seed=seed, threads=threads
    )
    fitted = fit_fan(
        matrix, fixed, threshold=beta, costs=c, quit=quit, gamma=1.0, bin_width=bin_width
    )
    return at_gammas(fitted, gammas)


def fit_path(
    scores: Any,
    *,
    order: Order = "correlation",
    quit: str = "both",
    threshold: float | None = None,
    costs: Any = None,
    labels: Any = None,
    seed: int = 0,
    threads: int | None = None,
    progress: ProgressOption = None,
) -> stopping.Path:
    """Policies by optimal stopping from "never quit" to "quit at once"; options as for `fit_policy`.

    The order may be any but "joint", which needs an alpha."""
    matrix, beta, c = _check(scores, threshold, costs)
    check_choice("quit", quit, QUITS)
    if isinstance(order, str):
        check_choice("order", order, FIXED)
    fixed = fixed_order(
        order, matrix, threshold=beta, costs=c, labels=labels, seed=seed, threads=threads
    )
    return _stopping_path(matrix, fixed, beta, c, quit, threads, progress)


def _check(
    scores: Any, threshold: Any, costs: Any
) -> tuple[ScoreMatrix, float, npt.NDArray[np.float64]]:
    matrix = scores if isinstance(scores, ScoreMatrix) else ScoreMatrix.from_array(scores)
    N, T = matrix.values.shape
    if N == 0:
        raise InputError("scores have no rows; fitting needs a sample")
    for t in range(T):
        if not np.isfinite(matrix.values[:, t]).all():
            raise InputError(f"scores must be finite; those of base model {t} are not")
    beta = check_number("threshold", matrix.threshold if threshold is None else threshold)
    return matrix, beta, check_costs(costs, T)


def _fit_fan(
    matrix: ScoreMatrix,
    order: npt.NDArray[np.int32],
    beta: float,
    costs: npt.NDArray[np.float64],
    quit: str,
    alpha: float | None,
    gamma: float | None,
    bin_width: float | None,
    threads: int | None,
) -> FanPolicy:
    fitted = fit_fan(
        matrix, order, threshold=beta, costs=costs, quit=quit, gamma=1.0, bin_width=bin_width
    )
    if gamma is not None:
        return at_gammas(fitted, [gamma])[0]
    assert alpha is not None  # fit_policy asks for one of the two
    return at_alpha(fitted, matrix, alpha, threads)


def _fit_stopping(
    matrix: ScoreMatrix,
    order: npt.NDArray[np.int32],
    beta: float,
    costs: npt.NDArray[np.float64],
    quit: str,
    alpha: float | None,
    threads: int | None,
    progress: ProgressOption,
) -> Policy:
    assert alpha is not None  # fit_policy asks for it
    path = _stopping_path(matrix, order, beta, costs, quit, threads, progress)
    allowed = allowed_disagreements(alpha, len(matrix.full))
    return stopping.at_alpha(path, matrix, allowed, threads=threads)


def _stopping_path(
    matrix: ScoreMatrix,
    order: npt.NDArray[np.int32],
    beta: float,
    costs: npt.NDArray[np.float64],
    quit: str,
    threads: int | None,
    progress: ProgressOption,
) -> stopping.Path:
    with progress_reporter(progress, "Fitting thresholds", stopping.MOST_MEMBERS) as report:
        path = stopping.fit_path(
            matrix, order, threshold=beta, costs=costs, quit=quit, threads=threads, report=report
        )
        report(stopping.MOST_MEMBERS)
    return path
