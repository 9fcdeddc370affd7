"""Single values: which of them are null, and how messages show them."""

from __future__ import annotations

import numpy as np

_LONGEST = 60  # characters of a value in a message


def is_null(value: object) -> bool:
    """Whether a value is None, NaN, or pandas' NA or NaT."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or _is_nan(value)


def _is_nan(value: object) -> bool:
    return isinstance(value, (float, np.floating)) and bool(value != value)


def quoted(value: object) -> str:
    """A value for a message, not too long."""
    if isinstance(value, (str, bytes)) and len(value) > _LONGEST:
        return f"{value[:_LONGEST]!r}..."
    try:
        return shortened(repr(value))
    except ValueError:  # Python does not write integers of thousands of digits
        return f"a number ({type(value).__name__}) of too many digits to show"


def shortened(text: str) -> str:
    """A text for a message, not too long."""
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
