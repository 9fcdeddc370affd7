"""How CSV text is read: its delimiter and its spellings of a missing value."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from qwyc.rows.files.csv_blocks import BYTE_ORDER_MARK


@dataclass(frozen=True)
class CsvDialect:
    """What the rows of one file have in common."""

    delimiter: str
    null_spellings: tuple[str, ...]
    # The spellings of columns of text in which fewer of them stand for a missing value, by name.
    text_nulls: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def read(
        self,
        text: bytes | memoryview,
        *,
        names: Sequence[str] | None = None,
        types: Mapping[str, Any] | None = None,
        include: Sequence[str] | None = None,
        use_threads: bool = True,
        invalid_row_handler: Callable[[Any], str] | None = None,
    ) -> Any:
        """A pyarrow.Table of the columns that have `types`, or of those to `include`, or of all.

        `names` are the names of all columns; without them, the first row is a header. An empty line is a
        missing value if there is one column, otherwise nothing."""
        import pyarrow
        from pyarrow import csv as arrow_csv

        if names is not None and text[:3] == BYTE_ORDER_MARK:
            # Arrow drops a byte order mark at the start of a text, but here it is part of a value.
            text = BYTE_ORDER_MARK + bytes(text)
        table = arrow_csv.read_csv(
            pyarrow.BufferReader(pyarrow.py_buffer(text)),
            # One block: rows of any length are then read.
            read_options=arrow_csv.ReadOptions(
                column_names=None if names is None else list(names),
                block_size=len(text) + 1,
                use_threads=use_threads,
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=names is None or len(names) != 1,
                invalid_row_handler=invalid_row_handler,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=types,
                include_columns=list(types or include or ()),
                strings_can_be_null=not self.text_nulls,  # of all columns or none
                null_values=list(self.null_spellings),
            ),
        )
        return self._with_text_nulls(table) if self.text_nulls else table

    def names(self, header: bytes) -> list[str]:
        """The names of the columns in the first row. Arrow also looks for the type of every column, which
        takes seconds and 800 MB for 100,000 columns. So Python reads them, where it reads as Arrow does."""
        try:
            text = io.StringIO(header.decode(), newline="")
            rows = csv.reader(text, delimiter=self.delimiter, strict=True)
            return next(row for row in rows if row)
        except (
            csv.Error,
            UnicodeDecodeError,
            StopIteration,
        ):  # quotes that do not end, no name at all
            return list(self.read(header).schema.names)

    def _with_text_nulls(self, table: Any) -> Any:
        """A pyarrow.Table with nulls for the spellings of a missing value in columns of text."""
        import pyarrow
        from pyarrow import compute

        for i, column in enumerate(table.schema):
            if pyarrow.types.is_string(column.type):
                spellings = self.text_nulls.get(column.name, self.null_spellings)
                values = table.column(i)
                missing = compute.is_in(values, pyarrow.array(spellings, pyarrow.string()))
                values = compute.if_else(missing, None, values)
                table = table.set_column(i, column, values)
        return table
