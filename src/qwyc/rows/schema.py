"""Schema: what rows must look like for a model to take them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

Category = str | int | float | bool | None  # None: scikit-learn may count it as a value

# "direct": rounded once, to Schema.dtype. "float32": arrays and lists of any type but float32 and float64
# are rounded to float32 first, and frames are not (LightGBM). "checked": as "direct", but an integer in a
# list or frame is refused where scikit-learn may round it twice, to another number.
INTEGERS = ("direct", "float32", "checked")


@dataclass(frozen=True)
class Schema:
    """The columns of a model, and how their values become numbers."""

    n_features: int
    names: tuple[str, ...] | None  # None: the model knows its columns by position only
    dtype: str  # "float32" or "float64": rows are converted to it before any comparison
    categories: Mapping[int, tuple[Category, ...]] = field(default_factory=dict)  # code -> value
    arrays_hold_values: bool = False  # plain arrays hold category values too (otherwise codes)
    unseen: str = "missing"  # or "invalid" (-1), "first" (0), "error": as in the source
    hashed: bool = False  # categories are CatBoost's hashes of values, not values
    missing: float = float("nan")  # a value that means missing, besides NaN
    accepts_missing: bool = True  # otherwise NaN is refused, as the source does
    accepts_infinity: bool = True
    integers: str = "direct"  # how they reach `dtype`; one of INTEGERS

    @cached_property
    def takes_plain_rows(self) -> bool:
        """Whether every value of a row is a plain number that stands for itself."""
        return math.isnan(self.missing) and not (self.arrays_hold_values and self.categories)

    @cached_property
    def takes_any_numbers(self) -> bool:
        """Whether rows are plain and no number is refused, so that none needs to be looked at."""
        return self.takes_plain_rows and self.accepts_missing and self.accepts_infinity

    @property
    def exact_integers(self) -> int:
        """Integers up to this size reach `dtype` without being rounded on the way."""
        return 2**24 if self.integers == "float32" else 2**53

    def digest_facts(self) -> dict[str, Any]:
        """What takes part in a model's digest; a field that 0.1.0 did not have only where it is set."""
        facts = asdict(self)
        if self.integers == Schema.integers:
            del facts["integers"]
        return facts
