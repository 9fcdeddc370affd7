"""Data frames with odd values -> the matrix that the base models take, and the odd values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.rows.arrays import ambiguous_integers
from qwyc.rows.column_names import match_columns
from qwyc.rows.frames import as_frame
from qwyc.rows.odd_columns import column_with_odd_values
from qwyc.rows.odd_values import OddValues, ambiguous, not_known, odd_values
from qwyc.rows.schema import Schema
from qwyc.rows.tables import FrameReader, as_series

Array = npt.NDArray[Any]

_UNKNOWN = -1.0  # the code of an unknown category while it is read


class _OddReader(FrameReader):
    """Reads one frame, and keeps the odd values of its columns. Unknown categories get a code."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema)
        self.found: list[OddValues] = []

    def _add_converted(self, table: _native.Table, j: int, frame: Any, label: Any) -> None:
        column = as_series(frame, label)
        values, null, odd = column_with_odd_values(column, j, self._schema, str(label))
        self.found += odd
        self._add_values(table, j, values, null)


def frame_with_odd_values(
    X: Any, schema: Schema
) -> tuple[Array, list[OddValues], Sequence[str]] | None:
    """The rows of a frame, (N, n_features), in which odd values are those of nulls; the odd values; and
    the names of its columns in the order of the features. None if X is no frame. Missing values and
    infinities are not looked for. Raises an error if a column is missing."""
    frame = as_frame(X)
    if frame is None:
        return None
    labels = frame.columns
    chosen = [labels[i] for i in match_columns([str(label) for label in labels], schema)]
    names = [str(label) for label in chosen]
    taken = replace(
        schema,
        unseen="invalid" if schema.unseen == "error" else schema.unseen,
        missing=float("nan"),
        accepts_missing=True,
        accepts_infinity=True,
        must_have=(),
        integers="direct" if schema.integers == "checked" else schema.integers,
    )
    reader = _OddReader(taken)
    rows = reader.matrix(X, c_order=False)
    found = reader.found
    if rows is None:  # of another library
        rows, found = np.empty((len(frame), schema.n_features), schema.dtype, order="F"), []
        for j, (label, name) in enumerate(zip(chosen, names, strict=True)):
            values, null, odd = column_with_odd_values(frame.get_column(label), j, taken, name)
            found += odd
            rows[:, j] = values
            if null is not None:
                rows[null, j] = np.nan
    rows = rows.astype(schema.dtype, copy=False)  # floats that need no check keep their own type
    if schema.unseen == "error" and not schema.hashed:
        for j in schema.categories:
            unknown = np.flatnonzero(rows[:, j] == _UNKNOWN)
            if len(unknown):
                texts = frame.get_column(chosen[j])[unknown.tolist()].to_list()
                found += odd_values(j, names[j], unknown, texts, not_known)
    for part in found:
        if part.can_be_missing:
            known = schema.categories.get(part.feature, ())
            none_is_value = frame.implementation.is_polars() and None in known
            rows[part.rows, part.feature] = known.index(None) if none_is_value else np.nan
    if schema.integers == "checked":
        found += _ambiguous(frame, chosen, names, schema)
    return rows, sorted(found, key=lambda odd: odd.feature), names


def _ambiguous(
    frame: Any, labels: Sequence[Any], names: Sequence[str], schema: Schema
) -> list[OddValues]:
    """Integers that the source library rounds in two ways."""
    found: list[OddValues] = []
    for j, (label, name) in enumerate(zip(labels, names, strict=True)):
        column = frame.get_column(label)
        if j in schema.categories or not column.dtype.is_integer():
            continue
        values = column.fill_null(0).to_numpy()
        bad = ambiguous_integers(values)
        if bad is not None:
            rows = np.flatnonzero(bad)
            found += odd_values(
                j, name, rows, values[rows].tolist(), ambiguous, can_be_missing=False
            )
    return found
