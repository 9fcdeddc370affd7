"""Policy: one order of the base models, and two thresholds for each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import OptionError
from qwyc.policy.decisions import Decisions
from qwyc.policy.rule import OrderedRule, compare
from qwyc.policy.scores import ScoreMatrix
from qwyc.runtime.arguments import check_number
from qwyc.runtime.threads import thread_count


@dataclass(frozen=True, eq=False)
class Policy(OrderedRule):
    """After step r, a row quits as negative if its running sum is below lower[r], and as positive if it is
    above upper[r]. A row that never quits is decided by its full score (>= threshold)."""

    order: npt.NDArray[np.int32]  # (T,) the paper's pi: which base model runs at each step
    lower: npt.NDArray[np.float64]  # (T,) eps-, -inf where nothing quits negative
    upper: npt.NDArray[np.float64]  # (T,) eps+, +inf where nothing quits positive
    threshold: float  # the paper's beta
    costs: npt.NDArray[np.float64]  # (T,) c_t along the order; by base model, not by step

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
        """What the thresholds say of running sums after a step: NEGATIVE or POSITIVE to quit, or GO_ON."""
        return compare(sums, self.lower[step], self.upper[step])

    def __repr__(self) -> str:
        return (
            f"Policy({self.n_models} base models, quits {self.quit}, threshold {self.threshold:g})"
        )
