"""Polars' Categorical columns as positions of their categories.

Polars' export of such a column to Arrow looks at every row. It gives the positions and the categories
themselves without that, which is faster for many rows."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from qwyc import _native

_MANY_ROWS = 4096  # fewer are exported in less time than the positions are asked for
_MOST_CATEGORIES = 10_000  # of a list, which is looked at in each call
_MOST_LISTS = 64


@dataclass(frozen=True, eq=False)
class _Codes:
    """A list of categories as it was when it was looked at, and what its positions stand for. A call keeps
    the one that it found, whatever other threads find meanwhile."""

    values: Any  # polars.Series
    of_feature: dict[int, tuple[_native.TextCodes, _native.PositionCodes]] = field(
        default_factory=dict
    )

    def can_be_read(self) -> bool:
        # A null is a category that is being added.
        return len(self.values) <= _MOST_CATEGORIES and not self.values.null_count()

    def codes_of(self, feature: int, texts: _native.TextCodes) -> _native.PositionCodes:
        kept = self.of_feature.get(feature)
        if kept is None or kept[0] is not texts:
            stream = self.values.rechunk().__arrow_c_stream__()
            kept = self.of_feature[feature] = (texts, _native.PositionCodes(texts, stream))
        return kept[1]


class PolarsCategories:
    """The codes of lists of categories, kept for the next frame as long as a list is the same. While a
    frame lives, so do its lists, to which categories are only appended."""

    def __init__(self) -> None:
        # Replaced as a whole, as calls may run side by side.
        self._lists: list[tuple[Any, _Codes]] = []

    def with_positions(
        self, frame: Any, features: Sequence[int], texts: Sequence[_native.TextCodes | None]
    ) -> tuple[Any, list[_native.PositionCodes | None]]:
        """A frame whose columns are `features`, with positions in place of categories, and the codes of
        these. The frame itself and no codes if there are no such columns, or few rows, or if a column
        is to be read in another way."""
        polars = sys.modules["polars"]
        if len(frame) < _MANY_ROWS or not hasattr(getattr(polars, "Categories", None), "to_series"):
            return frame, []
        codes: list[_native.PositionCodes | None] = [None] * len(features)
        updated: list[tuple[Any, _Codes]] = []  # mostly, all columns have the same
        for k, dtype in enumerate(frame.dtypes):
            if type(dtype) is not polars.Categorical:
                continue
            found, known = self._find(dtype.categories, updated), texts[k]
            if found is None or known is None:
                return frame, []
            codes[k] = found.codes_of(features[k], known)
        if not updated:
            return frame, []
        return frame.with_columns(polars.col(polars.Categorical).to_physical()), codes

    def _find(self, categories: Any, updated: list[tuple[Any, _Codes]]) -> _Codes | None:
        """The codes of some categories, looked at in this call; None if these cannot be read."""
        for one, codes in updated:
            if one == categories:
                return codes
        lists = self._lists
        values = categories.to_series()
        found = next((codes for one, codes in lists if one == categories), None)
        # Where no column was left, Polars has forgotten the list, and may have made another of that name.
        if found is None or not values.equals(found.values):
            found = _Codes(values)
            others = [kept for kept in lists if kept[0] != categories]
            self._lists = [*others[-(_MOST_LISTS - 1) :], (categories, found)]
        if not found.can_be_read():
            return None
        updated.append((categories, found))
        return found
