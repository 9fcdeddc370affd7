"""Tables written batch by batch: CSV, Parquet and Arrow IPC."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from qwyc.errors import OptionError
from qwyc.rows.files.dictionaries import GrowingDictionary


class TableWriter:
    """Writes batches of rows to a binary stream as CSV, Parquet or Arrow IPC.

    `kind` is "csv", "parquet" or "arrow". With `pipe`, Arrow is written in its stream form,
    which can be read from the start on; its file form is read from the end."""

    def __init__(self, file: BinaryIO, kind: str, arrow_schema: Any, *, pipe: bool = False) -> None:
        import pyarrow
        from pyarrow import ipc, parquet

        self._sink = pyarrow.PythonFile(file, mode="w")
        self._kind = kind
        self._writer: Any = None  # pyarrow's writer; None for CSV
        self._dictionaries: dict[str, GrowingDictionary] = {}
        if kind == "csv":
            _check_csv(arrow_schema)
            header = io.StringIO()
            csv.writer(header, lineterminator="\n").writerow(arrow_schema.names)
            file.write(header.getvalue().encode())
        elif kind == "parquet":
            with _type_errors(kind):
                self._writer = parquet.ParquetWriter(self._sink, arrow_schema)
        else:
            new = ipc.new_stream if pipe else ipc.new_file
            options = ipc.IpcWriteOptions(emit_dictionary_deltas=True)
            self._writer = new(self._sink, arrow_schema, options=options)
            for field in arrow_schema:
                if pyarrow.types.is_dictionary(field.type):
                    self._dictionaries[field.name] = GrowingDictionary(field.name)

    def write(self, batch: Any) -> None:
        """Append the rows of a pyarrow.RecordBatch."""
        if self._writer is None:
            with _type_errors(self._kind):
                _write_csv(batch, self._sink)
            return
        with _type_errors(self._kind):
            self._writer.write_batch(self._with_grown_dictionaries(batch))

    def _with_grown_dictionaries(self, batch: Any) -> Any:
        import pyarrow

        if not self._dictionaries:
            return batch
        columns = [
            self._dictionaries[name].recoded(column) if name in self._dictionaries else column
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        return pyarrow.RecordBatch.from_arrays(columns, schema=batch.schema)

    def close(self) -> None:
        """Write the footer, if the format has one. The stream stays open."""
        if self._writer is not None:
            self._writer.close()


@contextmanager
def _type_errors(kind: str) -> Iterator[None]:
    """Turn Arrow's errors about columns that a format cannot represent into one sentence."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError) as error:
        other = "arrow" if kind == "parquet" else "parquet"
        reason = " ".join(str(error).split())
        raise OptionError(
            f"the columns to keep cannot be written as {kind}: {reason}; try --to {other}, or keep fewer "
            "columns"
        ) from None


def _check_csv(arrow_schema: Any) -> None:
    """Raise an error before anything is written if CSV cannot represent the type of a column."""
    from pyarrow import types

    for field in arrow_schema:
        inner = field.type.value_type if types.is_dictionary(field.type) else field.type
        if types.is_nested(inner) or "binary" in str(inner):
            raise OptionError(
                f"column {field.name!r} is {field.type}, which CSV cannot represent; write Parquet or "
                "Arrow (--to parquet)"
            )


def _write_csv(batch: Any, sink: Any) -> None:
    """Write rows as CSV. Text is quoted only if some value of the batch needs quotes."""
    import pyarrow
    from pyarrow import compute
    from pyarrow import csv as arrow_csv

    columns, quoted = [], False
    for column in batch.columns:
        if pyarrow.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if "string" in str(column.type):
            column = column.cast(pyarrow.large_string())
            special = compute.match_substring_regex(column, '[",\r\n]|^ | $|^$')
            quoted = quoted or bool(compute.any(special, min_count=0).as_py())
        columns.append(column)
    options = arrow_csv.WriteOptions(
        include_header=False, quoting_style="needed" if quoted else "none"
    )
    arrow_csv.write_csv(
        pyarrow.RecordBatch.from_arrays(columns, names=batch.schema.names), sink, options
    )
