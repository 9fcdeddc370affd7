"""FilterPolicy: is a row of one class, of K? Rows that are surely of another class leave early.

After a step, the best other class is the one with the largest running sum besides the class that the filter
is for, the first of equal ones. A row leaves where it is ahead of that class by more than the threshold of
the step. The rows that stay get all full scores and the full decision, so a filter loses rows of its class,
and never gains one.

For K = 2 this is a `Policy` on the difference "own class less the other" that quits negative, with
`lower = -gap`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import InputError, OptionError
from qwyc.policy.decisions import Decisions
from qwyc.policy.lead_policy import LeadPolicy
from qwyc.policy.rule import GO_ON, AlongOrder
from qwyc.policy.scores import ScoreMatrix
from qwyc.runtime.arguments import check_count
from qwyc.runtime.threads import thread_count
from qwyc.target.many_classes import ManyClasses
from qwyc.target.ties import BY_SCORES, Ties


@dataclass(frozen=True, eq=False)
class FilterPolicy(AlongOrder):
    """After step r, a row leaves as the best other class if that class is ahead of the class `only` by
    more than gap[r]. A row that never leaves is decided by its full scores."""

    order: npt.NDArray[np.int32]  # (T,) which base model runs at each step
    gap: npt.NDArray[np.float64]  # (T,) any number, inf where no row leaves
    costs: npt.NDArray[np.float64]  # (T,) along the order; by base model, not by step
    only: int  # index of the class that the filter is for
    n_classes: int  # K
    ties: Ties = BY_SCORES  # which of classes wins whose full scores are equal

    def __post_init__(self) -> None:
        try:
            self._own_arrays()
        except (TypeError, ValueError, OverflowError):
            raise OptionError("order, gap and costs must be numbers") from None
        n = self.order.size
        if n == 0 or any(array.shape != (n,) for array in (self.order, self.gap, self.costs)):
            raise OptionError("order, gap and costs must each have one entry per base model")
        if not np.array_equal(np.sort(self.order), np.arange(n)):
            raise OptionError("order must name every base model exactly once")
        if not np.all(self.gap > -np.inf):  # also catches NaN
            raise OptionError("gap must be numbers, and inf where no row leaves")
        if not (np.isfinite(self.costs).all() and (self.costs > 0).all()):
            raise OptionError("costs must be positive numbers")
        object.__setattr__(self, "n_classes", check_count("n_classes", self.n_classes, least=2))
        object.__setattr__(self, "only", check_count("only", self.only, least=0))
        if self.only >= self.n_classes:
            raise OptionError(f"only is class {self.only}; there are {self.n_classes} classes")

    def _own_arrays(self) -> None:
        """Copies that nobody can write to: a policy never changes."""
        for name, dtype in (("order", np.int32), ("gap", float), ("costs", float)):
            array = np.array(getattr(self, name), dtype=dtype)
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._own_arrays()

    @cached_property
    def target(self) -> ManyClasses:
        """What decides a row that never leaves, and which decisions count as different."""
        return ManyClasses(self.n_classes, self.ties, only=self.only)

    @property
    def quit(self) -> str:
        """Which rows may leave: "negative", those of other classes, or "never"."""
        return "negative" if np.isfinite(self.gap[:-1]).any() else "never"

    @property
    def by_class(self) -> npt.NDArray[np.float64]:
        """The thresholds as native code takes them, (T, K)."""
        return np.repeat(self.gap[:, np.newaxis], self.n_classes, axis=1)

    def without_quitting(self) -> FilterPolicy:
        """The same order, every row evaluated in full."""
        return replace(self, gap=np.full_like(self.gap, np.inf))

    def apply(self, scores: Any, *, threads: int | None = None) -> Decisions:
        """Decide rows whose scores are known: a ScoreMatrix of K classes, or any (N, T, K) array. A label
        is the index of a class; of a row that left, the best other class so far. Scores are (N, K): full
        scores where complete, else running sums."""
        matrix = ScoreMatrix.of(scores, n_models=self.n_models, n_classes=self.n_classes)
        label, steps, score = _native.apply_leads(
            matrix.by_model,
            np.ascontiguousarray(matrix.base, dtype=np.float64),
            np.ascontiguousarray(matrix.full, dtype=np.float64),
            self.order,
            self.by_class,
            np.full(self.n_models, np.inf),
            thread_count(threads),
            self.only,
        )
        complete = steps == self.n_models
        if self.ties.kind != "scores":
            label[complete] = self.target.decide(matrix.full[complete])
        return Decisions(label, steps, score, complete)

    def outcomes(self, step: int, sums: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
        """What the thresholds say of running sums (N, K) after a step: the class to leave as, or GO_ON."""
        if np.ndim(sums) != 2 or sums.shape[1] != self.n_classes:
            raise InputError(
                f"sums must be rows by {self.n_classes} classes; got shape {np.shape(sums)}"
            )
        other, ahead = best_others(sums, self.only)
        return np.where(ahead > self.gap[step], other, GO_ON).astype(np.int32)

    def __repr__(self) -> str:
        leaves = "no row leaves early" if self.quit == "never" else "others leave early"
        return (
            f"FilterPolicy({self.n_models} base models, class {self.only} of {self.n_classes}, "
            f"{leaves})"
        )


def best_others(
    sums: npt.NDArray[np.float64], only: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
    """The class with the largest of the sums (N, K) besides `only`, the first of equal ones, and by how
    much it is ahead of `only`, each (N,). native/core/leads.hpp has the same."""
    others = np.array(sums, dtype=np.float64)
    others[:, only] = -np.inf
    best = np.argmax(others, axis=1)
    best = np.where(best == only, 1 if only == 0 else 0, best)  # where all others are -inf
    return best, sums[np.arange(len(sums)), best] - sums[:, only]


ClassPolicy = LeadPolicy | FilterPolicy  # for K classes with a score each
