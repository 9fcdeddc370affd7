"""Policies whose answers are within a tolerance of the full output, by optimal stopping.

As in `stopping.py`, each policy weighs what going on costs a row against a penalty, here for each output
that is off by more than the tolerance (native/fit/losses.hpp; its NumPy twin is
tests/oracle/tolerance.py). First, a few sweeps find which rows reach each step under a penalty of the
middle; the full scores of these are forecast from running sums. The forecasts then stay, and the path is
fitted from "never quit" on, so that all its policies share one estimate per step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.policy.estimate_path import EstimatePath
from qwyc.policy.estimates import Estimates
from qwyc.policy.fit.orders import RIDGE, weighted_correlation
from qwyc.policy.fit.problem import Problem
from qwyc.policy.fit.stopping import Settings
from qwyc.runtime.memory import check_path_capacity
from qwyc.runtime.progress import ProgressOption, progress_reporter
from qwyc.target.within import Within

FIRST_PENALTY = 2e5  # in mean costs of a base model
FORECAST_PENALTIES = (2e5, 2e5, 3e4, 3e4, 1e4, 1e4)  # before forecasts stay
# Factor to the next penalty while it is above a number: fine where a policy is likely to be taken.
SCHEDULE = ((5e4, 0.5), (1e3, 0.77), (0.0, 0.5))
MOST_MEMBERS = 40
# Shares of the tolerance that members are fitted for: the more cautious ones, and all others. Thresholds
# fitted for the whole tolerance rely on rows that are just within it, which other rows are not.
STRICTER = (0.2, 0.4, 0.55)
FITTED = 0.7
ENTRIES = 2048  # of the table of bounds
BEYOND = 0.2  # how far the table goes beyond the full scores, in their range
FAR = 1e300  # a bound where every full score is close enough
FLATTEST = 4e-4  # the least slope of the output, of the steepest, in the weights of rows

SETTINGS = Settings(most_bins=16, boldest=0.1)


@dataclass(frozen=True, eq=False)
class Bounds:
    """Between which full scores the output is within the tolerance of an estimated score's output: a table
    over estimated scores."""

    start: float  # the estimated score of the first entry
    width: float  # from one to the next
    low: npt.NDArray[np.float64]  # (entries,)
    high: npt.NDArray[np.float64]  # (entries,)
    slope: npt.NDArray[np.float64]  # (entries,) of the output

    @classmethod
    def of(cls, within: Within, full: npt.NDArray[np.float64]) -> Bounds:
        """A table for full scores like these, (N,)."""
        least, most = float(full.min()), float(full.max())
        room = BEYOND * (most - least) or 1.0
        grid, width = np.linspace(least - room, most + room, ENTRIES, retstep=True)
        with np.errstate(over="ignore"):
            found = within.output(grid).astype(np.float64)
        output = np.maximum.accumulate(np.nan_to_num(found, posinf=FAR, neginf=-FAR))
        low = np.interp(output - within.tolerance, output, grid, left=-FAR)
        high = np.interp(output + within.tolerance, output, grid, right=FAR)
        return cls(float(grid[0]), float(width), low, high, np.gradient(output, grid))

    def slope_at(self, full: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """How fast the output changes at full scores, (N,)."""
        grid = self.start + self.width * np.arange(len(self.slope))
        return np.interp(full, grid, self.slope)


def tolerance_order(
    problem: Problem, bounds: Bounds, ridge: float = RIDGE
) -> npt.NDArray[np.int32]:
    """Each time the base model that makes the partial sum correlate most with the full score. Rows weigh
    by the root of the output's slope at their full score."""
    slope = np.minimum(bounds.slope_at(problem.matrix.full), FAR)
    weight = np.sqrt(np.maximum(slope, FLATTEST * slope.max())) if slope.max() > 0 else slope + 1
    return weighted_correlation(problem, weight, ridge)


def tolerance_fit(
    problem: Problem, bounds: Bounds, order: npt.NDArray[np.int32], settings: Settings
) -> _native.ToleranceFit:
    """Sweeps over a sample, each from the thresholds of the one before."""
    return _native.ToleranceFit(
        problem.by_model,
        problem.matrix.base,
        np.ascontiguousarray(problem.matrix.full),
        bounds.start,
        bounds.width,
        bounds.low,
        bounds.high,
        order,
        problem.costs.along(order),
        **settings.forecast,
    )


def fit_tolerance_path(
    problem: Problem,
    within: Within,
    *,
    settings: Settings = SETTINGS,
    progress: ProgressOption = False,
) -> EstimatePath:
    """The whole path on a sample. `problem.quit` does not matter: rows quit at both ends."""
    N, T = problem.n_rows, problem.n_models
    check_path_capacity(N, T)
    full = problem.matrix.full
    bounds = Bounds.of(_share(within, FITTED), full)
    with progress_reporter(progress, "Finding the order", 0):
        order = tolerance_order(problem, bounds)
    costs, cores = problem.costs.along(order), problem.cores
    unit = float(costs.mean())
    fit = tolerance_fit(problem, bounds, order, settings)
    lowers, uppers, penalties = [np.full(T, -np.inf)], [np.full(T, np.inf)], [np.inf]
    with progress_reporter(progress, "Fitting thresholds", MOST_MEMBERS) as report:
        for penalty in FORECAST_PENALTIES:
            fit.sweep(penalty * unit, cores)
        estimates = Estimates(*fit.freeze(cores))
        for share in STRICTER:  # between "never quit" and the first penalty, for small alphas
            strict = Bounds.of(_share(within, share), full)
            fit.set_bounds(strict.low, strict.high)
            for _ in range(settings.first_sweeps):
                lower, upper, *_ = fit.sweep(FIRST_PENALTY * unit, cores)
            lowers.append(lower)
            uppers.append(upper)
            penalties.append(np.inf)
        fit.set_bounds(bounds.low, bounds.high)
        penalty = FIRST_PENALTY
        fit.sweep(penalty * unit, cores)
        while len(penalties) < MOST_MEMBERS:
            lower, upper, off, steps = fit.sweep(penalty * unit, cores)
            lowers.append(lower)
            uppers.append(upper)
            penalties.append(penalty)
            report(len(penalties))
            if off > settings.boldest * N or steps <= N:
                break
            penalty *= next(factor for above, factor in SCHEDULE if penalty > above)
        report(MOST_MEMBERS)
    arrays = (np.array(lowers), np.array(uppers), np.array(penalties))
    return EstimatePath(order, *arrays, problem.threshold, costs, estimates, within)


def _share(within: Within, share: float) -> Within:
    """The same outputs within a part of the tolerance."""
    return replace(within, tolerance=share * within.tolerance)
