"""Rows out of a file, some at a time: what the model takes, and what the user keeps beside the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Batch:
    """Some rows."""

    features: Any  # a pyarrow.RecordBatch, columns in the model's order
    kept: Any  # a pyarrow.RecordBatch


@dataclass(frozen=True)
class Columns:
    """Which of a file's columns are read."""

    features: list[str]  # in the model's order
    kept: list[str]

    @property
    def names(self) -> list[str]:
        """All of them, each once."""
        return list(dict.fromkeys([*self.features, *self.kept]))

    def of(self, rows: Any) -> Batch:
        """A pyarrow.RecordBatch, taken apart."""
        return Batch(rows.select(self.features), rows.select(self.kept))


Match = Callable[[Sequence[str]], Columns]  # from the names that a file has
Read = Iterator[tuple[Batch, int, int]]  # batch, done, total; total 0: not known
