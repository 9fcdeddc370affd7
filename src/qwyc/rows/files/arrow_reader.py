"""Arrow IPC files (Feather) and streams, read batch by batch."""

from __future__ import annotations

from typing import BinaryIO

from qwyc.errors import InputError
from qwyc.rows.files.batch import BatchReader, ColumnMatcher
from qwyc.rows.files.validation import validated

FILE_MAGIC = b"ARROW1"
FEATHER_1_MAGIC = b"FEA1"


def read_arrow(file: BinaryIO, start: bytes, name: str, match: ColumnMatcher) -> BatchReader:
    """The rows of a file or pipe. `start` are its first bytes, still to be read; `name` is for messages."""
    from pyarrow import RecordBatch, ipc

    if start.startswith(FEATHER_1_MAGIC):
        raise InputError(f"{name} is a Feather file of version 1; write it again as version 2")
    if start.startswith(FILE_MAGIC) and file.seekable():
        content = ipc.open_file(file)
        total = content.num_record_batches
        batches = (content.get_batch(i) for i in range(total))
    else:
        if start.startswith(FILE_MAGIC):
            file.read(8)  # a file is its magic, a stream, and a footer
        content = ipc.open_stream(file)
        total, batches = 0, iter(content)
    columns = match(content.schema.names)
    done = 0
    for done, rows in enumerate(validated(batches, name, "arrow"), 1):
        yield columns.split(rows), done, total
    if not done:
        yield columns.split(RecordBatch.from_pylist([], schema=content.schema)), 0, 0
