"""Rows with odd values in any form -> the rows that a model takes, and why others are left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import RowsError
from qwyc.rows.arrays import ambiguous_integers, as_array, check_dimensions
from qwyc.rows.column_names import feature_name, match_columns
from qwyc.rows.matrix import (
    check_special_values,
    convert_rows,
    refuse_without_names,
    to_matrix,
    without_sentinel,
)
from qwyc.rows.named_row import NamedRow, as_number
from qwyc.rows.odd_columns import (
    codes_of_any_objects,
    hashed_codes,
    numbers_of_objects,
    unknown_numbers,
)
from qwyc.rows.odd_frames import frame_with_odd_values
from qwyc.rows.odd_values import (
    MISSING,
    MarkedRows,
    OddValues,
    TakenRows,
    alike,
    ambiguous,
    not_a_number,
    not_known,
    not_known_of,
    odd_values,
    refuse_as_missing,
    row_reasons,
    special_values,
    warn_of_lost_columns,
    wrong_type,
)
from qwyc.rows.schema import Schema
from qwyc.rows.selection import take
from qwyc.rows.sparse import is_sparse
from qwyc.rows.tables import frame_library, reader_of
from qwyc.rows.values import is_null

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Names = Sequence[str | int]


def take_rows(
    X: Any, schema: Schema, unseen: str, *, c_order: bool = False, tried: bool = False
) -> TakenRows:
    """The rows of X that the model takes, as `qwyc.rows.matrix.to_matrix` gives them.

    `unseen` is MISSING: values that are no number or no category that the model knows are taken as
    missing; or FLAG: rows with a value that the model refuses are left out, and a reason is given. An error
    about the columns is raised in both cases. `tried` says that the model refuses a value of a frame."""
    if isinstance(X, MarkedRows):
        return _with_odd_values(X.frame, schema, unseen, c_order, X.odd)
    rows = None if tried else _without_odd_values(X, schema, c_order)
    if rows is None:
        return _with_odd_values(X, schema, unseen, c_order)
    return TakenRows(rows) if unseen == MISSING else TakenRows(rows, *row_reasons([], len(rows)))


def _without_odd_values(X: Any, schema: Schema, c_order: bool) -> Array | None:
    """The rows, if the model refuses none of their values."""
    try:
        if not frame_library(X):
            taken: Array = to_matrix(X, schema, c_order=c_order)
            return taken
        # `to_matrix` would convert it column by column, to say what is refused.
        with np.errstate(all="ignore"):
            rows: Array | None = reader_of(schema).matrix(X, c_order=c_order)
        if rows is None:
            return None
        rows = without_sentinel(rows, schema)
        check_special_values(rows, schema)
    except RowsError:
        return None
    return rows


def _with_odd_values(
    X: Any, schema: Schema, unseen: str, c_order: bool, marks: Sequence[OddValues] = ()
) -> TakenRows:
    names: Names = [feature_name(j, schema) for j in range(schema.n_features)]
    with np.errstate(all="ignore"):  # numbers past float32 become infinity
        if isinstance(X, (NamedRow, np.ndarray, list, tuple)) or is_sparse(X):
            read = None
        else:
            read = frame_with_odd_values(X, schema)
        if read is None:
            return _other_rows(X, schema, unseen, names, c_order)
        rows, found, names = read
        found = sorted([*marks, *found], key=lambda odd: odd.feature)
        rows = without_sentinel(rows, schema)
    if unseen == MISSING:
        refuse_as_missing(found, schema, names)
        warn_of_lost_columns(found, names, len(rows))
        check_special_values(rows, schema)
        return TakenRows(np.ascontiguousarray(rows) if c_order else rows)
    found = found + _new(special_values(rows, schema, names), found)
    reason, kept = row_reasons(found, len(rows))
    return TakenRows(_compressed(rows, kept, c_order), reason, kept)


def _compressed(rows: Array, kept: Bools, c_order: bool) -> Array:
    """The rows that are kept. Columns lie one after the other, unless `c_order`."""
    if kept.all():
        return np.ascontiguousarray(rows) if c_order else rows
    shape = int(np.count_nonzero(kept)), rows.shape[1]
    left = np.empty(shape, rows.dtype, order="C" if c_order else "F")
    for j in range(rows.shape[1]):
        left[:, j] = rows[:, j][kept]
    return left


def _new(special: list[OddValues], found: list[OddValues]) -> list[OddValues]:
    """Without the values that are missing only because they are odd."""
    new = []
    for odd in special:
        known = [other.rows for other in found if other.feature == odd.feature]
        fresh = ~np.isin(odd.rows, np.concatenate(known)) if known else np.ones(len(odd.rows), bool)
        if fresh.any():
            new.append(OddValues(odd.feature, odd.rows[fresh], odd.reasons[fresh], False))
    return new


def _other_rows(X: Any, schema: Schema, unseen: str, names: Names, c_order: bool) -> TakenRows:
    """The same for arrays, lists and one row of values by name."""
    n, found = _find(X, schema, names)
    if unseen == MISSING:
        refuse_as_missing(found, schema, names)
        warn_of_lost_columns(found, names, n)
        return TakenRows(to_matrix(_replaced(X, found, schema), schema, c_order=c_order))
    reason, kept = row_reasons(found, n)
    if kept.any():
        at = np.flatnonzero(kept)
        rows = without_sentinel(convert_rows(_rows_of(X, at, n), schema, c_order), schema)
        reason[at], kept[at] = row_reasons(special_values(rows, schema, names), len(at))
    if not kept.any():
        return TakenRows(np.empty((0, schema.n_features), schema.dtype), reason, kept)
    # NumPy gives the numbers of a list one type, so the rows that are left are read by themselves.
    rows = to_matrix(_rows_of(X, np.flatnonzero(kept), n), schema, c_order=c_order)
    return TakenRows(rows, reason, kept)


def _as_given(X: Any) -> Array:
    """Rows as an array, which keeps its mask; those of a list as objects."""
    if isinstance(X, np.ndarray):
        return X
    return as_array(X, object if isinstance(X, (list, tuple)) else None)


def _rows_of(X: Any, rows: Any, n: int) -> Any:
    if len(rows) == n:
        return X
    return take(X if isinstance(X, (np.ndarray, list, tuple)) else as_array(X), rows)


def _find(X: Any, schema: Schema, names: Names) -> tuple[int, list[OddValues]]:
    """The number of rows, and the values that are no number or no category that the model knows."""
    if isinstance(X, NamedRow):
        return 1, _find_in_named_row(X, schema)
    if is_sparse(X):
        to_matrix(X, schema)  # raises an error
    refuse_without_names(X, schema)
    from_list, given = isinstance(X, (list, tuple)), _as_given(X)
    values = np.asarray(given)
    check_dimensions(given, values, schema)
    known = schema.categories if schema.arrays_hold_values else {}
    if isinstance(given, np.ma.MaskedArray):
        values = values.astype(object)
        values[np.ma.getmaskarray(given)] = None
    kind = values.dtype.kind
    if kind not in "biufOU" or (kind == "U" and not known):
        rows = np.arange(len(values))
        parts = (alike(j, rows, wrong_type(name, values.dtype)) for j, name in enumerate(names))
        return len(values), [part for part_list in parts for part in part_list]
    if kind == "U":
        values = values.astype(object)
    if not schema.arrays_hold_values and _has_known_text(values, schema):
        convert_rows(X, schema, False)  # raises an error: text goes into data frames
    found: list[OddValues] = []
    for j, name in enumerate(names):
        column = values[:, j]
        if j in known and schema.hashed:
            found += hashed_codes(column.tolist(), known[j], j, name)[1]
        elif j in known and column.dtype.kind != "O":
            texts = any(isinstance(value, str) for value in known[j])
            if texts or schema.unseen == "error":
                found += unknown_numbers(column, known[j], j, name)[1]
        elif j in known:
            unseen = "invalid" if schema.unseen == "error" else schema.unseen
            codes, odd = codes_of_any_objects(column, known[j], unseen, j, name)
            found += odd
            if schema.unseen == "error":
                rows = np.flatnonzero(codes == -1.0)
                found += odd_values(j, name, rows, column[rows].tolist(), not_known)
        elif column.dtype.kind == "O":
            # A list with text and no null becomes an array of text, which is refused.
            found += numbers_of_objects(
                column, schema.dtype, j, name, text_is_odd=from_list and not known
            )[1]
    if from_list and schema.integers == "checked":
        found += _ambiguous_in_list(X, found, schema, names)
    return len(values), found


def _has_known_text(values: Array, schema: Schema) -> bool:
    """Whether rows of codes hold the text of a category instead, which is no odd value."""
    if values.dtype.kind != "O":
        return False
    return any(
        isinstance(value, str) and value in known
        for j, known in schema.categories.items()
        for value in values[:, j]
    )


def _ambiguous_in_list(
    X: Any, found: Sequence[OddValues], schema: Schema, names: Names
) -> list[OddValues]:
    """Integers that the source library rounds in two ways, in the rows without other odd values."""
    at = np.flatnonzero(row_reasons(found, len(X))[1])
    values = as_array([X[i] for i in at]) if len(at) else np.empty((0, 0))
    more: list[OddValues] = []
    for j in range(values.shape[1]):
        bad = ambiguous_integers(values[:, j])
        if bad is not None:
            rows = np.flatnonzero(bad)
            numbers = values[rows, j].tolist()
            more += odd_values(j, names[j], at[rows], numbers, ambiguous, can_be_missing=False)
    return more


def _replaced(X: Any, found: Sequence[OddValues], schema: Schema) -> Any:
    """X with nulls for odd values."""
    if isinstance(X, NamedRow):
        return _replaced_in_named_row(X, found, schema)
    from_list, given = isinstance(X, (list, tuple)), _as_given(X)
    if given.dtype.kind not in "biufOU":
        return np.full(given.shape, np.nan, schema.dtype)
    if given.dtype.kind in "biuf":
        mask = np.ma.getmaskarray(given).copy()
        for odd in found:
            mask[odd.rows, odd.feature] = True
        return np.ma.MaskedArray(np.asarray(given), mask)
    values = np.array(given, object)
    if isinstance(given, np.ma.MaskedArray):
        values[np.ma.getmaskarray(given)] = None
    for odd in found:
        values[odd.rows, odd.feature] = np.nan
    return values.tolist() if from_list else values


def _find_in_named_row(row: NamedRow, schema: Schema) -> list[OddValues]:
    found: list[OddValues] = []
    first = np.zeros(1, np.intp)
    for j, position in enumerate(match_columns([str(name) for name in row.names], schema)):
        name, value = str(row.names[position]), row.values[position]
        try:
            as_number(value, j, schema, name)
        except RowsError:
            known = schema.categories.get(j)
            reason: Callable[[str | int, Any], str] = not_a_number
            if known is not None:
                reason = not_known if schema.hashed else not_known_of(known)
            null = is_null(value)  # CatBoost refuses a missing category
            text = reason(name, value)
            found.append(OddValues(j, first, np.array([text], object), can_be_missing=not null))
    return found


def _replaced_in_named_row(row: NamedRow, found: Sequence[OddValues], schema: Schema) -> NamedRow:
    positions = match_columns([str(name) for name in row.names], schema)
    values = list(row.values)
    for odd in found:
        values[positions[odd.feature]] = np.nan
    return NamedRow(row.names, values)
