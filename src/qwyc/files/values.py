"""Plain values out of a file. Files are hostile, so every value is checked for its type and range before
it is used."""

from __future__ import annotations

from typing import Any

import numpy as np

from qwyc.errors import ArtifactError


def number(value: Any, *, finite: bool = True) -> float:
    """A number, finite unless said otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArtifactError(f"expected a number, got {value!r}")
    if finite and not np.isfinite(value):
        raise ArtifactError(f"expected a finite number, got {value!r}")
    return float(value)


def count(value: Any) -> int:
    """A whole number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
        raise ArtifactError(f"expected a count, got {value!r}"[:100])
    return value


def whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArtifactError(f"expected a whole number, got {value!r}")
    return value


def one_of(value: Any, *known: str) -> str:
    """One of the words that are known."""
    if value not in known:
        raise ArtifactError(f"expected one of {', '.join(known)}; got {value!r}")
    return text(value)


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise ArtifactError(f"expected text, got {value!r}")
    return value


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ArtifactError(f"expected true or false, got {value!r}")
    return value
