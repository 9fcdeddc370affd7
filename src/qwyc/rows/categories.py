"""One column -> numbers, and category values -> the codes that a model stores.

A value matches a category as Python compares them: 3, 3.0 and np.int8(3) are one category, "3" is
another. Work is done once per distinct value; rows only take the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import InputError
from qwyc.rows.cityhash import city_hash_64

if TYPE_CHECKING:
    from narwhals.stable.v1 import Series

Array = npt.NDArray[Any]
Codes = npt.NDArray[np.float64]  # (N,) a category's position; NaN missing; -1 invalid

_NAMED_AT_MOST = 20  # categories in one message
_FEW_ROWS = 200  # up to here, looking every row up is quicker than finding distinct values


class RowError(InputError):
    """One row is wrong: RowError(before, row, after), the row counted from 0 in what was passed."""

    def __str__(self) -> str:
        before, row, after = self.args
        return f"{before}row {row:,} of {after}"

    def moved(self, rows: int) -> RowError:
        """The same about a row of something that has so many rows before."""
        before, row, after = self.args
        return RowError(before, row + rows, after)


def is_null(value: object) -> bool:
    """None, NaN, and pandas' NA and NaT."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or _is_nan(value)


def _is_nan(value: object) -> bool:
    return isinstance(value, (float, np.floating)) and bool(value != value)


# ---- categories -> codes ---------------------------------------------------------------------


def of_column(column: Series[Any], known: Sequence[Any], unseen: str, where: str) -> Codes:
    """Codes of a data frame's column. `known` are the model's categories, position = code."""
    if _is_text(column):
        taken, distinct = _factorize(column)
        none_is_value = column.implementation.is_polars()
        return _take(taken, distinct, known, unseen, where, none_is_value)
    if _has_no_type(column):
        return np.full(len(column), _null_code(column, known))
    values, null = numbers(column, where, categorical=True)
    if values.dtype.kind == "O":
        if column.implementation.is_pandas_like() and None not in known:
            taken, distinct = _factorize(column)  # quicker, but None and NaN become one
            return _take(taken, distinct, known, unseen, where)
        return of_objects(values, known, unseen, where)
    codes = of_numbers(values, known, unseen, where, null)
    if null is not None:
        codes[null] = _null_code(column, known)
    return codes


def of_numbers(
    values: Array, known: Sequence[Any], unseen: str, where: str, ignore: Array | None = None
) -> Codes:
    """Codes of numbers, (N,), by value; rows in the mask `ignore` may hold anything."""
    numeric = [(value, code) for code, value in enumerate(known) if isinstance(value, (int, float))]
    # Large integers are told apart only as integers.
    integers = values.dtype.kind in "biu" and values.dtype != np.uint64
    integers &= all(isinstance(value, int) and abs(value) < 2**63 for value, _ in numeric)
    dtype = np.int64 if integers else np.float64
    keys = np.array([value for value, _ in numeric] or [0], dtype)  # (n_categories,)
    codes = np.array([code for _, code in numeric] or [0], np.float64)
    order = np.argsort(keys, kind="stable")
    keys, codes, numbers = keys[order], codes[order], values.astype(dtype)
    at = np.minimum(np.searchsorted(keys, numbers), len(keys) - 1)  # (N,)
    hit = (keys[at] == numbers) & bool(numeric)
    nan = numbers != numbers
    strange = ~hit & ~nan
    if ignore is not None:
        strange &= ~ignore
    if strange.any():
        if any(isinstance(value, str) for value in known):
            raise InputError(
                f"{where} holds numbers ({values.dtype}), but the model was trained on the "
                f"categories {_shown(known)}; pass those values, not their codes"
            )
        if unseen == "error":
            row = int(np.argmax(strange))
            raise _not_trained_on(values[row].item(), row, known, where)
    return np.where(hit, codes[at], np.where(nan, np.nan, _unseen_code(unseen)))


def of_objects(values: Array, known: Sequence[Any], unseen: str, where: str) -> Codes:
    """Codes of Python objects, (N,). None is missing, unless the model has it as a category."""
    position: dict[Any, int] = {}
    taken = np.empty(len(values), np.intp)
    for i, value in enumerate(values.tolist()):
        key = None if value is not None and is_null(value) else (value,)  # tuples: values as such
        try:
            taken[i] = position.setdefault(key, len(position))
        except TypeError:
            raise RowError(
                "", i, f"{where} is a {type(value).__name__}, which is not a category"
            ) from None
    distinct = [_MISSING if key is None else key[0] for key in position]
    return _take(taken, distinct, known, unseen, where, none_is_value=True)


def of_hashed_column(column: Series[Any], known: Sequence[Any], where: str) -> Codes:
    """The same for a data frame's column: hashed once per distinct text."""
    if not known or not _is_text(column):
        return of_hashed(column.to_list(), known, where)
    taken, distinct = _factorize(column)
    null = np.array([is_null(value) for value in distinct])  # (n_distinct,)
    missing = null[taken]
    if missing.any():
        at = int(np.argmax(missing))
        raise _no_category(distinct[taken[at]], at, where)
    texts = ["" if is_null(value) else value for value in distinct]
    return of_hashed(texts, known, where)[taken]


def _no_category(value: object, row: int, where: str) -> InputError:
    return RowError(
        "",
        row,
        f"{where} is {value!r}; CatBoost takes integers and text for categories, and refuses missing "
        "values: convert them to text, as in training",
    )


def of_hashed(values: Sequence[Any], known: Sequence[Any], where: str) -> Codes:
    """Codes of values that the model knows by their hash, as CatBoost does: -1 for any other.

    Values are text, or integers as text. Without known hashes, the trees do not look at the column."""
    if not known:
        return np.full(len(values), -1.0)
    strange = {kind for kind in set(map(type, values)) if not issubclass(kind, _HASHED)}
    if strange:
        row = next(i for i, value in enumerate(values) if type(value) in strange)
        raise _no_category(values[row], row, where)
    codes = _HashedCodes(known, where)
    return np.fromiter(map(codes.__getitem__, values), np.float64, len(values))


def hash_of(text: str) -> int:
    """What CatBoost knows a category by."""
    return city_hash_64(text.encode()) & 0xFFFFFFFF


_HASHED = (str, int, np.bool_, np.integer)  # what CatBoost takes for categories


class _HashedCodes(dict[Any, float]):
    """Codes by value, each found when it is first asked for."""

    def __init__(self, known: Sequence[Any], where: str) -> None:
        self._code = {hashed: float(code) for code, hashed in enumerate(known)}
        self._where = where

    def __missing__(self, value: Any) -> float:
        text = value if isinstance(value, str) else str(int(value))
        try:
            hashed = hash_of(text)
        except UnicodeEncodeError:
            raise InputError(f"{self._where} holds {value!r}, which is no valid text") from None
        self[value] = code = self._code.get(hashed, -1.0)
        return code


_MISSING = float("nan")


def _take(
    taken: Array,
    distinct: Sequence[Any],
    known: Sequence[Any],
    unseen: str,
    where: str,
    none_is_value: bool = False,
) -> Codes:
    """Codes of distinct[taken]. What is not `known` and does occur is unseen."""
    lookup = {value: code for code, value in enumerate(known)}
    table = np.full(len(distinct), np.nan)  # (n_distinct,)
    strange = np.zeros(len(distinct), bool)
    for i, value in enumerate(distinct):
        if value is None and not none_is_value:
            continue
        code = lookup.get(value)
        if code is not None:
            table[i] = code
        elif not is_null(value) and not (value == "" and unseen == "first"):  # YDF: "" is missing
            table[i], strange[i] = _unseen_code(unseen), True
    if unseen == "error" and strange.any():
        hit = strange[taken]  # (N,)
        if hit.any():
            row = int(np.argmax(hit))
            raise _not_trained_on(distinct[taken[row]], row, known, where)
    return table[taken]


def _unseen_code(unseen: str) -> float:
    return {"invalid": -1.0, "first": 0.0}.get(unseen, np.nan)


def _null_code(column: Series[Any], known: Sequence[Any]) -> float:
    """scikit-learn tells None (a Polars null) from NaN (a pandas null), and may have None among its
    categories."""
    if column.implementation.is_polars() and None in known:
        return float(list(known).index(None))
    return np.nan


def _not_trained_on(value: object, row: int, known: Sequence[Any], where: str) -> InputError:
    return RowError(
        "",
        row,
        f"{where} holds {value!r}, a category that the model was not trained on; it knows {_shown(known)}",
    )


def _shown(known: Sequence[Any]) -> str:
    more = ", ..." if len(known) > _NAMED_AT_MOST else ""
    return ", ".join(repr(value) for value in known[:_NAMED_AT_MOST]) + more


# ---- columns of data frames ------------------------------------------------------------------


def _is_text(column: Series[Any]) -> bool:
    import narwhals.stable.v1 as nw

    if column.implementation.is_pandas_like() and column.to_native().dtype == object:
        return False  # narwhals looks at some of the values and may call it text
    return column.dtype in (nw.String, nw.Categorical, nw.Enum)


def _has_no_type(column: Series[Any]) -> bool:
    """Whether this is a column of Arrow's or Polars' type for nulls alone."""
    import narwhals.stable.v1 as nw

    if column.implementation.is_pandas_like() or column.dtype != nw.Unknown:
        return False
    return bool(column.null_count() == len(column))


def _factorize(column: Series[Any]) -> tuple[Array, list[Any]]:
    """(N,) positions into a list of values that holds every value of the column at least."""
    import narwhals.stable.v1 as nw

    if column.implementation.is_pandas_like():
        native = column.to_native()
        if hasattr(native.dtype, "categories"):
            return native.array.codes, [*native.dtype.categories, None]
        taken, unique = native.factorize()
        return taken, [*unique, None]  # -1, missing, takes the last
    if len(column) <= _FEW_ROWS:
        return np.arange(len(column)), column.to_list()
    if column.implementation.is_pyarrow():
        return _factorize_arrow(column.to_native())
    distinct = column.unique().to_list()
    taken = column.replace_strict(distinct, list(range(len(distinct))), return_dtype=nw.Int64)
    return taken.to_numpy(), distinct


def _factorize_arrow(column: Any) -> tuple[Array, list[Any]]:
    """The same for a pyarrow.ChunkedArray of text or of dictionary type, which may be all null."""
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        encoded = column.unify_dictionaries()
    else:
        if column.type not in (pyarrow.string(), pyarrow.large_string()):
            column = column.cast(pyarrow.string())  # string views have no kernels
        encoded = column.dictionary_encode()
    distinct = encoded.chunk(0).dictionary.to_pylist()  # the same in every chunk
    indices = [chunk.indices.cast(pyarrow.int64()) for chunk in encoded.chunks]
    taken = [index.fill_null(len(distinct)).to_numpy() for index in indices]
    return np.concatenate(taken), [*distinct, None]


def numbers(
    column: Series[Any], where: str, *, categorical: bool = False
) -> tuple[Array, npt.NDArray[np.bool_] | None]:
    """(N,) numbers, or Python objects that may be, and where they are null if not NaN already."""
    import narwhals.stable.v1 as nw

    if _is_text(column):
        raise _no_mapping(where, str(column.dtype).split("(")[0])
    dtype = column.dtype
    if str(dtype).startswith(("Decimal", "Int128", "UInt128")):
        column = column.cast(nw.Float64)
    elif (dtype.is_integer() or dtype == nw.Boolean) and column.null_count():
        null = column.is_null().to_numpy()
        return column.fill_null(False if dtype == nw.Boolean else 0).to_numpy(), null
    elif not (dtype.is_numeric() or dtype in (nw.Boolean, nw.String, nw.Object, nw.Unknown)):
        raise InputError(f"{where} holds {dtype}; the model takes numbers")
    values = column.to_numpy()
    objects = values.dtype.kind == "O"
    if values.dtype.kind not in "biufO" or (
        dtype == nw.Unknown and objects and not all(is_null(value) for value in values)
    ):
        raise InputError(f"{where} holds {column.to_native().dtype}; the model takes numbers")
    if objects and not categorical and any(isinstance(value, str) for value in values):
        raise _no_mapping(where, "text")
    return values, None


def _no_mapping(where: str, kind: str) -> InputError:
    return InputError(
        f"{where} holds {kind}, and the model takes numbers there; if it is a category, the model does "
        "not store which code each value has: pass the codes as numbers, as in training"
    )
