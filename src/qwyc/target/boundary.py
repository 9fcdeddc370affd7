"""Where a library's decision turns positive, to the last bit of the score."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Float = type[np.float32] | type[np.float64]


def smallest_positive(is_positive: Callable[[float], bool], dtype: Float) -> float:
    """The smallest finite float of `dtype` that `is_positive`, which must never turn back to False.

    Floats of one sign are ordered like their bit patterns, so this halves integers, not numbers.
    """
    bits = np.dtype(dtype).itemsize * 8
    integer: npt.DTypeLike = f"i{bits // 8}"

    def number(rank: int) -> float:  # ranks are the floats in order: 0 is 0.0, -1 is -0.0, ...
        pattern = rank if rank >= 0 else -rank - 1 - (1 << (bits - 1))
        return float(np.array(pattern, dtype=integer).view(dtype))

    largest = int(np.array(np.finfo(dtype).max, dtype=dtype).view(integer))
    low, high = -largest - 1, largest  # number(low) is negative, number(high) positive
    if is_positive(number(low)) or not is_positive(number(high)):
        raise ValueError("the decision is the same for every score")
    while high - low > 1:
        middle = (low + high) // 2
        if is_positive(number(middle)):
            high = middle
        else:
            low = middle
    return number(high)


def smallest_sum_above_zero(values: npt.NDArray[np.float64], base: float) -> float:
    """The smallest positive number that a float64 sum of these values can be.

    All of them are multiples of the smallest last bit among them, hence every rounded sum is, so
    that this decides as `sum > 0` does. It is no subnormal unless a value is close to one: those
    count as 0 in a process that flushes them.
    """
    parts = np.append(values, base)
    parts = np.abs(parts[parts != 0])
    return float(np.spacing(parts).min()) if parts.size else float(np.finfo(np.float64).tiny)
