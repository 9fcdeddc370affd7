"""What was measured, point by point, and the curve that each method's points make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

ORDERS = {
    "natural": "GBT order",
    "random": "random order",
    "individual-mse": "individual MSE",
    "greedy-mse": "greedy MSE",
}
LEVEL = 0.005  # the share of differences at which the paper compares
QWYC, SMALLER, FAN_STAR = ("qwyc", "joint"), ("smaller", "natural"), ("fan", "individual-mse")

Key = tuple[str, str]  # method, order


def title(key: Key) -> str:
    """A method as readers know it."""
    if key in (QWYC, SMALLER, FAN_STAR):
        return {QWYC: "QWYC*", SMALLER: "smaller ensembles", FAN_STAR: "Fan*"}[key]
    rule = {"algorithm-2": "Algorithm 2", "fan": "Fan"}[key[0]]
    return f"{rule}, {ORDERS[key[1]]}"


@dataclass(frozen=True)
class Measured:
    """Means over rows."""

    models: float  # base models evaluated
    differ: float  # share decided unlike the full ensemble
    accuracy: float


@dataclass(frozen=True, eq=False)
class Point:
    """One method at one value of its knob."""

    method: str  # "qwyc", "algorithm-2", "fan" or "smaller"
    order: str
    knob: float  # alpha, gamma, or the number of trees
    seed: int | None  # of a random order
    bin_width: float | None  # of Fan's rule, in deviations of the full score
    fitted: Measured  # on the rows it was fitted on
    test: Measured
    steps: npt.NDArray[np.int32]  # (N_test,) base models by test row
    label: npt.NDArray[np.int64]  # (N_test,) decisions

    @property
    def key(self) -> Key:
        """Method and order."""
        return self.method, self.order


@dataclass(frozen=True, eq=False)
class Results:
    """Everything that an experiment found out."""

    name: str
    n_models: int  # T
    n_fit: int  # rows that models and policies were fitted on
    n_test: int
    fitted: Measured  # the full ensemble on the rows it was trained on
    full: Measured  # and on the test rows
    points: Sequence[Point]

    @cached_property
    def curves(self) -> dict[Key, Curve]:
        """By method and order, in the order of the points."""
        return {key: Curve(points) for key, points in _grouped(self.points).items()}

    def family(self, method: str) -> list[Curve]:
        """All curves of a method, one for each order."""
        return [curve for key, curve in self.curves.items() if key[0] == method]


class Curve:
    """A method's points from cautious to bold, averaged over seeds at each value of the knob."""

    def __init__(self, points: Sequence[Point]) -> None:
        by_knob: dict[float, list[Point]] = {}
        for point in points:
            by_knob.setdefault(point.knob, []).append(point)
        self.key: Key = points[0].key
        bold_when_large = self.key[0] in ("qwyc", "algorithm-2")  # alpha; not gamma or trees
        groups = [by_knob[knob] for knob in sorted(by_knob, reverse=not bold_when_large)]
        self.points = groups  # seeds side by side
        self.knob = np.array([group[0].knob for group in groups])  # (K,)
        self.models = _means(groups, "test", "models")  # (K,) mostly descending
        self.differ = _means(groups, "test", "differ")  # (K,)
        self.accuracy = _means(groups, "test", "accuracy")  # (K,)
        self.fitted_differ = _means(groups, "fitted", "differ")  # (K,)

    @property
    def title(self) -> str:
        """The method as readers know it."""
        return title(self.key)

    def deviation(self, what: str) -> npt.NDArray[np.float64]:
        """Deviation over seeds of a test figure, (K,); 0 for a method without seeds."""
        return np.array(
            [
                np.std([getattr(p.test, what) for p in group], ddof=min(1, len(group) - 1))
                for group in self.points
            ]
        )

    def models_at(self, level: float) -> float | None:
        """The fewest base models with which the curve stays within `level` test differences; None
        where it never does. Between points it is a line in log base models."""
        found = self._within(level)
        return None if found is None else found[0]

    def fitted_differ_at(self, level: float) -> float | None:
        """Differences on the fitted rows at the place that `models_at` finds."""
        found = self._within(level)
        return None if found is None else found[1]

    def _within(self, level: float) -> tuple[float, float] | None:
        log, fitted = np.log(self.models), self.fitted_differ
        within = [(log[i], fitted[i]) for i in np.flatnonzero(self.differ <= level)]
        for i in range(len(log) - 1):
            a, b = self.differ[i], self.differ[i + 1]
            if (a < level < b) or (b < level < a):
                part = (level - a) / (b - a)
                within.append(
                    (
                        log[i] + part * (log[i + 1] - log[i]),
                        fitted[i] + part * (fitted[i + 1] - fitted[i]),
                    )
                )
        if not within:
            return None
        models, differ = min(within)
        return float(np.exp(models)), float(differ)

    def at_models(self, what: str, models: float) -> float | None:
        """Test accuracy ("accuracy") or differences ("differ") at a mean number of base models."""
        if not self.models.min() <= models <= self.models.max():
            return None
        rising = np.argsort(self.models, kind="stable")
        return float(
            np.interp(np.log(models), np.log(self.models[rising]), getattr(self, what)[rising])
        )

    def nearest(self, what: str, value: float) -> Point:
        """The first seed's point whose test figure is nearest to a value."""
        points = [group[0] for group in self.points]
        return min(points, key=lambda p: abs(getattr(p.test, what) - value))

    def test_differ_at(self, fitted: float) -> float | None:
        """Test differences where the differences on the fitted rows are `fitted`; a line between
        points, None beyond them."""
        if not self.fitted_differ.min() <= fitted <= self.fitted_differ.max():
            return None
        rising = np.argsort(self.fitted_differ, kind="stable")
        return float(np.interp(fitted, self.fitted_differ[rising], self.differ[rising]))


def _grouped(points: Sequence[Point]) -> dict[Key, list[Point]]:
    groups: dict[Key, list[Point]] = {}
    for point in points:
        groups.setdefault(point.key, []).append(point)
    return groups


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _means(groups: Sequence[Sequence[Point]], part: str, what: str) -> npt.NDArray[np.float64]:
    return np.array([_mean(getattr(getattr(p, part), what) for p in group) for group in groups])
