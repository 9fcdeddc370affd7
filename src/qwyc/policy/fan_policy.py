"""FanPolicy: the rule of Fan et al. (2002), fitted in `policy.fit.fan`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.policy.decisions import Decisions
from qwyc.policy.rule import IN_FULL, OrderedRule, compare
from qwyc.policy.scores import ScoreMatrix
from qwyc.runtime.threads import thread_count


@dataclass(frozen=True, eq=False)
class FanPolicy(OrderedRule):
    """An order, and for each step two thresholds per bin of the running sum."""

    order: npt.NDArray[np.int32]  # (T,)
    bin_begin: npt.NDArray[np.int64]  # (T + 1,) step r owns bins bin_begin[r]:bin_begin[r + 1]
    bin: npt.NDArray[np.int64]  # (n_bins,) floor(g / bin_width), ascending within a step
    mean: npt.NDArray[np.float64]  # (n_bins,) mu
    deviation: npt.NDArray[np.float64]  # (n_bins,) sigma
    bin_width: float  # the paper's lambda
    gamma: float
    quit: str
    threshold: float
    costs: npt.NDArray[np.float64]  # (T,)

    @cached_property
    def lower(self) -> npt.NDArray[np.float64]:
        """A row in the bin quits negative below it, (n_bins,)."""
        if self.quit == "positive" or np.isinf(self.gamma):
            return np.full(len(self.bin), -np.inf)
        return self.threshold + self.mean - self.gamma * self.deviation

    @cached_property
    def upper(self) -> npt.NDArray[np.float64]:
        """A row in the bin quits positive above it, (n_bins,)."""
        if self.quit == "negative" or np.isinf(self.gamma):
            return np.full(len(self.bin), np.inf)
        return self.threshold + self.mean + self.gamma * self.deviation

    def apply(self, scores: Any, *, threads: int | None = None) -> Decisions:
        """Decide rows whose scores are known: a ScoreMatrix or any (N, T) array."""
        matrix = ScoreMatrix.of(scores, n_models=self.n_models)
        positive, steps, score = _native.apply_fan(
            np.ascontiguousarray(matrix.values.T),
            matrix.base,
            np.ascontiguousarray(matrix.full),
            self.order,
            self.bin_begin,
            self.bin,
            self.lower,
            self.upper,
            self.bin_width,
            self.threshold,
            thread_count(threads),
        )
        return Decisions(positive.astype(np.int64), steps, score, steps == self.n_models)

    def outcomes(self, step: int, sums: npt.NDArray[np.float64]) -> npt.NDArray[np.int8]:
        """What the rule says of running sums after a step: NEGATIVE or POSITIVE to quit, GO_ON, or IN_FULL
        where no sample row fell into the bin."""
        begin, end = self.bin_begin[step], self.bin_begin[step + 1]
        if begin == end:
            return np.full(len(sums), IN_FULL, dtype=np.int8)
        place = np.floor(sums / self.bin_width)
        at = np.minimum(begin + np.searchsorted(self.bin[begin:end], place), end - 1)
        quits = compare(sums, self.lower[at], self.upper[at])
        return np.where(self.bin[at] == place, quits, IN_FULL).astype(np.int8)

    def __repr__(self) -> str:
        per_step = len(self.bin) / max(1, self.n_models - 1)
        return (
            f"FanPolicy({self.n_models} base models, quits {self.quit}, gamma {self.gamma:g}, "
            f"{per_step:.0f} bins a step)"
        )
