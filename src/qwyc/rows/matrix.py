"""Rows in any form -> the matrix that the base models take.

NumPy arrays and nested sequences are read by position (`arrays`), data frames of pandas, Polars and Arrow
by name if the model knows its names (`tables`, `frames`), sparse matrices by position (`sparse`). X is
never modified, and not copied if it already fits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import RowsError
from qwyc.rows.arrays import NATIVE_DTYPES, array_to_matrix, as_array, is_readable
from qwyc.rows.column_names import check_column_count, feature_name, quoted_names
from qwyc.rows.frames import as_frame, frame_to_matrix
from qwyc.rows.named_row import NamedRow
from qwyc.rows.schema import Schema
from qwyc.rows.sparse import is_sparse, sparse_rows
from qwyc.rows.tables import reader_of

Array = npt.NDArray[Any]


def to_matrix(X: Any, schema: Schema, *, c_order: bool = True) -> Any:
    """Rows as the base models take them: (N, n_features), float32 or float64, in C order without gaps; or
    else, if `c_order` is False, in any order that the native code reads (`is_readable`). Sparse rows become
    `_native.SparseRows`.

    The dtype is `schema.dtype`, except for arrays of the other dtype that need no change: the native code
    converts them while it reads them."""
    if type(X) is np.ndarray and X.dtype in NATIVE_DTYPES and schema.takes_any_numbers:
        fits = X.ndim == 2 and X.shape[1] == schema.n_features
        if fits and is_readable(X) and (X.flags.c_contiguous or not c_order):
            return X  # no value needs a check, which keeps small batches fast
    if isinstance(X, _native.SparseRows):
        check_column_count(X.shape[1], schema)
        return X
    if is_sparse(X):
        return sparse_rows(X, schema)
    # Casts to float32 may overflow to infinity, as they do in the source libraries.
    with np.errstate(all="ignore"):
        rows = without_sentinel(convert_rows(X, schema, c_order), schema)
    check_special_values(rows, schema)
    return rows


def without_sentinel(rows: Array, schema: Schema) -> Array:
    """A matrix (N, n_features) with NaN for the number that means missing, if the model has one."""
    if np.isnan(schema.missing):
        return rows
    missing = rows == rows.dtype.type(schema.missing)  # (N, n_features)
    return np.where(missing, rows.dtype.type(np.nan), rows) if missing.any() else rows


def convert_rows(X: Any, schema: Schema, c_order: bool) -> Array:
    """`to_matrix` without a check for NaN and infinity; the number that means missing is kept."""
    if isinstance(X, np.ndarray):
        refuse_without_names(X, schema)
        return array_to_matrix(X, schema, c_order=c_order)
    if isinstance(X, NamedRow):
        return X.to_matrix(schema)
    if isinstance(X, (list, tuple)):
        refuse_without_names(X, schema)
        values = as_array(X, object if schema.arrays_hold_values else None)
        return array_to_matrix(values, schema, from_list=True)
    matrix: Array | None = reader_of(schema).matrix(X, c_order=c_order)
    if matrix is not None:
        return matrix
    frame = as_frame(X)
    if frame is None:
        refuse_without_names(X, schema)
        return array_to_matrix(as_array(X), schema)
    return frame_to_matrix(frame, schema, c_order=c_order)


def refuse_without_names(X: Any, schema: Schema) -> None:
    """Refuse what has no column names if columns are known by name only."""
    if schema.by_name:
        raise RowsError(
            "{rows} ({kind}) has no column names, and the model finds its columns by name: pass a data "
            "frame with the columns {names}",
            kind=type(X).__name__,
            names=quoted_names(schema.names or ()),
        )


def check_special_values(rows: Array, schema: Schema) -> None:
    """Refuse NaN and infinity if the source library refuses them, or the model has no output for NaN."""
    if not schema.finite_only or np.isfinite(rows).all():
        return
    if not schema.accepts_missing:
        _refuse_where_known(np.isnan(rows), schema)
        _refuse(np.isnan(rows), "a missing value", "missing values", schema)
    if schema.must_have:
        _refuse_missing(rows, schema)
    if not schema.accepts_infinity:
        what = "infinity" if rows.dtype == np.float64 else "infinity, or a number past float32,"
        _refuse(np.isinf(rows), what, "infinities", schema)


def _refuse_missing(rows: Array, schema: Schema) -> None:
    """Raise an error if a value is missing in a column that must have one."""
    columns = list(schema.must_have)
    bad = np.isnan(rows[:, columns])  # (N, len(must_have))
    if bad.any():
        i, j = np.unravel_index(int(np.argmax(bad)), bad.shape)
        raise RowsError(
            "{rows} has a missing value in {place}, for which the model has no output: fill it in, drop "
            "the row, or give its calibrator a missing_output",
            row=int(i),
            column=feature_name(columns[int(j)], schema),
        )


def _refuse_where_known(bad: npt.NDArray[np.bool_], schema: Schema) -> None:
    """Raise an error if the first value that is missing, (N, n_features), is in a column for which the
    model has a number that means missing."""
    i, j = np.unravel_index(int(np.argmax(bad)), bad.shape)
    known = dict(schema.own_missing)
    if bad[i, j] and int(j) in known:
        raise RowsError(
            "{rows} has a missing value in {place}; the model takes {number} for what is missing there: "
            "fill it in with that",
            row=int(i),
            column=feature_name(int(j), schema),
            number=f"{known[int(j)]:g}",
        )


def _refuse(bad: npt.NDArray[np.bool_], what: str, kind: str, schema: Schema) -> None:
    """Raise an error if any value is bad, (N, n_features)."""
    if bad.any():
        i, j = np.unravel_index(int(np.argmax(bad)), bad.shape)
        raise RowsError(
            "{rows} has {what} in {place}; the source library refuses {kind} with this model: fill them in "
            "or drop the rows",
            row=int(i),
            column=feature_name(int(j), schema),
            what=what,
            kind=kind,
        )
