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


@dataclass(eq=False)
class _List:
    """A list of categories as it was when codes were made of it."""

    categories: Any
    values: Any = None  # polars.Series
    codes: dict[int, tuple[_native.TextCodes, _native.PositionCodes]] = field(default_factory=dict)

    def update(self) -> bool:
        """Look at the list again. Returns whether its positions can be read."""
        values = self.categories.to_series()
        # Where no column was left, Polars has forgotten the list, and may have made another of that name.
        if self.values is None or not values.equals(self.values):
            self.values, self.codes = values, {}
        # A null is a category that is being added.
        return len(values) <= _MOST_CATEGORIES and not self.values.null_count()

    def codes_of(self, feature: int, texts: _native.TextCodes) -> _native.PositionCodes:
        kept = self.codes.get(feature)
        if kept is None or kept[0] is not texts:
            stream = self.values.rechunk().__arrow_c_stream__()
            kept = self.codes[feature] = (texts, _native.PositionCodes(texts, stream))
        return kept[1]


class PolarsCategories:
    """The codes of lists of categories, kept for the next frame as long as a list is the same. While a
    frame lives, so do its lists, to which categories are only appended."""

    def __init__(self) -> None:
        self._lists: list[_List] = []

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
        updated: list[_List] = []  # mostly, all columns have the same
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

    def _find(self, categories: Any, updated: list[_List]) -> _List | None:
        """The list of some categories, looked at in this call; None if it cannot be read."""
        for one in updated:
            if one.categories == categories:
                return one
        found = next((one for one in self._lists if one.categories == categories), None)
        if found is None:
            if len(self._lists) >= _MOST_LISTS:
                self._lists = []
            self._lists.append(found := _List(categories))
        if not found.update():
            return None
        updated.append(found)
        return found
