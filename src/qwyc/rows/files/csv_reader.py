"""CSV batch by batch, plain or compressed.

Which columns are read, and as what, is settled once, from the model and the file's head: numbers are
float64 and categories what the model knows them as, in every batch alike."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from qwyc.errors import InputError
from qwyc.rows import categories
from qwyc.rows.files.batch import Columns, Match, Read

if TYPE_CHECKING:
    from qwyc.rows.schema import Schema

HEAD = 1 << 20  # bytes that the columns' types are taken from
BLOCK = 1 << 23  # bytes in a batch
DELIMITERS = (",", ";", "\t", "|")
COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}  # by how they start
MISSING = ("None", "<NA>")  # besides those that Arrow knows, as pandas has it


class _Replayed(io.RawIOBase):
    """A stream whose head has been looked at already; counts what is read."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self._head, self._rest, self.done = head, rest, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        part, self._head = self._head, b""
        if size >= 0:
            part, self._head = part[:size], part[size:]
        part = part or self._rest.read(size)
        self.done += len(part)
        return part


def read_csv(
    file: BinaryIO, name: str, inputs: Schema, match: Match, *, numbered: bool = False
) -> Read:
    """The rows of a stream. `name` is for messages; `match` finds the columns among the header's.
    `numbered`: more slowly, but an error knows the row. Not for pipes: Arrow then waits for them."""
    import pyarrow
    from pyarrow import csv

    start = file.read(8)
    raw = _Replayed(start, file)  # counts bytes as they are in the file
    stream: Any = raw
    for magic, codec in COMPRESSED.items():
        if start.startswith(magic):
            stream = pyarrow.CompressedInputStream(raw, codec)
    head = stream.read(HEAD)
    while 0 < len(head) < HEAD and (more := stream.read(HEAD - len(head))):  # pipes give parts
        head += more
    _check_text(head, name)
    cut = len(head) == HEAD
    if not cut and not head.endswith((b"\n", b"\r")):
        head += b"\n"  # a header by itself is a table without rows
    shape = {"delimiter": _delimiter(head), "newlines_in_values": True}
    converting = {"strings_can_be_null": True, "null_values": _missing(inputs)}
    try:
        schema = _schema(head, cut, shape, converting)
    except pyarrow.ArrowInvalid as error:
        raise _wrong_row(error, name, (), 0) from None
    columns = match(schema.names)
    replayed, total, done = _Replayed(head, stream), _size(file), 0
    try:
        reader = csv.open_csv(
            replayed,
            read_options=csv.ReadOptions(block_size=BLOCK, use_threads=not numbered),
            parse_options=csv.ParseOptions(**shape),
            convert_options=csv.ConvertOptions(
                include_columns=columns.names,
                column_types=_types(schema, columns, inputs),
                **converting,
            ),
        )
        for rows in reader:
            yield columns.of(rows), min(raw.done, total), total
            done += rows.num_rows
    except pyarrow.ArrowInvalid as error:
        raise _wrong_row(error, name, schema.names, done) from None
    if not done:
        yield columns.of(pyarrow.RecordBatch.from_pylist([], schema=reader.schema)), total, total


class WrongRowError(InputError):
    """A row that Arrow could not take; `known` says whether it is the very one."""

    known = True


def _wrong_row(error: Exception, name: str, columns: Sequence[str], rows: int) -> Exception:
    """What Arrow says about a row, in our words. It counts from 1, and the header too; where it has
    several threads it does not say which, but only that so many rows were fine."""
    text = str(error)
    numbered = re.search(r"Row #(\d+):", text)
    row = f"row {int(numbered[1]) - 2:,}" if numbered else f"row {rows:,} or later"
    if found := re.search(r"CSV column #(\d+): .*invalid value '(.*)'", text, re.DOTALL):
        column = columns[int(found[1])]
        said = f"{row} of column {column!r} holds {found[2]!r}, and the model takes numbers there"
    elif found := re.search(r"Expected (\d+) columns, got (\d+)", text):
        said = f"{row} has {found[2]} values, and the header {found[1]}"
    else:
        return error
    wrong = WrongRowError(f"{name}: {said}")
    wrong.known = numbered is not None
    return wrong


def _check_text(head: bytes, name: str) -> None:
    if not head:
        raise InputError(f"cannot read {name} as csv: it is empty; a CSV has a header at least")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"cannot read {name} as csv: it is UTF-16; save it as UTF-8")


def _delimiter(head: bytes) -> str:
    """A comma, unless the header has none and one of the others."""
    header = head.lstrip(b"\r\n").splitlines()[0].decode(errors="replace") if head.strip() else ""
    return next((mark for mark in DELIMITERS if mark in header), ",")


def _missing(inputs: Schema) -> list[str]:
    """What stands for a missing value: not what the model knows as a category."""
    from pyarrow import csv

    known = {value for values in inputs.categories.values() for value in values}
    named = categories.hash_of if inputs.hashed else str
    spellings = [*csv.ConvertOptions().null_values, *MISSING]
    return [text for text in spellings if text == "" or named(text) not in known]


def _schema(head: bytes, cut: bool, shape: dict[str, Any], converting: dict[str, Any]) -> Any:
    """Names and types as the first rows show them."""
    from pyarrow import csv

    parsing = dict(shape)
    if cut and b"\n" in head:
        head = head[: head.rindex(b"\n") + 1]
        if _is_utf8(head):  # otherwise what calls the handler fails
            parsing["invalid_row_handler"] = lambda row: "skip"  # a row cut in two
    return csv.read_csv(
        io.BytesIO(head),
        read_options=csv.ReadOptions(use_threads=False),
        parse_options=csv.ParseOptions(**parsing),
        convert_options=csv.ConvertOptions(**converting),
    ).schema


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _types(schema: Any, columns: Columns, inputs: Schema) -> dict[str, Any]:
    """What each column is read as. A column that holds something else is an error later on."""
    import pyarrow

    types: dict[str, Any] = {name: pyarrow.string() for name in columns.kept}
    for j, name in enumerate(columns.features):
        found = schema.field(name).type
        known = inputs.categories.get(j)
        if known is not None and (inputs.hashed or any(isinstance(v, str) for v in known)):
            found = pyarrow.string()
        elif known is not None and any(abs(v) > 2**53 for v in known if isinstance(v, int)):
            found = pyarrow.int64()
        elif not pyarrow.types.is_boolean(found):
            found = pyarrow.float64()
        types[name] = found
    return types


def _size(file: BinaryIO) -> int:
    """Bytes; 0 where nobody knows, as for pipes."""
    try:
        return os.fstat(file.fileno()).st_size
    except (OSError, ValueError):
        return 0
