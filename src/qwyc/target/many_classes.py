"""Many classes: the full decision is the class with the largest full score."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError
from qwyc.runtime.arguments import check_count
from qwyc.target.target import Decided, Floats
from qwyc.target.ties import BY_SCORES, Ties


@dataclass(frozen=True)
class ManyClasses:
    """Decisions are the indices 0 to K - 1 of the classes. The largest score wins; `ties` says which of
    classes that are equal.

    The ways to differ are counted by the full decision: a row differs in way k where the full decision is
    class k and the early decision is any other class.

    A filter for one class, `only`, answers whether a row is of this class. Rows of other classes may be
    decided as any other class but this one, so that only rows of this class can differ."""

    n_classes: int
    ties: Ties = BY_SCORES
    names: tuple[str, ...] = field(
        default=(), compare=False, repr=False
    )  # of the classes, for texts
    only: int | None = None  # index of the class of a filter; None: every class counts

    kind: ClassVar[str] = "many-classes"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_classes", check_count("n_classes", self.n_classes, least=2))
        if self.names and len(self.names) != self.n_classes:
            raise OptionError(
                f"names must be {self.n_classes} texts, one per class; got {self.names!r}"
            )
        if self.only is not None and not 0 <= self.only < self.n_classes:
            raise OptionError(f"only is class {self.only}; there are {self.n_classes} classes")

    @cached_property
    def differences(self) -> tuple[str, ...]:
        """A name for each class: those given, or "class 0" and so on."""
        return self.names or tuple(f"class {k}" for k in range(self.n_classes))

    def decide(self, full: Floats) -> Decided:
        """The full decision of every row, (N,), from its full scores (N, K)."""
        return self.ties.decide(full)

    def count_classes(self, full: Decided) -> npt.NDArray[np.int64]:
        """Rows of each full decision, (K,)."""
        return np.bincount(full, minlength=self.n_classes).astype(np.int64)

    def count_differences(self, decided: Any, full: Decided) -> npt.NDArray[np.int64]:
        """Rows of each full decision that are decided differently, (K,)."""
        return self.count_classes(self.differing(decided, full)[1])

    def differing(
        self, decided: Any, full: Decided
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """The rows that are decided differently, and in which way each: the index of the full decision."""
        differ = np.asarray(decided) != np.asarray(full)
        if self.only is not None:
            differ &= np.asarray(full) == self.only
        rows = np.flatnonzero(differ)
        return rows, np.asarray(full[rows], dtype=np.intp)

    @property
    def at_risk(self) -> tuple[int, ...]:
        """All classes, or that of a filter."""
        return tuple(range(self.n_classes)) if self.only is None else (self.only,)

    @staticmethod
    def lost_from(index: int) -> tuple[int, ...]:
        """The ways in which a row of a class, by its full decision, can be decided differently."""
        return (index,)
