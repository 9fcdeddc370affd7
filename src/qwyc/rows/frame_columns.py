"""One column of a data frame -> NumPy arrays: its numbers, or its distinct values and their positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import RowsError
from qwyc.rows.values import is_null, shortened

if TYPE_CHECKING:
    from narwhals.stable.v1 import Series

Array = npt.NDArray[Any]

_FEW_ROWS = 200  # up to here, a lookup for each row is faster than a search for distinct values


def is_text(column: Series[Any]) -> bool:
    """Whether the type of a column is text or a category."""
    import narwhals.stable.v1 as nw

    if column.implementation.is_pandas_like() and column.to_native().dtype == object:
        return False  # narwhals calls such a column text if the values that it looks at are
    return column.dtype in (nw.String, nw.Categorical, nw.Enum)


def has_null_type(column: Series[Any]) -> bool:
    """Whether a column has the type of Arrow or Polars that holds nulls alone."""
    import narwhals.stable.v1 as nw

    if column.implementation.is_pandas_like() or column.dtype != nw.Unknown:
        return False
    return bool(column.null_count() == len(column))


def factorize(column: Series[Any]) -> tuple[Array, list[Any]]:
    """Positions (N,) of a text column's values in a list, and the list. The list holds every value of the
    column; it may hold others, and a value more than once."""
    import narwhals.stable.v1 as nw

    if column.implementation.is_pandas_like():
        native = column.to_native()
        if hasattr(native.dtype, "categories"):
            return native.array.codes, [*native.dtype.categories, None]
        if hasattr(getattr(native.dtype, "pyarrow_dtype", None), "index_type") and len(native):
            return _factorize_arrow(native.array.__arrow_array__())  # pandas: no unsigned indices
        positions, unique = native.factorize()
        return positions, [*unique, None]  # a missing value has position -1, the last
    if len(column) <= _FEW_ROWS:
        return np.arange(len(column)), column.to_list()
    if column.implementation.is_pyarrow():
        return _factorize_arrow(column.to_native())
    distinct = column.unique().to_list()
    positions = column.replace_strict(distinct, list(range(len(distinct))), return_dtype=nw.Int64)
    return positions.to_numpy(), distinct


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
    positions = [index.fill_null(len(distinct)).to_numpy() for index in indices]
    return np.concatenate(positions), [*distinct, None]


def column_to_numbers(
    column: Series[Any], name: str, *, categorical: bool = False
) -> tuple[Array, npt.NDArray[np.bool_] | None]:
    """Numbers (N,), or Python objects that may be numbers, and a mask (N,) of nulls that are not NaN, or
    None if there are none. With `categorical`, objects may be text."""
    import narwhals.stable.v1 as nw

    if is_text(column):
        raise text_without_codes(name, str(column.dtype).split("(")[0])
    dtype = column.dtype
    if _is_decimal(column):
        if not column.implementation.is_polars():
            column = column.cast(nw.String)  # Arrow's own conversion does not round to the nearest
        column = column.cast(nw.Float64)
        dtype = column.dtype
    elif str(dtype).startswith(("Int128", "UInt128")):
        column = column.cast(nw.Float64)
    elif (dtype.is_integer() or dtype == nw.Boolean) and column.null_count():
        null = column.is_null().to_numpy()
        return column.fill_null(False if dtype == nw.Boolean else 0).to_numpy(), null
    elif not (dtype.is_numeric() or dtype in (nw.Boolean, nw.String, nw.Object, nw.Unknown)):
        raise wrong_type(name, dtype, categorical=categorical)
    try:
        values = column.to_numpy()
    except NotImplementedError:  # of Arrow: a union, for one
        raise wrong_type(name, native_type(column), categorical=categorical) from None
    objects = values.dtype.kind == "O"
    if values.dtype.kind not in "biufO" or (
        dtype == nw.Unknown and objects and not all(is_null(value) for value in values)
    ):
        raise wrong_type(name, native_type(column), categorical=categorical)
    if objects and not categorical:
        row = next((i for i, value in enumerate(values) if isinstance(value, str)), None)
        if row is not None:
            raise text_without_codes(name, "text", row)
    return values, None


def native_type(column: Series[Any]) -> Any:
    """The type of a column in its own library."""
    native = column.to_native()
    return native.type if hasattr(native, "type") else native.dtype


def _is_decimal(column: Series[Any]) -> bool:
    """Whether a column holds decimal numbers. narwhals does not know all of Arrow's types of them."""
    import narwhals.stable.v1 as nw

    if column.dtype == nw.Unknown:
        return str(native_type(column)).startswith("decimal")
    return str(column.dtype).startswith("Decimal")


def wrong_type(name: str, dtype: object, *, categorical: bool = False) -> RowsError:
    """The error for a column that holds neither numbers nor categories."""
    return RowsError(
        "{place} holds {dtype}; the model takes {taken} there",
        column=name,
        dtype=shortened(str(dtype)),
        taken="categories, as text or numbers," if categorical else "numbers",
    )


def text_without_codes(name: str, kind: str, row: int | None = None) -> RowsError:
    """The error for text in a column of numbers, or in one row of it."""
    return RowsError(
        "{place} holds {kind}, but the model takes numbers there; if it is a category, the model does not "
        "store which code each value has: pass the codes as numbers, as in training. (XGBoost up to 3.0 "
        "stores no categories, and up to 3.2 none with letters beyond ASCII, such as \u00e9.)",
        row=row,
        column=name,
        kind=kind,
    )
