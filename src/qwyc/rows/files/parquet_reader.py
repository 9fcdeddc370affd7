"""Parquet files, read batch by batch."""

from __future__ import annotations

import os
from typing import BinaryIO

from qwyc.errors import InputError
from qwyc.rows.files.batch import BatchReader, ColumnMatcher
from qwyc.rows.files.validation import validated

BATCH_ROWS = 1 << 16
SMALL_FILE = 1 << 24  # bytes
BUFFER_BYTES = 1 << 16  # of each column that are read at once


def read_parquet(file: BinaryIO, name: str, match: ColumnMatcher) -> BatchReader:
    """The rows of a file. `name` is for messages."""
    from pyarrow import parquet

    if not file.seekable():
        raise InputError.naming_file(
            f"cannot read {name} as parquet: it is a pipe, and Parquet is read from its end; give a file, "
            "or pipe CSV or Arrow"
        )
    # With pre_buffer, all data that was read stays in memory until the end. Without a buffer size, a row
    # group is read whole. With one, Arrow allocates what the header of a page claims, up to 2 GB, so that
    # small files are read without.
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    buffer_bytes = BUFFER_BYTES if size > SMALL_FILE else 0
    content = parquet.ParquetFile(file, pre_buffer=False, buffer_size=buffer_bytes)
    columns = match(content.schema_arrow.names)
    total, done = content.metadata.num_rows, 0
    batches = content.iter_batches(BATCH_ROWS, columns=columns.names)
    for rows in validated(batches, name, "parquet"):  # the decoder accepts text that is not UTF-8
        done += rows.num_rows
        yield columns.split(rows), done, total
    if not done:
        yield columns.without_rows(content.schema_arrow), 0, 0
