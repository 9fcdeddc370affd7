"""Dictionaries of Arrow columns that grow from batch to batch.

An Arrow file has one dictionary for a column, to which later batches may add. Batches of a file that is
read have a dictionary each, so that codes have to be changed."""

from __future__ import annotations

from typing import Any

from qwyc.errors import OptionError


class GrowingDictionary:
    """One column of dictionary type in all batches of a table."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._values: Any = None  # a pyarrow.Array of the distinct values so far

    def recoded(self, column: Any) -> Any:
        """A pyarrow.DictionaryArray with the same values, whose dictionary starts with that of the batch
        before."""
        import pyarrow
        from pyarrow import compute

        if self._values is None:
            self._values = column.dictionary.slice(0, 0)
        own, known = column.dictionary, self._values
        if own.equals(known):
            return column
        new = compute.filter(own, compute.invert(compute.is_in(own, value_set=known)))
        self._values = pyarrow.concat_arrays([known, new.unique()])
        code = compute.index_in(own, value_set=self._values)
        try:
            code = code.cast(column.type.index_type)
        except pyarrow.ArrowInvalid:
            raise OptionError(
                f"column {self._name!r} is {column.type}, and all rows have {len(self._values):,} distinct "
                "values, more than its codes can number; write Parquet (--to parquet)"
            ) from None
        indices = code.take(column.indices)
        return pyarrow.DictionaryArray.from_arrays(
            indices, self._values, ordered=column.type.ordered
        )
