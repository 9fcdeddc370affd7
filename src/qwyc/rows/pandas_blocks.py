"""The columns of a pandas frame as arrays.

pandas keeps columns of one type together in blocks. Its public functions make a Series of each column,
which is slow for frames of a few rows, so the blocks themselves are read if they are as expected.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qwyc import _native


def column_arrays(frame: Any) -> list[Any]:
    """The array of each column, (N,): of NumPy, or of a type of pandas. Nothing is copied."""
    arrays = _from_blocks(frame)
    if arrays is not None:
        return arrays
    columns = (frame.iloc[:, position] for position in range(frame.shape[1]))
    return [_array_of(column) for column in columns]


def only_array(frame: Any) -> Any:
    """The values of a frame whose columns lie in memory as one NumPy array, (N, width); otherwise None.
    Nothing is copied."""
    n, width = frame.shape
    try:
        (block,) = frame._mgr.blocks
        values, place = block.values, block.mgr_locs.indexer
    except (AttributeError, ValueError):
        return None
    if type(values) is not np.ndarray or values.shape != (width, n):
        return None
    return values.T if isinstance(place, slice) and place == slice(0, width, 1) else None


def add_blocks(
    table: _native.Table, frame: Any, taken: _native.TakenColumns
) -> list[tuple[int, Any]] | None:
    """Adds the columns of a pandas frame that need no conversion; returns the position and the array of
    every other column that is needed. None if its blocks are not what they are known to be."""
    blocks = getattr(getattr(frame, "_mgr", None), "blocks", None)
    if blocks is None:
        return None
    try:
        return table.add_blocks(blocks, taken)
    except (AttributeError, IndexError, TypeError, ValueError):
        return None


def _array_of(column: Any) -> Any:
    return column.to_numpy() if isinstance(column.dtype, np.dtype) else column.array


def _from_blocks(frame: Any) -> list[Any] | None:
    """The same from pandas' own blocks, or None if they are not what they are known to be."""
    n, width = frame.shape
    arrays: list[Any] = [None] * width
    try:
        for block in frame._mgr.blocks:
            values = block.values
            is_array = type(values) is np.ndarray
            if is_array:
                known = values.ndim == 2 and values.shape[1] == n
                known = known and values.dtype.kind in "biufcOSUV"
            else:
                known = hasattr(values, "dtype") and len(values) == n
            if not known:
                return None
            for i, position in enumerate(block.mgr_locs.as_array.tolist()):
                arrays[position] = values[i] if is_array else values
    except (AttributeError, IndexError, TypeError):
        return None
    return None if any(array is None for array in arrays) else arrays
