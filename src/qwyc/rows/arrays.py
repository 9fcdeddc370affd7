"""NumPy arrays and nested sequences -> the matrix that the trees take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import RowsError
from qwyc.rows import categories
from qwyc.rows.column_names import check_column_count, feature_name
from qwyc.rows.schema import Category, Schema
from qwyc.rows.values import is_null, quoted

Array = npt.NDArray[Any]
Known = Mapping[int, tuple[Category, ...]]  # the categories of each feature that has some

NATIVE_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))  # that the native code reads


def as_array(X: Any, dtype: type | None = None) -> Array:
    """X through its own conversion to NumPy."""
    try:
        return np.asarray(X, dtype)
    except Exception as error:  # X may raise any exception
        raise RowsError(
            "{rows} ({kind}) is not a table of rows and columns: {reason}",
            kind=type(X).__name__,
            reason=str(error),
        ) from None


def is_readable(values: Array) -> bool:
    """Whether the native code reads a matrix of its own dtypes as it lies in memory: rows in C order or
    columns in Fortran order, with any gap between them."""
    if not values.flags.aligned:
        return False
    if values.flags.c_contiguous:
        return True
    size, (row, column) = values.itemsize, values.strides
    gap = row if column == size else column if row == size else 0
    return gap > 0 and gap % size == 0


def as_readable(values: Array, dtype: Any, *, c_order: bool) -> Array:
    """A matrix of a dtype of the native code, copied only if it has to be; None keeps its own dtype."""
    if not c_order and (dtype is None or values.dtype == dtype) and is_readable(values):
        return values
    return np.require(values, dtype, ["C", "A"])


def array_to_matrix(
    X: Array, schema: Schema, *, c_order: bool = True, from_list: bool = False
) -> Array:
    """An array, or a list that was made an array, as a matrix: see `qwyc.rows.matrix.to_matrix`."""
    values = np.asarray(X)  # (N, n_features), without mask or subclass
    known = schema.categories if schema.arrays_hold_values else {}
    _check_shape(X, values, schema, text_is_known=bool(known))
    masked = np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) else None  # (N, n_features)
    dtype: Any = schema.dtype
    if schema.rounds_to_float32 and values.dtype not in NATIVE_DTYPES:
        dtype = "float32"
    if values.dtype.kind in "OU":
        if masked is not None:
            values = values.astype(object)
            values[masked] = None
        # LGBMClassifier reads arrays of objects as float64, and lists that become one as float32. A Booster
        # reads both as float32.
        rounds = from_list or schema.integers == "float32 objects"
        return _objects_to_matrix(values, dtype if rounds else schema.dtype, schema, known)
    if from_list and schema.integers == "float64":
        values = values.astype(np.float64)
    if from_list:
        for j in range(values.shape[1]):
            refuse_ambiguous_integers(values[:, j], schema, feature_name(j, schema))
    if values.dtype in NATIVE_DTYPES and schema.takes_any_numbers and masked is None:
        dtype = values.dtype
    rows = as_readable(values, dtype, c_order=c_order)
    if (known or masked is not None) and np.may_share_memory(rows, values):
        rows = rows.copy()
    for j, categories_of_j in known.items():
        ignore = None if masked is None else masked[:, j]
        name = feature_name(j, schema)
        if schema.hashed:
            rows[:, j] = categories.codes_of_hashed(values[:, j].tolist(), categories_of_j, name)
            continue
        rows[:, j] = categories.codes_of_numbers(
            values[:, j], categories_of_j, schema.unseen, name, ignore
        )
    if masked is not None:
        rows[masked] = np.nan
    return rows


def _check_shape(X: Array, values: Array, schema: Schema, *, text_is_known: bool) -> None:
    """Refuse what is not a table of numbers, or of categories that are text if those are known."""
    kind = values.dtype.kind
    if values.ndim and kind not in "biufO" and not (kind == "U" and text_is_known):
        raise RowsError(
            "{rows} must hold numbers; it is an array of {dtype}. Pass text in a data frame, or as the "
            "codes of its categories",
            dtype={"U": "text", "S": "bytes"}.get(kind, str(values.dtype)),
        )
    check_dimensions(X, values, schema)


def check_dimensions(X: Array, values: Array, schema: Schema) -> None:
    """Refuse what is not a table with a column for each feature."""
    if values.ndim == 0:
        kind = type(X.item())
        first = ", such as pandas.read_csv returns for a file" if issubclass(kind, str) else ""
        raise RowsError(
            f"{{rows}} ({{kind}}) is not a table of rows and columns; pass an array or a data frame{first}",
            kind=kind.__name__,
        )
    listed = values.ndim == 1 and len(values) > 0 and values.dtype == object
    if listed and all(isinstance(v, dict) for v in values):
        raise RowsError(
            "{rows} is a list of dicts; pass a data frame, such as pandas.DataFrame(rows), or one dict to "
            "predict_one"
        )
    if values.ndim != 2:
        raise RowsError(
            "{rows} must have two dimensions, rows and columns; it has shape {shape}: use "
            "X.reshape(1, -1) for one row, X.reshape(-1, 1) for one column",
            shape=str(values.shape),
        )
    check_column_count(values.shape[1], schema)


def _objects_to_matrix(values: Array, dtype: str, schema: Schema, known: Known) -> Array:
    """Python objects (N, n_features), column by column: numbers and None, and category values."""
    rows = np.empty(values.shape, dtype)
    for j in range(values.shape[1]):
        column, name = values[:, j], feature_name(j, schema)
        if j in known and schema.hashed:
            rows[:, j] = categories.codes_of_hashed(column.tolist(), known[j], name)
        elif j in known:
            rows[:, j] = categories.codes_of_objects(column, known[j], schema.unseen, name)
        else:
            rows[:, j] = objects_to_numbers(column, dtype, name)
    return rows


def objects_to_numbers(column: Array, dtype: str, name: str | int) -> Array:
    """Python objects (N,) as numbers; null becomes NaN."""
    try:
        return column.astype(dtype)  # None becomes NaN
    except (TypeError, ValueError, OverflowError):
        pass
    numbers = np.empty(len(column), dtype)
    for i, value in enumerate(column):
        try:
            numbers[i] = np.nan if is_null(value) else value
        except (TypeError, ValueError, OverflowError):
            raise RowsError(
                "{rows} must hold numbers; {place} is {value} ({kind}). Pass text in a data frame, or as "
                "the codes of its categories",
                row=i,
                column=name,
                value=quoted(value),
                kind=type(value).__name__,
            ) from None
    return numbers


def refuse_ambiguous_integers(values: Array, schema: Schema, name: str | int) -> None:
    """Refuse integers (N,) past 2**53 that become another float32 by way of float64.

    scikit-learn converts data frames of several types and lists by way of float64, but not always."""
    if schema.integers != "checked":
        return
    bad = ambiguous_integers(values)
    if bad is not None and bad.any():
        row = int(np.argmax(bad))
        raise RowsError(
            "{rows} has an integer past 2**53 in {place}, {value}, which the source library rounds in two "
            "ways, depending on the container; pass the column as floats, or all rows as a NumPy array",
            row=row,
            column=name,
            value=str(values[row]),
        )


def ambiguous_integers(values: Array) -> npt.NDArray[np.bool_] | None:
    """Which values, (N,), become another float32 by way of float64; None if it is clear that none does."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8:
        return None
    if not len(values) or (values.max() <= 2**53 and values.min() >= -(2**53)):
        return None
    bad: npt.NDArray[np.bool_] = values.astype(np.float32) != values.astype(np.float64).astype(
        np.float32
    )
    return bad
