"""The categories of a feature -> the codes of their texts, for native code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from qwyc import _native
from qwyc.rows import categories
from qwyc.rows.schema import Schema

Texts = list[_native.TextCodes | None]  # by feature; None: numbers, or categories to be converted

_MOST_TEXTS = 10_000  # of one feature, whose codes are kept


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


class ArrowFeatures(NamedTuple):
    """Features whose columns native code reads from Arrow, and the codes of each."""

    features: list[int]
    texts: Texts
    columns: _native.ArrowColumns  # both


class KnownTexts:
    """The codes of the texts of a model's categories. Where a model knows categories by hashes, these are
    the texts that were seen."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._hashed: dict[int, dict[str, float]] = {}  # by feature
        self._codes: dict[bool, Texts] = {}
        self._arrow: dict[bool, ArrowFeatures] = {}

    def codes(self, none_is_value: bool) -> Texts:
        """The codes of each feature whose categories may be text. Another list once texts are learned."""
        texts = self._codes.get(none_is_value)
        if texts is None:
            schema = self._schema
            texts = self._codes[none_is_value] = [
                None
                if j not in schema.categories
                else self._hashed_codes(j)
                if schema.hashed
                else text_codes(schema.categories[j], schema.unseen, none_is_value)
                for j in range(schema.n_features)
            ]
        return texts

    def arrow_features(self, none_is_value: bool) -> ArrowFeatures:
        """The features whose columns native code may read, and the codes of each."""
        kept = self._arrow.get(none_is_value)
        if kept is None:
            texts = self.codes(none_is_value)
            features = [j for j in range(len(texts)) if not self.needs_values(j, texts)]
            codes = [texts[j] for j in features]
            columns = _native.ArrowColumns(features, codes)
            kept = self._arrow[none_is_value] = ArrowFeatures(features, codes, columns)
        return kept

    def needs_values(self, j: int, texts: Texts) -> bool:
        """Whether a feature has categories that are looked up by Python values."""
        return texts[j] is None and j in self._schema.categories

    def takes_objects(self, j: int, texts: Texts) -> bool:
        """Whether objects are read as the text of categories."""
        if texts[j] is None:
            return False
        return self._schema.hashed or None not in self._schema.categories[j]

    def learned(self) -> list[int]:
        """The features of which texts were looked for."""
        return list(self._hashed)  # other threads may add some

    def learn(self, j: int, column: Any) -> None:
        """Keep the codes of the texts of a column of type narwhals.Series, whose values the model takes."""
        known, seen = self._schema.categories[j], self._hashed.get(j)
        if not known or seen == {}:
            return
        seen = seen or {}
        try:
            distinct = column.unique().to_list()
        except Exception:  # a type whose values the library cannot compare
            return
        texts = {value for value in distinct if type(value) is str} - seen.keys()
        if not texts:
            return
        new = sorted(texts) if len(texts) + len(seen) <= _MOST_TEXTS else []
        codes = categories.codes_of_hashed(new, known, j).tolist()
        # Empty where there are too many: such a column is always converted.
        self._hashed[j] = {**seen, **dict(zip(new, codes, strict=True))} if new else {}
        self.forget()

    def forget(self) -> None:
        """Codes are made again; other threads may use the old ones."""
        self._codes, self._arrow = {}, {}

    def _hashed_codes(self, j: int) -> _native.TextCodes | None:
        """The codes of texts that were seen. All others are refused, so that they are learned."""
        texts = self._hashed.get(j)
        if not texts:
            return None
        return _native.TextCodes(list(texts), list(texts.values()), np.inf, np.inf)
