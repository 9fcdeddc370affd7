"""The interface of a target: what a full score decides, and when two decisions differ.

A new meaning of "the same answer" is a new file beside `two_classes.py` and `many_classes.py` with these
members, and its twin in the native core."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Decided = npt.NDArray[np.integer[Any]]  # (N,) the index of each row's class


class Target(Protocol):
    """What "decided like the full ensemble" means."""

    @property
    def kind(self) -> str:
        """The name of this target in files."""

    @property
    def n_classes(self) -> int:
        """How many decisions there are."""

    @property
    def differences(self) -> tuple[str, ...]:
        """The ways in which an early decision can differ from the full one. Budgets are given for them."""

    @property
    def only(self) -> int | None:
        """The index of the class that a filter is for; None where every class counts."""

    @property
    def at_risk(self) -> tuple[int, ...]:
        """The indices of the classes, by the full decision, of which rows can be decided differently."""

    def decide(self, full: Floats) -> Decided:
        """The full decision of every row, from its full score, or from its full scores of all classes."""

    def count_classes(self, full: Decided) -> npt.NDArray[np.int64]:
        """Rows of each full decision, (n_classes,)."""

    def count_differences(self, decided: Any, full: Decided) -> npt.NDArray[np.int64]:
        """Rows of each way in which early decisions differ from full ones, (n_differences,)."""

    def differing(
        self, decided: Any, full: Decided
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """The rows that are decided differently, and in which way each."""

    def lost_from(self, index: int) -> tuple[int, ...]:
        """The ways in which a row of a class, by its full decision, can be decided differently."""
