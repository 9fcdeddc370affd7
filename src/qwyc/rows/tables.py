"""Data frames of pandas, Polars and Arrow as tables that the native code reads where they lie.

Columns of numbers, of text and of categories in dictionaries are not copied. Any other column is converted
first (`frames.convert_column`). A table refuses what the model refuses, but does not say what: whoever
reads it then converts the frame, which raises the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from qwyc import _native
from qwyc.rows import categories
from qwyc.rows.arrays import as_readable, objects_to_numbers
from qwyc.rows.column_names import match_columns
from qwyc.rows.frame_columns import column_to_numbers
from qwyc.rows.frames import as_frame, uniform_values
from qwyc.rows.schema import Schema

if TYPE_CHECKING:
    from narwhals.stable.v1 import DataFrame, Series

_READ_KINDS = "iufb"
_MOST_KEPT = 64  # tables of codes of pandas' categories


class FrameReader:
    """Reads frames for one model, and keeps what is the same for all of them."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.single = schema.dtype == "float32"
        self._refuses = (
            schema.finite_only
            or schema.integers == "checked"
            or (schema.unseen == "error" and bool(schema.categories))
        )
        self._texts: dict[tuple[int, bool], _native.TextCodes | None] = {}
        self._code_lists: dict[int, tuple[Any, list[float]]] = {}  # by id of a pandas Index
        self._checks = [
            (
                schema.missing,
                not schema.accepts_missing or j in schema.must_have,
                not schema.accepts_infinity,
                schema.integers == "checked",
            )
            for j in range(schema.n_features)
        ]

    def table(self, frame: DataFrame[Any]) -> _native.Table:
        """A frame as a table. Raises the same errors as `frames.frame_to_matrix`, if a column has another
        name or type."""
        labels = frame.columns
        positions = match_columns([str(label) for label in labels], self._schema)
        table = _native.Table(len(frame), self._schema.n_features)
        for j, checks in enumerate(self._checks):
            table.check(j, *checks)
        chosen = [labels[position] for position in positions]
        add = self._add_pandas if frame.implementation.is_pandas() else self._add_arrow
        for j in add(table, frame.to_native(), chosen):
            self._add_converted(table, j, frame.get_column(chosen[j]), str(chosen[j]))
        return table

    def _add_pandas(self, table: _native.Table, native: Any, chosen: Sequence[Any]) -> list[int]:
        """Adds the columns of a pandas frame that can be read; returns the features of the others."""
        others = []
        dtypes = dict(zip(native.columns, native.dtypes, strict=True))
        for j, label in enumerate(chosen):
            dtype, known = dtypes[label], self._schema.categories.get(j)
            if isinstance(dtype, np.dtype):
                if known is None and dtype.kind in _READ_KINDS and dtype.itemsize in (1, 2, 4, 8):
                    values = native[label].to_numpy()
                    if values.dtype != np.float16 and values.dtype.isnative:
                        table.add_numbers(j, values)
                        continue
            elif known is not None and not self._schema.hashed and hasattr(dtype, "categories"):
                table.add_codes(j, native[label].array.codes, self._codes(j, dtype.categories))
                continue
            elif _is_arrow(dtype) and hasattr(native[label], "__arrow_c_stream__"):
                stream, texts = native[label].__arrow_c_stream__(), self._text_codes(j, False)
                if not table.add_arrow(stream, [j], [texts], one=True):
                    continue
            others.append(j)
        return others

    def _codes(self, j: int, index: Any) -> list[float]:
        """The codes of a pandas Index of categories, and that of a missing value."""
        kept = self._code_lists.get(id(index))
        if kept is None or kept[0] is not index:
            known = self._schema.categories[j]
            codes = categories.codes_of_values([*index, None], known, self._schema.unseen)
            if len(self._code_lists) >= _MOST_KEPT:
                self._code_lists.clear()
            kept = self._code_lists[id(index)] = (index, codes)
        return kept[1]

    def _add_arrow(self, table: _native.Table, native: Any, chosen: Sequence[Any]) -> list[int]:
        """The same for the frames of libraries that export Arrow."""
        if not hasattr(native, "__arrow_c_stream__"):
            return list(range(len(chosen)))
        polars = type(native).__module__.startswith("polars")
        texts = [self._text_codes(j, polars) for j in range(len(chosen))]
        stream = native.select(list(chosen)).__arrow_c_stream__()
        return table.add_arrow(stream, list(range(len(chosen))), texts, one=False)

    def _text_codes(self, j: int, none_is_value: bool) -> _native.TextCodes | None:
        """The codes of a feature whose categories may be text, or None for numbers."""
        schema, key = self._schema, (j, none_is_value)
        if key not in self._texts:
            known = schema.categories.get(j)
            self._texts[key] = (
                None
                if known is None or schema.hashed
                else _text_codes(known, schema.unseen, none_is_value)
            )
        return self._texts[key]

    def _add_converted(self, table: _native.Table, j: int, column: Series[Any], name: str) -> None:
        """A column of any other type."""
        schema = self._schema
        known = schema.categories.get(j)
        if known is not None and schema.hashed:
            table.add_numbers(j, categories.codes_of_hashed_column(column, known, name))
            return
        if known is not None:
            table.add_numbers(j, categories.codes_of_column(column, known, schema.unseen, name))
            return
        values, null = column_to_numbers(column, name)
        if values.dtype.kind == "O":
            values = objects_to_numbers(values, schema.dtype, name)
        elif values.dtype.kind not in "iub":
            values = values.astype(schema.dtype)
        table.add_numbers(j, values, null)

    def decidable(self, X: Any, unused: Sequence[int]) -> _native.Table | None:
        """Rows as a table if they are a frame, and are read fastest as one. Columns that no base model
        looks at are not read, unless the model refuses values."""
        if isinstance(X, (np.ndarray, list, tuple)):
            return None
        frame = as_frame(X)
        if frame is None or uniform_values(frame, self._schema) is not None:
            return None  # its values need no table
        table = self.table(frame)
        if not self._refuses:
            table.leave_out(unused)
        return table

    def matrix(self, frame: DataFrame[Any], *, c_order: bool) -> Any:
        """The rows of a frame as `qwyc.rows.matrix.to_matrix` gives them, or None if the model refuses a
        value."""
        schema = self._schema
        if (values := uniform_values(frame, schema)) is not None:
            dtype = None if schema.takes_any_numbers else schema.dtype
            return as_readable(values, dtype, c_order=c_order)
        table = self.table(frame)
        columns = table.matrix32(1) if self.single else table.matrix64(1)
        if columns is None:
            return None
        return np.ascontiguousarray(columns.T) if c_order else columns.T


def _is_arrow(dtype: Any) -> bool:
    """Whether a pandas column of this type is an Arrow array."""
    return hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", None) == "pyarrow"


def reader_of(schema: Schema) -> FrameReader:
    """The reader of a schema, which is made once."""
    reader: FrameReader | None = schema.kept.get("frames")
    if reader is None:
        reader = schema.kept["frames"] = FrameReader(schema)
    return reader


def _text_codes(known: Sequence[Any], unseen: str, none_is_value: bool) -> _native.TextCodes | None:
    texts = {value: float(code) for code, value in enumerate(known) if isinstance(value, str)}
    if unseen == "first":
        texts.setdefault("", np.nan)  # YDF: "" is missing
    null = float(list(known).index(None)) if none_is_value and None in known else np.nan
    other = categories.code_of_unseen(unseen)
    try:
        return _native.TextCodes(list(texts), list(texts.values()), other, null)
    except UnicodeEncodeError:
        return None  # a category that is no valid text
