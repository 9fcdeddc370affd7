"""Ways to change what a policy is fitted on, its order and its thresholds, for `research`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import qwyc

from .internals import DEFAULT_SETTINGS, RIDGE, Problem, correlation, fit_path
from .levels import Points, at_level


@dataclass(frozen=True, eq=False)
class Case:
    """One model's scores on rows to fit on and rows to measure on."""

    fit: qwyc.ScoreMatrix
    test: qwyc.ScoreMatrix
    quit: str
    costs: np.ndarray  # (T,)


def first_rows(case: Case, n: int) -> Case:
    """The same with fewer rows to fit on."""
    return replace(case, fit=case.fit.take(np.arange(min(n, len(case.fit.full)))))


def first_models(case: Case, n: int) -> Case:
    """The same with the first base models only, as if training had stopped there."""
    T = case.fit.values.shape[1]

    def cut(matrix: qwyc.ScoreMatrix) -> qwyc.ScoreMatrix:
        scale = T / n if matrix.average else 1.0
        values = np.asfortranarray(matrix.values[:, :n].astype(np.float64) * scale)
        full = matrix.base + values.sum(axis=1)
        return replace(matrix, values=values, full=full)

    return replace(case, fit=cut(case.fit), test=cut(case.test), costs=case.costs[:n])


def with_costs(case: Case, spread: float) -> Case:
    """The same with base models of unequal cost, log-normal with this deviation."""
    costs = np.exp(spread * np.random.default_rng(7).normal(size=len(case.costs)))
    return replace(case, costs=costs / costs.mean())


def problem_of(case: Case) -> Problem:
    """What there is to fit."""
    return Problem(case.fit, case.fit.threshold, qwyc.Costs(case.costs), case.quit)


def order_of(case: Case, **constants: float) -> np.ndarray:
    """The default order with another `weight_width` or `ridge`."""
    return correlation(problem_of(case), **constants)


def path_of(case: Case, order: np.ndarray | None = None, **changes: Any) -> qwyc.Path:
    """The default path with changes to its rule, along the default order or another."""
    if order is None:
        order = order_of(case)
    return fit_path(problem_of(case), order, settings=replace(DEFAULT_SETTINGS, **changes))


def points_of(path: qwyc.Path, matrix: qwyc.ScoreMatrix) -> Points:
    """Disagreement and mean cost of every member."""
    done = path.sums(matrix).counts()
    share = done.differences.sum(axis=1) / len(matrix.full)
    return list(zip(share.tolist(), done.mean_cost.tolist(), strict=True))


def covariances(case: Case, width: float = 0.4) -> np.ndarray:
    """(T, T) weighted covariances of the base models, as the default order has them."""
    matrix = case.fit
    distance = np.abs(matrix.full - matrix.threshold)
    weight = np.exp(-(distance - distance.min()) / (width * np.std(matrix.full)))
    weight /= weight.sum()
    scaled = np.sqrt(weight)[:, None] * (matrix.values - weight @ matrix.values)
    return scaled.T @ scaled


def backward_order(case: Case, ridge: float = 0.3) -> np.ndarray:
    """Base models taken away one by one, each time the one that leaves the best correlation."""
    C = covariances(case)
    T = len(C)
    with_full, own = C.sum(axis=1), (1 + ridge) * np.diag(C)
    left = np.ones(T, dtype=bool)
    with_partial = with_full - np.diag(C) + own
    partial_full, partial = with_full.sum(), with_full.sum() + ridge * np.trace(C)
    order = np.empty(T, dtype=np.int32)
    for r in range(T - 1, -1, -1):
        covariance = partial_full - with_full
        variance = partial - 2 * with_partial + own
        sound = left & (covariance > 0) & (variance > 0)
        worth = np.where(sound, covariance**2 / np.where(sound, variance, 1.0), -1.0)
        k = int(np.argmax(np.where(left, worth, -2.0)))
        order[r], left[k] = k, False
        partial_full, partial = covariance[k], variance[k]
        with_partial -= C[k]
    return order


def by_cost(case: Case, power: float) -> np.ndarray:
    """The default order with the gain divided by a power of the cost."""
    return order_of(replace(case, costs=case.costs**power))


def by_ratio(case: Case) -> np.ndarray:
    """Greedy by the criterion itself, not its gain, over all that the base models so far cost."""
    C = covariances(case)
    T = len(C)
    with_full, own = C.sum(axis=1), (1 + RIDGE) * np.diag(C)
    with_partial, left = np.zeros(T), np.ones(T, dtype=bool)
    partial_full = partial = spent = 0.0
    order = np.empty(T, dtype=np.int32)
    for r in range(T):
        covariance, variance = partial_full + with_full, partial + 2 * with_partial + own
        sound = left & (covariance > 0) & (variance > 0)
        share = np.where(sound, covariance**2 / np.where(sound, variance, 1.0), 0.0) / C.sum()
        worth = -np.log(np.maximum(1 - share, 1e-12)) / (spent + case.costs)
        k = int(np.argmax(np.where(left, np.where(sound, worth, -1.0), -2.0)))
        order[r], left[k] = k, False
        partial_full, partial, spent = covariance[k], variance[k], spent + case.costs[k]
        with_partial += C[k]
    return order


def joint_order(case: Case) -> np.ndarray:
    """Algorithm 1's order at alpha = 0.5%."""
    policy = qwyc.fit_policy(
        case.fit, alpha=0.005, quit=case.quit, costs=case.costs, progress=False
    )
    return policy.order


def portfolio(case: Case, candidates: list[Callable[[Case], np.ndarray]]) -> qwyc.Path:
    """The order whose path is cheapest at 0.25 and 0.5% on a third of the fitting rows, refitted on all."""
    n = len(case.fit.full)
    rows = np.random.default_rng(0).permutation(n)
    inner = replace(case, fit=case.fit.take(np.sort(rows[n // 3 :])))
    held = case.fit.take(np.sort(rows[: n // 3]))

    def cost(make: Callable[[Case], np.ndarray]) -> float:
        points = points_of(path_of(inner, make(inner)), held)
        return float(sum(np.log(at_level(points, level)) for level in (0.0025, 0.005)))

    return path_of(case, min(candidates, key=cost)(case))


def smoothed(path: qwyc.Path, width: int) -> qwyc.Path:
    """Thresholds averaged over neighbouring steps, those that are infinite left out."""

    def mean(rows: np.ndarray) -> np.ndarray:
        out = rows.copy()
        for k, row in enumerate(rows):
            finite = np.isfinite(row)
            ones = np.ones(2 * width + 1)
            total = np.convolve(np.where(finite, row, 0.0), ones, mode="same")
            count = np.convolve(finite.astype(float), ones, mode="same")
            out[k] = np.where(finite, total / np.maximum(count, 1), row)
        return out

    lower = mean(path.lower)
    return replace(path, lower=lower, upper=np.maximum(lower, mean(path.upper)))


def bagged(case: Case, times: int) -> qwyc.Path:
    """Thresholds averaged over paths that are fitted on different four fifths of the rows."""
    order, n = order_of(case), len(case.fit.full)
    paths = []
    for seed in range(times):
        rows = np.sort(np.random.default_rng(seed).permutation(n)[: n * 4 // 5])
        paths.append(path_of(replace(case, fit=case.fit.take(rows)), order, boldest=0.03))
    K = min(map(len, paths))

    def middle(name: str) -> np.ndarray:
        return np.median([getattr(path, name)[:K] for path in paths], axis=0)

    return replace(
        paths[0], lower=middle("lower"), upper=middle("upper"), penalty=paths[0].penalty[:K]
    )
