"""Arrow IPC files (Feather) and streams, read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from qwyc.errors import InputError
from qwyc.rows.files.batch import BatchReader, ColumnMatcher
from qwyc.rows.files.validation import validated

FILE_MAGIC = b"ARROW1"
FEATHER_1_MAGIC = b"FEA1"
BATCH_ROWS = 1 << 16


def read_arrow(file: BinaryIO, start: bytes, name: str, match: ColumnMatcher) -> BatchReader:
    """The rows of a file or pipe. `start` are its first bytes, still to be read; `name` is for messages.

    A record batch is read whole, but of a file only the columns that are needed. Large ones come out in
    parts."""
    if start.startswith(FEATHER_1_MAGIC):
        raise InputError.naming_file(
            f"{name} is a Feather file of version 1; write it again as version 2"
        )
    begin = file.tell() if file.seekable() else None
    content = _open(file, start)
    columns = match(content.schema.names)
    needed = [content.schema.get_field_index(label) for label in columns.names]
    # Columns of nulls alone have no data. The other columns then show that there are so many rows.
    if begin is not None and any(str(content.schema.field(i).type) != "null" for i in needed):
        file.seek(begin)
        content = _open(file, start, needed)
    total = getattr(content, "num_record_batches", 0)
    done = 0
    for done, rows in enumerate(validated(_batches(content), name, "arrow"), 1):
        for i in range(0, max(rows.num_rows, 1), BATCH_ROWS):
            yield columns.split(rows.slice(i, BATCH_ROWS)), done, total
    if not done:
        yield columns.without_rows(content.schema), 0, 0


def _open(file: BinaryIO, start: bytes, fields: list[int] | None = None) -> Any:
    """A reader of pyarrow for the fields at these positions, or for all."""
    from pyarrow import ipc

    options = ipc.IpcReadOptions(included_fields=fields or [])
    if start.startswith(FILE_MAGIC) and file.seekable():
        return ipc.open_file(file, options=options)
    if start.startswith(FILE_MAGIC):
        file.read(8)  # a file is its magic, a stream, and a footer
    return ipc.open_stream(file, options=options)


def _batches(content: Any) -> Iterator[Any]:
    if not hasattr(content, "num_record_batches"):
        return iter(content)
    return (content.get_batch(i) for i in range(content.num_record_batches))
