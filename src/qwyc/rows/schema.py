"""Schema: what rows must look like so that a model can take them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from qwyc.errors import ModelError
from qwyc.limits import MAX_FEATURES

Category = str | int | float | bool | None  # None: scikit-learn may count it as a value

# How integers become Schema.dtype. "direct": they are rounded once. "float32": arrays and lists of any type
# except float32, float64 and objects are rounded to float32 first; data frames are not (LGBMClassifier).
# "float32 objects": the same, and arrays of objects are rounded too (Booster of LightGBM). "checked": as
# "direct", but an integer in a list or data frame is refused if scikit-learn may round it twice, to another
# number. "float64": the numbers of a list are rounded to float64 first (CatBoost).
INTEGERS = ("direct", "float32", "float32 objects", "checked", "float64")

# What an absent entry of a sparse matrix means. REFUSED: sparse rows are refused. MISSING: it is missing
# (XGBoost). ZERO: it is 0 (LightGBM, CatBoost). FINITE_ZERO: it is 0, and NaN and infinity are refused in
# sparse rows, whatever holds for dense ones (scikit-learn).
REFUSED, MISSING, ZERO, FINITE_ZERO = "refused", "missing", "zero", "finite zero"
ABSENT = (REFUSED, MISSING, ZERO, FINITE_ZERO)

# Fields of Schema that version 0.1.0 did not have.
LATER = ("integers", "must_have", "by_name", "own_missing")


@dataclass(frozen=True)
class Schema:
    """The columns of a model, and how their values become numbers."""

    n_features: int
    names: tuple[str, ...] | None  # None: columns are known by position only
    dtype: str  # "float32" or "float64": rows are converted to it before any comparison
    categories: Mapping[int, tuple[Category, ...]] = field(default_factory=dict)  # position = code
    arrays_hold_values: bool = False  # arrays and lists hold category values; otherwise codes
    unseen: str = "missing"  # an unknown category; or "invalid" (-1), "first" (0), "error"
    # Categories are CatBoost's hashes of values, not values. None among them: all other hashes count, too
    # (`qwyc.rows.categories.FIRST_HASH`).
    hashed: bool = False
    missing: float = float("nan")  # a value that means missing, besides NaN
    accepts_missing: bool = True  # otherwise NaN is refused, as in the source library
    accepts_infinity: bool = True
    integers: str = "direct"  # one of INTEGERS
    # Columns in which NaN is refused although the table accepts it: the model has no output for it there.
    must_have: tuple[int, ...] = ()
    by_name: bool = False  # rows must be tables with column names; arrays and lists are refused
    # Columns, and the number that the model itself takes for a missing value there. An error that refuses
    # NaN says so; nothing else depends on it.
    own_missing: tuple[tuple[int, float], ...] = ()
    absent: str = REFUSED  # one of ABSENT: what an absent entry of a sparse matrix means

    def __post_init__(self) -> None:
        if not 0 <= self.n_features <= MAX_FEATURES:
            raise ModelError(
                f"the model claims {self.n_features:,} features; it must have 0 to {MAX_FEATURES:,}"
            )

    def __getstate__(self) -> dict[str, Any]:
        # What is cached can be made again.
        return {k: v for k, v in self.__dict__.items() if k in self.__dataclass_fields__}

    @cached_property
    def kept(self) -> dict[str, Any]:
        """What readers of rows keep from one call to the next, by name."""
        return {}

    @cached_property
    def takes_plain_rows(self) -> bool:
        """Whether arrays are taken, and no number of an array stands for something else, such as a
        category or missing."""
        if self.by_name or (self.arrays_hold_values and self.categories):
            return False
        return math.isnan(self.missing)

    @cached_property
    def takes_any_numbers(self) -> bool:
        """Whether rows are plain and no number is refused, so that values need no check."""
        return self.takes_plain_rows and not self.finite_only

    @cached_property
    def finite_only(self) -> bool:
        """Whether NaN or infinity is refused, everywhere or in some columns."""
        return not (self.accepts_missing and self.accepts_infinity and not self.must_have)

    @property
    def exact_integers(self) -> int:
        """Integers up to this size become `dtype` without a rounding in between."""
        return 2**24 if self.rounds_to_float32 else 2**53

    @property
    def rounds_to_float32(self) -> bool:
        """Whether arrays and lists of numbers that are not floats are rounded to float32 first."""
        return self.integers in ("float32", "float32 objects")

    def of_columns(self, columns: Sequence[int]) -> Schema:
        """The schema of some of the columns, in this order."""
        place = {j: i for i, j in enumerate(columns)}
        return replace(
            self,
            n_features=len(columns),
            names=None if self.names is None else tuple(self.names[j] for j in columns),
            categories={place[j]: known for j, known in self.categories.items() if j in place},
            must_have=tuple(place[j] for j in self.must_have if j in place),
            own_missing=tuple((place[j], value) for j, value in self.own_missing if j in place),
        )

    def digest_facts(self) -> dict[str, Any]:
        """The values that a model's digest is computed from. Version 0.1.0 did not have the fields in
        `LATER`, so their default values are left out. An LGBMClassifier and its file are one model,
        although they read arrays of objects differently. So are two that differ in whether sparse rows
        are taken: files of earlier versions do not say what absent entries mean."""
        facts = asdict(self)
        del facts["absent"]
        if self.rounds_to_float32:
            facts["integers"] = "float32"
        for name in LATER:
            if facts[name] == getattr(Schema, name):
                del facts[name]
        return facts
