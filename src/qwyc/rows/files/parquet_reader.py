"""Parquet files, read batch by batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from qwyc.errors import InputError
from qwyc.rows.files.batch import BatchReader, ColumnMatcher, Columns
from qwyc.rows.files.validation import validated

BATCH_ROWS = 1 << 16
SMALL_FILE = 1 << 24  # bytes
BUFFER_BYTES = 1 << 16  # of each column that are read at once
CODE_BYTES = 2.5  # for each value, of a column of text that is stored as codes of a dictionary

CodedColumns = Callable[[Any, Columns], Sequence[str]]  # of an open file, a parquet.ParquetFile


def read_parquet(
    file: BinaryIO, name: str, match: ColumnMatcher, coded: CodedColumns
) -> BatchReader:
    """The rows of a file. `name` is for messages; `coded` says which columns of text come out as
    dictionaries."""
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
    options: dict[str, Any] = {
        "pre_buffer": False,
        "buffer_size": BUFFER_BYTES if size > SMALL_FILE else 0,
    }
    content = parquet.ParquetFile(file, **options)
    columns = match(content.schema_arrow.names)
    if texts := list(coded(content, columns)):
        options |= {"metadata": content.metadata, "read_dictionary": texts}
        content = parquet.ParquetFile(file, **options)
    total, done = content.metadata.num_rows, 0
    batches = content.iter_batches(BATCH_ROWS, columns=columns.names)
    for rows in validated(batches, name, "parquet"):  # the decoder accepts text that is not UTF-8
        done += rows.num_rows
        yield columns.split(rows), done, total
    if not done:
        yield columns.without_rows(content.schema_arrow), 0, 0


def coded_texts(content: Any, names: Sequence[str]) -> list[str]:
    """Which of these columns of a parquet.ParquetFile are text that is stored as codes of a dictionary.
    It is read faster if it stays that way: a text is then looked at once, and not in every row."""
    from pyarrow import types

    metadata = content.metadata
    place = {content.schema.column(j).path: j for j in range(len(content.schema))}
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    found = []
    for name in names:
        kind = content.schema_arrow.field(name).type
        if not (types.is_string(kind) or types.is_large_string(kind)) or name not in place:
            continue
        if groups and all(_is_coded(group.column(place[name])) for group in groups):
            found.append(name)
    return found


def _is_coded(chunk: Any) -> bool:
    """Whether nearly all values of a column, in a row group, are stored as codes."""
    return (
        any("DICTIONARY" in encoding for encoding in chunk.encodings)
        and chunk.total_uncompressed_size <= CODE_BYTES * chunk.num_values
    )
