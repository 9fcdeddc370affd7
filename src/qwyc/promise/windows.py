"""Windows of time: how disagreement moved over the rows held out, in the order that users give.

The promise is about rows drawn like those of the latest window. Earlier windows cannot show it, because
rows may have changed since. In addition, the observed share must be within the limits in every window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.policy.counts import Counts
from qwyc.promise.binomial import lower_bound, tail, upper_bound
from qwyc.promise.budget import Budget
from qwyc.target.target import Decided, Target

MOVED = 0.01  # the chance of calling windows different although they are not


@dataclass(frozen=True)
class Window:
    """What one policy did on the rows of one window."""

    first: str  # value of the column that orders the rows
    last: str
    by_class: tuple[int, ...]  # rows by their full decision
    differences: tuple[int, ...]  # rows decided differently, by kind

    @property
    def rows(self) -> int:
        """How many rows these are."""
        return sum(self.by_class)

    @property
    def disagreements(self) -> int:
        """How many rows were decided differently."""
        return sum(self.differences)

    @property
    def share(self) -> float:
        """The observed share that was decided differently."""
        return self.disagreements / self.rows if self.rows else 0.0

    def interval(self, confidence: float) -> tuple[float, float]:
        """Between which shares the true one of this window is, with the confidence."""
        level = 1 - (1 - confidence) / 2
        low = lower_bound(self.disagreements, self.rows, level)
        return low, upper_bound(self.disagreements, self.rows, level)

    @property
    def counts(self) -> Counts:
        """The same as limits take it."""
        return Counts(self.by_class, self.differences, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class PathWindows:
    """What each of K policies did in W windows, earliest first."""

    first: tuple[str, ...]  # (W,)
    last: tuple[str, ...]  # (W,)
    by_class: npt.NDArray[np.int64]  # (W, n_classes)
    differences: npt.NDArray[np.int64]  # (K, W, n_differences)

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, k: int) -> tuple[Window, ...]:
        """The windows of the k-th policy."""
        return tuple(
            Window(
                self.first[w],
                self.last[w],
                tuple(int(n) for n in self.by_class[w]),
                tuple(int(n) for n in self.differences[k, w]),
            )
            for w in range(len(self))
        )

    def within(self, budget: Budget, k: int) -> bool:
        """Whether the observed shares of the k-th policy are within the limits in every window."""
        return all(budget.covers(window.counts) for window in self[k])


class WindowCounter:
    """Collects what K policies do on rows whose windows are known."""

    def __init__(self, number: npt.NDArray[np.intp], target: Target, n_policies: int) -> None:
        self.number = number  # (N,) the window of each row
        self.n_windows = int(number.max()) + 1
        self.target = target
        kinds = len(target.differences)
        self.by_class = np.zeros((self.n_windows, target.n_classes), dtype=np.int64)
        self.differences = np.zeros((n_policies, self.n_windows, kinds), dtype=np.int64)

    def add(self, k: int, decided: Any, full: Decided) -> None:
        """What the k-th policy decided about the rows, (N,), and the full decisions."""
        rows, kinds = self.target.differing(decided, full)
        np.add.at(self.differences[k], (self.number[rows], kinds), 1)
        if k == 0:
            np.add.at(self.by_class, (self.number, full), 1)

    def windows(self, first: tuple[str, ...], last: tuple[str, ...]) -> PathWindows:
        """What was collected; `first` and `last` are the values at the ends of each window."""
        return PathWindows(first, last, self.by_class, self.differences)


def moved(windows: tuple[Window, ...]) -> bool:
    """Whether some window's share differs from that of the others by more than chance.

    If all were alike, the differences would fall into the windows in proportion to their rows. The number
    in each window is compared with that, both ways; the tests share the risk."""
    total, rows = sum(w.disagreements for w in windows), sum(w.rows for w in windows)
    if len(windows) < 2 or not total:
        return False
    risk = MOVED / (2 * len(windows))
    for window in windows:
        seen, share = window.disagreements, window.rows / rows
        many = 1.0 if seen == 0 else 1 - tail(seen - 1, total, share)
        if min(tail(seen, total, share), many) <= risk:
            return True
    return False
