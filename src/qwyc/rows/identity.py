"""Identity of rows: a 64-bit hash for each row, by which repeated rows are found again.

A hash depends on the row's numbers alone: not on the other rows, the memory order, the width of the
floating-point type or the byte order of the machine. Two different rows have the same hash with probability
2**-64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.rows.sparse import dense_columns, is_sparse, to_csr

Hashes = npt.NDArray[np.uint64]  # (N,)

BLOCK = 1 << 14  # rows that are hashed together; their state stays in the cache
_STEP = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio, as in SplitMix64
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_NAN = np.uint64(0x7FF8000000000000)
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


def row_hashes(values: npt.NDArray[Any], dtype: str | None = None) -> Hashes:
    """A hash of each row of numbers, (N, columns) or (N, columns, K). -0.0 counts as 0.0, and every NaN is
    alike.

    Values are rounded to `dtype` first, where it is given: base models that take float32 cannot tell rows
    apart that are equal in float32."""
    n, columns = len(values), int(np.prod(values.shape[1:]))
    hashes = np.full(n, columns, dtype=np.uint64)
    for begin in range(0, n, BLOCK):
        block, state = values[begin : begin + BLOCK], hashes[begin : begin + BLOCK]
        block = block.reshape(len(block), columns)
        for j in range(columns):
            state ^= _bits(block[:, j], dtype)
            _mix(state)
    return hashes


def sparse_hashes(rows: _native.SparseRows, dtype: str) -> Hashes:
    """The same of sparse rows, by the entries that differ from absent ones. These hashes can be compared
    with those of other sparse rows of the same model, and not with those of dense rows."""
    return rows.hashes32() if dtype == "float32" else rows.hashes64()


def sparse_column_hashes(rows: _native.SparseRows, columns: Sequence[int], dtype: str) -> Hashes:
    """A hash of each sparse row by some columns, ascending: that of the dense row."""
    slots = _native.ColumnSlots(rows.shape[1], np.array(columns, dtype=np.int32))
    blocks = [row_hashes(block, dtype) for block in dense_columns(rows, slots, dtype)]
    return np.concatenate([np.empty(0, np.uint64), *blocks])


def table_hashes(X: Any) -> Hashes | None:
    """A hash of each row of an array of numbers, or of a table of anything, (N,); None for other rows. Rows
    of two tables cannot be compared: text is numbered within a table."""
    if is_sparse(X):
        matrix = to_csr(X)
        begin = matrix.indptr.astype(np.int64)
        value = matrix.data.astype(np.float64)
        return _native.SparseRows(value, matrix.indices, begin, X.shape[1], 0.0).hashes64()
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        columns = [_numbers(column.to_numpy()) for column in frame.iter_columns()]
        return row_hashes(np.column_stack(columns)) if columns else None
    array = np.asarray(X)
    return row_hashes(array) if array.ndim == 2 and array.dtype.kind in "biuf" else None


def _numbers(column: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """A column as numbers, (N,), equal where its values are."""
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    return np.unique(column.astype(str), return_inverse=True)[1].astype(np.float64)


def _bits(column: npt.NDArray[Any], dtype: str | None) -> Hashes:
    """The bits of each number as a float64, (rows,), equal for equal numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = column if dtype is None else column.astype(dtype)
        number = rounded.astype(np.float64) + 0.0  # -0.0 + 0.0 is 0.0
    bits = number.view(np.uint64)
    bits[np.isnan(number)] = _NAN
    return bits


def _mix(state: Hashes) -> None:
    """One step of SplitMix64, in place: every bit of the state changes about half of the others."""
    state += _STEP
    state ^= state >> _SHIFTS[0]
    state *= _FIRST
    state ^= state >> _SHIFTS[1]
    state *= _SECOND
    state ^= state >> _SHIFTS[2]
