"""The categories of a feature -> the codes of their texts, for native code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qwyc import _native
from qwyc.rows import categories


def _codes_by_text(known: Sequence[Any], unseen: str) -> dict[str, float]:
    texts = {value: float(code) for code, value in enumerate(known) if isinstance(value, str)}
    if unseen == "first":
        texts.setdefault("", np.nan)  # YDF: "" is missing
    return texts


def text_codes(known: Sequence[Any], unseen: str, none_is_value: bool) -> _native.TextCodes | None:
    """The codes of categories that may be text; None if none is, or if one is not valid text."""
    if categories.type_of_categories(known) == categories.NUMBERS:
        return None  # text is refused when the column is converted
    texts = _codes_by_text(known, unseen)
    null = float(list(known).index(None)) if none_is_value and None in known else np.nan
    other = categories.code_of_unseen(unseen)
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return None  # a category that is not valid text
    return _native.TextCodes(list(texts), list(texts.values()), other, null)
