"""Path: policies along one order, from cautious to bold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import OptionError
from qwyc.policy.counts import Sums, sums_of_stops
from qwyc.policy.policy import Policy
from qwyc.policy.scores import ScoreMatrix
from qwyc.runtime.progress import Report
from qwyc.runtime.threads import thread_count
from qwyc.target.target import Decided
from qwyc.target.two_classes import TwoClasses

Watch = Callable[[int, Any, Decided], None]  # (policy, what it decided (N,), full decisions (N,))


@dataclass(frozen=True, eq=False)
class Path:
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

    def __len__(self) -> int:
        return len(self.penalty)

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
        report: Report = lambda done: None,
        watch: Watch | None = None,
    ) -> Sums:
        """What every policy does on known scores, or on some rows of them. `report` is called with the
        number of policies done, and `watch` with what each policy decided."""
        watched = watch is not None
        stops, differences, decided = _native.count_path(
            np.ascontiguousarray(matrix.values.T),
            matrix.base,
            np.ascontiguousarray(matrix.full),
            self.order,
            self.lower,
            self.upper,
            self.threshold,
            None if rows is None else np.ascontiguousarray(rows, dtype=np.int64),
            watched,
            thread_count(threads),
        )
        full = self.target.decide(matrix.full if rows is None else matrix.full[rows])
        if watch is not None:
            for k in range(len(self)):
                watch(k, decided[k].astype(np.int64), full)
        report(len(self))
        return sums_of_stops(self, full, stops, differences)
