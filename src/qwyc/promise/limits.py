"""Limits: the single statements that a budget consists of, each with its exact test.

A limit says that at most a share of some rows may differ in some ways. Which rows and which ways is data,
so the tests are written once for every form of alpha. Rows are counted where each is a draw of its own;
groups are counted where rows come in groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from qwyc.policy.counts import Counts
from qwyc.policy.grouped import Weighed
from qwyc.promise import betting
from qwyc.promise.binomial import lower_bound, rows_needed, tail, upper_bound

ROOM = 0.9  # the chance that a later verification passes, where room is left for it


def least_share(rows: int, confidence: float) -> float:
    """The smallest share of a class that so many of its rows can show, none of them lost: rounded up to
    two digits."""
    exact = -math.expm1(math.log1p(-confidence) / rows) if rows else 1.0
    digits = 10.0 ** (math.floor(math.log10(exact)) - 1)
    return float(min(1.0, round(math.ceil(exact / digits) * digits, 12)))


@dataclass(frozen=True)
class Limit:
    """At most `share` of the rows may differ in one of the listed ways."""

    share: float
    differences: tuple[int, ...]  # the ways that count, as indices into `Target.differences`
    among: int | None = None  # only rows with this full decision count; None: all rows do

    def counted(self, counts: Counts) -> tuple[int, int]:
        """How many rows differ, and how many rows there are."""
        rows = counts.rows if self.among is None else counts.by_class[self.among]
        return sum(counts.differences[kind] for kind in self.differences), rows

    def groups(self, counts: Counts) -> Weighed | None:
        """The groups that are counted instead of rows; None where rows are."""
        if counts.groups is None:
            return None
        return counts.groups.weighed(self.differences, self.among)

    def passes(self, counts: Counts, confidence: float) -> bool:
        """Whether so few differences would be rare if more than the share differed. A share of 0 passes
        without a difference: it is proven, and rows can only contradict it."""
        differ, rows = self.counted(counts)
        if self.share == 0:
            return differ == 0
        if (groups := self.groups(counts)) is not None:
            return self.covers(counts) and betting.passes(groups, self.share, 1 - confidence)
        return tail(differ, rows, self.share) <= 1 - confidence

    def fails(self, counts: Counts, confidence: float) -> bool:
        """Whether so many differences would be rare if no more than the share differed."""
        differ, rows = self.counted(counts)
        if self.share == 0 or differ == 0:
            return differ > 0
        if (groups := self.groups(counts)) is not None:
            return betting.fails(groups, self.share, 1 - confidence)
        return 1 - tail(differ - 1, rows, self.share) <= 1 - confidence

    def covers(self, counts: Counts) -> bool:
        """Whether the observed share is within the limit, however surely."""
        differ, rows = self.counted(counts)
        return differ <= self.share * rows or (rows > 0 and differ / rows <= self.share)

    def upper_bound(self, counts: Counts, confidence: float) -> float:
        """With the confidence, no larger share than this differs among rows drawn like these."""
        if (groups := self.groups(counts)) is not None:
            return betting.upper_bound(groups, 1 - confidence)
        return upper_bound(*self.counted(counts), confidence) if self.counted(counts)[1] else 1.0

    def lower_bound(self, counts: Counts, confidence: float) -> float:
        """With the confidence, no smaller share than this differs among rows drawn like these."""
        if (groups := self.groups(counts)) is not None:
            return betting.lower_bound(groups, 1 - confidence)
        return lower_bound(*self.counted(counts), confidence)

    def rows_needed(self, confidence: float) -> int:
        """The fewest rows, none of them different, that show it; a proof needs one to be contradicted.
        Where groups are counted, the fewest groups."""
        return 1 if self.share == 0 else rows_needed(self.share, confidence)

    def groups_needed(self, counts: Counts, confidence: float) -> int | None:
        """About how many groups like these, none with a difference, show it; None where rows count."""
        groups = self.groups(counts)
        if groups is None or self.share == 0:
            return None
        return betting.groups_needed(groups, self.share, 1 - confidence)

    def shortfall(self, counts: Counts, confidence: float, names: Sequence[str]) -> str:
        """Which rows are too few to show it, in words; empty where there are enough. `names` are those of
        the classes."""
        needed, (_, rows) = self.rows_needed(confidence), self.counted(counts)
        whose = "" if self.among is None else f" that the full ensemble calls {names[self.among]}"
        if counts.groups is None:
            if rows >= needed:
                return ""
            best = f", enough for a share of {least_share(rows, confidence):g}" if rows else ""
            return f"at least {needed:,} certifying rows{whose}; there are {rows:,}{best}"
        few = self.groups_needed(counts, confidence)
        if few is None or self.passes(counts, confidence):
            return ""
        few, largest = max(few, len(counts.groups) + 1), counts.groups.cap(None)
        return (
            f"about {few:,} certifying groups like these"
            + (f", with rows{whose}" if whose else "")
            + f"; there are {len(counts.groups):,}, and the largest of the sample has {largest:,} rows"
        )

    def rows_at(self, observed: float, confidence: float) -> int | None:
        """About how many rows show it where the observed share stays what it is; None: no number does."""
        if observed >= self.share:
            return None
        n = self.rows_needed(confidence)
        while tail(math.ceil(observed * n), n, self.share) > 1 - confidence:
            n = math.ceil(1.1 * n)
        return n

    def rows_like(self, counts: Counts, confidence: float) -> int | None:
        """About how many rows like these, or in groups like these, show it; None: no number does."""
        differ, rows = self.counted(counts)
        if (groups := self.groups(counts)) is None:
            return self.rows_at(differ / rows if rows else 0.0, confidence)
        needed = betting.groups_at(groups, self.share, 1 - confidence)
        # More are needed than there are, or nobody would ask.
        return None if needed is None else math.ceil(max(needed / len(groups), 1.1) * rows)

    def with_room(self, rows: int, confidence: float) -> Limit | None:
        """The same limit with a share so much smaller that a test on this many other rows passes with
        probability `ROOM`; None where that many rows cannot pass it."""
        if self.share == 0:
            return self
        most, over = -1, rows + 1  # the later test passes with `most` differences, not with `over`
        while over - most > 1:
            middle = (most + over) // 2
            passed = tail(middle, rows, self.share) <= 1 - confidence
            most, over = (middle, over) if passed else (most, middle)
        if most < 0:
            return None
        low, high = 0.0, self.share
        for _ in range(50):
            share = (low + high) / 2
            low, high = (share, high) if tail(most, rows, share) >= ROOM else (low, share)
        return replace(self, share=low)
