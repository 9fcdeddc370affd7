"""Thresholds by optimal stopping: a nested family of policies along one order, cautious to bold.

Each policy weighs what going on costs a row against a penalty per disagreement (native/fit/stopping.cpp;
its NumPy twin is tests/oracle/stopping.py). The penalty falls along the family. Each policy starts from
the one before it, so thresholds close in a little at a time: the family is a path from "never quit" to
"quit at once"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.policy.fit.problem import Problem
from qwyc.policy.path import Path
from qwyc.policy.policy import Policy
from qwyc.policy.scores import ScoreMatrix
from qwyc.runtime.memory import check_path_capacity
from qwyc.runtime.progress import ProgressOption, progress_reporter

FIRST_PENALTY = 2e5  # in mean costs of a base model: next to nothing is risked at this penalty
# Factor to the next penalty while it is above a number: coarse where nobody will stop, fine between.
SCHEDULE = ((2e4, 0.7), (300.0, 0.85), (0.0, 0.6))
# By how much the thresholds of more cautious members are moved out.
WIDER = (2.0, 1.0, 0.5, 0.25, 0.1)
MOST_MEMBERS = 56


class ForecastSettings(TypedDict):
    """What the native fits of thresholds take."""

    fewest_rows: int
    most_bins: int
    rows_per_bin: int
    pseudo_rows: float
    trend_rows: float
    forecast_share: float


@dataclass(frozen=True)
class Settings:
    """How thresholds are found at a step, and how often."""

    first_sweeps: int = 2  # for the first member
    sweeps: int = 1  # for each that starts from the one before
    fewest_rows: int = 70  # a step that fewer rows reach keeps its thresholds
    most_bins: int = 96  # of the score forecast at a step
    rows_per_bin: int = 10
    pseudo_rows: float = 50.0  # weight of the pooled deviation in a bin's
    trend_rows: float = 20.0  # weight of the line through all rows in a bin's mean
    boldest: float = 0.08  # the path ends where this share of the rows is decided differently
    # of the score forecast in the penalty; the rest is the row's full decision
    forecast_share: float = 0.5

    @property
    def forecast(self) -> ForecastSettings:
        """Those that the native fits take."""
        return ForecastSettings(
            fewest_rows=self.fewest_rows,
            most_bins=self.most_bins,
            rows_per_bin=self.rows_per_bin,
            pseudo_rows=self.pseudo_rows,
            trend_rows=self.trend_rows,
            forecast_share=self.forecast_share,
        )


DEFAULT = Settings()


def fit_path(
    problem: Problem,
    order: npt.NDArray[np.int32],
    *,
    weights: Sequence[float] = (1.0, 1.0),
    settings: Settings = DEFAULT,
    progress: ProgressOption = False,
) -> Path:
    """The whole path on a sample. `weights` multiply the penalty of calling a full-positive row negative,
    and of the reverse."""
    N, T, costs = problem.n_rows, problem.n_models, problem.costs.along(order)
    check_path_capacity(N, T)
    fit = stopping_fit(problem, order, settings)
    cores, unit = problem.cores, float(costs.mean())
    lowers, uppers, penalties = [np.full(T, -np.inf)], [np.full(T, np.inf)], [np.inf]
    penalty, sweeps = FIRST_PENALTY, settings.first_sweeps
    with progress_reporter(progress, "Fitting thresholds", MOST_MEMBERS) as report:
        while len(penalties) < MOST_MEMBERS:
            for _ in range(sweeps):
                lower, upper, differing, steps = fit.sweep(
                    penalty * unit * weights[0], penalty * unit * weights[1], cores
                )
            if len(penalties) == 1:
                # between it and "never quit", for alphas far below what it risks
                spread = float(np.std(problem.matrix.full))
                for by in WIDER:
                    wide = _widened(lower, upper, by, spread)
                    lowers.append(wide[0])
                    uppers.append(wide[1])
                    penalties.append(np.inf)
            lowers.append(lower)
            uppers.append(upper)
            penalties.append(penalty)
            report(len(penalties))
            if differing > settings.boldest * N or steps <= N:
                break
            penalty *= next(factor for above, factor in SCHEDULE if penalty > above)
            sweeps = settings.sweeps
        report(MOST_MEMBERS)
    arrays = (np.array(lowers), np.array(uppers), np.array(penalties))
    return Path(order, *arrays, problem.threshold, costs)


def _widened(
    lower: npt.NDArray[np.float64], upper: npt.NDArray[np.float64], by: float, spread: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Thresholds moved out by a share of half their distance, or of the full score's deviation where
    there is only one of them."""
    both = np.isfinite(lower) & np.isfinite(upper)
    margin = np.full(len(lower), spread)
    margin[both] = (upper[both] - lower[both]) / 2
    return lower - by * margin, upper + by * margin


def at_alpha(
    path: Path, matrix: ScoreMatrix, allowed: int, *, threads: int | None = None
) -> Policy:
    """The boldest policy up to the first with more than `allowed` disagreements on these rows."""
    return path[path.boldest_within(allowed, matrix, threads=threads)]


def stopping_fit(
    problem: Problem, order: npt.NDArray[np.int32], settings: Settings
) -> _native.StoppingFit:
    """Sweeps over a sample, each from the thresholds of the one before."""
    return _native.StoppingFit(
        problem.by_model,
        problem.matrix.base,
        np.ascontiguousarray(problem.matrix.full),
        problem.threshold,
        order,
        problem.costs.along(order),
        *problem.sides,
        **settings.forecast,
    )
