"""Labels of groups, one per row, as numbers from 0 in the order in which groups appear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import InputError, OptionError
from qwyc.rows.values import is_null

Numbers = npt.NDArray[np.intp]


def group_numbers(groups: Any, n_rows: int) -> Numbers:
    """Each row's group as a number from 0, in the order in which groups appear."""
    if isinstance(groups, (str, bytes)):
        raise OptionError(f"groups must be {n_rows} values, one per row; got the text {groups!r}")
    if isinstance(groups, GroupLabels):
        return groups.numbers()
    if isinstance(groups, np.ndarray) and groups.dtype.kind in "iu" and groups.shape == (n_rows,):
        return _numbers_of_integers(groups)
    try:
        labels = list(
            groups.to_list()
            if hasattr(groups, "to_list")
            else groups
            if isinstance(groups, (list, tuple))
            else np.asarray(groups).tolist()
        )
        known: dict[Any, int] = {}
        numbers = [known.setdefault(label, len(known)) for label in labels]
    except (TypeError, ValueError) as error:
        raise OptionError(f"groups must be one plain label per row: {error}") from None
    if len(labels) != n_rows:
        raise OptionError(f"groups must be {n_rows} values, one per row; got {len(labels)}")
    for i, label in enumerate(labels):
        if is_null(label):
            raise _missing(i, label)
    return np.array(numbers, dtype=np.intp)


class GroupLabels:
    """Labels that come in parts, with the rows of a stream."""

    def __init__(self) -> None:
        self._known: dict[Any, int] = {}
        self._parts: list[npt.NDArray[np.int32]] = []
        self._rows = 0
        self._missing: int | None = None  # the first row without a label

    def add(self, positions: npt.NDArray[np.integer[Any]], distinct: Sequence[Any]) -> None:
        """The labels distinct[positions] of the next rows, (rows,). `distinct` are in the order in which
        they appear; a missing label is None."""
        numbers = [self._known.setdefault(label, len(self._known)) for label in distinct]
        if self._missing is None and None in distinct:
            absent = np.flatnonzero(positions == list(distinct).index(None))
            self._missing = self._rows + int(absent[0])
        self._parts.append(np.array(numbers, dtype=np.int32)[positions])
        self._rows += len(positions)

    def numbers(self) -> Numbers:
        """Each row's group, (rows,)."""
        if self._missing is not None:
            raise _missing(self._missing, None)
        return np.concatenate([np.zeros(0, np.intp), *self._parts])


def _missing(row: int, label: Any) -> InputError:
    return InputError(f"groups must be known for every row; row {row} has none: {label!r}")


def _numbers_of_integers(groups: npt.NDArray[Any]) -> Numbers:
    """The same for integers, (N,), without a loop over rows."""
    if len(groups) and groups.min() >= 0 and groups.max() < 2 * len(groups):
        first = np.full(int(groups.max()) + 1, len(groups), dtype=np.intp)  # row of each integer
        rows = np.arange(len(groups) - 1, -1, -1)
        first[groups[::-1]] = rows  # of several rows of an integer, the last one here counts
        appear = np.flatnonzero(np.bincount(first, minlength=len(groups))[: len(groups)])
        number = np.zeros(len(groups) + 1, dtype=np.intp)
        number[appear] = np.arange(len(appear))
        return np.asarray(number[first][groups], dtype=np.intp)
    _, first, number = np.unique(groups, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[number]
