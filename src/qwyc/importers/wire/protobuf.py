"""Protocol buffers, as far as reading a message takes: https://protobuf.dev/programming-guides/encoding

A message is a run of numbered fields; whatever does not fit into its buffer is a ModelError.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class Message:
    """The fields of a message, by number; each in the order in which it was written."""

    def __init__(self, buffer: bytes) -> None:
        self.fields: dict[int, list[tuple[int, Any]]] = defaultdict(list)
        at = 0
        while at < len(buffer):
            key, at = _varint(buffer, at)
            number, kind = key >> 3, key & 7
            if kind == _VARINT:
                value, at = _varint(buffer, at)
                self.fields[number].append((kind, value))
                continue
            if kind == _BYTES:
                size, at = _varint(buffer, at)
            elif kind in (_FIXED64, _FIXED32):
                size = 8 if kind == _FIXED64 else 4
            else:
                raise ModelError(f"a field has the unknown wire type {kind}")
            if size > len(buffer) - at:
                raise ModelError("a field reaches past the end of the file")
            self.fields[number].append((kind, buffer[at : at + size]))
            at += size

    def messages(self, number: int) -> list[Message]:
        return [Message(value) for value in self.texts(number)]

    def texts(self, number: int) -> list[bytes]:
        """A repeated text, or bytes."""
        if any(kind != _BYTES for kind, _ in self.fields[number]):
            raise ModelError("a field that should be text is a number")
        return [value for _, value in self.fields[number]]

    def text(self, number: int) -> str:
        """A text; "" where it is absent."""
        found = self.texts(number)
        return found[-1].decode("utf-8", "replace") if found else ""

    def integers(self, number: int) -> npt.NDArray[np.int64]:
        """A repeated integer, packed or not."""
        found: list[int] = []
        for kind, value in self.fields[number]:
            if kind == _VARINT:
                found.append(value)
            elif kind == _BYTES:
                at = 0
                while at < len(value):
                    one, at = _varint(value, at)
                    found.append(one)
            else:
                raise ModelError("a field that should be an integer is not one")
        return np.array(found, dtype=np.uint64).astype(np.int64)

    def integer(self, number: int, default: int = 0) -> int:
        found = self.integers(number)
        return int(found[-1]) if len(found) else default

    def reals(self, number: int, dtype: str) -> npt.NDArray[Any]:
        """A repeated "<f4" or "<f8", packed or not."""
        parts = [value for kind, value in self.fields[number] if kind != _VARINT]
        size = np.dtype(dtype).itemsize
        if len(parts) != len(self.fields[number]) or any(len(part) % size for part in parts):
            raise ModelError("a field that should hold real numbers does not")
        return np.frombuffer(b"".join(parts), dtype)


def _varint(buffer: bytes, at: int) -> tuple[int, int]:
    """A number in groups of seven bits, and where it ends."""
    value = shift = 0
    while True:
        if at >= len(buffer) or shift > 63:
            raise ModelError("a number reaches past its end")
        value |= (buffer[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not buffer[at - 1] & 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
