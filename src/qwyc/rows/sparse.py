"""Sparse matrices of scipy.sparse as rows that the native code reads where they lie.

scipy is not imported: what has its methods is taken for one of its matrices or arrays. A matrix in CSR is
read as it is, any other is converted to CSR once. No dense copy of all rows is made: the native code
expands blocks of rows, and only the columns that base models look at (native/core/sparse_rows.hpp)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import RowsError
from qwyc.rows.column_names import check_column_count, feature_name
from qwyc.rows.schema import FINITE_ZERO, MISSING, REFUSED, Schema

Array = npt.NDArray[Any]

BLOCK_BYTES = 1 << 26  # of dense rows that Python looks at


def is_sparse(X: Any) -> bool:
    """Whether X is a matrix or array of scipy.sparse."""
    return hasattr(X, "tocsr") and hasattr(type(X), "nnz")  # of damaged ones, X.nnz may raise


def takes_sparse(schema: Schema | None) -> bool:
    """Whether the model says what absent entries mean, and no column holds categories."""
    return schema is not None and schema.absent != REFUSED and not schema.categories


def sparse_rows(X: Any, schema: Schema) -> _native.SparseRows:
    """A sparse matrix as rows that the base models take. Values are float32 or float64."""
    _refuse(X, schema)
    matrix = to_csr(X)
    n = int(X.shape[0])
    # Copied: rows are found by it, so it must not change once it was checked.
    begin = np.array(_vector("indptr", matrix.indptr, "iu"), dtype=np.int64)
    if len(begin) != n + 1:
        raise _not_valid(f"indptr has {len(begin):,} numbers for {n:,} rows")
    column = np.ascontiguousarray(_vector("indices", matrix.indices, "iu"))
    if column.dtype not in (np.int32, np.int64) or not column.dtype.isnative:
        column = column.astype(np.int64)
    value = _values(_vector("data", matrix.data, "biuf"), schema)
    absent = np.nan if schema.absent == MISSING else 0.0
    try:
        rows = _native.SparseRows(value, column, begin, schema.n_features, absent)
    except ValueError as error:
        raise _not_valid(str(error)) from None
    if schema.absent == FINITE_ZERO:
        _refuse_not_finite(value, column, begin, schema)
    return rows


def to_csr(X: Any) -> Any:
    """A matrix in CSR, as scipy converts it: without a look at its indices, so they are checked before."""
    if X.format != "csr":
        _check_indices(X)
    return X.tocsr()


def _check_indices(X: Any) -> None:
    """Raise an error if indices of a matrix that is not in CSR lead out of its arrays."""
    n, d = X.shape
    if X.format == "coo":
        _check_range("row", X.row, n)
        _check_range("col", X.col, d)
        if not len(X.row) == len(X.col) == len(X.data):
            raise _not_valid("row, col and data have different lengths")
    elif X.format in ("csc", "bsr"):
        height, width = X.blocksize if X.format == "bsr" else (1, 1)
        major, minor = (n // height, d // width) if X.format == "bsr" else (d, n)
        begin = _vector("indptr", X.indptr, "iu").astype(np.int64)
        if len(begin) != major + 1 or begin[0] != 0 or (np.diff(begin) < 0).any():
            raise _not_valid("indptr does not rise from 0 for each row or column")
        if begin[-1] > min(len(X.indices), len(X.data)):
            raise _not_valid("indptr leads past the entries")
        _check_range("indices", X.indices, minor)
    elif X.format == "dia" and len(X.offsets) != len(X.data):
        raise _not_valid("offsets and data have different lengths")


def _check_range(name: str, values: Any, end: int) -> None:
    index = _vector(name, values, "iu")
    if index.size and (index.min() < 0 or index.max() >= end):
        raise _not_valid(f"{name} has a number that is not below {end:,}")


def _vector(name: str, values: Any, kinds: str) -> Array:
    """One of the three arrays of CSR, if it is one-dimensional and of one of these kinds of numbers."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in kinds:
        numbers = "whole numbers" if kinds == "iu" else "numbers"
        raise _not_valid(
            f"{name} must hold {numbers} in one dimension; it is {array.dtype} of shape {array.shape}"
        )
    return array


def _not_valid(reason: str) -> RowsError:
    return RowsError(
        "{rows} is not a valid sparse matrix: {reason}. Make it anew, and see X.check_format()",
        reason=reason,
    )


def _refuse(X: Any, schema: Schema) -> None:
    """Refuse what is no table of numbers, and sparse rows if the model takes none."""
    kind = type(X).__name__
    if schema.absent == REFUSED:
        raise RowsError(
            "{rows} is sparse ({kind}), and the model needs dense rows: pass X.toarray(). Its library "
            "takes no sparse rows, or its file was saved by an earlier version, which did not keep what "
            "absent entries mean: save it again",
            kind=kind,
        )
    if schema.categories:
        raise RowsError(
            "{rows} is sparse ({kind}), and the model has columns of categories: pass a data frame",
            kind=kind,
        )
    if len(X.shape) != 2:
        raise RowsError(
            "{rows} must have two dimensions, rows and columns; it has shape {shape}: use "
            "X.reshape(1, -1) for one row",
            shape=str(X.shape),
        )
    check_column_count(int(X.shape[1]), schema)
    if X.dtype.kind not in "biuf":
        raise RowsError(
            "{rows} must hold numbers; it is a sparse matrix of {dtype}", dtype=str(X.dtype)
        )


def _values(data: Array, schema: Schema) -> Array:
    """The values of the entries, (entries,), as native code reads them."""
    with np.errstate(all="ignore"):  # numbers past float32 become infinity, as in the libraries
        if schema.absent == FINITE_ZERO or data.dtype not in (np.float32, np.float64):
            data = data.astype(schema.dtype, copy=False)
        if not np.isnan(schema.missing):
            data = data.astype(schema.dtype, copy=False)
            means_missing = data == data.dtype.type(schema.missing)
            if means_missing.any():
                data = np.where(means_missing, data.dtype.type(np.nan), data)
    return np.ascontiguousarray(data if data.dtype.isnative else data.astype(schema.dtype))


def _refuse_not_finite(value: Array, column: Array, begin: Array, schema: Schema) -> None:
    """Refuse NaN and infinity, as scikit-learn does. Its isolation forests take them, and then send NaN
    another way in sparse rows than in dense ones."""
    finite = np.isfinite(value[begin[0] : begin[-1]])
    if finite.all():
        return
    entry = int(begin[0]) + int(np.argmin(finite))
    raise RowsError(
        "{rows} has {what} in {place}; sparse rows of a scikit-learn model must be finite: fill it in or "
        "drop the row",
        row=int(np.searchsorted(begin, entry, side="right")) - 1,
        column=feature_name(int(column[entry]), schema),
        what="a missing value" if np.isnan(value[entry]) else "infinity, or a number past float32,",
    )


def canonical(X: Any) -> Any:
    """The same matrix as every library reads it: in CSR, with entries of the same place added up, in the
    machine's own byte order, with both kinds of indices of 32 bits where these are enough, and without the
    kinds of floats that some libraries refuse. XGBoost does not survive other bytes."""
    matrix = to_csr(X)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    few = max(matrix.nnz, *matrix.shape) <= np.iinfo(np.int32).max
    index = np.dtype(np.int32 if few else np.int64)
    data = matrix.data.astype(matrix.data.dtype.newbyteorder("="), copy=False)
    if data.dtype.kind == "f" and data.dtype not in (np.float32, np.float64):
        data = data.astype(np.float32 if data.dtype.itemsize < 4 else np.float64)
    if matrix.indices.dtype == index == matrix.indptr.dtype and data is matrix.data:
        return matrix
    parts = data, matrix.indices.astype(index), matrix.indptr.astype(index)
    return type(matrix)(parts, shape=matrix.shape)


def dense_columns(
    rows: _native.SparseRows, slots: _native.ColumnSlots, dtype: str
) -> Iterator[Array]:
    """Blocks of rows as matrices, (n, slots), in C order."""
    block = max(1, BLOCK_BYTES // (8 * max(1, len(slots))))
    for i in range(0, len(rows), block):
        part = rows[i : i + block]
        dense = part.dense32(slots) if dtype == "float32" else part.dense64(slots)
        yield np.ascontiguousarray(dense)


def dense_rows(rows: _native.SparseRows, dtype: str) -> Array:
    """Some rows as a matrix, (n, n_features), in C order: for a few rows only."""
    width = rows.shape[1]
    slots = _native.ColumnSlots(width, np.arange(width, dtype=np.int32))
    return np.concatenate([np.empty((0, width), dtype), *dense_columns(rows, slots, dtype)])
