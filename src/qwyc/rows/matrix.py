"""Rows in any form -> the matrix that the trees take.

NumPy arrays and nested sequences go by position; data frames (pandas, Polars, Arrow) go by name
where the model knows its names. X is never modified, and not copied where it already fits.
"""

from __future__ import annotations

import difflib
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import InputError
from qwyc.rows import categories

if TYPE_CHECKING:
    from narwhals.stable.v1 import DataFrame, Series

    from qwyc.rows.schema import Schema

Array = npt.NDArray[Any]

_READ_AS_THEY_ARE = (np.dtype(np.float32), np.dtype(np.float64))  # by the engine
_NAMED_AT_MOST = 10  # column names in one message


def to_matrix(X: Any, inputs: Schema) -> Array:
    """Rows as the trees take them: (N, n_features), C order, float32 or float64. Of `inputs.dtype`, but
    for arrays of the other that can go to the engine as they are: it converts while it reads."""
    if type(X) is np.ndarray and X.dtype in _READ_AS_THEY_ARE and inputs.takes_any_numbers:
        fits = X.ndim == 2 and X.shape[1] == inputs.n_features
        if fits and X.flags.c_contiguous and X.flags.aligned:
            return X  # nothing to look at: small batches should not wait for it
    # Casts to float32 may overflow to infinity, as they do in the source libraries.
    with np.errstate(all="ignore"):
        rows = _convert(X, inputs)
        if not np.isnan(inputs.missing):
            missing = rows == rows.dtype.type(inputs.missing)  # (N, n_features)
            if missing.any():
                rows = np.where(missing, rows.dtype.type(np.nan), rows)
    _refuse_special(rows, inputs)
    return rows


def _convert(X: Any, inputs: Schema) -> Array:
    if isinstance(X, np.ndarray):
        return _from_array(X, inputs)
    if hasattr(X, "toarray") and hasattr(X, "nnz"):  # scipy.sparse, without importing it
        raise InputError(
            f"X is sparse ({type(X).__name__}); a dense table is needed: pass X.toarray(), with NaN for "
            "what X leaves out if the model takes that for missing, as XGBoost does"
        )
    if isinstance(X, (list, tuple)):
        values = _as_array(X, object if inputs.arrays_hold_values else None)
        return _from_array(values, inputs, from_list=True)
    frame = _as_frame(X)
    return _from_array(_as_array(X), inputs) if frame is None else _from_frame(frame, inputs)


# ---- arrays ---------------------------------------------------------------------------------


def _as_array(X: Any, dtype: type | None = None) -> Array:
    try:
        return np.asarray(X, dtype)
    except Exception as error:  # whatever X's own conversion raises
        raise InputError(
            f"X ({type(X).__name__}) is not a table of rows and columns: {error}"
        ) from None


def _from_array(X: Array, inputs: Schema, *, from_list: bool = False) -> Array:
    values = np.asarray(X)  # (N, n_features) plain: without mask or subclass
    as_values = inputs.categories if inputs.arrays_hold_values else {}
    if (
        values.ndim
        and values.dtype.kind not in "biufO"
        and not (values.dtype.kind == "U" and as_values)
    ):
        raise InputError(
            f"X must hold numbers; it is an array of {values.dtype}. Text goes in a data frame, or as the "
            "codes of its categories"
        )
    if values.ndim == 0:
        raise InputError(
            f"X ({type(X.item()).__name__}) is not a table of rows and columns; pass an array or a frame"
        )
    if values.ndim != 2:
        raise InputError(
            f"X must have two dimensions, rows and columns; it has shape {values.shape}: "
            "use X.reshape(1, -1) for one row, X.reshape(-1, 1) for one column"
        )
    _check_count(values.shape[1], inputs)
    masked = np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) else None  # or like values
    dtype: Any = inputs.dtype
    if inputs.integers == "float32" and values.dtype not in _READ_AS_THEY_ARE:
        dtype = "float32"
    if values.dtype.kind in "OU":
        if masked is not None:
            values = values.astype(object)
            values[masked] = None
        # LGBMClassifier reads arrays of objects as float64, and lists that become one as float32.
        return _from_objects(values, dtype if from_list else inputs.dtype, inputs, as_values)
    if from_list:
        for j in range(values.shape[1]):
            _refuse_ambiguous(values[:, j], inputs, _column_name(j, inputs))
    if values.dtype in _READ_AS_THEY_ARE and inputs.takes_any_numbers and masked is None:
        dtype = values.dtype
    rows = np.require(values, dtype, ["C", "A"])
    if (as_values or masked is not None) and np.may_share_memory(rows, values):
        rows = rows.copy()
    for j, known in as_values.items():
        ignore = None if masked is None else masked[:, j]
        where = _column_name(j, inputs)
        if inputs.hashed:
            rows[:, j] = categories.of_hashed(values[:, j].tolist(), known, where)
            continue
        rows[:, j] = categories.of_numbers(values[:, j], known, inputs.unseen, where, ignore)
    if masked is not None:
        rows[masked] = np.nan
    return rows


def _from_objects(values: Array, dtype: str, inputs: Schema, as_values: Any) -> Array:
    """Python objects, column by column: numbers and None, and categories where they are values."""
    rows = np.empty(values.shape, dtype)
    for j in range(values.shape[1]):
        column, where = values[:, j], _column_name(j, inputs)
        if j in as_values and inputs.hashed:
            rows[:, j] = categories.of_hashed(column.tolist(), as_values[j], where)
        elif j in as_values:
            rows[:, j] = categories.of_objects(column, as_values[j], inputs.unseen, where)
        else:
            rows[:, j] = _objects_to_numbers(column, dtype, where)
    return rows


def _objects_to_numbers(column: Array, dtype: str, where: str) -> Array:
    try:
        return column.astype(dtype)  # None becomes NaN
    except (TypeError, ValueError, OverflowError):
        pass
    numbers = np.empty(len(column), dtype)
    for i, value in enumerate(column):
        try:
            numbers[i] = np.nan if categories.is_null(value) else value
        except (TypeError, ValueError, OverflowError):
            raise categories.RowError(
                "X must hold numbers; ",
                i,
                f"{where} is {value!r} ({type(value).__name__}). Text goes in a data frame, or as the "
                "codes of its categories",
            ) from None
    return numbers


def _check_count(n_columns: int, inputs: Schema) -> None:
    if n_columns != inputs.n_features:
        names = f" ({listed(inputs.names)})" if inputs.names else ""
        raise InputError(
            f"X has {n_columns} columns; the model was trained on {inputs.n_features}{names}"
        )


# ---- data frames ----------------------------------------------------------------------------


def _as_frame(X: Any) -> DataFrame[Any] | None:
    """X seen through narwhals; None where it is no data frame."""
    import narwhals.stable.v1 as nw

    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(X, pyarrow.RecordBatch):
        X = pyarrow.Table.from_batches([X])
    try:
        frame = nw.from_native(X, pass_through=True, allow_series=True)
    except Exception as error:  # narwhals has its own exception for each backend
        labels = getattr(X, "column_names", getattr(X, "columns", ()))  # of Arrow, pandas
        _refuse_twice([str(label) for label in labels])
        raise InputError(f"X ({type(X).__name__}) cannot be read: {error}") from None
    if type(X).__module__.split(".")[0] in ("pyspark", "ray", "dask"):
        raise InputError(
            f"X ({type(X).__name__}) is spread over machines; use qwyc.distributed.decide(classifier, X)"
        )
    if isinstance(frame, nw.LazyFrame):
        raise InputError(f"X is lazy ({type(X).__name__}); pass the rows themselves: X.collect()")
    if isinstance(frame, nw.Series):
        raise InputError(
            f"X must have two dimensions, rows and columns; it is a {type(X).__name__}: pass a "
            "data frame or a two-dimensional array"
        )
    return frame if isinstance(frame, nw.DataFrame) else None


def _from_frame(frame: DataFrame[Any], inputs: Schema) -> Array:
    labels = frame.columns  # text, but pandas allows anything
    positions = match_columns([str(label) for label in labels], inputs)
    if (whole := _numbers_side_by_side(frame, positions, inputs)) is not None:
        return whole
    rows = np.empty((len(frame), inputs.n_features), inputs.dtype)
    for j, position in enumerate(positions):
        column = frame.get_column(labels[position])
        where = f"column {str(labels[position])!r}"
        known = inputs.categories.get(j)
        if known is not None and inputs.hashed:
            rows[:, j] = categories.of_hashed_column(column, known, where)
        elif known is None:
            _fill_numbers(rows[:, j], column, inputs, where)
        else:
            rows[:, j] = categories.of_column(column, known, inputs.unseen, where)
    return rows


def _numbers_side_by_side(
    frame: DataFrame[Any], positions: Sequence[int], inputs: Schema
) -> Array | None:
    """The rows of a pandas frame whose features are all float32, or all float64: one array, which is many
    times as fast as one column after the other; None for any other frame."""
    if inputs.categories or not frame.implementation.is_pandas():
        return None
    native = frame.to_native()
    if list(positions) != list(range(native.shape[1])):
        native = native.iloc[:, list(positions)]
    kinds = set(native.dtypes)
    if len(kinds) != 1 or not kinds <= set(_READ_AS_THEY_ARE):
        return None
    return np.require(
        native.to_numpy(), None if inputs.takes_any_numbers else inputs.dtype, ["C", "A"]
    )


def match_columns(labels: Sequence[str], inputs: Schema) -> Sequence[int]:
    """The position in X of every feature, (n_features,)."""
    _refuse_twice(labels)
    if inputs.names is None:
        _check_count(len(labels), inputs)
        return range(len(labels))
    exact = {label: i for i, label in enumerate(labels)}
    plain = [label.replace(" ", "_") for label in labels]  # as LightGBM stores names
    count = Counter(plain)
    underscored = {label: i for i, label in enumerate(plain) if count[label] == 1}
    found = [exact.get(name, underscored.get(name)) for name in inputs.names]
    absent = [name for name, i in zip(inputs.names, found, strict=True) if i is None]
    if absent:
        near = _near(absent, [label for i, label in enumerate(labels) if i not in found])
        hint = f"; did you mean {listed(near)}?" if near else ""
        raise InputError(
            f"X has no column{'s' * (len(absent) > 1)} {listed(absent)}, which the model was "
            f"trained on (X has: {listed(labels)}){hint}"
        )
    return [i for i in found if i is not None]


def _near(absent: Sequence[str], spare: Sequence[str]) -> list[str]:
    """Labels that no feature has, and that are spelt much like one that is absent."""
    folded = {_folded(label): label for label in spare}
    hits = (difflib.get_close_matches(_folded(name), folded, n=1) for name in absent)
    return sorted({folded[hit] for found in hits for hit in found})


def _folded(name: str) -> str:
    return name.casefold().replace("_", "").replace(" ", "")


def _refuse_twice(labels: Sequence[str]) -> None:
    twice = [label for label, count in Counter(labels).items() if count > 1]
    if twice:
        raise InputError(f"X has more than one column named {listed(twice)}; rename or drop them")


def _fill_numbers(out: Array, column: Series[Any], inputs: Schema, where: str) -> None:
    """Write a column of numbers to `out`, (N,); null becomes NaN. Integers go to float32 directly,
    not through float64."""
    values, null = categories.numbers(column, where)
    if values.dtype.kind == "O":
        values = _objects_to_numbers(values, out.dtype.name, where)
    _refuse_ambiguous(values, inputs, where)
    out[:] = values
    if null is not None:
        out[null] = np.nan


# ---- checks and messages --------------------------------------------------------------------


def _refuse_special(rows: Array, inputs: Schema) -> None:
    """Refuse NaN and infinity where the source library does."""
    if (inputs.accepts_missing and inputs.accepts_infinity) or np.isfinite(rows).all():
        return
    if not inputs.accepts_missing:
        _refuse(np.isnan(rows), "a missing value", "missing values", inputs)
    if not inputs.accepts_infinity:
        what = "infinity" if rows.dtype == np.float64 else "infinity, or a number past float32,"
        _refuse(np.isinf(rows), what, "infinities", inputs)


def _refuse(bad: npt.NDArray[np.bool_], what: str, kind: str, inputs: Schema) -> None:
    if bad.any():
        i, j = np.unravel_index(int(np.argmax(bad)), bad.shape)
        raise categories.RowError(
            f"X has {what} in ",
            int(i),
            f"{_column_name(int(j), inputs)}; the source library refuses {kind} with this model: fill "
            "them in or drop the rows",
        )


def _refuse_ambiguous(values: Array, inputs: Schema, where: str) -> None:
    """Refuse integers (N,) past 2**53 that become another float32 by way of float64: scikit-learn goes
    that way with frames of several types and with lists, but not always."""
    if inputs.integers != "checked" or values.dtype.kind not in "iu" or values.dtype.itemsize < 8:
        return
    if not len(values) or (values.max() <= 2**53 and values.min() >= -(2**53)):
        return
    bad = values.astype(np.float32) != values.astype(np.float64).astype(np.float32)
    if bad.any():
        row = int(np.argmax(bad))
        raise categories.RowError(
            "X has an integer past 2**53 in ",
            row,
            f"{where}, {values[row]}, which the source library rounds to one number or another, depending "
            "on what holds it; pass the column as floats, or all of X as a NumPy array",
        )


def _column_name(j: int, inputs: Schema) -> str:
    return f"column {inputs.names[j]!r}" if inputs.names else f"column {j}"


def listed(names: Iterable[str]) -> str:
    """Names as a message has them: not all, where there are many."""
    quoted = [repr(name) for name in names]
    more = ", ..." if len(quoted) > _NAMED_AT_MOST else ""
    return ", ".join(quoted[:_NAMED_AT_MOST]) + more
