"""The number of rows of any container, and a selection of its rows in a container of the same kind."""

from __future__ import annotations

import sys
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import InputError
from qwyc.rows.sparse import to_csr


def row_count(X: Any) -> int:
    """Number of rows of an array, table, sparse matrix or list."""
    if hasattr(X, "collect") and not hasattr(X, "shape"):
        raise InputError("the rows are a lazy frame; pass X.collect() instead")
    if hasattr(X, "shape") and len(X.shape) > 0:
        return int(X.shape[0])
    try:
        return len(X)
    except TypeError:
        raise InputError(
            f"rows must be an array, a table or a list; got {type(X).__name__}"
        ) from None


def _as_table(X: Any) -> Any:
    """A pyarrow.RecordBatch as a table, which narwhals takes; anything else as it is."""
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(X, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([X])
    return X


def part(X: Any, start: int, stop: int) -> Any:
    """The rows from `start` up to `stop`, in a container of the same kind as X. Arrays and tables are not
    copied."""
    if hasattr(X, "iloc"):  # pandas
        return X.iloc[start:stop]
    if isinstance(X, _native.SparseRows):
        return X[start:stop]
    if hasattr(X, "tocsr"):  # scipy sparse
        return to_csr(X)[start:stop]
    if isinstance(X, (np.ndarray, list, tuple)):
        return X[start:stop]
    frame = nw.from_native(_as_table(X), eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return frame[start:stop].to_native()
    raise InputError(f"cannot select rows of {type(X).__name__}; pass an array, a table or a list")


def take(X: Any, rows: npt.NDArray[np.intp]) -> Any:
    """The rows at the positions `rows`, ascending, in a container of the same kind as X."""
    if isinstance(X, (np.ndarray, _native.SparseRows)):
        return X[rows]
    if hasattr(X, "iloc"):  # pandas
        return X.iloc[rows]
    frame = nw.from_native(_as_table(X), eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return frame[rows, :].to_native()
    if hasattr(X, "tocsr"):  # scipy sparse
        return to_csr(X)[rows]
    if isinstance(X, (list, tuple)):
        return [X[i] for i in rows]
    raise InputError(f"cannot select rows of {type(X).__name__}; pass an array, a table or a list")
