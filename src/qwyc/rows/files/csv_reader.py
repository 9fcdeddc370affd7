"""CSV, plain or compressed, read batch by batch.

The columns and their types are known before the first batch, from the model and the start of the file:
numbers are float64 and categories have the type of the model's categories, in every batch."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from qwyc.errors import InputError, RowsError
from qwyc.limits import MAX_CSV_HEADER, MAX_CSV_ROW
from qwyc.rows.categories import category_hash
from qwyc.rows.files.batch import BatchReader, ColumnMatcher, Columns
from qwyc.rows.files.csv_blocks import (
    BYTE_ORDER_MARK,
    first_row_end,
    last_row_end,
    read_fully,
    row_blocks,
)
from qwyc.rows.files.csv_dialect import CsvDialect
from qwyc.rows.files.csv_errors import find_wrong_row
from qwyc.rows.files.csv_odd import Wrong, is_mostly_boolean, read_odd_block
from qwyc.rows.odd_values import (
    OddValues,
    not_a_number,
    not_known,
    not_known_of,
    not_true_or_false,
    odd_values,
)
from qwyc.rows.schema import Schema

HEAD = MAX_CSV_HEADER  # bytes that the types of columns are inferred from
BLOCK = MAX_CSV_ROW  # bytes in a batch
DELIMITERS = (",", ";", "\t", "|")
# By the first bytes.
COMPRESSION = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
_INTEGER_AS_FLOAT = re.compile(r"(0|-?[1-9][0-9]*)\.0")
MORE_NULLS = ("None", "<NA>")  # besides the spellings that Arrow knows; pandas has them too


class _CountedStream(io.RawIOBase):
    """A stream that continues after bytes that have been read already; `done` counts the bytes read."""

    def __init__(self, start: bytes, rest: BinaryIO) -> None:
        self._start, self._rest, self.done = start, rest, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        part, self._start = self._start, b""
        if size >= 0:
            part, self._start = part[:size], part[size:]
        part = part or self._rest.read(size)
        self.done += len(part)
        return part


@dataclass(frozen=True)
class _Text:
    """A CSV whose header has been read."""

    raw: _CountedStream  # the bytes of the file, compressed or not
    stream: Any  # text after `body`
    body: bytes  # the first rows
    is_whole: bool  # whether `body` has all rows
    names: list[str]  # of all columns
    dialect: CsvDialect
    is_after_return: bool  # whether the header ends with a carriage return

    @classmethod
    def of(cls, file: BinaryIO, name: str) -> _Text:
        """`name` is for messages."""
        import pyarrow

        start = file.read(8)
        raw = _CountedStream(start, file)
        stream: Any = raw
        for magic, codec in COMPRESSION.items():
            if start.startswith(magic):
                stream = pyarrow.CompressedInputStream(raw, codec)
        head = read_fully(stream, HEAD)
        is_whole = len(head) < HEAD
        _check_text(head, name)
        head = head.removeprefix(BYTE_ORDER_MARK)
        if is_whole and not head.endswith((b"\n", b"\r")):
            head += b"\n"  # a header without a line break is a table without rows
        dialect = CsvDialect(_delimiter(head), _null_spellings())
        header_end = first_row_end(head, dialect.delimiter)
        if not header_end and not is_whole:
            raise InputError.naming_file(
                f"cannot read {name} as csv: its header has more than {HEAD:,} bytes; close its quotes if "
                "one is open"
            )
        header, body = head[: header_end or len(head)], head[header_end or len(head) :]
        names = dialect.names(header)
        return cls(raw, stream, body, is_whole, names, dialect, header.endswith(b"\r"))

    def blocks(self) -> Iterator[memoryview]:
        """Blocks of whole rows."""
        blocks = row_blocks(self.body, self.stream, self.dialect.delimiter, BLOCK)
        if len(self.names) != 1:
            return blocks
        # Empty lines are rows there, but not the second half of a line break.
        return _without_half_breaks(blocks, self.is_after_return)


def read_csv(
    file: BinaryIO, name: str, schema: Schema, match: ColumnMatcher, *, odd: bool = False
) -> BatchReader:
    """The rows of a file or pipe. `name` is for messages; `match` chooses the columns by the header. With
    `odd`, values of a wrong type are not an error: batches say which these are."""
    import pyarrow

    text = _Text.of(file, name)
    names, body = text.names, text.body
    columns = match(names)
    dialect = replace(text.dialect, text_nulls=_text_nulls(columns, schema))
    sample = body if text.is_whole else body[: last_row_end(body, dialect.delimiter)]
    booleans = _boolean_columns(sample, names, columns, dialect)
    types = _column_types(columns, booleans, schema)
    # An odd value is null in its column, but the column that is kept has its text.
    both = set(columns.features) & set(columns.kept) if odd else set()
    as_text = {name: pyarrow.string() for name in both}
    likely: set[str] | None = set() if odd else None  # columns with values of a wrong type
    total, done = _file_size(file), 0
    try:
        for block in text.blocks():
            table, wrong = _read_block(block, names, types, dialect, likely)
            texts = dialect.read(block, names=names, types=as_text) if as_text else None
            found = [_odd_values(*cells, columns, types, schema) for cells in wrong]
            for rows in table.to_batches():  # one, or none
                batch = columns.split(rows, found)
                batch = replace(batch, kept=_with_texts(batch.kept, texts))
                if schema.hashed:
                    batch = replace(batch, features=_with_integers(batch.features, schema))
                yield batch, min(text.raw.done, total), total
                done += rows.num_rows
    except RowsError as error:
        raise error.about(name, rows_before=done) from None
    if text.stream is text.raw and text.raw.done < total:  # rows are missing that were there before
        raise InputError.naming_file(
            f"cannot read {name} as csv: it became shorter while it was read; {text.raw.done:,} of its "
            f"{total:,} bytes were there"
        )
    if not done:
        batch = columns.without_rows(pyarrow.schema(types))
        texts = pyarrow.schema(as_text).empty_table()
        yield replace(batch, kept=_with_texts(batch.kept, texts)), total, total


def _read_block(
    block: memoryview,
    names: Sequence[str],
    types: Mapping[str, Any],
    dialect: CsvDialect,
    likely: set[str] | None,
) -> tuple[Any, list[Wrong]]:
    """A pyarrow.Table of the columns that have types, and the values of a wrong type; where these are an
    error, `likely` is None. An error counts rows in the block."""
    import pyarrow

    try:
        if likely is not None:
            return read_odd_block(block, names, types, dialect, likely)
        return dialect.read(block, names=names, types=types), []
    except pyarrow.ArrowInvalid:
        if likely is not None:  # values of a wrong type are not why
            types = dict.fromkeys(types, pyarrow.string())
        wrong = find_wrong_row(block, names, types, dialect)
        if wrong is None:
            raise
        raise wrong from None


def _odd_values(
    name: str,
    rows: Any,
    texts: Sequence[str],
    columns: Columns,
    types: Mapping[str, Any],
    schema: Schema,
) -> OddValues:
    """Values of a wrong type in a column of the model."""
    import pyarrow

    j = columns.features.index(name)
    known = schema.categories.get(j)
    reason: Callable[[str | int, Any], str] = not_a_number
    if known is not None:
        reason = not_known if schema.hashed else not_known_of(known)
    if pyarrow.types.is_boolean(types[name]):
        reason = not_true_or_false
    return odd_values(j, name, rows, texts, reason)[0]


def _with_texts(kept: Any, texts: Any) -> Any:
    """A pyarrow.RecordBatch with the columns of a pyarrow.Table in place of those of the same name."""
    import pyarrow

    if texts is None or not texts.num_columns:
        return kept
    columns = [
        texts[name].combine_chunks() if name in texts.column_names else kept.column(name)
        for name in kept.schema.names
    ]
    return pyarrow.RecordBatch.from_arrays(columns, names=kept.schema.names)


def _with_integers(features: Any, schema: Schema) -> Any:
    """A pyarrow.RecordBatch with 1 for the text 1.0 where CatBoost knows the category 1 and not 1.0. It
    takes integers for categories, which tables with missing values write as floats."""
    import pyarrow
    from pyarrow import compute

    columns = list(features.columns)
    for j, known in schema.categories.items():
        if not known or not compute.any(compute.ends_with(columns[j], ".0")).as_py():
            continue
        encoded = columns[j].dictionary_encode()
        hashes = frozenset(known)
        texts = [_as_integer(text, hashes) for text in encoded.dictionary.to_pylist()]
        columns[j] = pyarrow.array(texts, pyarrow.string()).take(encoded.indices)
    return pyarrow.RecordBatch.from_arrays(columns, names=features.schema.names)


def _as_integer(text: str, known: Set[Any]) -> str:
    if not _INTEGER_AS_FLOAT.fullmatch(text) or category_hash(text) in known:
        return text
    integer = text.removesuffix(".0")
    # Where the model does not list its categories, 1.0 may be one of them.
    return text if None in known and category_hash(integer) not in known else integer


def _check_text(head: bytes, name: str) -> None:
    if not head:
        raise InputError.naming_file(
            f"cannot read {name} as csv: it is empty; a CSV has a header at least"
        )
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError.naming_file(f"cannot read {name} as csv: it is UTF-16; save it as UTF-8")


def _delimiter(head: bytes) -> str:
    """A comma, unless the header has no comma and one of the others."""
    header = head.lstrip(b"\r\n").splitlines()[0].decode(errors="replace") if head.strip() else ""
    return next((mark for mark in DELIMITERS if mark in header), ",")


def _without_half_breaks(blocks: Iterator[memoryview], after_return: bool) -> Iterator[memoryview]:
    """The same blocks, without a line feed at the start of one that follows a carriage return."""
    for block in blocks:
        part = block[1:] if after_return and bytes(block[:1]) == b"\n" else block
        after_return = bytes(block[-1:]) == b"\r"
        if part:
            yield part


def _null_spellings() -> tuple[str, ...]:
    """Texts that stand for a missing value."""
    from pyarrow import csv

    return (*csv.ConvertOptions().null_values, *MORE_NULLS)


def _text_nulls(columns: Columns, schema: Schema) -> dict[str, tuple[str, ...]]:
    """The spellings of a missing value in each feature that has some of them as categories."""
    as_category = category_hash if schema.hashed else str
    spellings, found = _null_spellings(), {}
    for j, name in enumerate(columns.features):
        known = set(schema.categories.get(j, ()))
        nulls = tuple(text for text in spellings if as_category(text) not in known)
        if schema.hashed and None in known:
            nulls = ()  # the model does not list its categories: CatBoost takes every text for one
        if len(nulls) < len(spellings):
            found[name] = nulls
    return found


def _boolean_columns(
    sample: bytes, names: Sequence[str], columns: Columns, dialect: CsvDialect
) -> set[str]:
    """The features that mostly hold true and false in the first rows, so that other values are the wrong
    ones. Rows that have too few or too many values are skipped here."""
    import pyarrow

    if not sample.strip():
        return set()
    text = sample.decode(errors="replace").encode()  # rows that are not UTF-8 cannot be skipped
    table = dialect.read(
        text, names=names, include=columns.features, invalid_row_handler=lambda row: "skip"
    )
    return {
        field.name
        for field in table.schema
        if pyarrow.types.is_boolean(field.type)
        or (pyarrow.types.is_string(field.type) and is_mostly_boolean(table[field.name]))
    }


def _column_types(columns: Columns, booleans: Set[str], schema: Schema) -> dict[str, Any]:
    """The Arrow type of each column that is read. A value of another type is an error."""
    import pyarrow

    types: dict[str, Any] = {name: pyarrow.string() for name in columns.kept}
    for j, name in enumerate(columns.features):
        known = schema.categories.get(j)
        if known is not None and (schema.hashed or any(isinstance(v, str) for v in known)):
            types[name] = pyarrow.string()
        elif known is not None and any(abs(v) > 2**53 for v in known if isinstance(v, int)):
            types[name] = pyarrow.int64()
        else:
            types[name] = pyarrow.bool_() if name in booleans else pyarrow.float64()
    return {name: types[name] for name in columns.names}


def _file_size(file: BinaryIO) -> int:
    """The size in bytes, or 0 if it is not known, as for pipes."""
    try:
        return os.fstat(file.fileno()).st_size
    except (OSError, ValueError):
        return 0
