"""Early decisions against full ones, counted.

`Sums` are plain sums over rows, so those of parts of a data set add up to those of the whole. `Counts`
are what is kept of them: for one policy, or for every policy of a path."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from qwyc.policy.grouped import GroupCounts, PathGroups
from qwyc.policy.rule import StoppingRule, cost_of_steps
from qwyc.target.target import Decided, Target

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class AlongOrder(Protocol):
    """Policies along one order."""

    @property
    def order(self) -> npt.NDArray[np.int32]:
        """(T,)"""

    @property
    def costs(self) -> Floats:
        """(T,) of base models."""

    @property
    def target(self) -> Target:
        """What decides a row that never quits."""


def exit_bins(n_models: int) -> list[tuple[int, int]]:
    """The bins in which rows are counted by the number of steps that they took, first and last step of
    each: 1, 2, 3-4, 5-8, ..., and one for rows that completed."""
    bins, first = [], 1
    while first < n_models:
        last = min(max(2 * (first - 1), 1), n_models - 1)
        bins.append((first, last))
        first = last + 1
    return [*bins, (n_models, n_models)]


def count_exits(steps: npt.NDArray[np.int32], n_models: int) -> Ints:
    """Rows in each of the bins, (B,)."""
    firsts = [first for first, _ in exit_bins(n_models)]
    at = np.searchsorted(firsts, steps, side="right") - 1
    return np.bincount(at, minlength=len(firsts)).astype(np.int64)


@dataclass(frozen=True)
class Counts:
    """What one policy did on some rows."""

    by_class: tuple[int, ...]  # rows by their full decision; for two classes negative, positive
    differences: tuple[int, ...]  # rows decided differently, by `Target.differences`
    mean_models: float  # base models evaluated per row; all of them where there are no rows
    mean_cost: float  # what they cost
    exits: tuple[int, ...] = ()  # rows by where they stopped, in `exit_bins`; () where not known
    groups: GroupCounts | None = None  # the same by group, where groups are counted instead of rows
    # Rows that took 1, 2, ..., T steps; () where not known. Not every counter keeps them, so counts that
    # differ in nothing else are equal.
    stops: tuple[int, ...] = field(default=(), compare=False, repr=False)

    @property
    def rows(self) -> int:
        """How many rows these are."""
        return sum(self.by_class)

    @property
    def disagreements(self) -> int:
        """How many rows were decided differently from the full ensemble."""
        return sum(self.differences)

    @property
    def observed(self) -> float:
        """The share of rows that was decided differently; 0 for no rows."""
        return self.disagreements / self.rows if self.rows else 0.0

    @classmethod
    def without_rows(cls, rule: StoppingRule) -> Counts:
        """What is known of a policy that was not tried on any row."""
        target = rule.target
        nothing = (0,) * target.n_classes, (0,) * len(target.differences)
        exits = (0,) * len(exit_bins(rule.n_models))
        return cls(*nothing, float(rule.n_models), float(rule.costs.sum()), exits)


@dataclass(frozen=True, eq=False)
class PathCounts:
    """What each of K policies did on the same rows."""

    by_class: tuple[int, ...]
    differences: npt.NDArray[np.int64]  # (K, n_differences)
    mean_models: Floats  # (K,)
    mean_cost: Floats  # (K,)
    exits: Ints | None = None  # (K, B) rows by where they stopped; None where not known
    groups: PathGroups | None = None  # the same by group, where groups are counted instead of rows
    stops: Ints | None = None  # (K, T) rows that took 1, 2, ..., T steps; None where not known

    def __len__(self) -> int:
        return len(self.differences)

    def __getitem__(self, k: int) -> Counts:
        """What the k-th policy did."""
        differences = tuple(int(n) for n in self.differences[k])
        exits = () if self.exits is None else tuple(int(n) for n in self.exits[k])
        means = float(self.mean_models[k]), float(self.mean_cost[k])
        groups = None if self.groups is None else self.groups[k]
        stops = () if self.stops is None else tuple(self.stops[k].tolist())
        return Counts(self.by_class, differences, *means, exits, groups, stops)

    @property
    def rows(self) -> int:
        """How many rows these are."""
        return sum(self.by_class)


@dataclass(frozen=True, eq=False)
class Sums:
    """What K policies did on some rows, as sums over the rows."""

    by_class: npt.NDArray[np.int64]  # (n_classes,)
    differences: npt.NDArray[np.int64]  # (K, n_differences)
    steps: Floats  # (K,) base models evaluated
    cost: Floats  # (K,) what they cost
    exits: Ints  # (K, B) rows by where they stopped
    stops: Ints | None = None  # (K, T) the same by step; None for a sum of vectors
    left_out: int = 0  # rows that are not counted, since the model refuses a value of theirs

    @property
    def rows(self) -> int:
        """How many rows these are."""
        return int(self.by_class.sum())

    def counts(self, groups: PathGroups | None = None) -> PathCounts:
        """The same, per row where that is what matters; means are 0 for no rows. `groups` are the same
        rows by group."""
        n = max(self.rows, 1)
        by_class = tuple(int(count) for count in self.by_class)
        means = self.steps / n, self.cost / n
        return PathCounts(by_class, self.differences, *means, self.exits, groups, self.stops)

    def vector(self) -> Floats:
        """As one vector of numbers that can be added up; exact up to 2**53. It leaves out `stops`, which
        would be most of it."""
        tables = self.differences.ravel(), self.exits.ravel()
        return np.concatenate([self.by_class, [self.left_out], *tables, self.steps, self.cost])

    @staticmethod
    def size(target: Target, n_models: int, K: int) -> int:
        """The length of the vector for K policies."""
        return target.n_classes + 1 + K * (len(target.differences) + len(exit_bins(n_models)) + 2)

    @classmethod
    def from_vector(cls, vector: Floats, target: Target, n_models: int) -> Sums:
        """From a sum of such vectors."""
        n_classes, kinds, bins = target.n_classes, len(target.differences), len(exit_bins(n_models))
        K = (len(vector) - n_classes - 1) // (kinds + bins + 2)
        ends = n_classes + 1 + K * np.cumsum([0, kinds, bins, 1])
        by_class, left_out, differences, exits, steps, cost = np.split(vector, [n_classes, *ends])
        whole = differences.astype(np.int64).reshape(K, kinds)
        stopped = exits.astype(np.int64).reshape(K, bins)
        left = int(left_out[0])
        return cls(by_class.astype(np.int64), whole, steps, cost, stopped, left_out=left)


def sum_over_rows(
    rule: StoppingRule,
    decided: Any,
    full: Decided,
    steps: npt.NDArray[np.int32],
    left_out: int = 0,
) -> Sums:
    """What one policy did on rows that it `decided` (N,), taking `steps` (N,) base models, and that the
    full ensemble decides as `full` (N,); so many more rows were left out."""
    target, cost = rule.target, cost_of_steps(rule.order, rule.costs, steps)
    return Sums(
        target.count_classes(full),
        target.count_differences(decided, full)[np.newaxis],
        np.array([steps.sum(dtype=np.int64)], dtype=np.float64),
        np.array([cost.sum()]),
        count_exits(steps, rule.n_models)[np.newaxis],
        np.bincount(steps - 1, minlength=rule.n_models).astype(np.int64)[np.newaxis],
        left_out,
    )


def sums_of_stops(rule: AlongOrder, full: Decided, stops: Ints, differences: Ints) -> Sums:
    """What K policies along one order did on rows that the full ensemble decides as `full` (N,): `stops`
    (K, T) are the rows that took 1, 2, ..., T steps, `differences` (K, n_differences) those that were
    decided differently."""
    n_models = len(rule.order)
    firsts = [first - 1 for first, _ in exit_bins(n_models)]
    return Sums(
        rule.target.count_classes(full),
        differences,
        (stops @ np.arange(1, n_models + 1)).astype(np.float64),
        stops.astype(np.float64) @ np.cumsum(rule.costs[rule.order]),
        np.add.reduceat(stops, firsts, axis=1),
        stops,
    )
