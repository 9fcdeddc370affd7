"""Trees by the columns that they look at, which sparse rows are evaluated on: of thousands of columns, most
are in no tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.rows.sparse import dense_columns
from qwyc.runtime.threads import thread_count

MEASURED_ROWS = 4096  # at most, of costs as measured


@dataclass(frozen=True, eq=False)
class UsedColumns:
    """The same trees with the columns numbered anew: those that no tree looks at are left out."""

    models: Any  # of the same family, with a feature for each column in use
    slots: _native.ColumnSlots

    @classmethod
    def of(cls, models: Any) -> UsedColumns:
        """Of base models with `trees` and `n_features`."""
        feature = models.trees.feature
        columns = np.unique(feature).astype(np.int32) if len(feature) else np.zeros(1, np.int32)
        numbered = np.searchsorted(columns, feature).astype(np.int32)
        return cls(
            replace(models, trees=replace(models.trees, feature=numbered), n_features=len(columns)),
            _native.ColumnSlots(models.n_features, columns),
        )

    def costs(self, rows: _native.SparseRows, how: str, threads: int | None) -> Any:
        """What each tree costs on rows like these, (T,)."""
        dtype = self.models.trees.threshold.dtype.name
        if how != "size":
            rows = rows[:MEASURED_ROWS]
            (block,) = [*dense_columns(rows, self.slots, dtype)][:1]
            return self.models.costs(block, how, threads=threads)
        total: npt.NDArray[np.float64] = np.zeros(self.models.n_models)
        for block in dense_columns(rows, self.slots, dtype):
            total += len(block) * self.models.costs(block, how, threads=threads)
        return total / len(rows)


def score_matrix(models: Any, rows: Any, cores: int) -> Any:
    """What the native `score_matrix` of trees gives for dense or sparse rows."""
    if isinstance(rows, _native.SparseRows):
        return models.used.models.native.score_matrix_sparse(rows, models.used.slots, cores)
    return models.native.score_matrix(rows, cores)


def score_full(models: Any, rows: Any, cores: int) -> Any:
    """What the native `score_full` of trees gives for dense or sparse rows."""
    if isinstance(rows, _native.SparseRows):
        return models.used.models.native.score_full_sparse(rows, models.used.slots, cores)
    return models.native.score_full(rows, cores)


class SparseRunner:
    """Trees by the columns that they look at, laid out for one policy when sparse rows come."""

    def __init__(self, used: Callable[[], UsedColumns], *policy: Any) -> None:
        self._used, self._policy = used, policy  # what `runner` takes
        self._quitter: Any = None

    def decide(self, rows: _native.SparseRows, *, threads: int | None = None) -> Any:
        """As the runner of dense rows."""
        if self._quitter is None:
            self._quitter = self._used().models.runner(*self._policy).quitter
        return self._quitter.decide_sparse(rows, self._used().slots, thread_count(threads))
