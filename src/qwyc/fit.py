"""fit_policy: from a score matrix to a policy. The algorithms themselves are native (native/fit.cpp)
and, as the paper writes them, in `reference.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native, fan, stopping
from qwyc.errors import InputError, OptionError
from qwyc.fan import FanPolicy
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
    check_choice("rule", rule, RULES)
    check_choice("budget", budget, BUDGETS)
    seed = check_count("seed", seed, least=0)
    problem = Problem.of(scores, threshold, costs, quit, threads)
    joint = isinstance(order, str) and order == "joint"
    if alpha is not None:
        check_alpha(alpha)
    elif rule != "fan" or joint or gamma is None:
        raise OptionError("alpha is needed: the share of decisions that may differ, such as 0.005")
    if rule != "fan" and (gamma is not None or bin_width is not None):
        raise OptionError('gamma and bin_width belong to rule="fan"')

    allowed = allowed_disagreements(alpha or 0.0, len(problem.matrix.full))
    fixed = None if joint else problem.order(order, labels, seed, ORDERS)
    if rule == "threshold" or fixed is None:
        policy = problem.thresholds(fixed, allowed, budget == "split", progress)
        if rule == "threshold":
            return policy
        fixed = policy.order  # Algorithm 1's order, with the thresholds of another rule
    if rule == "stopping":
        path = problem.path(fixed, progress)
        return stopping.at_alpha(path, problem.matrix, allowed, threads=threads)
    fitted = problem.fan(fixed, bin_width)
    if gamma is not None:
        return fan.at_gamma(fitted, gamma)
    return fan.at_alpha(fitted, problem.matrix, allowed, threads=threads)


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
    problem = Problem.of(scores, threshold, costs, quit, threads)
    fitted = problem.fan(problem.order(order, labels, seed, FIXED), bin_width)
    return [fan.at_gamma(fitted, gamma) for gamma in gammas]


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
    problem = Problem.of(scores, threshold, costs, quit, threads)
    return problem.path(problem.order(order, labels, seed, FIXED), progress)


@dataclass(frozen=True, eq=False)
class Problem:
    """What every way of fitting needs."""

    matrix: ScoreMatrix  # of finite scores, one row at least
    threshold: float
    costs: npt.NDArray[np.float64]  # (T,)
    quit: str
    threads: int | None

    @classmethod
    def of(cls, scores: Any, threshold: Any, costs: Any, quit: str, threads: int | None) -> Problem:
        """From what a user passes, checked."""
        check_choice("quit", quit, QUITS)
        matrix = ScoreMatrix.of(scores)
        N, T = matrix.values.shape
        if N == 0:
            raise InputError("scores have no rows; fitting needs a sample")
        for t in range(T):
            if not np.isfinite(matrix.values[:, t]).all():
                raise InputError(f"scores must be finite; those of base model {t} are not")
        beta = check_number("threshold", matrix.threshold if threshold is None else threshold)
        return cls(matrix, beta, check_costs(costs, T), quit, threads)

    def order(
        self, order: Order, labels: Any, seed: int, names: Sequence[str]
    ) -> npt.NDArray[np.int32]:
        """The order of one of the `names`, or the permutation that it is."""
        if isinstance(order, str):
            check_choice("order", order, names)
        return fixed_order(
            order,
            self.matrix,
            threshold=self.threshold,
            costs=self.costs,
            labels=labels,
            seed=check_count("seed", seed, least=0),
            threads=self.threads,
        )

    def thresholds(
        self,
        order: npt.NDArray[np.int32] | None,
        allowed: int,
        split_budget: bool,
        progress: ProgressOption,
    ) -> Policy:
        """Algorithm 2 along an order, or Algorithm 1 where there is none; at most `allowed` rows are
        decided differently."""
        matrix, T = self.matrix, self.matrix.values.shape[1]
        with progress_reporter(progress, "Fitting order and thresholds", T) as report:
            found, lower, upper = _native.fit_thresholds(
                np.ascontiguousarray(matrix.values.T),
                matrix.base,
                (matrix.full >= self.threshold).view(np.uint8),
                self.costs,
                np.empty(0, dtype=np.int32) if order is None else order,
                allowed,
                self.quit in ("both", "negative"),
                self.quit in ("both", "positive"),
                split_budget,
                thread_count(self.threads),
                report,
            )
        return Policy(found, lower, upper, self.threshold, self.costs)

    def fan(self, order: npt.NDArray[np.int32], bin_width: float | None) -> FanPolicy:
        """Fan's means and deviations along an order."""
        return fan.fit_fan(
            self.matrix,
            order,
            threshold=self.threshold,
            costs=self.costs,
            quit=self.quit,
            bin_width=bin_width,
        )

    def path(
        self,
        order: npt.NDArray[np.int32],
        progress: ProgressOption,
        weights: tuple[float, float] = (1.0, 1.0),
    ) -> stopping.Path:
        """Optimal stopping along an order; `weights` of the two kinds of flips."""
        with progress_reporter(progress, "Fitting thresholds", stopping.MOST_MEMBERS) as report:
            path = stopping.fit_path(
                self.matrix,
                order,
                threshold=self.threshold,
                costs=self.costs,
                quit=self.quit,
                weights=weights,
                threads=self.threads,
                report=report,
            )
            report(stopping.MOST_MEMBERS)
        return path
