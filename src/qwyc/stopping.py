"""Thresholds by optimal stopping: a nested family of policies along one order, cautious to bold.

Each member weighs what going on costs a row against a price per disagreement (native/stopping.cpp; as
plain NumPy in `reference.sweep`). The price falls along the family, each member starting from the one
before, so thresholds only ever close in a little: the family is a path from "never quit" to "quit at
once"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.capacity import check_path_capacity
from qwyc.errors import OptionError
from qwyc.policy import Policy, spent
from qwyc.progress import Report
from qwyc.scores import ScoreMatrix
from qwyc.tally import PathTally, count_flips
from qwyc.threads import thread_count

FIRST_PRICE = 2e5  # in mean costs of a base model: next to nothing is risked at this price
FIRST_SWEEPS, SWEEPS = 2, 1  # for the first member; for each that starts from the one before
# Factor to the next price while the price is above a number: coarse where nobody will stop, fine between.
SCHEDULE = ((2e4, 0.7), (300.0, 0.85), (0.0, 0.6))
WIDER = (
    2.0,
    1.0,
    0.5,
    0.25,
    0.1,
)  # by how much the thresholds of more cautious members are moved out
MOST_MEMBERS = 56
FEWEST_ROWS = 70  # a step that fewer rows reach keeps its thresholds
MOST_BINS, ROWS_PER_BIN = 96, 10  # of the outlook at a step
PSEUDO_ROWS = 50.0  # weight of the pooled deviation in a bin's
TREND_ROWS = 20.0  # weight of the line through all rows in a bin's mean
OUTLOOK_SHARE = 0.5  # of the outlook in the price of quitting; the rest is the row's full decision
BOLDEST = 0.08  # the path ends where this share of the fitting rows is decided differently


@dataclass(frozen=True, eq=False)
class Path:
    """K policies along one order, from the most cautious, which never quits, to the boldest."""

    order: npt.NDArray[np.int32]  # (T,)
    lower: npt.NDArray[np.float64]  # (K, T)
    upper: npt.NDArray[np.float64]  # (K, T)
    price: npt.NDArray[np.float64]  # (K,) of a disagreement, in mean costs of a base model
    threshold: float
    costs: npt.NDArray[np.float64]  # (T,)

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
    matrix: ScoreMatrix,
    order: npt.NDArray[np.int32],
    *,
    threshold: float,
    costs: npt.NDArray[np.float64],
    quit: str,
    weights: tuple[float, float] = (1.0, 1.0),
    threads: int | None = None,
    report: Report = lambda done: None,
) -> Path:
    """The whole path on a sample. `weights` multiply the price of calling a full-positive row negative,
    and of the reverse. `report` is called with the number of members done."""
    N, T = matrix.values.shape
    check_path_capacity(N, T)
    fit = _stopping_fit(matrix, order, threshold, costs, quit)
    cores, unit = thread_count(threads), float(costs.mean())
    lowers, uppers, prices = [np.full(T, -np.inf)], [np.full(T, np.inf)], [np.inf]
    price, sweeps = FIRST_PRICE, FIRST_SWEEPS
    while len(prices) < MOST_MEMBERS:
        for _ in range(sweeps):
            lower, upper, differing, steps = fit.sweep(
                price * unit * weights[0], price * unit * weights[1], cores
            )
        if (
            len(prices) == 1
        ):  # between "never quit" and this one, for alphas far below what it risks
            for by in WIDER:
                wide = _widened(lower, upper, by, float(np.std(matrix.full)))
                lowers.append(wide[0])
                uppers.append(wide[1])
                prices.append(np.inf)
        lowers.append(lower)
        uppers.append(upper)
        prices.append(price)
        report(len(prices))
        if differing > BOLDEST * N or steps <= N:
            break
        price *= next(factor for above, factor in SCHEDULE if price > above)
        sweeps = SWEEPS
    return Path(order, np.array(lowers), np.array(uppers), np.array(prices), threshold, costs)


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


def _stopping_fit(
    matrix: ScoreMatrix,
    order: npt.NDArray[np.int32],
    threshold: float,
    costs: npt.NDArray[np.float64],
    quit: str,
) -> Any:
    native = _native.StoppingFit32 if matrix.values.dtype == np.float32 else _native.StoppingFit64
    return native(
        np.ascontiguousarray(matrix.values.T),
        matrix.base,
        np.ascontiguousarray(matrix.full),
        threshold,
        order,
        costs,
        quit in ("both", "negative"),
        quit in ("both", "positive"),
        (FEWEST_ROWS, MOST_BINS, ROWS_PER_BIN, PSEUDO_ROWS, TREND_ROWS, OUTLOOK_SHARE),
    )
