"""Batches of rows from a file: the columns that the model takes, and the columns that the user keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from qwyc.rows.odd_values import MarkedRows, OddValues


@dataclass(frozen=True)
class Batch:
    """Consecutive rows of a file."""

    features: Any  # a pyarrow.RecordBatch, columns in the model's order
    kept: Any  # a pyarrow.RecordBatch of the same rows
    odd: tuple[OddValues, ...] = ()  # values that could not be read, which are null in `features`

    @property
    def rows(self) -> Any:
        """The features as the model takes them, with what is known about odd values."""
        return MarkedRows(self.features, self.odd) if self.odd else self.features


@dataclass(frozen=True)
class Columns:
    """The columns of a file that are read."""

    features: list[str]  # in the model's order
    kept: list[str]

    @property
    def names(self) -> list[str]:
        """The names of all columns that are read, without duplicates."""
        return list(dict.fromkeys([*self.features, *self.kept]))

    def split(self, rows: Any, odd: Sequence[OddValues] = ()) -> Batch:
        """A pyarrow.RecordBatch as a batch."""
        return Batch(rows.select(self.features), rows.select(self.kept), tuple(odd))

    def without_rows(self, arrow_schema: Any) -> Batch:
        """A batch without rows, of a file that has this schema."""
        import pyarrow

        fields = [arrow_schema.field(name) for name in self.names]
        empty = [pyarrow.array([], type=field.type) for field in fields]
        return self.split(pyarrow.RecordBatch.from_arrays(empty, names=self.names))


ColumnMatcher = Callable[[Sequence[str]], Columns]  # from the names of a file's columns
BatchReader = Iterator[tuple[Batch, int, int]]  # a batch, work done, total work (0: not known)
