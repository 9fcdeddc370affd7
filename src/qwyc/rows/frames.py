"""Data frames of pandas, Polars and Arrow -> the matrix that the trees take."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import RowsError
from qwyc.rows import categories
from qwyc.rows.arrays import (
    objects_to_numbers,
    refuse_ambiguous_integers,
)
from qwyc.rows.column_names import match_columns, refuse_duplicates
from qwyc.rows.frame_columns import column_to_numbers
from qwyc.rows.schema import Schema

if TYPE_CHECKING:
    from narwhals.stable.v1 import DataFrame, Series

Array = npt.NDArray[Any]


def as_frame(X: Any) -> DataFrame[Any] | None:
    """X as a data frame of narwhals, or None if it is not a data frame."""
    import narwhals.stable.v1 as nw

    kind = type(X).__name__
    if type(X).__module__.split(".")[0] in ("duckdb", "_duckdb"):
        raise RowsError(
            "{rows} ({kind}) is in DuckDB; use qwyc.distributed.decide(classifier, X), or pass the rows "
            "themselves: X.to_arrow_table()",
            kind=kind,
        )
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(X, pyarrow.RecordBatch):
        X = pyarrow.Table.from_batches([X])
    try:
        frame = nw.from_native(X, pass_through=True, allow_series=True)
    except Exception as error:  # narwhals has an exception of its own for each backend
        labels = getattr(X, "column_names", getattr(X, "columns", ()))  # of Arrow, pandas
        refuse_duplicates([str(label) for label in labels])
        raise RowsError(
            "{rows} ({kind}) cannot be read: {reason}", kind=kind, reason=str(error)
        ) from None
    if type(X).__module__.split(".")[0] in ("pyspark", "ray", "dask"):
        raise RowsError(
            "{rows} ({kind}) is distributed data; use qwyc.distributed.decide(classifier, X)",
            kind=kind,
        )
    if isinstance(frame, nw.LazyFrame):
        raise RowsError("{rows} is lazy ({kind}); pass the rows themselves: X.collect()", kind=kind)
    if isinstance(frame, nw.Series):
        raise RowsError(
            "{rows} must have two dimensions, rows and columns; it is a {kind}: pass a data frame or a "
            "two-dimensional array",
            kind=kind,
        )
    return frame if isinstance(frame, nw.DataFrame) else None


def frame_to_matrix(frame: DataFrame[Any], schema: Schema, *, c_order: bool = True) -> Array:
    """A data frame as a matrix: see `qwyc.rows.matrix.to_matrix`. Columns are converted one after the
    other, and the first value that is refused is named."""
    labels = frame.columns  # text, but pandas allows any object
    positions = match_columns([str(label) for label in labels], schema)
    rows = np.empty((len(frame), schema.n_features), schema.dtype, order="C" if c_order else "F")
    for j, position in enumerate(positions):
        column, name = frame.get_column(labels[position]), str(labels[position])
        values, null = convert_column(column, j, schema, name)
        rows[:, j] = values
        if null is not None:
            rows[null, j] = np.nan
    return rows


def convert_column(
    column: Series[Any], j: int, schema: Schema, name: str
) -> tuple[Array, npt.NDArray[np.bool_] | None]:
    """Feature `j` of a data frame as numbers or codes, (N,), and a mask of nulls, (N,), or None if there
    are none. Numbers keep their type: integers are to become float32 directly, not through float64."""
    known = schema.categories.get(j)
    if known is not None and schema.hashed:
        return categories.codes_of_hashed_column(column, known, name), None
    if known is not None:
        return categories.codes_of_column(column, known, schema.unseen, name), None
    values, null = column_to_numbers(column, name)
    if values.dtype.kind == "O":
        values = objects_to_numbers(values, schema.dtype, name)
    refuse_ambiguous_integers(values, schema, name)
    return values, null
