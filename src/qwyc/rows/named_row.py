"""One row as values with names -> the matrix that the trees take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import RowsError
from qwyc.rows import categories
from qwyc.rows.arrays import objects_to_numbers, refuse_ambiguous_integers
from qwyc.rows.column_names import match_columns, refuse_duplicates
from qwyc.rows.frame_columns import text_without_codes, wrong_type
from qwyc.rows.schema import Schema
from qwyc.rows.values import is_null

Array = npt.NDArray[Any]

# Neither numbers nor categories, as in the columns of data frames.
_OTHER_TYPES = (date, time, timedelta, np.datetime64, np.timedelta64)


@dataclass(frozen=True, eq=False)
class NamedRow:
    """The values of one row, and the name of the column of each. They are read as a data frame of one row
    is: a category is given by its value."""

    names: Sequence[Any]
    values: Sequence[Any]

    def to_matrix(self, schema: Schema) -> Array:
        """(1, n_features), of dtype `schema.dtype`."""
        row = np.empty((1, schema.n_features), schema.dtype)
        for j, position in enumerate(match_columns([str(name) for name in self.names], schema)):
            row[:, j] = as_number(self.values[position], j, schema, str(self.names[position]))
        return row

    def to_pandas(self) -> Any:
        """A pandas frame of one row."""
        import narwhals.stable.v1 as nw

        refuse_duplicates([str(name) for name in self.names])
        columns = {name: [value] for name, value in zip(self.names, self.values, strict=True)}
        try:
            return nw.from_dict(columns, backend="pandas").to_native()
        except ImportError:
            raise RowsError(
                "a pipeline's own steps take tables, and values by name become one with pandas, which is "
                "not installed: pass a table of one row"
            ) from None


def as_number(value: Any, j: int, schema: Schema, name: str) -> Array:
    """A value of feature `j` as the trees take it, (1,)."""
    known, column = schema.categories.get(j), _as_column(value)
    plain = column.dtype.kind in "biuf"
    if known is not None and schema.hashed:
        plain_value = value.item() if isinstance(value, np.generic) else value
        return categories.codes_of_hashed([plain_value], known, name)
    if isinstance(value, _OTHER_TYPES) and not is_null(value):
        raise wrong_type(name, type(value).__name__, categorical=known is not None)
    if known is not None:
        codes_of = categories.codes_of_numbers if plain else categories.codes_of_objects
        return codes_of(column, known, schema.unseen, name)
    if plain:
        refuse_ambiguous_integers(column, schema, name)
        return column
    if isinstance(value, str):
        raise text_without_codes(name, "text")
    return objects_to_numbers(column, schema.dtype, name)


def _as_column(value: Any) -> Array:
    """One value as an array of numbers if it is a number, otherwise of objects, (1,)."""
    if isinstance(value, (int, float, np.number, np.bool_)):
        numbers = np.asarray([value])
        if numbers.dtype.kind in "biuf":
            return numbers
    column = np.empty(1, object)
    column[0] = value
    return column
