"""Single values: which of them are null."""

from __future__ import annotations

import numpy as np


def is_null(value: object) -> bool:
    """Whether a value is None, NaN, or pandas' NA or NaT."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or _is_nan(value)


def _is_nan(value: object) -> bool:
    return isinstance(value, (float, np.floating)) and bool(value != value)
