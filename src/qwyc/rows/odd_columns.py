"""One column with odd values -> numbers or codes, and the odd values.

Values are looked at one by one only where their type is not one that a model takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import RowsError
from qwyc.rows import categories
from qwyc.rows.arrays import objects_to_numbers
from qwyc.rows.frame_columns import column_to_numbers, factorize, is_text, native_type
from qwyc.rows.frames import convert_column
from qwyc.rows.odd_values import (
    OddValues,
    alike,
    not_a_category,
    not_a_number,
    not_hashed,
    not_known,
    not_known_of,
    odd_values,
    wrong_type,
)
from qwyc.rows.schema import Schema
from qwyc.rows.values import is_null

if TYPE_CHECKING:
    from narwhals.stable.v1 import Series

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Column = tuple[Array, Bools | None, list[OddValues]]  # values (N,), a mask of nulls, odd values

# Python's and NumPy's own numbers, and None: NumPy converts them.
_NUMBERS = (int, float, np.integer, np.floating, np.bool_, type(None))


def column_with_odd_values(column: Series[Any], j: int, schema: Schema, name: str) -> Column:
    """Feature `j` of a data frame: see `qwyc.rows.frames.convert_column`. Odd values have the value of a
    null. `schema` is one whose unknown categories are not refused; the caller finds those."""
    try:
        return (*convert_column(column, j, schema, name), [])
    except RowsError:
        pass
    known = schema.categories.get(j)
    if known is not None and schema.hashed:
        return _hashed_column(column, known, j, name)
    if is_text(column) and known is not None:  # of a wrong type
        return _text_column(column, known, schema.unseen, j, name)
    if is_text(column):  # in a column of numbers
        return _no_values(column, known, _odd_texts(column, j, name))
    try:
        values, null = column_to_numbers(column, name, categorical=True)
    except RowsError:  # dates, lists and the like
        rows = np.flatnonzero(~column.is_null().to_numpy())
        reason = wrong_type(name, _type_name(column))
        return _no_values(column, known, alike(j, rows, reason))
    if values.dtype.kind != "O":
        assert known is not None  # the model takes numbers where it has no categories
        codes, odd = unknown_numbers(values, known, j, name, null)
        if null is not None:
            codes[null] = categories.null_code(column, known)
        return codes, None, odd
    if known is None:
        numbers, odd = numbers_of_objects(values, schema.dtype, j, name, text_is_odd=True)
        return numbers, None, odd
    codes, odd = codes_of_any_objects(values, known, schema.unseen, j, name)
    return codes, None, odd


def numbers_of_objects(
    values: Array, dtype: str, j: int, name: str | int, *, text_is_odd: bool
) -> tuple[Array, list[OddValues]]:
    """Python objects (N,) as numbers, with NaN for nulls and odd values. Text of a number is a number, as
    it is to NumPy, unless `text_is_odd`."""
    numbers = values.copy()
    odd = []
    for i in _others(values, _NUMBERS):
        value = values[i]
        if is_null(value):
            numbers[i] = None
        elif (text_is_odd and isinstance(value, str)) or not _is_number(value, dtype):
            odd.append(i)
            numbers[i] = None
    try:
        found = numbers.astype(dtype)
    except (TypeError, ValueError, OverflowError):  # an integer that no float can hold
        more = [i for i, value in enumerate(numbers) if not _is_number(value, dtype)]
        numbers[more] = None
        odd = sorted([*odd, *more])
        found = objects_to_numbers(numbers, dtype, name)
    return found, odd_values(j, name, odd, [values[i] for i in odd], not_a_number)


def codes_of_any_objects(
    values: Array, known: Sequence[Any], unseen: str, j: int, name: str | int
) -> tuple[Array, list[OddValues]]:
    """Codes of Python objects (N,), of which some cannot be categories of this model at all."""
    odd = [i for i in _others(values, (*_NUMBERS, str)) if not _is_hashable(values[i])]
    taken = values.copy()
    taken[odd] = np.nan
    kind = categories.type_of_categories(known)
    lookup, wrong = set(known), []
    for i in _others(taken, (str,) if kind == categories.TEXT else _NUMBERS):
        value = taken[i]
        if not is_null(value) and categories.is_of_wrong_type(value, kind) and value not in lookup:
            wrong.append(i)
    taken[wrong] = np.nan
    codes = categories.codes_of_objects(taken, known, unseen, name)
    found = odd_values(j, name, odd, [values[i] for i in odd], not_a_category)
    return codes, found + odd_values(
        j, name, wrong, [values[i] for i in wrong], not_known_of(known)
    )


def hashed_codes(
    values: Sequence[Any], known: Sequence[Any], j: int, name: str | int
) -> tuple[Array, list[OddValues]]:
    """Codes of values by their hash. Missing values are odd, since CatBoost refuses them, and so is what
    is neither text nor an integer."""
    if not known:
        return categories.codes_of_hashed(values, known, name), []
    null: list[int] = []
    odd: list[int] = []
    taken = list(values)
    wrong = {
        kind for kind in set(map(type, values)) if not issubclass(kind, categories.HASHED_TYPES)
    }
    for i, value in enumerate(values):
        if type(value) in wrong or (isinstance(value, str) and not _is_valid(value)):
            (null if is_null(value) else odd).append(i)
            taken[i] = 0
    codes = categories.codes_of_hashed(taken, known, name)
    found = odd_values(j, name, odd, [values[i] for i in odd], not_hashed)
    return codes, found + _missing_category(j, null, name)


def unknown_numbers(
    values: Array, known: Sequence[Any], j: int, name: str | int, null: Bools | None = None
) -> tuple[Array, list[OddValues]]:
    """Codes of numbers (N,) where the model's categories are text, or text and numbers."""
    numeric = [None if isinstance(value, str) else value for value in known]
    codes = categories.codes_of_numbers(values, numeric, "invalid", name, null)
    if null is not None:
        codes[null] = np.nan
    rows = np.flatnonzero(codes == -1)
    codes[rows] = np.nan
    return codes, odd_values(j, name, rows, values[rows].tolist(), not_known)


def _hashed_column(column: Series[Any], known: Sequence[Any], j: int, name: str) -> Column:
    if not is_text(column):
        codes, odd = hashed_codes(column.to_list(), known, j, name)
        return codes, None, odd
    positions, distinct = factorize(column)  # categories may be numbers, too
    codes, found = hashed_codes(distinct, known, j, name)
    return codes[positions], None, _spread(found, positions, len(distinct))


def _text_column(
    column: Series[Any], known: Sequence[Any], unseen: str, j: int, name: str
) -> Column:
    """A column of text, or of categories of any type, some of which the model's cannot be."""
    positions, distinct = factorize(column)
    values = np.empty(len(distinct), object)
    values[:] = distinct
    codes, found = codes_of_any_objects(values, known, unseen, j, name)
    codes[[value is None for value in distinct]] = categories.null_code(column, known)
    return codes[positions], None, _spread(found, positions, len(distinct))


def _spread(found: Sequence[OddValues], positions: Array, n_distinct: int) -> list[OddValues]:
    """The odd values of rows (N,) that hold the distinct values at these positions."""
    spread: list[OddValues] = []
    for part in found:
        reason = np.full(n_distinct, None, object)
        reason[part.rows] = part.reasons
        is_odd = np.zeros(n_distinct, bool)
        is_odd[part.rows] = True
        rows = np.flatnonzero(is_odd[positions])
        if len(rows):
            reasons = reason[positions[rows]]
            spread.append(OddValues(part.feature, rows, reasons, part.can_be_missing))
    return spread


def _missing_category(j: int, rows: Any, name: str | int) -> list[OddValues]:
    reason = f"column {name!r}: the category is missing, and CatBoost refuses missing categories"
    return alike(j, rows, reason, can_be_missing=False)


def _odd_texts(column: Series[Any], j: int, name: str) -> list[OddValues]:
    """All texts of a column of numbers, with a reason for each distinct one."""
    positions, distinct = factorize(column)
    null = np.array([is_null(value) for value in distinct], bool)
    reasons = np.empty(len(distinct), object)
    reasons[:] = [
        not_a_number(name, value) if isinstance(value, str) else wrong_type(name, "categories")
        for value in distinct
    ]
    rows = np.flatnonzero(~null[positions])
    return [OddValues(j, rows, reasons[positions[rows]])] if len(rows) else []


def _no_values(column: Series[Any], known: Sequence[Any] | None, odd: list[OddValues]) -> Column:
    """A column of which the model takes nothing but nulls."""
    return np.full(len(column), categories.null_code(column, known or ())), None, odd


def _others(values: Array, types: tuple[type, ...]) -> Iterable[int]:
    """The positions of values, (N,), that are not of these types."""
    kinds = list(map(type, values.tolist()))
    is_other = {kind: not issubclass(kind, types) for kind in set(kinds)}
    wrong = np.fromiter(map(is_other.__getitem__, kinds), bool, len(kinds))
    found: list[int] = np.flatnonzero(wrong).tolist()
    return found


def _is_number(value: object, dtype: str) -> bool:
    """Whether NumPy takes a value for a number, or it is null."""
    try:
        np.empty(1, dtype)[0] = np.nan if is_null(value) else value
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _is_valid(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _type_name(column: Series[Any]) -> str:
    name = str(column.dtype).split("(")[0]
    return str(native_type(column)) if name == "Unknown" else name
