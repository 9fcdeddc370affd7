"""Which rows are checked: each with the same probability, whatever it holds."""

from __future__ import annotations

import threading
from collections import deque

import numpy as np
import numpy.typing as npt

from qwyc import _native

DRAWN_AT_ONCE = 256


class Sampler:
    """Counts rows and picks those to check. The gaps between them are geometric, so each row is picked
    with probability `rate`, independently of all others. The positions depend on the seed and on nothing
    else: one call with many rows picks the same rows as many calls with one row each."""

    def __init__(self, rate: float, seed: list[int]) -> None:
        self.counter = _native.RowCounter()
        self._rate = rate
        self._random = np.random.default_rng(seed)
        self._lock = threading.Lock()
        self._due: deque[int] = deque()  # positions that were drawn and not claimed, ascending
        self._last = -1  # the last position that was drawn
        self._draw(0)

    def claim(self, begin: int, n: int) -> npt.NDArray[np.intp]:
        """Those of the n rows from position `begin` that are checked, counted from 0, (k,). The caller has
        taken these rows from the counter."""
        end = begin + n
        chosen: list[int] = []
        earlier: list[int] = []  # of rows that another thread took and has not claimed yet
        with self._lock:
            self._draw(end)
            while self._due[0] < end:
                position = self._due.popleft()
                (chosen if position >= begin else earlier).append(position)
            self._due.extendleft(reversed(earlier))
            self.counter.due = self._due[0]
        return np.array(chosen, dtype=np.intp) - begin

    def _draw(self, end: int) -> None:
        """Draw positions until one is at or after `end`."""
        while self._last < end:
            gaps = self._random.geometric(self._rate, size=DRAWN_AT_ONCE)
            positions = self._last + np.cumsum(gaps)
            self._due.extend(positions.tolist())
            self._last = int(positions[-1])
        self.counter.due = self._due[0]
