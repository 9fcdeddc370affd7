"""Many classes: the full decision is the class with the largest full score."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from qwyc.runtime.arguments import check_count
from qwyc.target.target import Decided, Floats


@dataclass(frozen=True)
class ManyClasses:
    """Decisions are the indices 0 to K - 1 of the classes; of equal scores, the first class wins.

    The ways to differ are counted by the full decision: a row differs in way k where the full decision is
    class k and the early decision is any other class."""

    n_classes: int

    kind: ClassVar[str] = "many-classes"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_classes", check_count("n_classes", self.n_classes, least=2))

    @cached_property
    def differences(self) -> tuple[str, ...]:
        """A name for each class, "class 0" and so on."""
        return tuple(f"class {k}" for k in range(self.n_classes))

    def decide(self, full: Floats) -> Decided:
        """The full decision of every row, (N,), from its full scores (N, K). This is the decision rule;
        native/fit/leads.hpp has the same one."""
        return np.asarray(np.argmax(full, axis=1), dtype=np.intp)

    def count_classes(self, full: Decided) -> npt.NDArray[np.int64]:
        """Rows of each full decision, (K,)."""
        return np.bincount(full, minlength=self.n_classes).astype(np.int64)

    def count_differences(self, decided: Any, full: Decided) -> npt.NDArray[np.int64]:
        """Rows of each full decision that are decided differently, (K,)."""
        return self.count_classes(self.differing(decided, full)[1])

    @staticmethod
    def differing(decided: Any, full: Decided) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """The rows that are decided differently, and in which way each: the index of the full decision."""
        rows = np.flatnonzero(np.asarray(decided) != np.asarray(full))
        return rows, np.asarray(full[rows], dtype=np.intp)

    @staticmethod
    def lost_from(index: int) -> tuple[int, ...]:
        """The ways in which a row of a class, by its full decision, can be decided differently."""
        return (index,)
