"""Orders of the base models that are fixed before any threshold is fitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import OptionError
from qwyc.policy.costs import Costs, MarginalCosts
from qwyc.policy.fit.problem import Problem
from qwyc.policy.scores import ScoreMatrix
from qwyc.runtime.arguments import check_choice, check_count

FIXED = ("natural", "random", "individual-mse", "greedy-mse", "correlation")
WEIGHT_WIDTH = 0.4  # of the full score's deviation: how fast weights fall off from the threshold
RIDGE = 0.3

Order = str | Sequence[int] | npt.NDArray[Any]


def fixed_order(
    problem: Problem,
    order: Order,
    *,
    labels: Any = None,
    seed: int = 0,
    names: Sequence[str] = FIXED,
) -> npt.NDArray[np.int32]:
    """The order of one of the `names`, or the permutation that it is, (T,)."""
    matrix, T = problem.matrix, problem.n_models
    if not isinstance(order, str):
        return permutation(order, T, names)
    check_choice("order", order, names)
    seed = check_count("seed", seed, least=0)
    if order == "natural":
        return np.arange(T, dtype=np.int32)
    if order == "random":
        return np.random.default_rng(seed).permutation(T).astype(np.int32)
    if order == "correlation":
        return correlation(problem)
    target = mse_target(matrix, labels, problem.threshold, order)
    if order == "individual-mse":
        return individual_mse(matrix, target)
    return greedy_mse(matrix, target, problem.cores)


def mse_target(
    matrix: ScoreMatrix, labels: Any, threshold: float, order: str
) -> npt.NDArray[np.float64]:
    """What the base models should add up to, (N,), less the base: the label as 0 or 1 for an average
    of votes; for a sum threshold + c or - c, with c how far the full score is on the label's side on
    average, so that the target is of the scores' own size."""
    if labels is None:
        raise OptionError(
            f"order={order!r} compares base models with the truth: pass labels, one per row; "
            "'joint' and 'natural' need none"
        )
    y = np.asarray(labels)
    if y.shape != matrix.full.shape:
        raise OptionError(
            f"labels must be {len(matrix.full)} values, one per row; got shape {y.shape}"
        )
    try:
        found = set(np.unique(y).tolist())
    except TypeError:
        raise OptionError("labels must be 0 and 1; some are missing or of another type") from None
    if not (found <= {0, 1} or found <= {-1, 1}):
        raise OptionError(
            f"labels must be 0 and 1 (or -1 and 1, or booleans); got {sorted(found)[:5]}"
        )
    positive = y > 0
    if matrix.average:
        return positive.astype(np.float64) - float(matrix.base)
    side = np.where(positive, 1.0, -1.0)
    size = float(np.mean(side * (matrix.full - threshold)))
    return (size if size > 0 else 1.0) * side + (threshold - float(matrix.base))


def individual_mse(matrix: ScoreMatrix, target: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
    """Base models by their own mean squared error, best first; lowest index first on ties."""
    T = matrix.values.shape[1]
    scale = T if matrix.average else 1  # a vote over T is a vote again
    errors = [
        np.mean((scale * matrix.values[:, t].astype(np.float64) - target) ** 2) for t in range(T)
    ]
    return np.argsort(np.array(errors), kind="stable").astype(np.int32)


def greedy_mse(
    matrix: ScoreMatrix, target: npt.NDArray[np.float64], threads: int
) -> npt.NDArray[np.int32]:
    """Each time the base model that leaves the partial ensemble with the smallest mean squared error.

    With S the sum so far and a = T / r for an average (1 for a sum), the error of taking k is
    |a (S + f_k) - target|^2, so only inner products are needed: O(T^2) after one Gram matrix."""
    T = matrix.values.shape[1]
    gram = _native.gram(np.ascontiguousarray(matrix.values.T), None, None, threads)  # (T, T)
    with_target = np.array([np.sum(matrix.values[:, t] * target) for t in range(T)])
    own = np.diag(gram)
    with_sum = np.zeros(T)  # f_k . S
    unused = np.ones(T, dtype=bool)
    order = np.empty(T, dtype=np.int32)
    for r in range(T):
        a = T / (r + 1) if matrix.average else 1.0
        # |a S|^2 and -2 a S . target are the same for every k
        error = a * a * (2 * with_sum + own) - 2 * a * with_target
        order[r] = np.argmin(np.where(unused, error, np.inf))
        unused[order[r]] = False
        with_sum += gram[order[r]]
    return order


def permutation(order: Any, n_models: int, names: Sequence[str]) -> npt.NDArray[np.int32]:
    """The order that a permutation gives, (T,); `names` are what else it could have been."""
    try:
        found = np.asarray(order)
        sound = np.array_equal(np.sort(found), np.arange(n_models))
    except (TypeError, ValueError):
        sound = False
    if not sound:
        listed = ", ".join(repr(name) for name in names)
        raise OptionError(
            f"order must be one of {listed}, or a permutation of 0 to {n_models - 1}; got {order!r}"
        )
    return found.astype(np.int32)


def correlation(
    problem: Problem, *, weight_width: float = WEIGHT_WIDTH, ridge: float = RIDGE
) -> npt.NDArray[np.int32]:
    """Each time the base model that makes the partial sum correlate most with the full score.

    Thresholds absorb shift and scale, so correlation matters rather than squared error; rows near
    the threshold matter most, so they weigh more. A ridge on each base model's own variance keeps
    the order from chasing the sample. With costs, what counts is the gain per cost that the base
    model would add to those chosen."""
    matrix = problem.matrix
    spread = float(np.std(matrix.full)) or 1.0
    distance = np.abs(matrix.full - problem.threshold)
    weight = np.exp(-(distance - distance.min()) / (weight_width * spread))
    return weighted_correlation(problem, weight, ridge)


def weighted_correlation(
    problem: Problem, weight: npt.NDArray[np.float64], ridge: float
) -> npt.NDArray[np.int32]:
    """The same where rows have these weights, (N,), above 0."""
    matrix, T = problem.matrix, problem.n_models
    weight = weight / weight.sum()
    centre = np.array([np.sum(weight * matrix.values[:, t]) for t in range(T)])
    # (T, T) weighted covariances
    C = _native.gram(problem.by_model, centre, np.sqrt(weight), problem.cores)
    return most_correlated(C, problem.costs, ridge)


def most_correlated(
    C: npt.NDArray[np.float64], costs: Costs, ridge: float
) -> npt.NDArray[np.int32]:
    """Each time the base model that makes the partial sum correlate most with the sum of all, per cost,
    given the covariances C (T, T) of base models."""
    marginal, T = MarginalCosts(costs), len(C)
    with_full = C.sum(axis=1)
    own = (1 + ridge) * np.diag(C)
    unused = np.ones(T, dtype=bool)
    order = np.empty(T, dtype=np.int32)
    with_partial = np.zeros(T)  # covariance of each base model with the partial sum
    partial_full = partial = 0.0  # covariance of the partial sum with the full score; its variance
    for r in range(T):
        covariance = partial_full + with_full
        variance = partial + 2 * with_partial + own
        usable = unused & (covariance > 0) & (variance > 0)
        before = partial_full**2 / partial if partial > 0 else 0.0
        gain = np.where(usable, covariance**2 / np.where(usable, variance, 1.0) - before, -np.inf)
        # A gain is divided by its cost, a loss multiplied: either way cheap is better.
        worth = np.where(gain > 0, gain / marginal.now, gain * marginal.now)
        k = (
            int(np.argmax(np.where(usable, worth, -np.inf)))
            if usable.any()
            else int(unused.argmax())
        )
        order[r] = k
        unused[k] = False
        marginal.choose(k)
        partial_full += with_full[k]
        partial += 2 * with_partial[k] + own[k]
        with_partial += C[k]
    return order
