"""Early decisions against full ones, counted.

`Sums` are plain sums over rows, so those of parts of a data set add up to those of the whole. `Counts`
are what is kept of them: for one policy, or for every policy of a path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.policy.rule import StoppingRule, cost_of_steps
from qwyc.target.target import Decided, Target

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Counts:
    """What one policy did on some rows."""

    by_class: tuple[int, ...]  # rows by their full decision; for two classes negative, positive
    differences: tuple[int, ...]  # rows decided differently, by `Target.differences`
    mean_models: float  # base models evaluated per row; all of them where there are no rows
    mean_cost: float  # what they cost

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
        return cls(*nothing, float(rule.n_models), float(rule.costs.sum()))


@dataclass(frozen=True, eq=False)
class PathCounts:
    """What each of K policies did on the same rows."""

    by_class: tuple[int, ...]
    differences: npt.NDArray[np.int64]  # (K, n_differences)
    mean_models: Floats  # (K,)
    mean_cost: Floats  # (K,)

    def __len__(self) -> int:
        return len(self.differences)

    def __getitem__(self, k: int) -> Counts:
        """What the k-th policy did."""
        differences = tuple(int(n) for n in self.differences[k])
        return Counts(
            self.by_class, differences, float(self.mean_models[k]), float(self.mean_cost[k])
        )

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

    @property
    def rows(self) -> int:
        """How many rows these are."""
        return int(self.by_class.sum())

    def counts(self) -> PathCounts:
        """The same, per row where that is what matters; means are 0 for no rows."""
        n = max(self.rows, 1)
        by_class = tuple(int(count) for count in self.by_class)
        return PathCounts(by_class, self.differences, self.steps / n, self.cost / n)

    def vector(self) -> Floats:
        """As one vector of numbers that can be added up; exact up to 2**53."""
        return np.concatenate([self.by_class, self.differences.ravel(), self.steps, self.cost])

    @staticmethod
    def size(target: Target, K: int) -> int:
        """The length of the vector for K policies."""
        return target.n_classes + K * (len(target.differences) + 2)

    @classmethod
    def from_vector(cls, vector: Floats, target: Target) -> Sums:
        """From a sum of such vectors."""
        n_classes, kinds = target.n_classes, len(target.differences)
        K = (len(vector) - n_classes) // (kinds + 2)
        ends = [n_classes, n_classes + kinds * K, n_classes + (kinds + 1) * K]
        by_class, differences, steps, cost = np.split(vector, ends)
        whole = differences.astype(np.int64).reshape(K, kinds)
        return cls(by_class.astype(np.int64), whole, steps, cost)


def sum_over_rows(
    rule: StoppingRule, decided: Any, full: Decided, steps: npt.NDArray[np.int32]
) -> Sums:
    """What one policy did on rows that it `decided` (N,), taking `steps` (N,) base models, and that the
    full ensemble decides as `full` (N,)."""
    target, cost = rule.target, cost_of_steps(rule.order, rule.costs, steps)
    return Sums(
        target.count_classes(full),
        target.count_differences(decided, full)[np.newaxis],
        np.array([steps.sum(dtype=np.int64)], dtype=np.float64),
        np.array([cost.sum()]),
    )
