"""CSV text cut into blocks: the blocks hold the rows that Arrow finds in the whole text."""

from __future__ import annotations

import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qwyc.errors import RowsError
from qwyc.rows.files import csv_blocks
from qwyc.rows.files.csv_blocks import first_row_end, last_row_end, read_fully, row_blocks
from qwyc.rows.files.csv_dialect import CsvDialect

NAMES = ["a", "b"]


def split_rows(text, delimiter):
    """The rows of a text with their line breaks, one character after the other."""
    rows, start, at_value, quoted = [], 0, True, False
    i = 0
    while i < len(text):
        c = text[i : i + 1]
        if quoted and text[i : i + 2] == b'""':
            i += 1
        elif quoted:
            quoted = c != b'"'
        elif c == b'"' and at_value:
            quoted, at_value = True, False
        elif c in b"\r\n":
            rows.append(text[start : i + 1])
            start, at_value = i + 1, True
        else:
            at_value = c == delimiter
        i += 1
    return [*rows, text[start:]]  # the last has no line break, and may be empty


def parsed(text, delimiter):
    """The rows of two values that Arrow finds, and how many others there are."""
    others = []

    def skip(row):
        others.append(row)
        return "skip"

    dialect = CsvDialect(delimiter, ("",))
    rows = dialect.read(text, names=NAMES, invalid_row_handler=skip, types=None, use_threads=False)
    return rows.to_pylist(), len(others)


texts = st.text('ab1",;"\n"\n\r', max_size=60).map(str.encode)
delimiters = st.sampled_from([",", ";"])


@settings(max_examples=500, deadline=None)
@given(text=texts, delimiter=delimiters, size=st.integers(1, 30), head=st.integers(0, 40))
@example(text=b'1,5" pipe\n2,"a\nb"\n3,c\n', delimiter=",", size=4, head=0)
@example(text=b'1,"a""\n"\r\n2,"b"x"\n3,c', delimiter=",", size=5, head=9)
def test_blocks_hold_whole_rows(text, delimiter, size, head):
    rows = split_rows(text, delimiter.encode())
    ends = {sum(map(len, rows[: i + 1])) for i in range(len(rows))}
    blocks, done, is_too_long = [], 0, False
    try:
        for block in row_blocks(text[:head], io.BytesIO(text[head:]), delimiter, size):
            blocks.append(bytes(block))
            done += len(block)
            assert done in ends
    except RowsError:
        is_too_long = True
    if is_too_long:
        assert max(len(row) for row in split_rows(text[done:], delimiter.encode())) > size
        return
    assert b"".join(blocks) == text
    if not text:
        return
    expected = parsed(text, delimiter)
    found = [parsed(block, delimiter) for block in blocks]
    assert sum(others for _, others in found) == expected[1]
    assert [str(v) for part, _ in found for row in part for v in row.values()] == [
        str(v) for row in expected[0] for v in row.values()
    ]


@settings(max_examples=500, deadline=None)
@given(text=texts, delimiter=delimiters)
def test_the_first_and_the_last_row(text, delimiter):
    *whole, _ = split_rows(text, delimiter.encode())
    assert last_row_end(text, delimiter) == sum(map(len, whole))
    lengths = [len(row) for row in whole]
    first = next((i for i, row in enumerate(whole) if row.strip(b"\r\n")), None)
    assert first_row_end(text, delimiter) == (0 if first is None else sum(lengths[: first + 1]))


@settings(max_examples=500, deadline=None)
@given(text=texts, delimiter=delimiters)
def test_quotes_at_once_are_quotes_one_by_one(text, delimiter):
    """Where a value holds two quotes for one, the fast way has several ranges, which touch."""
    inside = []
    for ranges in (csv_blocks._quoted_ranges, csv_blocks._quoted_ranges_one_by_one):
        pairs = zip(*ranges(text, delimiter), strict=True)
        inside.append({i for first, last in pairs for i in range(first, last + 1)})
    assert inside[0] == inside[1]


class Pipe:
    """A stream that gives a few bytes at a time."""

    def __init__(self, content):
        self.file = io.BytesIO(content)

    def read(self, size):
        return self.file.read(min(size, 3))


def test_a_pipe_is_read_until_there_is_enough():
    pipe = Pipe(b"0123456789")
    assert read_fully(pipe, 7) == b"0123456"
    assert read_fully(pipe, 7) == b"789"
    assert read_fully(pipe, 7) == b""
    assert read_fully(pipe, 0) == b""


def test_a_byte_order_mark_belongs_to_the_value_that_it_starts():
    mark = csv_blocks.BYTE_ORDER_MARK
    rows, _ = parsed(mark + b"x,y\n", ",")
    assert rows == [{"a": "\ufeffx", "b": "y"}]
    with pytest.raises(UnicodeDecodeError):
        CsvDialect(",", ()).read(b"\xe9,b\n").schema.names  # noqa: B018
