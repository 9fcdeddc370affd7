"""EstimatePath: policies along one order that share their estimates, from cautious to bold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.policy.counts import Sums, sums_of_stops
from qwyc.policy.estimate_policy import EstimatePolicy
from qwyc.policy.estimates import Estimates
from qwyc.policy.path import Path, Watch
from qwyc.policy.scores import ScoreMatrix
from qwyc.runtime.progress import Report
from qwyc.runtime.threads import thread_count
from qwyc.target.within import OFF, Within


@dataclass(frozen=True, eq=False)
class EstimatePath(Path):
    """K policies along one order, from the most cautious, which never quits, to the boldest. All of them
    estimate full scores in the same way."""

    estimates: Estimates
    within: Within

    def __getitem__(self, k: int) -> EstimatePolicy:
        """The k-th policy."""
        bounds = (self.lower[k], self.upper[k])
        return EstimatePolicy(
            self.order, *bounds, self.threshold, self.costs, self.estimates, self.within
        )

    @property
    def target(self) -> Within:  # type: ignore[override]  # of a path that decides between classes
        """When an early answer is the same as the full one."""
        return self.within

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
        number of policies done, and `watch` with which rows each policy has off."""
        part = matrix if rows is None else matrix.take(rows)
        by_model, full = part.by_model, np.ascontiguousarray(part.full)
        K, T, cores = len(self), len(self.order), thread_count(threads)
        stops, differences = np.zeros((K, T), np.int64), np.zeros((K, 1), np.int64)
        nothing = self.target.decide(full)
        for k in range(K):
            policy = self[k]
            _, steps, sums = _native.apply_policy(
                by_model, part.base, full, self.order, policy.lower, policy.upper, 0.0, cores
            )
            off = policy.off(steps, sums, full, threads=threads)
            stops[k] = np.bincount(steps - 1, minlength=T)
            differences[k] = np.count_nonzero(off)
            if watch is not None:
                watch(k, np.where(off, OFF, 0), nothing)
            if report is not None:
                report(k + 1)
        return sums_of_stops(self, nothing, stops, differences)
