"""The columns of a pandas frame as arrays.

pandas keeps columns of one type together in blocks. Its public functions make a Series of each column,
which is slow for frames of a few rows, so the blocks themselves are read if they are as expected.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def column_arrays(frame: Any) -> list[Any]:
    """The array of each column, (N,): of NumPy, or of a type of pandas. Nothing is copied."""
    arrays = _from_blocks(frame)
    if arrays is not None:
        return arrays
    columns = (frame.iloc[:, position] for position in range(frame.shape[1]))
    return [_array_of(column) for column in columns]


def _array_of(column: Any) -> Any:
    return column.to_numpy() if isinstance(column.dtype, np.dtype) else column.array


def _from_blocks(frame: Any) -> list[Any] | None:
    """The same from pandas' own blocks, or None if they are not what they are known to be."""
    n, width = frame.shape
    arrays: list[Any] = [None] * width
    try:
        for block in frame._mgr.blocks:
            values = block.values
            for i, position in enumerate(block.mgr_locs.as_array.tolist()):
                arrays[position] = values[i] if type(values) is np.ndarray else values
    except AttributeError:
        return None
    for array in arrays:
        if type(array) is np.ndarray:
            if array.shape != (n,) or array.dtype.kind not in "biufcOSUV":
                return None
        elif not hasattr(array, "dtype") or len(array) != n:
            return None
    return arrays
