"""CSV text cut into blocks of whole rows.

A row ends at a line break outside quotes, as in Arrow's parser: a quote opens a quoted value only at the
start of the value; inside, two quotes stand for one; line breaks are LF, CR or both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import RowsError

QUOTE = b'"'
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
Positions = npt.NDArray[np.intp]


def row_blocks(head: bytes, stream: Any, delimiter: str, size: int) -> Iterator[memoryview]:
    """Blocks of whole rows, of about `size` bytes: first those of `head`, which starts with a row, then
    those of `stream`. The last row may be without a line break."""
    text = head
    while True:
        end = last_row_end(text, delimiter)
        if end:
            yield memoryview(text)[:end]
            text = text[end:]
        if len(text) > size:
            raise RowsError(
                "{place} has more than {size} bytes; close its quotes if one is open",
                row=0,
                size=f"{size:,}",
            )
        more = read_fully(stream, size)
        if not more:
            break
        text += more
    if text:
        yield memoryview(text)


def read_fully(stream: Any, size: int) -> bytes:
    """`size` bytes of a stream, or all that is left; one read from a pipe may return less."""
    parts: list[bytes] = []
    while size and (part := stream.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def first_row_end(text: bytes, delimiter: str) -> int:
    """The position after the first row that is not empty; 0 if it has no end. `text` starts with a row."""
    opening, closing = _quoted_ranges(text, delimiter)
    at = len(text) - len(text.lstrip(b"\r\n"))
    while True:
        breaks = [i for i in (text.find(b"\n", at), text.find(b"\r", at)) if i >= 0]
        if not breaks:
            return 0
        at = min(breaks)
        k = int(np.searchsorted(opening, at)) - 1  # the last quoted range that starts before
        if k < 0 or at > closing[k]:
            return at + 1
        at = int(closing[k])


def last_row_end(text: bytes, delimiter: str) -> int:
    """The position after the last row that has an end; 0 if none has. `text` starts with a row."""
    opening, closing = _quoted_ranges(text, delimiter)
    at, has_cr = len(text), b"\r" in text
    while True:
        at = max(text.rfind(b"\n", 0, at), text.rfind(b"\r", 0, at) if has_cr else -1)
        if at < 0:
            return 0
        k = int(np.searchsorted(opening, at)) - 1
        if k < 0 or at > closing[k]:
            return at + 1
        at = int(opening[k])


def _quoted_ranges(text: bytes, delimiter: str) -> tuple[Positions, Positions]:
    """Positions of the quotes that open and that close quoted values, (n,) each. A value that holds two
    quotes for one is several ranges. A range that is not closed ends at the end of the text."""
    if QUOTE not in text:
        return np.empty(0, np.intp), np.empty(0, np.intp)
    codes = np.frombuffer(text, np.uint8)
    quotes = np.flatnonzero(codes == QUOTE[0])
    opening, closing = quotes[0::2], quotes[1::2]
    if len(closing) < len(opening):
        closing = np.append(closing, len(text))
    # Quotes open and close in turn if each that opens is at the start of a value, or is the second of two.
    starts_value = np.zeros(256, bool)  # the byte before
    starts_value[list(f"{delimiter}\r\n".encode())] = True
    in_turn = starts_value[codes[opening - 1]]
    in_turn[0] |= opening[0] == 0
    in_turn[1:] |= opening[1:] == closing[:-1] + 1
    if in_turn.all():
        return opening, closing
    return _quoted_ranges_one_by_one(text, delimiter)


def _quoted_ranges_one_by_one(text: bytes, delimiter: str) -> tuple[Positions, Positions]:
    """The same for text that has quotes inside values without quotes, such as 5" in the row 1,5",x."""
    opening, closing = [], []
    before_value = f"{delimiter}\r\n".encode()
    at = text.find(QUOTE)
    while at >= 0:
        end = at
        if at == 0 or text[at - 1] in before_value:
            end = text.find(QUOTE, at + 1)
            while end >= 0 and text[end + 1 : end + 2] == QUOTE:  # two quotes for one
                end = text.find(QUOTE, end + 2)
            opening.append(at)
            closing.append(end if end >= 0 else len(text))
            if end < 0:
                break
        at = text.find(QUOTE, end + 1)
    return np.array(opening, np.intp), np.array(closing, np.intp)
