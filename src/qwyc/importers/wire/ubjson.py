"""Universal Binary JSON, as much as model files hold. Arrays of numbers become NumPy arrays."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from qwyc.errors import ModelError
from qwyc.limits import MAX_NESTING

_NUMBERS: dict[
    bytes, tuple[struct.Struct, np.dtype[Any]]
] = {  # marker -> (struct format, NumPy dtype); all big-endian
    b"i": (struct.Struct(">b"), np.dtype(">i1")),
    b"U": (struct.Struct(">B"), np.dtype(">u1")),
    b"I": (struct.Struct(">h"), np.dtype(">i2")),
    b"l": (struct.Struct(">i"), np.dtype(">i4")),
    b"L": (struct.Struct(">q"), np.dtype(">i8")),
    b"d": (struct.Struct(">f"), np.dtype(">f4")),
    b"D": (struct.Struct(">d"), np.dtype(">f8")),
}
_CONSTANTS = {b"Z": None, b"T": True, b"F": False}


def decode(data: bytes) -> Any:
    """The document in `data`; ModelError where it is cut off or is not UBJSON."""
    reader = _Reader(data)
    document = reader.value(reader.take(1), depth=0)
    if reader.at != len(data):
        raise ModelError(f"{len(data) - reader.at} bytes follow the end of the document")
    return document


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        end = self.at + size
        if size < 0 or end > len(self.data):
            raise ModelError(
                f"the file is cut off or damaged: byte {self.at} announces {size} bytes, "
                f"{len(self.data) - self.at} are left"
            )
        piece = self.data[self.at : end]
        self.at = end
        return piece

    def peek(self) -> bytes:
        return self.data[self.at : self.at + 1]

    def length(self) -> int:
        """A length: an integer with its own marker. Everything counted takes a byte at least."""
        marker = self.take(1)
        if marker not in _NUMBERS or marker in b"dD":
            raise ModelError(f"byte {self.at - 1} should start a length, but is {marker!r}")
        size = int(self.number(marker))
        if not 0 <= size <= len(self.data) - self.at:
            raise ModelError(
                f"the file is cut off or damaged: byte {self.at} announces {size} items, "
                f"{len(self.data) - self.at} bytes are left"
            )
        return size

    def number(self, marker: bytes) -> int | float:
        layout = _NUMBERS[marker][0]
        value: int | float = layout.unpack(self.take(layout.size))[0]
        return value

    def text(self) -> str:
        return self.take(self.length()).decode("utf-8", "surrogateescape")

    def value(self, marker: bytes, depth: int) -> Any:
        """The value that `marker` starts."""
        if depth > MAX_NESTING:
            raise ModelError(f"the document is nested more than {MAX_NESTING} levels deep")
        if marker in _NUMBERS:
            return self.number(marker)
        if marker == b"S":
            return self.text()
        if marker == b"[":
            return self.array(depth)
        if marker == b"{":
            return self.object(depth)
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        raise ModelError(f"byte {self.at - 1} should start a value, but is {marker!r}")

    def array(self, depth: int) -> Any:
        if self.peek() == b"$":  # numbers of one type, one after the other
            self.at += 1
            kind = self.take(1)
            if kind not in _NUMBERS or self.take(1) != b"#":
                raise ModelError(f"byte {self.at - 1}: not an array of numbers")
            dtype = _NUMBERS[kind][1]
            size = self.length()
            numbers = np.frombuffer(self.take(size * dtype.itemsize), dtype=dtype)
            return numbers.astype(dtype.newbyteorder("="))
        if self.peek() == b"#":
            self.at += 1
            return [self.value(self.take(1), depth + 1) for _ in range(self.length())]
        items = []
        while (marker := self.take(1)) != b"]":
            items.append(self.value(marker, depth + 1))
        return items

    def object(self, depth: int) -> dict[str, Any]:
        items = {}
        while self.peek() != b"}":
            key = self.text()
            items[key] = self.value(self.take(1), depth + 1)
        self.at += 1
        return items
