"""Program: what a family of base models becomes in C, before it is put into files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.files.export_c.text import array


@dataclass
class Tables:
    """Constant arrays as they are collected, and the bytes that they take."""

    parts: list[str] = field(default_factory=list)
    n_bytes: int = 0

    def add(self, name: str, values: npt.NDArray[Any], note: str) -> None:
        """An array of the type of `values`; an empty one is left out."""
        if values.size:
            self.parts.append(array(name, values.ravel(), note))
            self.n_bytes += values.nbytes

    def add_text(self, text: str, n_bytes: int) -> None:
        """An array that is written already."""
        self.parts.append(text)
        self.n_bytes += n_bytes

    @property
    def text(self) -> str:
        """All of them."""
        return "\n".join(self.parts)


@dataclass(frozen=True)
class Program:
    """Tables, and functions of which the last is `decide`. It takes a row that was checked, and pointers
    that may be null: `static int decide(const real *row, int32_t *steps, double *score)`; without `score`
    in the small form."""

    tables: str
    code: str
    n_bytes: int  # of the tables
    stack: int  # bytes that `decide` keeps, about
    uses_math: bool  # whether functions of libm are called
    how: str  # how base models are stored, for the header
    has_score: bool = True


def joined(parts: Sequence[str]) -> str:
    """Pieces of code with an empty line between them."""
    return "\n".join(part.strip("\n") + "\n" for part in parts if part)


def quit_end(quits: npt.NDArray[np.bool_]) -> int:
    """The number of steps after which a row may quit, (T,): the last step has no rule."""
    before = np.flatnonzero(quits[:-1])
    return int(before[-1]) + 1 if len(before) else 0
