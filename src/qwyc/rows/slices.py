"""Slices: columns by whose values rows are told apart, as callers give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qwyc.errors import OptionError
from qwyc.rows.frames import as_frame

Slices = Mapping[str, Any] | str | list[str] | tuple[str, ...]


def slice_columns(slices: Any, X: Any) -> dict[str, Any]:
    """Names and values, one per row. `slices` is such a mapping, or names columns of the table X."""
    if slices is None:
        return {}
    if isinstance(slices, Mapping):
        return dict(slices)
    names = [slices] if isinstance(slices, str) else slices
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise OptionError(
            "slices must name columns of X, such as ['region'], or be a mapping from names to values, one "
            f"per row, such as {{'region': region}}; got a {type(slices).__name__}"
        )
    frame = as_frame(X)
    if frame is None:
        raise OptionError(
            f"slices={slices!r} names columns, but X is a {type(X).__name__} without column names; pass a "
            "mapping from names to values, one per row"
        )
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise OptionError(f"slices: {missing[0]!r} is not a column of X, which has {frame.columns}")
    return {name: frame.get_column(name).to_numpy() for name in names}
