"""Policies: one order of the base models and thresholds for each step; and what they decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import OptionError
from qwyc.policy.scores import ScoreMatrix
from qwyc.runtime.arguments import check_number
from qwyc.runtime.threads import thread_count


@dataclass(frozen=True, eq=False)
class Decisions:
    """What was decided about N rows, and how much it took."""

    label: npt.NDArray[Any]  # (N,) the class; 0 and 1 where no classes are known
    steps: npt.NDArray[np.int32]  # (N,) base models evaluated
    score: npt.NDArray[np.float64]  # (N,) the full score where complete, else the running sum
    complete: npt.NDArray[np.bool_]  # (N,) every base model was evaluated

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        if not len(self):
            return "Decisions(0 rows)"
        return (
            f"Decisions({len(self):,} rows, {self.steps.mean():.1f} base models on average, "
            f"{self.complete.mean():.1%} complete)"
        )


@dataclass(frozen=True, eq=False)
class Policy:
    """After step r a row quits negative where its running sum is below lower[r], positive where it is
    above upper[r]; a row that never quits is decided by its full score (>= threshold)."""

    order: npt.NDArray[np.int32]  # (T,) the paper's pi: which base model runs at each step
    lower: npt.NDArray[np.float64]  # (T,) eps-, -inf where nothing quits negative
    upper: npt.NDArray[np.float64]  # (T,) eps+, +inf where nothing quits positive
    threshold: float  # the paper's beta
    costs: npt.NDArray[np.float64]  # (T,) c_t by base model, not by step

    def __post_init__(self) -> None:
        try:
            self._own_arrays()
        except (TypeError, ValueError):
            raise OptionError("order, lower, upper and costs must be numbers") from None
        object.__setattr__(self, "threshold", check_number("threshold", self.threshold))
        n = self.order.size
        if n == 0 or any(a.shape != (n,) for a in (self.order, self.lower, self.upper, self.costs)):
            raise OptionError(
                "order, lower, upper and costs must each have one entry per base model"
            )
        if not np.array_equal(np.sort(self.order), np.arange(n)):
            raise OptionError("order must name every base model exactly once")
        if not np.all(self.lower <= self.upper):  # also catches NaN
            raise OptionError("lower must not exceed upper at any step")
        if not (np.isfinite(self.costs).all() and (self.costs > 0).all()):
            raise OptionError("costs must be positive numbers")

    def _own_arrays(self) -> None:
        """Copies that nobody can write to: a policy never changes."""
        for name, dtype in (
            ("order", np.int32),
            ("lower", float),
            ("upper", float),
            ("costs", float),
        ):
            array = np.array(getattr(self, name), dtype=dtype)
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._own_arrays()

    @property
    def n_models(self) -> int:
        """Number of base models, T."""
        return len(self.order)

    @property
    def quit(self) -> str:
        """Which early decisions the thresholds allow: "both", "negative", "positive" or "never"."""
        negative, positive = self.lower.max() > -np.inf, self.upper.min() < np.inf
        if negative and positive:
            return "both"
        return "negative" if negative else "positive" if positive else "never"

    def without_quitting(self) -> Policy:
        """The same order and threshold, every row evaluated in full."""
        never = np.full(self.n_models, np.inf)
        return Policy(self.order, -never, never, self.threshold, self.costs)

    def apply(self, scores: Any, *, threads: int | None = None) -> Decisions:
        """Decide rows whose scores are known: a ScoreMatrix or any (N, T) array."""
        matrix = ScoreMatrix.of(scores, n_models=self.n_models)
        positive, steps, score = _native.apply_policy(
            np.ascontiguousarray(matrix.values.T),
            matrix.base,
            np.ascontiguousarray(matrix.full),
            self.order,
            self.lower,
            self.upper,
            self.threshold,
            thread_count(threads),
        )
        return Decisions(positive.astype(np.int64), steps, score, steps == self.n_models)

    def outcomes(self, step: int, sums: npt.NDArray[np.float64]) -> npt.NDArray[np.int8]:
        """What the thresholds say of running sums after a step: -1 or 1 to quit, 0 to go on."""
        above, below = sums > self.upper[step], sums < self.lower[step]
        return np.where(above, 1, np.where(below, -1, 0)).astype(np.int8)

    def mean_cost(self, steps: npt.NDArray[np.int32]) -> float:
        """Mean cost of rows that took `steps` base models each; NaN for no rows."""
        return mean_cost(self.order, self.costs, steps)

    def __repr__(self) -> str:
        return (
            f"Policy({self.n_models} base models, quits {self.quit}, threshold {self.threshold:g})"
        )


@dataclass(frozen=True, eq=False)
class FanPolicy:
    """The rival of Fan et al. (2002): an order, and for each step two thresholds per bin of the running
    sum (see `fan`)."""

    order: npt.NDArray[np.int32]  # (T,)
    bin_begin: npt.NDArray[np.int64]  # (T + 1,) step r owns bins bin_begin[r]:bin_begin[r + 1]
    bin: npt.NDArray[np.int64]  # (n_bins,) floor(g / bin_width), ascending within a step
    mean: npt.NDArray[np.float64]  # (n_bins,) mu
    deviation: npt.NDArray[np.float64]  # (n_bins,) sigma
    bin_width: float  # the paper's lambda
    gamma: float
    quit: str
    threshold: float
    costs: npt.NDArray[np.float64]  # (T,)

    @property
    def n_models(self) -> int:
        """Number of base models, T."""
        return len(self.order)

    @property
    def lower(self) -> npt.NDArray[np.float64]:
        """A row in the bin quits negative below it, (n_bins,)."""
        if self.quit == "positive" or np.isinf(self.gamma):
            return np.full(len(self.bin), -np.inf)
        return self.threshold + self.mean - self.gamma * self.deviation

    @property
    def upper(self) -> npt.NDArray[np.float64]:
        """A row in the bin quits positive above it, (n_bins,)."""
        if self.quit == "negative" or np.isinf(self.gamma):
            return np.full(len(self.bin), np.inf)
        return self.threshold + self.mean + self.gamma * self.deviation

    def apply(self, scores: Any, *, threads: int | None = None) -> Decisions:
        """Decide rows whose scores are known: a ScoreMatrix or any (N, T) array."""
        matrix = ScoreMatrix.of(scores, n_models=self.n_models)
        positive, steps, score = _native.apply_fan(
            np.ascontiguousarray(matrix.values.T),
            matrix.base,
            np.ascontiguousarray(matrix.full),
            self.order,
            self.bin_begin,
            self.bin,
            self.lower,
            self.upper,
            self.bin_width,
            self.threshold,
            thread_count(threads),
        )
        return Decisions(positive.astype(np.int64), steps, score, steps == self.n_models)

    def outcomes(self, step: int, sums: npt.NDArray[np.float64]) -> npt.NDArray[np.int8]:
        """What the rule says of running sums after a step: -1 or 1 to quit, 0 to go on, 2 to be
        evaluated in full because the bin is unknown."""
        begin, end = self.bin_begin[step], self.bin_begin[step + 1]
        place = np.floor(sums / self.bin_width)
        at = np.minimum(begin + np.searchsorted(self.bin[begin:end], place), max(end - 1, 0))
        if begin == end:
            return np.full(len(sums), 2, dtype=np.int8)
        quits = np.where(sums > self.upper[at], 1, np.where(sums < self.lower[at], -1, 0))
        return np.where(self.bin[at] == place, quits, 2).astype(np.int8)

    def mean_cost(self, steps: npt.NDArray[np.int32]) -> float:
        """Mean cost of rows that took `steps` base models each; NaN for no rows."""
        return mean_cost(self.order, self.costs, steps)

    def __repr__(self) -> str:
        per_step = len(self.bin) / max(1, self.n_models - 1)
        return (
            f"FanPolicy({self.n_models} base models, quits {self.quit}, gamma {self.gamma:g}, "
            f"{per_step:.0f} bins a step)"
        )


def mean_cost(
    order: npt.NDArray[np.int32], costs: npt.NDArray[np.float64], steps: npt.NDArray[np.int32]
) -> float:
    """Mean cost of rows that took the first `steps` base models of `order`; NaN for no rows."""
    return float(spent(order, costs, steps).mean()) if len(steps) else float("nan")


def spent(
    order: npt.NDArray[np.int32], costs: npt.NDArray[np.float64], steps: npt.NDArray[np.int32]
) -> npt.NDArray[np.float64]:
    """What each row cost, (N,), that took the first `steps` base models of `order`."""
    return np.concatenate([[0.0], np.cumsum(costs[order])])[steps]
