"""What every way of fitting a policy starts from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import InputError
from qwyc.policy.costs import Costs
from qwyc.policy.scores import ScoreMatrix
from qwyc.runtime.arguments import check_choice, check_number
from qwyc.runtime.threads import thread_count
from qwyc.target.two_classes import TwoClasses

QUITS = ("both", "negative", "positive")


@dataclass(frozen=True, eq=False)
class Problem:
    """A sample's scores, the full decision, what base models cost and which quits are allowed."""

    matrix: ScoreMatrix  # of finite scores, one row at least
    threshold: float
    costs: Costs
    quit: str
    threads: int | None = None

    @classmethod
    def of(cls, scores: Any, threshold: Any, costs: Any, quit: str, threads: int | None) -> Problem:
        """From what a user passes, checked."""
        check_choice("quit", quit, QUITS)
        matrix = ScoreMatrix.of(scores)
        N, T = matrix.values.shape
        if N == 0:
            raise InputError("scores have no rows; fitting needs a sample")
        for t in range(T):
            if not np.isfinite(matrix.values[:, t]).all():
                raise InputError(f"scores must be finite; those of base model {t} are not")
        beta = check_number("threshold", matrix.threshold if threshold is None else threshold)
        return cls(matrix, beta, Costs.of(costs, T), quit, threads)

    @property
    def n_rows(self) -> int:
        """Number of rows, N."""
        return len(self.matrix.full)

    @property
    def n_models(self) -> int:
        """Number of base models, T."""
        return self.costs.n_models

    @property
    def target(self) -> TwoClasses:
        """What the full scores decide here; the threshold need not be the matrix's own."""
        return TwoClasses(self.threshold)

    @property
    def positive(self) -> npt.NDArray[np.bool_]:
        """Where the full decision is positive, (N,)."""
        return self.target.decide(self.matrix.full).astype(bool)

    @property
    def by_model(self) -> npt.NDArray[Any]:
        """Scores one base model after the other, (T, N), as the native core takes them."""
        return self.matrix.by_model

    @property
    def sides(self) -> tuple[bool, bool]:
        """Whether rows may quit negative, and positive."""
        return self.quit in ("both", "negative"), self.quit in ("both", "positive")

    @property
    def cores(self) -> int:
        return thread_count(self.threads)
