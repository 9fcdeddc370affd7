"""Path: policies along one order, from cautious to bold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import OptionError
from qwyc.policy.counts import Sums, sum_over_rows, sums_of_stops
from qwyc.policy.grouped import has_policy
from qwyc.policy.policy import Policy
from qwyc.policy.rule import StoppingRule
from qwyc.policy.scores import ScoreMatrix
from qwyc.runtime.progress import Report
from qwyc.runtime.threads import thread_count
from qwyc.target.target import Decided, Target
from qwyc.target.two_classes import TwoClasses

REPORTS = 20  # parts of the rows, where somebody wants to know how far it is

Watch = Callable[[int, Any, Decided], None]  # (policy, what it decided (N,), full decisions (N,))


@dataclass(frozen=True, eq=False)
class PathSeen:
    """What every policy of a path does with N rows."""

    full: npt.NDArray[np.float64]  # (N,) full scores
    stops: npt.NDArray[np.int64]  # (K, T) rows that took 1, 2, ..., T steps
    differences: npt.NDArray[np.int64]  # (K, 2) rows that are decided differently
    # (N, words) the policies that decide a row differently (`grouped.has_policy`); (0, words) if not asked
    wrong: npt.NDArray[np.uint64]


class AnyPath(ABC):
    """Policies along one order, from the most cautious, which never quits, to the boldest."""

    order: npt.NDArray[np.int32]  # (T,)
    penalty: npt.NDArray[np.float64]  # (K,) of a disagreement, in mean costs of a base model
    costs: npt.NDArray[np.float64]  # (T,) along the order

    @abstractmethod
    def __getitem__(self, k: int) -> StoppingRule:
        """The k-th policy."""

    @property
    @abstractmethod
    def target(self) -> Target:
        """What decides a row that never quits."""

    def __len__(self) -> int:
        return len(self.penalty)

    def sums(
        self,
        matrix: ScoreMatrix,
        *,
        rows: npt.NDArray[np.intp] | None = None,
        threads: int | None = None,
        report: Report | None = None,
        watch: Watch | None = None,
    ) -> Sums:
        """What every policy does on known scores, or on some rows of them. `report` is called with the
        number of policies done, and `watch` with what each policy decided."""
        chosen = slice(None) if rows is None else rows
        full = self[0].target.decide(matrix.full)[chosen]
        parts = []
        for k in range(len(self)):
            policy = self[k]
            decisions = policy.apply(matrix, threads=threads)  # all rows: no copy of the matrix
            decided = decisions.label[chosen]
            parts.append(sum_over_rows(policy, decided, full, decisions.steps[chosen]))
            if watch is not None:
                watch(k, decided, full)
            if report is not None:
                report(k + 1)
        return Sums(
            parts[0].by_class,
            np.concatenate([part.differences for part in parts]),
            np.concatenate([part.steps for part in parts]),
            np.concatenate([part.cost for part in parts]),
            np.concatenate([part.exits for part in parts]),
            np.concatenate([part.stops for part in parts if part.stops is not None]),
        )

    def boldest_within(
        self, allowed: int, matrix: ScoreMatrix, *, threads: int | None = None
    ) -> int:
        """The boldest policy up to the first with more than `allowed` disagreements on these rows."""
        differences = self.sums(matrix, threads=threads).differences
        over = np.flatnonzero(differences.sum(axis=1) > allowed)
        return int(over[0]) - 1 if len(over) else len(self) - 1


@dataclass(frozen=True, eq=False)
class Path(AnyPath):
    """K policies along one order, from the most cautious, which never quits, to the boldest."""

    order: npt.NDArray[np.int32]  # (T,)
    lower: npt.NDArray[np.float64]  # (K, T)
    upper: npt.NDArray[np.float64]  # (K, T)
    penalty: npt.NDArray[np.float64]  # (K,) of a disagreement, in mean costs of a base model
    threshold: float
    costs: npt.NDArray[np.float64]  # (T,) along the order

    def __post_init__(self) -> None:
        for array in (self.lower, self.upper, self.penalty):
            array.setflags(write=False)  # like its members', which are copies

    def __getitem__(self, k: int) -> Policy:
        """The k-th policy."""
        return Policy(self.order, self.lower[k], self.upper[k], self.threshold, self.costs)

    def index_of(self, policy: Policy) -> int:
        """Which member a policy is."""
        for k in range(len(self)):
            same_lower = np.array_equal(self.lower[k], policy.lower)
            if same_lower and np.array_equal(self.upper[k], policy.upper):
                return k
        raise OptionError("the policy is not on this path")

    @property
    def target(self) -> TwoClasses:
        """What decides a row that never quits."""
        return TwoClasses(self.threshold)

    def sums(
        self,
        matrix: ScoreMatrix,
        *,
        rows: npt.NDArray[np.intp] | None = None,
        threads: int | None = None,
        report: Report | None = None,
        watch: Watch | None = None,
    ) -> Sums:
        """What every policy does on known scores, or on some rows of them. `report` is called with the
        number of policies done, and `watch` with what each policy decided. All policies are counted in one
        pass over the rows, so a share of the rows is reported as that share of the policies."""
        by_model = np.ascontiguousarray(matrix.values.T)
        full_scores = np.ascontiguousarray(matrix.full)
        chosen = None if rows is None else np.ascontiguousarray(rows, dtype=np.int64)
        parts = [chosen]
        if report is not None:
            every = np.arange(len(full_scores), dtype=np.int64) if chosen is None else chosen
            parts = list(np.array_split(every, REPORTS))
        counts = []  # stops, differences and, if asked for, sets of policies of each part
        for i, part in enumerate(parts):
            counts.append(
                _native.count_path(
                    by_model,
                    matrix.base,
                    full_scores,
                    self.order,
                    self.lower,
                    self.upper,
                    self.threshold,
                    part,
                    watch is not None,
                    thread_count(threads),
                )
            )
            if report is not None:
                report(len(self) * (i + 1) // len(parts))
        stops, differences, wrong = zip(*counts, strict=True)
        full = self.target.decide(matrix.full if rows is None else matrix.full[rows])
        if watch is not None:
            sets = np.concatenate(wrong)  # (N, words)
            for k in range(len(self)):
                watch(k, full ^ has_policy(sets, k), full)
        return sums_of_stops(self, full, np.sum(stops, axis=0), np.sum(differences, axis=0))
