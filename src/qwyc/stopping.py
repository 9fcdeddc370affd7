"""Thresholds by optimal stopping: a nested family of policies along one order, cautious to bold.

Each member weighs what going on costs a row against a price per disagreement (native/fit/stopping.cpp; as
plain NumPy in `reference.sweep`). The price falls along the family, each member starting from the one
before, so thresholds only ever close in a little: the family is a path from "never quit" to "quit at
once"."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.capacity import check_path_capacity
from qwyc.errors import OptionError
from qwyc.policy import Policy, spent
from qwyc.problem import Problem
from qwyc.progress import ProgressOption, Report, progress_reporter
from qwyc.scores import ScoreMatrix
from qwyc.tally import PathTally, count_flips

FIRST_PRICE = 2e5  # in mean costs of a base model: next to nothing is risked at this price
# Factor to the next price while the price is above a number: coarse where nobody will stop, fine between.
SCHEDULE = ((2e4, 0.7), (300.0, 0.85), (0.0, 0.6))
# By how much the thresholds of more cautious members are moved out.
WIDER = (2.0, 1.0, 0.5, 0.25, 0.1)
MOST_MEMBERS = 56


@dataclass(frozen=True)
class Rule:
    """How thresholds are found at a step, and how often."""

    first_sweeps: int = 2  # for the first member
    sweeps: int = 1  # for each that starts from the one before
    fewest_rows: int = 70  # a step that fewer rows reach keeps its thresholds
    most_bins: int = 96  # of the outlook at a step
    rows_per_bin: int = 10
    pseudo_rows: float = 50.0  # weight of the pooled deviation in a bin's
    trend_rows: float = 20.0  # weight of the line through all rows in a bin's mean
    boldest: float = 0.08  # the path ends where this share of the rows is decided differently
    outlook_share: float = 0.5  # in the price of quitting; the rest is the row's full decision


DEFAULT = Rule()


@dataclass(frozen=True, eq=False)
class Path:
    """K policies along one order, from the most cautious, which never quits, to the boldest."""

    order: npt.NDArray[np.int32]  # (T,)
    lower: npt.NDArray[np.float64]  # (K, T)
    upper: npt.NDArray[np.float64]  # (K, T)
    price: npt.NDArray[np.float64]  # (K,) of a disagreement, in mean costs of a base model
    threshold: float
    costs: npt.NDArray[np.float64]  # (T,)

    def __post_init__(self) -> None:
        for array in (self.lower, self.upper, self.price):
            array.setflags(write=False)  # like its members', which are copies

    def __len__(self) -> int:
        return len(self.price)

    def __getitem__(self, k: int) -> Policy:
        """The k-th policy."""
        return Policy(self.order, self.lower[k], self.upper[k], self.threshold, self.costs)

    def index_of(self, policy: Policy) -> int:
        """Which member a policy is."""
        for k in range(len(self)):
            same_lower = np.array_equal(self.lower[k], policy.lower)
            if same_lower and np.array_equal(self.upper[k], policy.upper):
                return k
        raise OptionError("the policy is not on this path")

    def tally(
        self,
        matrix: ScoreMatrix,
        *,
        rows: npt.NDArray[np.intp] | None = None,
        threads: int | None = None,
        report: Report = lambda done: None,
    ) -> PathTally:
        """How every member does on known scores, or on some rows of them. `report` is called with the
        number of members done."""
        chosen = slice(None) if rows is None else rows
        positive = (matrix.full >= self.threshold)[chosen]
        flips = np.zeros((len(self), 2), dtype=np.int64)
        steps, cost = np.zeros(len(self)), np.zeros(len(self))
        for k in range(len(self)):
            decisions = self[k].apply(matrix, threads=threads)  # all rows: no copy of the matrix
            taken = decisions.steps[chosen]
            flips[k] = count_flips(decisions.label[chosen] == 1, positive)
            steps[k], cost[k] = taken.sum(), spent(self.order, self.costs, taken).sum()
            report(k + 1)
        return PathTally(len(positive), int(positive.sum()), flips, steps, cost)


def fit_path(
    problem: Problem,
    order: npt.NDArray[np.int32],
    *,
    weights: tuple[float, float] = (1.0, 1.0),
    rule: Rule = DEFAULT,
    progress: ProgressOption = False,
) -> Path:
    """The whole path on a sample. `weights` multiply the price of calling a full-positive row negative,
    and of the reverse."""
    N, T, costs = problem.n_rows, problem.n_models, problem.costs
    check_path_capacity(N, T)
    fit = stopping_fit(problem, order, rule)
    cores, unit = problem.cores, float(costs.mean())
    lowers, uppers, prices = [np.full(T, -np.inf)], [np.full(T, np.inf)], [np.inf]
    price, sweeps = FIRST_PRICE, rule.first_sweeps
    with progress_reporter(progress, "Fitting thresholds", MOST_MEMBERS) as report:
        while len(prices) < MOST_MEMBERS:
            for _ in range(sweeps):
                lower, upper, differing, steps = fit.sweep(
                    price * unit * weights[0], price * unit * weights[1], cores
                )
            if len(prices) == 1:  # between it and "never quit", for alphas far below what it risks
                spread = float(np.std(problem.matrix.full))
                for by in WIDER:
                    wide = _widened(lower, upper, by, spread)
                    lowers.append(wide[0])
                    uppers.append(wide[1])
                    prices.append(np.inf)
            lowers.append(lower)
            uppers.append(upper)
            prices.append(price)
            report(len(prices))
            if differing > rule.boldest * N or steps <= N:
                break
            price *= next(factor for above, factor in SCHEDULE if price > above)
            sweeps = rule.sweeps
        report(MOST_MEMBERS)
    arrays = (np.array(lowers), np.array(uppers), np.array(prices))
    return Path(order, *arrays, problem.threshold, costs)


def _widened(
    lower: npt.NDArray[np.float64], upper: npt.NDArray[np.float64], by: float, spread: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Thresholds moved out by a share of half their distance, or of the full score's deviation where
    there is only one of them."""
    both = np.isfinite(lower) & np.isfinite(upper)
    room = np.full(len(lower), spread)
    room[both] = (upper[both] - lower[both]) / 2
    return lower - by * room, upper + by * room


def at_alpha(
    path: Path, matrix: ScoreMatrix, allowed: int, *, threads: int | None = None
) -> Policy:
    """The boldest policy up to the first with more than `allowed` disagreements on these rows."""
    flips = path.tally(matrix, threads=threads).flips
    over = np.flatnonzero(flips.sum(axis=1) > allowed)
    return path[int(over[0]) - 1 if len(over) else len(path) - 1]


def stopping_fit(problem: Problem, order: npt.NDArray[np.int32], rule: Rule) -> _native.StoppingFit:
    """Sweeps over a sample, each from the thresholds of the one before."""
    return _native.StoppingFit(
        problem.by_model,
        problem.matrix.base,
        np.ascontiguousarray(problem.matrix.full),
        problem.threshold,
        order,
        problem.costs,
        *problem.sides,
        fewest_rows=rule.fewest_rows,
        most_bins=rule.most_bins,
        rows_per_bin=rule.rows_per_bin,
        pseudo_rows=rule.pseudo_rows,
        trend_rows=rule.trend_rows,
        forecast_share=rule.outlook_share,
    )
