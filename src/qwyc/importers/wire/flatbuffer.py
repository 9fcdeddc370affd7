"""FlatBuffers, as far as reading tables takes: https://flatbuffers.dev/internals

Every offset comes from the file, so every one is checked; ModelError where it leads nowhere.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError


@dataclass(frozen=True)
class Table:
    """One table of a buffer. Fields go by their number in the schema; an absent one has its default."""

    buffer: bytes
    at: int
    budget: list[int]  # one number, shared: bytes that may still be read, as lists may overlap

    @classmethod
    def root(cls, buffer: bytes) -> Table:
        """The table that a buffer is about."""
        return cls(buffer, _unpack(buffer, "I", 0), [8 * len(buffer)])

    def integer(self, field: int, default: int, kind: str = "i") -> int:
        """A number of a `struct` kind: "i" int32, "b" int8, "?" bool."""
        place = self._place(field)
        return default if place is None else int(_unpack(self.buffer, kind, place))

    def real(self, field: int, default: float, kind: str = "d") -> float:
        """A float64 ("d") or float32 ("f")."""
        place = self._place(field)
        return default if place is None else float(_unpack(self.buffer, kind, place))

    def table(self, field: int) -> Table | None:
        """A table inside this one."""
        place = self._place(field)
        return None if place is None else Table(self.buffer, self._follow(place), self.budget)

    def text(self, field: int) -> str:
        """A string; "" where it is absent."""
        return bytes(self.array(field, np.uint8)).decode("utf-8", "surrogateescape")

    def array(self, field: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """A vector of numbers or structs, (n,); empty where it is absent."""
        place = self._place(field)
        kind = np.dtype(dtype).newbyteorder("<")
        if place is None:
            return np.empty(0, kind)
        begin, count = self._vector(place)
        self._spend(count * kind.itemsize, begin)
        return np.frombuffer(self.buffer, kind, count, begin)

    def tables(self, field: int) -> list[Table]:
        """A vector of tables; empty where it is absent."""
        return [Table(self.buffer, at, self.budget) for at in self._targets(field)]

    def _targets(self, field: int) -> list[int]:
        place = self._place(field)
        if place is None:
            return []
        begin, count = self._vector(place)
        self._spend(4 * count, begin)
        return [self._follow(begin + 4 * i) for i in range(count)]

    def _spend(self, size: int, begin: int) -> None:
        if size > len(self.buffer) - begin:
            raise ModelError("a list reaches past the end of the file")
        self.budget[0] -= size
        if self.budget[0] < 0:
            raise ModelError("lists overlap")

    def _place(self, field: int) -> int | None:
        """Where a field is, from the table's own list of places."""
        listed = self.at - _unpack(self.buffer, "i", self.at)
        if 4 + 2 * field >= _unpack(self.buffer, "H", listed):
            return None
        offset = _unpack(self.buffer, "H", listed + 4 + 2 * field)
        return self.at + offset if offset else None

    def _vector(self, place: int) -> tuple[int, int]:
        at = self._follow(place)
        return at + 4, _unpack(self.buffer, "I", at)

    def _follow(self, place: int) -> int:
        return place + int(_unpack(self.buffer, "I", place))


def _unpack(buffer: bytes, kind: str, at: int) -> int:
    if at < 0:
        raise ModelError("an offset leads out of the file")
    try:
        value: int = struct.unpack_from("<" + kind, buffer, at)[0]
    except struct.error:
        raise ModelError("an offset leads out of the file") from None
    return value
