"""Data frames of pandas, Polars and Arrow as tables that the native code reads where they lie.

Columns of numbers, of text and of categories in dictionaries are not copied. Any other column is converted
first. A table refuses what the model refuses, but does not say what: whoever reads it then converts the
frame (`frames.frame_to_matrix`), which raises the error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import RowsError
from qwyc.rows import categories
from qwyc.rows.arrays import NATIVE_DTYPES, as_readable, is_readable
from qwyc.rows.column_names import match_columns
from qwyc.rows.frames import convert_column
from qwyc.rows.pandas_blocks import add_blocks, column_arrays, only_array
from qwyc.rows.polars_categories import PolarsCategories
from qwyc.rows.schema import Schema
from qwyc.rows.text_codes import KnownTexts, Texts

Array = npt.NDArray[Any]

_READ_DTYPES = frozenset(map(np.dtype, "?bhilqBHILQfd"))  # native code reads these
_MOST_KEPT = 64  # lists of codes of pandas' categories
_ARROW_TYPES: set[type] = set()  # types of pandas' arrays that hold Arrow's, as they are found


def frame_library(X: Any) -> str:
    """The library of a frame that is read without a conversion: "pandas", "polars" or "pyarrow"; or ""."""
    name = type(X).__module__.partition(".")[0]
    library = sys.modules.get(name)
    if name == "pandas" and library is not None and type(X) is library.DataFrame:
        return name
    # Old versions of these libraries do not export Arrow streams.
    if name == "polars" and library is not None and type(X) is library.DataFrame:
        return name if hasattr(X, "__arrow_c_stream__") else ""
    if (
        name == "pyarrow"
        and library is not None
        and isinstance(X, (library.Table, library.RecordBatch))
    ):
        return name if hasattr(library.Table, "__arrow_c_stream__") else ""
    return ""


def has_columns(X: Any, n_features: int) -> bool:
    """Whether X is a frame that is read without a conversion and has a column for each feature."""
    library = frame_library(X)
    return bool(library) and n_features <= (
        X.num_columns if library == "pyarrow" else len(X.columns)
    )


class _Matched(NamedTuple):
    """Labels of a frame's columns, their text, and the position of every feature among them."""

    labels: Any  # a list, or a pandas Index
    names: list[str]
    positions: Sequence[int]
    in_order: bool

    def has(self, labels: Any) -> bool:
        """Whether other labels have the same text, where that is known without a long look."""
        if isinstance(labels, list):
            return bool(labels == self.names)
        is_same = type(labels) is type(self.labels) and self.labels.is_(labels)
        return bool(is_same or labels.tolist() == self.names)


class _Taken(NamedTuple):
    """What features take of the columns of pandas frames."""

    positions: Sequence[int]  # of each feature
    texts: Texts
    features: list[int]  # that take each column, or -1
    columns: _native.TakenColumns


class FrameReader:
    """Reads frames for one model, and keeps what is the same for all of them."""

    def __init__(self, schema: Schema) -> None:
        # A copy: the schema keeps its reader, and a cycle would be freed by the garbage collector only.
        self._schema = schema = replace(schema)
        self.single = schema.dtype == "float32"
        # Whether a value may be refused. All columns are read then, also those that nobody needs.
        self._refuses = (
            schema.finite_only
            or schema.integers == "checked"
            or (schema.unseen == "error" and bool(schema.categories))
        )
        self._texts = KnownTexts(schema)
        self._code_lists: dict[tuple[int, int], tuple[Any, _native.PositionCodes]] = {}
        self._polars = PolarsCategories()
        self._matched: _Matched | None = None
        self._taken: _Taken | None = None
        self._matched_schema: tuple[Any, Any, Sequence[int], bool] | None = None

    @cached_property
    def _shape(self) -> _native.TableShape:
        """What tables of the model have in common. It takes memory for every feature, so it is made once a
        frame has that many columns."""
        schema = self._schema
        needed = [not schema.accepts_missing] * schema.n_features
        for j in schema.must_have:
            needed[j] = True
        rules = (schema.missing, not schema.accepts_infinity, schema.integers == "checked")
        return _native.TableShape(needed, *rules, self.single)

    def readable(self, X: Any, unused: Sequence[int]) -> _native.Table | Array | None:
        """A frame as a table, or as a matrix if its values lie in memory as one; these may hold NaN or
        infinity although the model refuses them. None for anything else, and if the model refuses a
        column. Columns that no base model looks at are not read, unless the model refuses values."""
        library = frame_library(X)
        if not library:
            return None
        if library == "pandas" and (values := self._uniform(X)) is not None:
            plain = self._schema.takes_plain_rows and is_readable(values)
            return values if plain else None
        table = self.table(X, library)
        if table is not None and unused and not self._refuses:
            table.leave_out(unused)
        return table

    def readable_in_order(self, frame: Any, unused: Sequence[int]) -> _native.Table | None:
        """`readable` for an Arrow table that is known to have one column for each feature, in their order:
        small batches take less time. None if a column must be converted."""
        known = self._texts.arrow_features(False)
        if len(known.features) < self._schema.n_features:
            return None
        table = _native.Table(frame.num_rows, self._shape)
        if table.add_arrow(frame.__arrow_c_stream__(), known.columns, one=False):
            return None
        if unused and not self._refuses:
            table.leave_out(unused)
        return table

    def matrix(self, X: Any, *, c_order: bool) -> Any:
        """The rows of a frame as `qwyc.rows.matrix.to_matrix` gives them, or None if the model refuses a
        value or a column, or the frame is of another library."""
        library = frame_library(X)
        if not library:
            return None
        if library == "pandas" and (values := self._uniform(X)) is not None:
            dtype = None if self._schema.takes_any_numbers else self._schema.dtype
            return as_readable(values, dtype, c_order=c_order)
        table = self.table(X, library)
        if table is None:
            return None
        columns = table.matrix32(1) if self.single else table.matrix64(1)
        if columns is None:
            return None
        return np.ascontiguousarray(columns.T) if c_order else columns.T

    def table(self, X: Any, library: str) -> _native.Table | None:
        """A frame as a table, or None if the model does not take a column. An error here would not be the
        first one: columns before it may hold values that are refused when they are read. Raises an error
        if a column is missing."""
        if library == "pyarrow":
            labels, positions, in_order = self._match_schema(X.schema)
        else:
            labels = X.columns
            positions, in_order = self._match(labels)
        table = _native.Table(len(X) if library != "pyarrow" else X.num_rows, self._shape)
        if library == "pandas":
            others = self._add_pandas(table, X, positions)
        else:
            others = self._add_arrow(table, X, positions, in_order)
        try:
            with np.errstate(all="ignore"):  # numbers past float32 become infinity
                for j in others:
                    self._add_converted(table, j, X, labels[positions[j]])
        except RowsError:
            return None
        return table

    def _match(self, labels: Any) -> tuple[Sequence[int], bool]:
        """The position of every feature among the labels of a frame, and whether they are all of them in
        order. Frames that follow each other mostly have the same labels."""
        kept = self._matched
        if kept is not None and (kept.labels is labels or kept.has(labels)):
            if kept.labels is not labels and type(labels) is not list:
                self._matched = _Matched(labels, *kept[1:])  # the next frame may share them
            return kept.positions, kept.in_order
        names = [str(label) for label in labels]
        positions = match_columns(names, self._schema)
        in_order = list(positions) == list(range(len(labels)))
        self._matched = _Matched(labels, names, positions, in_order)
        return positions, in_order

    def _match_schema(self, schema: Any) -> tuple[Any, Sequence[int], bool]:
        """The same for an Arrow schema, and its labels. It is compared faster than its names are listed."""
        kept = self._matched_schema
        if kept is None or not (kept[0] is schema or kept[0].equals(schema)):
            kept = self._matched_schema = (schema, schema.names, *self._match(schema.names))
        return kept[1:]

    def _uniform(self, frame: Any) -> Array | None:
        """The values of a pandas frame that lie in memory as one array of floats, one column for each
        feature in its order; otherwise None."""
        if self._schema.categories:
            return None
        values = only_array(frame)
        if values is None or values.dtype not in NATIVE_DTYPES:
            return None
        _, in_order = self._match(frame.columns)
        return values if in_order else None

    def _add_pandas(
        self, table: _native.Table, frame: Any, positions: Sequence[int]
    ) -> Iterable[int]:
        """Adds the columns of a pandas frame that can be read; returns the features of the others."""
        texts = self._texts.codes(False)
        taken = self._taken_columns(positions, len(frame.columns), texts)
        others = add_blocks(table, frame, taken.columns)
        if others is None:
            columns = column_arrays(frame)
            arrays = [(j, columns[position]) for j, position in enumerate(positions)]
        elif not others:
            return ()  # which is what small batches mostly come to
        else:
            arrays = [(taken.features[position], array) for position, array in others]
        return [j for j, array in arrays if not self._add_array(table, j, array, taken)]

    def _taken_columns(self, positions: Sequence[int], width: int, texts: Texts) -> _Taken:
        kept = self._taken
        if (
            kept is None
            or kept.positions is not positions
            or kept.texts is not texts
            or len(kept.features) != width
        ):
            features = [-1] * width
            for j, at in enumerate(positions):
                features[at] = j
            known = self._schema.categories
            taken = _native.TakenColumns(
                features,
                numbers=[j not in known for j in features],
                objects=[j >= 0 and self._texts.takes_objects(j, texts) for j in features],
                arrow=[j >= 0 and not self._texts.needs_values(j, texts) for j in features],
                texts=[None if j < 0 else texts[j] for j in features],
                arrow_types=_ARROW_TYPES,
            )
            kept = self._taken = _Taken(positions, texts, features, taken)
        return kept

    def _add_array(self, table: _native.Table, j: int, array: Any, taken: _Taken) -> bool:
        """Adds a column of a pandas frame, (N,), if it can be read."""
        known, texts = self._schema.categories, taken.texts
        if hasattr(array, "codes") and j in known:
            codes = self._codes(j, array.categories)
            if codes is None:
                return False
            table.add_codes(j, array.codes, codes)
            taken.columns.keep_codes(j, type(array), array.categories, codes)
            return True
        if type(array) is np.ndarray:
            if j not in known and _is_read(array):
                table.add_numbers(j, array)
                return True
            return array.dtype == object and self._add_objects(table, j, array, texts)
        dtype = array.dtype
        if getattr(dtype, "storage", None) == "python":
            return self._add_objects(table, j, np.asarray(array, object), texts)
        if not _is_arrow(dtype) or self._texts.needs_values(j, texts):
            return False
        if type(array).__module__.startswith("pandas."):
            _ARROW_TYPES.add(type(array))
        chunked = array.__arrow_array__()
        stream = getattr(chunked, "__arrow_c_stream__", None)  # old versions have none
        if stream is None:
            return False
        return not table.add_arrow(stream(), _native.ArrowColumns([j], [texts[j]]), one=True)

    def _add_objects(self, table: _native.Table, j: int, array: Array, texts: Texts) -> bool:
        """Adds a column of objects, if they are the text of categories."""
        codes = texts[j]
        return (
            codes is not None
            and self._texts.takes_objects(j, texts)
            and table.add_objects(j, array, codes)
        )

    def _codes(self, j: int, index: Any) -> _native.PositionCodes | None:
        """The codes of a pandas Index of categories, and that of a missing value; None if the column is to
        be converted."""
        kept = self._code_lists.get((j, id(index)))
        if kept is None or kept[0] is not index:
            known = self._schema.categories[j]
            if self._schema.hashed:
                if not known or not all(type(value) is str for value in index):
                    return None
                try:
                    codes = [*categories.codes_of_hashed(list(index), known, j).tolist(), np.inf]
                except RowsError:
                    return None  # no valid text
            else:
                kind = categories.type_of_categories(known)
                if any(categories.is_of_wrong_type(value, kind) for value in index):
                    return None  # it is refused where it occurs
                codes = categories.codes_of_values([*index, None], known, self._schema.unseen)
            if len(self._code_lists) >= _MOST_KEPT:
                self._code_lists.clear()
            kept = self._code_lists[j, id(index)] = (index, _native.PositionCodes(codes))
        return kept[1]

    def _add_arrow(
        self,
        table: _native.Table,
        frame: Any,
        positions: Sequence[int],
        in_order: bool,
    ) -> Iterable[int]:
        """The same for a frame of a library that exports Arrow."""
        polars = type(frame).__module__.startswith("polars")
        features, texts, columns = self._texts.arrow_features(polars)
        if not features:
            return range(len(positions))  # a frame of no columns has no rows
        if not in_order or len(features) < len(positions):
            chosen = [positions[j] for j in features]  # Polars takes some names for patterns
            frame = frame[:, chosen] if polars else frame.select(chosen)
        if not hasattr(frame, "__arrow_c_stream__"):  # a record batch
            frame = sys.modules["pyarrow"].Table.from_batches([frame])
        codes: list[_native.PositionCodes | None] = []
        if polars and len(table) == 1 and _add_row(table, frame, columns):
            return self._without(features, positions)
        if polars:
            frame, codes = self._polars.with_positions(frame, features, texts)
        stream = frame.__arrow_c_stream__()
        others = table.add_arrow(stream, columns, one=False, positions=codes)
        rest = self._without(features, positions)
        return sorted({*others, *rest}) if others else rest

    @staticmethod
    def _without(features: Sequence[int], positions: Sequence[int]) -> Iterable[int]:
        """The other features, which mostly are none."""
        if len(features) == len(positions):
            return ()
        return sorted(set(range(len(positions))) - set(features))

    def learn(self, X: Any) -> None:
        """Keep the codes of the texts of a frame, where a model knows categories by their hashes. Tables
        refuse texts that were not seen before."""
        library = frame_library(X)
        if not self._schema.hashed or not library:
            return
        labels = X.column_names if library == "pyarrow" else X.columns
        positions, _ = self._match(labels)
        for j in self._texts.learned():
            self._texts.learn(j, as_series(X, labels[positions[j]]))

    def _add_converted(self, table: _native.Table, j: int, frame: Any, label: Any) -> None:
        """A column of any other type."""
        column = as_series(frame, label)
        values, null = convert_column(column, j, self._schema, str(label))
        if self._schema.hashed and j in self._schema.categories:
            self._texts.learn(j, column)
        self._add_values(table, j, values, null)

    def _add_values(self, table: _native.Table, j: int, values: Array, null: Array | None) -> None:
        """The numbers of a column, (N,), and a mask of nulls."""
        if not _is_read(values):
            values = values.astype(self._schema.dtype)
        table.add_numbers(j, values, null)


def _add_row(table: _native.Table, frame: Any, columns: _native.ArrowColumns) -> bool:
    """Adds the values of a Polars frame of one row, which takes less time than its export. False if one
    is of a type of which Python does not show whether the model takes it."""
    try:
        values = frame.row(0)
    except Exception:  # a time zone that Python does not know, for example
        return False
    return table.add_row(values, columns)


def as_series(frame: Any, label: Any) -> Any:
    """A column of a frame of any library as a Series of narwhals."""
    import narwhals.stable.v1 as nw

    if isinstance(frame, getattr(sys.modules.get("pyarrow"), "RecordBatch", ())):
        frame = sys.modules["pyarrow"].Table.from_batches([frame])
    return nw.from_native(frame[label], series_only=True)


def reader_of(schema: Schema) -> FrameReader:
    """The reader of a schema, which is made once."""
    reader: FrameReader | None = schema.kept.get("frames")
    if reader is None:
        reader = schema.kept["frames"] = FrameReader(schema)
    return reader


def _is_read(array: Array) -> bool:
    """Whether native code reads the numbers of an array, (N,)."""
    dtype = array.dtype
    # Not a multiple: a field of a record.
    return dtype in _READ_DTYPES and array.strides[0] % dtype.itemsize == 0


def _is_arrow(dtype: Any) -> bool:
    """Whether a pandas array of this type is an Arrow array."""
    return hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", None) == "pyarrow"
