"""What every way of fitting a policy for many classes starts from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import InputError, OptionError
from qwyc.policy.costs import Costs
from qwyc.policy.scores import ScoreMatrix
from qwyc.runtime.arguments import check_count
from qwyc.runtime.threads import thread_count

LARGEST_SUM = 1e70  # squares of covariances of sums are finite
MOST_CLASSES = 65_535  # kMostClasses in native/python/leads.cpp


@dataclass(frozen=True, eq=False)
class LeadProblem:
    """A sample's scores of K classes, and what base models cost."""

    matrix: ScoreMatrix  # of finite scores (N, T, K), one row at least
    costs: Costs
    threads: int | None = None

    @classmethod
    def of(cls, matrix: ScoreMatrix, costs: Any, threads: int | None) -> LeadProblem:
        """From what a user passes, checked."""
        N, T, K = matrix.values.shape
        if N == 0:
            raise InputError("scores have no rows; fitting needs a sample")
        if K > MOST_CLASSES:
            raise InputError(
                f"scores have {K:,} classes; policies are fitted for up to {MOST_CLASSES:,}"
            )
        largest = np.max(np.abs(matrix.base))
        for t in range(T):
            of_model = float(np.abs(matrix.values[:, t]).max())
            if not np.isfinite(of_model):
                raise InputError(f"scores must be finite; those of base model {t} are not")
            largest += of_model
        if not (largest < LARGEST_SUM and np.isfinite(matrix.full).all()):
            raise InputError(f"scores are too large: sums must stay below {LARGEST_SUM:g}")
        return cls(matrix, Costs.of(costs, T), threads)

    def class_index(self, index: Any) -> int:
        """The index of a class, if it is one."""
        if check_count("only", index, least=0) >= self.n_classes:
            raise OptionError(f"only is class {index}; scores have {self.n_classes} classes")
        return int(index)

    @property
    def n_rows(self) -> int:
        """Number of rows, N."""
        return len(self.matrix.full)

    @property
    def n_models(self) -> int:
        """Number of base models, T."""
        return self.costs.n_models

    @property
    def n_classes(self) -> int:
        """Number of classes, K."""
        return int(self.matrix.values.shape[2])

    @property
    def base(self) -> npt.NDArray[np.float64]:
        """What running sums start from, (K,)."""
        return np.ascontiguousarray(self.matrix.base, dtype=np.float64)

    @cached_property
    def full(self) -> npt.NDArray[np.float64]:
        """Full scores, (N, K)."""
        return np.ascontiguousarray(self.matrix.full, dtype=np.float64)

    @cached_property
    def winner(self) -> npt.NDArray[np.int32]:
        """Full decisions, (N,)."""
        return self.matrix.target.decide(self.matrix.full).astype(np.int32)

    @property
    def cores(self) -> int:
        return thread_count(self.threads)
