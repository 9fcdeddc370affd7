"""LeadPolicy: for more than two classes, one order of the base models, and a threshold for each step and
class.

After a step the class with the largest running sum leads, the first of equal ones. Its lead is the distance
to the runner-up. A row quits for the class that leads where the lead exceeds the threshold of that class.

For K = 2 this is a `Policy` on the differences (second class less first): `lower` is -lead[:, 0], `upper`
is lead[:, 1], and the threshold of the full decision is the smallest number above 0, since the first class
wins ties. Labels and steps are equal where the differences and their sums are exact; otherwise rounding
may separate rows that lie on a threshold. `Policy` can do more: its thresholds need not lie on both sides
of 0."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import InputError, OptionError
from qwyc.policy.decisions import Decisions
from qwyc.policy.rule import GO_ON, AlongOrder
from qwyc.policy.scores import ScoreMatrix
from qwyc.runtime.threads import thread_count
from qwyc.target.many_classes import ManyClasses
from qwyc.target.ties import BY_SCORES, Ties


@dataclass(frozen=True, eq=False)
class LeadPolicy(AlongOrder):
    """After step r, a row quits for the class k with the largest running sum if k is ahead of all others
    by more than lead[r, k]. A row that never quits is decided by its full scores."""

    order: npt.NDArray[np.int32]  # (T,) which base model runs at each step
    lead: npt.NDArray[np.float64]  # (T, K) at least 0, inf where no row quits
    costs: npt.NDArray[np.float64]  # (T,) along the order; by base model, not by step
    ties: Ties = BY_SCORES  # which of classes wins whose full scores are equal
    # (T,) at least 0: if a row goes on, classes that are behind by more are ruled out; inf: none is
    drop: npt.NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        try:
            self._own_arrays()
        except (TypeError, ValueError, OverflowError):
            raise OptionError("order, lead and costs must be numbers") from None
        n = self.order.size
        if n == 0 or self.order.shape != (n,) or self.costs.shape != (n,):
            raise OptionError("order and costs must each have one entry per base model")
        if self.drop is None or self.drop.shape != (n,) or not np.all(self.drop >= 0):
            raise OptionError("drop must be a number of at least 0 for each base model, or inf")
        if self.lead.ndim != 2 or len(self.lead) != n or self.lead.shape[1] < 2:
            raise OptionError(
                f"lead must have a row for each of {n} base models and a column for each of two classes "
                f"or more; got shape {self.lead.shape}"
            )
        if not np.array_equal(np.sort(self.order), np.arange(n)):
            raise OptionError("order must name every base model exactly once")
        if not np.all(self.lead >= 0):  # also catches NaN
            raise OptionError("lead must be numbers of at least 0, and inf where no row quits")
        if not (np.isfinite(self.costs).all() and (self.costs > 0).all()):
            raise OptionError("costs must be positive numbers")

    def _own_arrays(self) -> None:
        """Copies that nobody can write to: a policy never changes."""
        if self.drop is None:
            object.__setattr__(self, "drop", np.full(np.shape(self.order), np.inf))
        kinds = (("order", np.int32), ("lead", float), ("costs", float), ("drop", float))
        for name, dtype in kinds:
            array = np.array(getattr(self, name), dtype=dtype, order="C")
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._own_arrays()

    @property
    def n_classes(self) -> int:
        """Number of classes, K."""
        return int(self.lead.shape[1])

    @property
    def ruled_out_at(self) -> npt.NDArray[np.float64]:
        """`drop` as an array, (T,)."""
        assert self.drop is not None  # see _own_arrays
        return self.drop

    @cached_property
    def target(self) -> ManyClasses:
        """What decides a row that never quits."""
        return ManyClasses(self.n_classes, self.ties)

    @property
    def quit(self) -> str:
        """Whether rows may quit, "both", or "never". No single direction can be chosen here."""
        return "both" if np.isfinite(self.lead[:-1]).any() else "never"

    def without_quitting(self) -> LeadPolicy:
        """The same order, every row evaluated in full."""
        return replace(self, lead=np.full_like(self.lead, np.inf), drop=None)

    def apply(self, scores: Any, *, threads: int | None = None) -> Decisions:
        """Decide rows whose scores are known: a ScoreMatrix of K classes, or any (N, T, K) array. A label
        is the index of a class. Scores are (N, K): full scores where complete, else running sums."""
        matrix = ScoreMatrix.of(scores, n_models=self.n_models, n_classes=self.n_classes)
        label, steps, score = _native.apply_leads(
            matrix.by_model,
            np.ascontiguousarray(matrix.base, dtype=np.float64),
            np.ascontiguousarray(matrix.full, dtype=np.float64),
            self.order,
            self.lead,
            self.ruled_out_at,
            thread_count(threads),
        )
        complete = steps == self.n_models
        if self.ties.kind != "scores":
            label[complete] = self.target.decide(matrix.full[complete])
        return Decisions(label, steps, score, complete)

    def outcomes(self, step: int, sums: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
        """What the thresholds say of running sums (N, K) after a step: the class to quit with, or GO_ON."""
        if np.ndim(sums) != 2 or sums.shape[1] != self.n_classes:
            raise InputError(
                f"sums must be rows by {self.n_classes} classes; got shape {np.shape(sums)}"
            )
        leader, lead = leaders(sums)
        return np.where(lead > self.lead[step][leader], leader, GO_ON).astype(np.int32)

    def __repr__(self) -> str:
        quits = "never quits" if self.quit == "never" else "quits early"
        return f"LeadPolicy({self.n_models} base models, {self.n_classes} classes, {quits})"


def leaders(
    sums: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
    """The class with the largest of the sums (N, K), the first of equal ones, and by how much it leads,
    each (N,). native/core/leads.hpp has the same."""
    first = np.argmax(sums, axis=1)
    rows = np.arange(len(sums))
    others = np.array(sums, dtype=np.float64)
    best = others[rows, first]
    others[rows, first] = -np.inf
    return first, best - others.max(axis=1)
