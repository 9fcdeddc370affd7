"""The rule of Fan et al. (2002), as the paper's appendix describes it.

At each step the running sum g falls into a bin floor(g / bin_width). Over the sample rows in that bin,
mu and sigma are the mean and deviation of g - f, running minus full score. So f is about g - mu, and
a row quits positive where g > threshold + mu + gamma sigma, negative where g < threshold + mu - gamma
sigma. A row whose bin no sample row fell into is evaluated in full.

`joint_order` searches an order for the rule, in native/fit/fan_order.cpp."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import OptionError
from qwyc.policy.fan_policy import FanPolicy
from qwyc.policy.fit.problem import Problem
from qwyc.policy.scores import ScoreMatrix
from qwyc.runtime.arguments import check_number, is_number
from qwyc.runtime.progress import ProgressOption, progress_reporter

MOST_BINS = (1 << 22) - 2  # two fewer than kMostBins in native/fit/fan_order.hpp, for rounding


def check_bin_width(matrix: ScoreMatrix, bin_width: Any) -> float:
    """The width of bins. The default is 1% of the full score's deviation: the paper found 0.01 best for
    scores of order 1."""
    if bin_width is None:
        spread = float(np.std(matrix.full))
        bin_width = 0.01 * spread if spread > 0 else 1.0
    return check_number("bin_width", bin_width, above=0)


def check_gamma(gamma: Any) -> float:
    """`gamma`, if it is a number of at least 0; it may be infinite."""
    if is_number(gamma) and gamma >= 0:
        return float(gamma)
    raise OptionError(f"gamma must be a number of at least 0; got {gamma!r}")


def joint_order(
    problem: Problem,
    gamma: Any,
    bin_width: float | None = None,
    *,
    progress: ProgressOption = False,
) -> npt.NDArray[np.int32]:
    """The paper's Algorithm 1 with Fan's rule at `gamma` in place of its thresholds, (T,): each step takes
    the base model with the smallest cost per row that quits. Means and deviations by bin are taken over
    the rows that are still undecided. Where no base model lets a row quit, the first one is taken."""
    matrix, costs = problem.matrix, problem.costs
    gamma, bin_width = check_gamma(gamma), check_bin_width(matrix, bin_width)
    if np.isinf(gamma):  # no row quits
        return np.arange(problem.n_models, dtype=np.int32)
    check_number_of_bins(matrix, bin_width)
    what = f"Searching an order for gamma {gamma:g}"
    with progress_reporter(progress, what, problem.n_models) as report:
        return _native.fan_order(
            problem.by_model,
            matrix.base,
            np.ascontiguousarray(matrix.full),
            costs.own,
            costs.parts,
            costs.need_begin,
            costs.needed_parts,
            problem.threshold,
            gamma,
            bin_width,
            *problem.sides,
            problem.cores,
            report,
        )


def check_number_of_bins(matrix: ScoreMatrix, bin_width: float) -> None:
    """Raise OptionError where running sums may span more bins than the search holds at once."""
    least = np.minimum(matrix.values.min(axis=0), 0).sum(dtype=np.float64)
    most = np.maximum(matrix.values.max(axis=0), 0).sum(dtype=np.float64)
    bins = (most - least) / bin_width
    if not bins < MOST_BINS:
        raise OptionError(
            f"bin_width {bin_width:g} is too small for scores of this size: running sums may span "
            f"{bins:.3g} bins, and the search takes up to {MOST_BINS:,}; pass a bin_width of at least "
            f"{(most - least) / MOST_BINS * 1.01:.2g}"
        )


def fit_fan(
    problem: Problem, order: npt.NDArray[np.int32], bin_width: float | None = None
) -> FanPolicy:
    """Means and deviations by step and bin over all rows of the sample, with an infinite gamma: they do
    not depend on it, and rows quit from `at_gamma` or `at_alpha` on."""
    matrix = problem.matrix
    bin_width = check_bin_width(matrix, bin_width)
    running = np.full(len(matrix.full), matrix.base, dtype=np.float64)
    bins, means, deviations = [], [], []
    for t in order[:-1]:  # at the last step the full score decides
        running += matrix.values[:, t]
        place = np.floor(running / bin_width)
        if not (np.abs(place) < 2.0**53).all():
            raise OptionError(f"bin_width {bin_width:g} is too small for scores of this size")
        seen, row_bin = np.unique(place.astype(np.int64), return_inverse=True)
        count = np.bincount(row_bin, minlength=len(seen))
        gap = running - matrix.full
        mean = np.bincount(row_bin, weights=gap, minlength=len(seen)) / count
        square = np.bincount(row_bin, weights=(gap - mean[row_bin]) ** 2, minlength=len(seen))
        bins.append(seen)
        means.append(mean)
        deviations.append(np.sqrt(square / count))
    sizes = [len(seen) for seen in bins] + [0]
    return FanPolicy(
        order=order,
        bin_begin=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        bin=np.concatenate([*bins, np.empty(0, dtype=np.int64)]),
        mean=np.concatenate([*means, np.empty(0)]),
        deviation=np.concatenate([*deviations, np.empty(0)]),
        bin_width=bin_width,
        gamma=float("inf"),
        quit=problem.quit,
        threshold=problem.threshold,
        costs=problem.costs.along(order),
    )


def at_gamma(policy: FanPolicy, gamma: Any) -> FanPolicy:
    """The same means and deviations at another gamma."""
    return replace(policy, gamma=check_gamma(gamma))


def at_alpha(
    policy: FanPolicy, matrix: ScoreMatrix, allowed: int, *, threads: int | None = None
) -> FanPolicy:
    """The smallest gamma, to 1%, with no more than `allowed` disagreements on these rows."""
    full = policy.target.decide(matrix.full)

    def holds(gamma: float) -> bool:
        label = replace(policy, gamma=gamma).apply(matrix, threads=threads).label
        return int(np.count_nonzero(label != full)) <= allowed

    if holds(0.0):
        return replace(policy, gamma=0.0)
    high = 1.0
    while not holds(high):
        high *= 2
        if high > 1e12:  # bins with deviation 0 stay wrong at any gamma: nothing may quit
            return replace(policy, gamma=float("inf"))
    low = 0.0
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return replace(policy, gamma=high)
