"""Category values -> the codes that a model stores.

A value matches a category as Python compares them: 3, 3.0 and np.int8(3) are one category, "3" is
another. A category is looked up once for each distinct value, not for each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import RowsError
from qwyc.rows.cityhash import city_hash_64
from qwyc.rows.frame_columns import column_to_numbers, factorize, has_null_type, is_text
from qwyc.rows.values import is_null, quoted

if TYPE_CHECKING:
    from narwhals.stable.v1 import Series

Array = npt.NDArray[Any]
Codes = npt.NDArray[np.float64]  # (N,) the position of a category; NaN: missing; -1: invalid
Column = str | int  # the name of a column, or its position

TEXT, NUMBERS = "text", "numbers"  # types of categories
_MAX_CATEGORIES = 20  # in one message
_MISSING = float("nan")
FIRST_HASH = float(1 << 24)  # no code is as large (native/core/combinations.hpp)
HASHED_TYPES = (str, int, np.bool_, np.integer)  # that CatBoost takes for categories


# ---- categories by their value ---------------------------------------------------------------


def codes_of_column(column: Series[Any], known: Sequence[Any], unseen: str, name: Column) -> Codes:
    """Codes of a data frame's column. `known` are the model's categories; position = code."""
    if is_text(column):
        positions, distinct = factorize(column)
        none_is_value = column.implementation.is_polars()
        return _codes_of_distinct(positions, distinct, known, unseen, name, none_is_value)
    if has_null_type(column):
        return np.full(len(column), null_code(column, known))
    values, null = column_to_numbers(column, str(name), categorical=True)
    if values.dtype.kind == "O":
        if column.implementation.is_pandas_like() and None not in known:
            try:
                positions, distinct = factorize(column)  # faster, but None and NaN become one value
            except TypeError:  # a value that cannot be hashed, which is named below
                return codes_of_objects(values, known, unseen, name)
            return _codes_of_distinct(positions, distinct, known, unseen, name)
        return codes_of_objects(values, known, unseen, name)
    codes = codes_of_numbers(values, known, unseen, name, null)
    if null is not None:
        codes[null] = null_code(column, known)
    return codes


def codes_of_numbers(
    values: Array, known: Sequence[Any], unseen: str, name: Column, ignore: Array | None = None
) -> Codes:
    """Codes of numbers, (N,), by value. The codes of rows in the mask `ignore` have no meaning."""
    numeric = [(value, code) for code, value in enumerate(known) if isinstance(value, (int, float))]
    # float64 cannot tell large integers apart.
    integers = values.dtype.kind in "biu" and values.dtype != np.uint64
    integers &= all(isinstance(value, int) and abs(value) < 2**63 for value, _ in numeric)
    dtype = np.int64 if integers else np.float64
    keys = np.array([value for value, _ in numeric] or [0], dtype)  # (n_categories,)
    codes = np.array([code for _, code in numeric] or [0], np.float64)
    order = np.argsort(keys, kind="stable")
    keys, codes, numbers = keys[order], codes[order], values.astype(dtype)
    at = np.minimum(np.searchsorted(keys, numbers), len(keys) - 1)  # (N,)
    found = (keys[at] == numbers) & bool(numeric)
    nan = numbers != numbers
    unknown = ~found & ~nan
    if ignore is not None:
        unknown &= ~ignore
    if unknown.any():
        if any(isinstance(value, str) for value in known):
            raise RowsError(
                "{place} holds numbers ({dtype}), but the model was trained on the categories {known}; "
                "pass those values, not their codes",
                column=name,
                dtype=str(values.dtype),
                known=_quoted_categories(known),
            )
        if unseen == "error":
            row = int(np.argmax(unknown))
            raise _unseen_category(values[row].item(), row, known, name)
    return np.where(found, codes[at], np.where(nan, np.nan, _unseen_code(unseen)))


def codes_of_objects(values: Array, known: Sequence[Any], unseen: str, name: Column) -> Codes:
    """Codes of Python objects, (N,). None is missing, unless the model has it as a category."""
    position: dict[
        Any, int
    ] = {}  # of each distinct value, in a tuple; of all nulls but None, as None
    positions = np.empty(len(values), np.intp)
    for i, value in enumerate(values.tolist()):
        key = None if value is not None and is_null(value) else (value,)
        try:
            positions[i] = position.setdefault(key, len(position))
        except TypeError:
            raise RowsError(
                "{place} is a {kind}, which is not a category; pass text or numbers",
                row=i,
                column=name,
                kind=type(value).__name__,
            ) from None
    distinct = [_MISSING if key is None else key[0] for key in position]
    return _codes_of_distinct(positions, distinct, known, unseen, name, none_is_value=True)


def _codes_of_distinct(
    positions: Array,
    distinct: Sequence[Any],
    known: Sequence[Any],
    unseen: str,
    name: Column,
    none_is_value: bool = False,
) -> Codes:
    """Codes of distinct[positions], (N,). A value that is not `known`, and that occurs, is unseen."""
    lookup = {value: code for code, value in enumerate(known)}
    codes = np.full(len(distinct), np.nan)  # (n_distinct,)
    refused = np.zeros(len(distinct), bool)
    kind = type_of_categories(known)
    for i, value in enumerate(distinct):
        if value is None and not none_is_value:
            continue
        code = lookup.get(value)
        if code is not None:
            codes[i] = code
        elif not is_null(value) and not (value == "" and unseen == "first"):  # YDF: "" is missing
            codes[i] = _unseen_code(unseen)
            refused[i] = unseen == "error" or is_of_wrong_type(value, kind)
    if refused.any():
        wrong = refused[positions]  # (N,)
        if wrong.any():
            row = int(np.argmax(wrong))
            value = distinct[positions[row]]
            if is_of_wrong_type(value, kind):
                raise _wrong_type(value, row, known, name)
            raise _unseen_category(value, row, known, name)
    return codes[positions]


def type_of_categories(known: Sequence[Any]) -> str | None:
    """TEXT or NUMBERS if the categories of a model are all of this type. None if they are of both types,
    or if there are none."""
    is_text = {isinstance(value, str) for value in known if value is not None}
    if len(is_text) != 1:
        return None
    return TEXT if is_text.pop() else NUMBERS


def is_of_wrong_type(value: object, kind: str | None) -> bool:
    """Whether a value, which is not null, cannot be a category because it is of another type than those
    that the model knows. Libraries treat unknown categories in their own ways, but not such values."""
    if kind == TEXT:
        return not isinstance(value, str)
    return kind == NUMBERS and not isinstance(value, (Number, np.bool_))


def codes_of_values(distinct: Sequence[Any], known: Sequence[Any], unseen: str) -> list[float]:
    """The code of each value of a list, in which None is missing; infinity if it is to be refused."""
    lookup = {value: code for code, value in enumerate(known)}
    codes = []
    for value in distinct:
        code = None if value is None else lookup.get(value)
        if code is not None:
            codes.append(float(code))
        elif is_null(value) or (value == "" and unseen == "first"):  # YDF: "" is missing
            codes.append(_MISSING)
        else:
            codes.append(code_of_unseen(unseen))
    return codes


def code_of_unseen(unseen: str) -> float:
    """The code of an unknown category; infinity if it is to be refused."""
    return float("inf") if unseen == "error" else _unseen_code(unseen)


def _unseen_code(unseen: str) -> float:
    return {"invalid": -1.0, "first": 0.0}.get(unseen, np.nan)


def null_code(column: Series[Any], known: Sequence[Any]) -> float:
    """The code of a null. scikit-learn distinguishes None (a Polars null) from NaN (a pandas null), and
    may have None among its categories."""
    if column.implementation.is_polars() and None in known:
        return float(list(known).index(None))
    return np.nan


def _unseen_category(value: object, row: int, known: Sequence[Any], name: Column) -> RowsError:
    return RowsError(
        "{place} holds {value}, a category that the model was not trained on; it knows {known}",
        row=row,
        column=name,
        value=quoted(value),
        known=_quoted_categories(known),
    )


def _wrong_type(value: object, row: int, known: Sequence[Any], name: Column) -> RowsError:
    is_text = type_of_categories(known) == TEXT
    return RowsError(
        "{place} holds {value}, which is not {kind}, but the model was trained on the categories {known}; "
        "pass those values{hint}",
        row=row,
        column=name,
        value=quoted(value),
        kind="text" if is_text else "a number",
        known=_quoted_categories(known),
        hint=", not their codes" if is_text else "",
    )


def _quoted_categories(known: Sequence[Any]) -> str:
    more = ", ..." if len(known) > _MAX_CATEGORIES else ""
    return ", ".join(quoted(value) for value in known[:_MAX_CATEGORIES]) + more


# ---- categories by the hash of their value, as in CatBoost -----------------------------------


def codes_of_hashed_column(column: Series[Any], known: Sequence[Any], name: Column) -> Codes:
    """`codes_of_hashed` for a data frame's column. Each distinct text is hashed once."""
    if not known:
        return np.full(len(column), -1.0)
    if not is_text(column):
        return codes_of_hashed(column.to_list(), known, name)
    positions, distinct = factorize(column)
    null = np.array([is_null(value) for value in distinct])  # (n_distinct,)
    missing = null[positions]  # (N,)
    if missing.any():
        row = int(np.argmax(missing))
        raise _wrong_type_for_hash(distinct[positions[row]], row, name)
    texts = ["" if is_null(value) else value for value in distinct]
    return codes_of_hashed(texts, known, name)[positions]


def codes_of_hashed(values: Sequence[Any], known: Sequence[Any], name: Column) -> Codes:
    """Codes of values, text or integers, whose hashes are `known`; -1 for any other value. If None is
    among the known hashes, the code of any other value is FIRST_HASH + its hash.

    If no hash is known, the trees do not use the column, and its values are not checked."""
    if not known:
        return np.full(len(values), -1.0)
    wrong = {kind for kind in set(map(type, values)) if not issubclass(kind, HASHED_TYPES)}
    if wrong:
        row = next(i for i, value in enumerate(values) if type(value) in wrong)
        raise _wrong_type_for_hash(values[row], row, name)
    codes = _HashedCodes(known, name)
    return np.fromiter(map(codes.__getitem__, values), np.float64, len(values))


@lru_cache(maxsize=1 << 16)
def category_hash(text: str) -> int:
    """The number by which CatBoost knows a category."""
    return city_hash_64(text.encode()) & 0xFFFFFFFF


class _HashedCodes(dict[Any, float]):
    """Codes by value. A value is hashed when it is first looked up."""

    def __init__(self, known: Sequence[Any], name: Column) -> None:
        self._code = {hashed: float(code) for code, hashed in enumerate(known)}
        self._keeps_others = None in self._code
        self._name = name

    def __missing__(self, value: Any) -> float:
        text = value if isinstance(value, str) else str(int(value))
        try:
            hashed = category_hash(text)
        except UnicodeEncodeError:
            raise RowsError(
                "{place} holds {value}, which is not valid text",
                column=self._name,
                value=quoted(value),
            ) from None
        other = FIRST_HASH + hashed if self._keeps_others else -1.0
        self[value] = code = self._code.get(hashed, other)
        return code


def _wrong_type_for_hash(value: object, row: int, name: Column) -> RowsError:
    return RowsError(
        "{place} is {value}; CatBoost takes integers and text for categories, and refuses missing values: "
        "convert them to text, as in training",
        row=row,
        column=name,
        value=quoted(value),
    )
