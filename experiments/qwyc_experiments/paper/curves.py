"""What was measured, point by point, and the curve that each method's points make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

ORDERS = {
    "natural": "natural order",
    "random": "random order",
    "individual-mse": "individual MSE",
    "greedy-mse": "greedy MSE",
}
LEVEL = 0.005  # the share of differences at which the paper compares
LEVELS = (0.0025, 0.005, 0.01, 0.02)  # shares of test differences at which methods are compared
REPLICATES = 200  # bootstrap samples of the test rows

Key = tuple[str, str]  # method, order

OURS, QWYC = ("default", "correlation"), ("qwyc", "joint")
SMALLER, FAN_STAR = ("smaller", "natural"), ("fan", "individual-mse")
FAN_JOINT, JOINT_FAN = ("fan", "joint"), ("fan", "joint-fan")  # answers to a question of the paper
MARGIN, MARGIN_10 = ("margin", "natural"), ("margin-10", "natural")
BEST_VOTES, BAYES_VOTES = ("best-votes", "natural"), ("bayes-votes", "natural")
TITLES = {
    OURS: "qwyc, default method",
    QWYC: "QWYC*",
    SMALLER: "smaller ensembles",
    FAN_STAR: "Fan*",
    FAN_JOINT: "Fan, order of QWYC*",
    JOINT_FAN: "Fan, joint order search",
    ("algorithm-2", "accuracy"): "Algorithm 2, individual accuracy",
    MARGIN: "pred_early_stop, every tree",
    MARGIN_10: "pred_early_stop, every 10 trees",
    BEST_VOTES: "Kalman & Moscovich",
    BAYES_VOTES: "Hernández-Lobato et al.",
}
# The knob of each method. Larger is bolder for these; for the others it is more cautious.
KNOBS = {
    "default": "penalty",
    "qwyc": "alpha",
    "algorithm-2": "alpha",
    "fan": "gamma",
    "smaller": "base models",
    "margin": "margin",
    "margin-10": "margin",
    "best-votes": "penalty",
    "bayes-votes": "confidence",
}
BOLD_WHEN_LARGE = ("qwyc", "algorithm-2")


def title(key: Key) -> str:
    """A method as readers know it."""
    if key in TITLES:
        return TITLES[key]
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

    method: str  # one of KNOBS
    order: str
    knob: float
    seed: int | None  # of a random order
    bin_width: float | None  # of Fan's rule, in deviations of the full score
    fitted: Measured  # on the rows it was fitted on
    test: Measured
    steps: npt.NDArray[np.integer[Any]]  # (N_test,) base models by test row
    label: npt.NDArray[np.bool_]  # (N_test,) decisions
    policy: Any = None  # where the method has one
    unknown: int = 0  # test rows that Fan's rule evaluated in full because their bin was unknown

    @property
    def key(self) -> Key:
        """Method and order."""
        return self.method, self.order


@dataclass(frozen=True)
class Interval:
    """An estimate and its 95% bootstrap interval; infinite where a method does not get there."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Results:
    """The points of one experiment."""

    name: str
    n_models: int  # T
    n_fit: int  # rows that models and policies were fitted on
    n_test: int
    fitted: Measured  # the full ensemble on the rows it was trained on
    full: Measured  # and on the test rows
    positive: npt.NDArray[np.bool_]  # (N_test,) full decisions
    truth: npt.NDArray[np.bool_]  # (N_test,)
    points: Sequence[Point]

    @cached_property
    def curves(self) -> dict[Key, Curve]:
        """By method and order, in the order of the points."""
        return {
            key: Curve(points, self.replicates(points))
            for key, points in _grouped(self.points).items()
        }

    def family(self, method: str, orders: Iterable[str] = tuple(ORDERS)) -> list[Curve]:
        """The curves of a method along the paper's fixed orders, or along others."""
        return [self.curves[method, order] for order in orders if (method, order) in self.curves]

    @cached_property
    def weights(self) -> npt.NDArray[np.float32]:
        """(N_test, REPLICATES) how often each test row is in each bootstrap sample."""
        rng = np.random.default_rng(0)
        rows = rng.integers(0, self.n_test, (REPLICATES, self.n_test))
        counts = [np.bincount(sample, minlength=self.n_test) for sample in rows]
        return np.stack(counts, axis=1).astype(np.float32)

    def replicates(self, points: Sequence[Point]) -> npt.NDArray[np.float64]:
        """(3, P, REPLICATES) mean base models, share of differences and accuracy by point, in each
        bootstrap sample of the test rows. All methods see the same samples."""
        steps = np.stack([p.steps for p in points]).astype(np.float32)
        differ = np.stack([p.label != self.positive for p in points]).astype(np.float32)
        right = np.stack([p.label == self.truth for p in points]).astype(np.float32)
        return np.stack([part @ self.weights / self.n_test for part in (steps, differ, right)])


@dataclass(frozen=True, eq=False)
class Line:
    """A trade-off as numbers: points from cautious to bold, (K,) each."""

    models: npt.NDArray[np.float64]  # mostly descending
    differ: npt.NDArray[np.float64]
    accuracy: npt.NDArray[np.float64]
    fitted_differ: npt.NDArray[np.float64]

    def within(self, level: float) -> tuple[float, float] | None:
        """The fewest base models that stay within `level` differences, and the differences on the
        fitted rows there; a line in log base models between points, None where it never does."""
        log, fitted = np.log(self.models), self.fitted_differ
        found = [(log[i], fitted[i]) for i in np.flatnonzero(self.differ <= level)]
        for i in range(len(log) - 1):
            a, b = self.differ[i], self.differ[i + 1]
            if (a < level < b) or (b < level < a):
                part = (level - a) / (b - a)
                found.append(
                    (
                        log[i] + part * (log[i + 1] - log[i]),
                        fitted[i] + part * (fitted[i + 1] - fitted[i]),
                    )
                )
        if not found:
            return None
        models, differ = min(found)
        return float(np.exp(models)), float(differ)

    def at_models(self, what: str, models: float) -> float | None:
        """Accuracy ("accuracy") or differences ("differ") at a mean number of base models."""
        if not self.models.min() <= models <= self.models.max():
            return None
        rising = np.argsort(self.models, kind="stable")
        return float(
            np.interp(np.log(models), np.log(self.models[rising]), getattr(self, what)[rising])
        )


class Curve:
    """A method's points from cautious to bold, averaged over seeds at each value of the knob."""

    def __init__(
        self, points: Sequence[Point], replicates: npt.NDArray[np.float64] | None = None
    ) -> None:
        by_knob: dict[float, list[int]] = {}
        for i, point in enumerate(points):
            by_knob.setdefault(point.knob, []).append(i)
        self.key: Key = points[0].key
        bold = self.key[0] in BOLD_WHEN_LARGE
        groups = [by_knob[knob] for knob in sorted(by_knob, reverse=not bold)]
        self.points = [[points[i] for i in group] for group in groups]  # seeds side by side
        self.knob = np.array([group[0].knob for group in self.points])  # (K,)
        self.line = Line(
            _means(self.points, "test", "models"),
            _means(self.points, "test", "differ"),
            _means(self.points, "test", "accuracy"),
            _means(self.points, "fitted", "differ"),
        )
        self._replicates: list[Line] = []
        self._at: dict[float, npt.NDArray[np.float64]] = {}  # level -> replicates_at
        if replicates is not None:
            mean = np.stack([replicates[:, group].mean(axis=1) for group in groups], axis=1)
            self._replicates = [
                Line(*mean[:, :, b], self.line.fitted_differ) for b in range(mean.shape[2])
            ]

    @property
    def title(self) -> str:
        """The method as readers know it."""
        return title(self.key)

    @property
    def models(self) -> npt.NDArray[np.float64]:
        """Mean base models on the test rows, (K,)."""
        return self.line.models

    @property
    def differ(self) -> npt.NDArray[np.float64]:
        """Shares of test rows decided unlike the full ensemble, (K,)."""
        return self.line.differ

    @property
    def accuracy(self) -> npt.NDArray[np.float64]:
        """On the test rows, (K,)."""
        return self.line.accuracy

    @property
    def fitted_differ(self) -> npt.NDArray[np.float64]:
        """Shares of the fitted rows decided unlike the full ensemble, (K,)."""
        return self.line.fitted_differ

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
        where it never does."""
        found = self.line.within(level)
        return None if found is None else found[0]

    def fitted_differ_at(self, level: float) -> float | None:
        """Differences on the fitted rows at the place that `models_at` finds."""
        found = self.line.within(level)
        return None if found is None else found[1]

    def replicates_at(self, level: float) -> npt.NDArray[np.float64]:
        """(B,) `models_at` in each bootstrap sample; infinite where it does not get there."""
        if level not in self._at:
            found = (line.within(level) for line in self._replicates)
            models = [np.inf if pair is None else pair[0] for pair in found]
            self._at[level] = np.array(models, dtype=np.float64)
        return self._at[level]

    def at_models(self, what: str, models: float) -> float | None:
        """Test accuracy ("accuracy") or differences ("differ") at a mean number of base models."""
        return self.line.at_models(what, models)

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


def ratio(a: Curve, b: Curve, level: float) -> Interval | None:
    """Base models of a over those of b within `level` test differences, with a paired interval; None
    where neither gets there. Infinite where only b does, 0 where only a does."""
    one, other = a.models_at(level), b.models_at(level)
    if one is None and other is None:
        return None
    value = np.inf if one is None else 0.0 if other is None else one / other
    return interval(value, a.replicates_at(level), b.replicates_at(level))


def interval(
    value: float, above: npt.NDArray[np.float64], below: npt.NDArray[np.float64]
) -> Interval:
    """Of a ratio, from bootstrap replicates of both sides, (B,); those where neither is finite are left
    out."""
    known = np.isfinite(above) | np.isfinite(below)
    with np.errstate(invalid="ignore"):
        ratios = np.sort(above[known] / below[known])
    if not len(ratios):
        return Interval(value, 0.0, np.inf)
    low, high = np.quantile(ratios, (0.025, 0.975), method="nearest")
    return Interval(value, float(low), float(high))


@dataclass(frozen=True, eq=False)
class Timed:
    """What one method takes in the native engine, on one thread."""

    key: Key | None  # None: the full ensemble
    test: Measured
    microseconds: npt.NDArray[np.float64]  # (runs,) per test row


@dataclass(frozen=True)
class Promised:
    """What `qwyc.optimize` delivers at one alpha, over random splits of the rows that the model has not
    seen: half to fit and certify on, half to measure on."""

    alpha: float
    models: float  # mean over splits
    differ: float
    worst: float  # largest share of differences over splits
    above: int  # splits in which more than alpha of the measured rows differ
    broken: int  # those in which that is not chance: an exact test at 5% rejects a rate of alpha
    splits: int


@dataclass(frozen=True, eq=False)
class Outcome:
    """Everything that an experiment found out."""

    results: Results
    timed: Sequence[Timed] = ()
    promised: Sequence[Promised] = ()
    widths: Sequence[Point] = ()  # Fan* at every gamma and bin width
    bins: dict[float, float] = field(default_factory=dict)  # bin width -> mean bins per step
    chosen_widths: dict[str, float] = field(default_factory=dict)  # order -> bin width
    correlation: float = 0.0  # mean correlation of a base model's score with the full score
    facts: dict[str, str] = field(default_factory=dict)  # how the ensemble was trained, in words
    seconds: dict[str, float] = field(default_factory=dict)  # by stage


def _grouped(points: Sequence[Point]) -> dict[Key, list[Point]]:
    groups: dict[Key, list[Point]] = {}
    for point in points:
        groups.setdefault(point.key, []).append(point)
    return groups


def _means(groups: Sequence[Sequence[Point]], part: str, what: str) -> npt.NDArray[np.float64]:
    return np.array([np.mean([getattr(getattr(p, part), what) for p in group]) for group in groups])
