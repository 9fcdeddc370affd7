"""Costs: what base models cost, where some of them share parts.

A shared part, such as the calibrator of a column, is computed once for a row: the first base model that
needs it pays for it. So what a base model costs depends on the order."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError
from qwyc.runtime.arguments import check_costs

Floats = npt.NDArray[np.float64]

# How costs came about: each base model counts 1, which is the paper's way; counted or timed by the
# family of base models (`BaseModels.costs`); or given by the user.
KINDS = ("one", "size", "measured", "given")


@dataclass(frozen=True, eq=False, repr=False)
class Costs:
    """The costs of T base models, some of which share parts.

    The cost of a step is the base model's own cost, plus the cost of each part that it needs and that no
    base model before it needed.

    Parameters
    ----------
    own : cost of each base model without shared parts, (T,), positive.
    parts : cost of each shared part, (P,), zero or more.
    needs : which parts each base model needs, (T, P), booleans.
    """

    own: Floats  # (T,)
    parts: Floats = field(default_factory=lambda: np.empty(0))  # (P,)
    needs: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty((0, 0), dtype=bool))

    def __post_init__(self) -> None:
        if self.own is None or not np.size(self.own):
            raise OptionError("own must be one positive number per base model; got none")
        own = check_costs(self.own, np.size(self.own))
        try:
            parts, needs = np.array(self.parts, dtype=np.float64), np.array(self.needs)
        except (TypeError, ValueError):
            raise OptionError(
                "parts must be numbers, and needs a table of booleans, base models by parts"
            ) from None
        if parts.ndim != 1 or not (np.isfinite(parts) & (parts >= 0)).all():
            raise OptionError("parts must be numbers of at least 0, one per shared part")
        if not needs.size and not len(parts):
            needs = np.empty((len(own), 0), dtype=bool)
        if needs.shape != (len(own), len(parts)):
            raise OptionError(
                f"needs must have a row for each of {len(own)} base models and a column for each of "
                f"{len(parts)} parts; got shape {needs.shape}"
            )
        if needs.dtype != bool:  # a large table is not looked through without need
            if needs.dtype.kind not in "iuf" or not np.isin(needs, (0, 1)).all():
                raise OptionError("needs must be booleans: whether a base model needs a part")
            needs = needs.astype(bool)
        for name, array in (("own", own), ("parts", parts), ("needs", needs)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def of(cls, costs: Any, n_models: int) -> Costs:
        """From what a user passes: a Costs, or one positive number per base model; None is 1 for all."""
        if not isinstance(costs, Costs):
            return cls(check_costs(costs, n_models))
        if costs.n_models != n_models:
            raise OptionError(
                f"costs are for {costs.n_models} base models; there are {n_models} here"
            )
        return costs

    def with_parts(self, parts: Any, needs: Any) -> Costs:
        """The same with more shared parts: their costs, (Q,), and which base models need them, (T, Q)."""
        if not len(parts):
            return self
        return Costs(self.own, np.concatenate([self.parts, parts]), np.hstack([self.needs, needs]))

    @property
    def n_models(self) -> int:
        """Number of base models, T."""
        return len(self.own)

    @property
    def all_one(self) -> bool:
        """Whether each base model counts 1, as in the paper."""
        return not len(self.needed_parts) and bool((self.own == 1).all())

    def along(self, order: Any) -> Floats:
        """What each base model costs, (T,), by base model, where they run in this order."""
        order = np.asarray(order)
        if not np.array_equal(np.sort(order, axis=None), np.arange(self.n_models)):
            raise OptionError(f"order must be a permutation of 0 to {self.n_models - 1}")
        if not len(self.parts):
            return self.own
        step = np.empty(self.n_models, dtype=np.int64)
        step[order] = np.arange(self.n_models)
        needed = step[self._needing_models]
        first = np.full(len(self.parts), self.n_models)  # step at which each part is first needed
        np.minimum.at(first, self.needed_parts, needed)
        pays = needed == first[self.needed_parts]
        return self._with(np.where(pays, self.parts[self.needed_parts], 0.0))

    @cached_property
    def needed_parts(self) -> npt.NDArray[np.int32]:
        """The parts that base model 0 needs, then those of base model 1, and so on; ascending in each."""
        return self._entries[1].astype(np.int32)

    @cached_property
    def need_begin(self) -> npt.NDArray[np.int64]:
        """Base model t needs needed_parts[need_begin[t]:need_begin[t + 1]], (T + 1,)."""
        counts = np.bincount(self._needing_models, minlength=self.n_models)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    @property
    def _needing_models(self) -> npt.NDArray[np.intp]:
        """The base model that each entry of `needed_parts` belongs to."""
        return self._entries[0]

    @cached_property
    def _entries(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """The base model and the part of each need, sorted."""
        models, parts = np.nonzero(self.needs)
        return models, parts

    def _with(self, paid: Floats) -> Floats:
        """Own costs and what is paid for each entry of `needed_parts`, which is added in that order: the
        native core adds in the same order, to the same bits."""
        return self.own + np.bincount(self._needing_models, weights=paid, minlength=self.n_models)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __repr__(self) -> str:
        shared = f", {len(self.parts)} shared parts" if len(self.parts) else ""
        return f"Costs({self.n_models} base models{shared})"


class MarginalCosts:
    """What each base model would add to what is chosen already; for searches that take one at a time.
    native/fit/search.hpp has its own."""

    def __init__(self, costs: Costs) -> None:
        self._costs = costs
        self._unpaid = costs.parts.copy()  # (P,) 0 where a chosen base model needs the part
        self.now = costs.own if not len(costs.parts) else self._added()  # (T,)

    def choose(self, t: int) -> None:
        """Base model t comes next: others no longer pay for the parts that it needs."""
        needed = self._costs.needs[t]
        if self._unpaid[needed].any():
            self._unpaid[needed] = 0.0
            self.now = self._added()

    def _added(self) -> Floats:
        return self._costs._with(self._unpaid[self._costs.needed_parts])
