"""Origins: a sketch of the rows that a classifier was made from, by which it recognises them.

A test on the rows that thresholds were fitted to, or that the operating point was chosen on, shows nothing.
The sketch keeps the smallest row hashes, at most `SIZE`. Hashes are uniform, so the sketch is a random part
of the distinct rows. Among other rows, those whose hash is not above `limit` are looked up, and the share
of them that is found estimates the share of all. Order and completeness do not matter.

Rows of new data may equal rows of the sample by chance, for example if they have few columns. How often
this happens is estimated from the sample itself, as the share of its rows that equal another of its rows,
and only where rows are looked up: what is frequent there may be rare elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qwyc.promise.binomial import lower_bound, upper_bound
from qwyc.promise.repeats import beyond_chance
from qwyc.rows.identity import Hashes

SIZE = 8192  # hashes that a sketch keeps at most
CONFIDENCE = 0.999  # of the bounds on shares
MARGIN = 0.02  # share of rows above chance from which they are refused
_LARGEST = 2**64 - 1


@dataclass(frozen=True, eq=False)
class Origin:
    """A bounded sketch of rows."""

    hashes: Hashes  # (at most SIZE,) ascending, the smallest of all distinct rows' hashes
    rows: int  # that it was made of
    chance: float  # bound on the share of new rows up to the limit that are found by chance

    @classmethod
    def of(cls, hashes: Hashes) -> Origin:
        """The sketch of rows with these hashes, (N,)."""
        kept, times = _smallest(hashes)
        chance = 0.0
        if len(kept) and not beyond_chance(times):  # copies say nothing about new rows
            # Of two equal rows, each equals the other: they are one observation.
            found, looked_up = int(times[times > 1].sum()), int(times.sum())
            chance = upper_bound(-(-found // 2), max(1, looked_up // 2), CONFIDENCE)
        return cls(kept, len(hashes), chance)

    @property
    def limit(self) -> int:
        """Hashes of the rows up to here are all in the sketch."""
        return int(self.hashes[-1]) if len(self.hashes) == SIZE else _LARGEST

    def found(self, hashes: Hashes) -> Overlap:
        """How many rows with these hashes, (N,), are among those of the sketch."""
        looked_up = hashes[hashes <= np.uint64(self.limit)]
        found = np.isin(looked_up, self.hashes)
        return Overlap(int(found.sum()), len(looked_up), self.chance)

    def overlap(self, hashes: Hashes) -> float:
        """The estimated share of rows with these hashes, (N,), that are among those of the sketch."""
        return self.found(hashes).share


def _smallest(hashes: Hashes) -> tuple[Hashes, npt.NDArray[np.intp]]:
    """The smallest hashes, each once and at most `SIZE`, and how often each occurs. Of many rows, a part is
    enough, which takes less time than all to sort."""
    most = 2 * SIZE
    while most < len(hashes) // 2:
        limit = np.partition(hashes, most)[most]
        distinct, times = np.unique(hashes[hashes <= limit], return_counts=True)
        if len(distinct) >= SIZE:
            return distinct[:SIZE], times[:SIZE].astype(np.intp)
        most *= 4
    distinct, times = np.unique(hashes, return_counts=True)
    return distinct[:SIZE], times[:SIZE].astype(np.intp)


@dataclass(frozen=True, eq=False)
class Origins:
    """The rows that a classifier was made from, as far as they are known."""

    sample: Origin | None = None  # of `optimize`: fitted to, and the operating point chosen on them
    recertified: Origin | None = None  # of the last `recertify`: the operating point chosen on them
    independent: bool = False  # equal rows are independent draws: `repeats` of `optimize`


UNKNOWN = Origins()


@dataclass(frozen=True)
class Overlap:
    """Rows that were looked up in a sketch."""

    found: int
    looked_up: int
    chance: float

    @property
    def share(self) -> float:
        """The estimated share of the rows that are in the sketch's sample."""
        return self.found / self.looked_up if self.looked_up else 0.0

    @property
    def least(self) -> float:
        """A lower bound on that share."""
        return lower_bound(self.found, self.looked_up, CONFIDENCE)

    @property
    def refused(self) -> bool:
        """Whether clearly more rows are found than chance explains."""
        return self.least > self.chance + MARGIN

    @property
    def doubtful(self) -> bool:
        """Whether more rows are found than chance explains."""
        return self.least > self.chance
