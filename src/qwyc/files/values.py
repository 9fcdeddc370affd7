"""Plain values out of a file. Files are hostile, so every value is checked for its type and range before
it is used."""

from __future__ import annotations

import math
from typing import Any

from qwyc.errors import ArtifactError
from qwyc.limits import MAX_ROWS_COUNTED, MAX_VALUE_SHOWN


def number(value: Any, *, finite: bool = True) -> float:
    """A number, finite unless said otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArtifactError(f"expected a number, got {shortened(value)}")
    try:
        as_float = float(value)
    except OverflowError:  # an integer beyond all floats
        as_float = math.inf
    if finite and not math.isfinite(as_float):
        raise ArtifactError(f"expected a finite number, got {shortened(value)}")
    return as_float


def count(value: Any) -> int:
    """A whole number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
        raise ArtifactError(f"expected a count, got {shortened(value)}")
    return value


def rows(value: Any) -> int:
    """A number of rows, so small that sums over classes and steps cannot overflow."""
    if count(value) > MAX_ROWS_COUNTED:
        raise ArtifactError(f"more than {MAX_ROWS_COUNTED:,} rows are counted: {shortened(value)}")
    return int(value)


def whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArtifactError(f"expected a whole number, got {shortened(value)}")
    return value


def one_of(value: Any, *known: str) -> str:
    """One of the words that are known."""
    if value not in known:
        raise ArtifactError(f"expected one of {', '.join(known)}; got {shortened(value)}")
    return text(value)


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise ArtifactError(f"expected text, got {shortened(value)}")
    return value


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ArtifactError(f"expected true or false, got {shortened(value)}")
    return value


def shortened(value: Any) -> str:
    """A value out of a file as a message shows it: not at any length."""
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        return "an integer too long to show"
    return text if len(text) <= MAX_VALUE_SHOWN else f"{text[: MAX_VALUE_SHOWN - 3]}..."
