"""Counts by group, for rows that are drawn in groups rather than one by one.

A group is drawn whole, so its rows may be as alike as they please, and a test may only count groups. Groups
have numbers from 0 in a random order that does not depend on the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.target.target import Decided, Target

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Policies in a word of the native core's sets: kPathPolicies in native/core/path_kernels.hpp.
PER_WORD = 63
ENOUGH_DIFFERENCES = 20  # on other rows, to tell how many rows of a group differ together


def has_policy(sets: npt.NDArray[np.uint64], k: int) -> npt.NDArray[np.bool_]:
    """Which of N sets of policies, (N, words), have the k-th policy."""
    return np.asarray(sets[:, k // PER_WORD] >> np.uint64(k % PER_WORD) & np.uint64(1), dtype=bool)


def in_random_order(units: npt.NDArray[np.intp], seed: int) -> npt.NDArray[np.intp]:
    """The same groups, (N,), numbered from 0 in a random order. Only the number of groups and the seed
    decide the order in which groups come, so groups in the order of their draw stay as good as drawn."""
    _, number = np.unique(units, return_inverse=True)
    n_groups = int(number.max()) + 1 if len(number) else 0
    place = np.random.default_rng([seed, n_groups]).permutation(n_groups)
    return np.asarray(place[number], dtype=np.intp)


@dataclass(frozen=True)
class Prior:
    """What other groups, which are not counted, say about groups like these. It makes tests more powerful;
    no test rests on it being right. Tuples have all rows first, then each class."""

    caps: tuple[int, ...]  # rows of the largest group
    weight: tuple[float, ...]  # mean of rows / cap
    full: tuple[float, ...]  # share of the groups that have as many rows as the cap
    differences: tuple[int, ...]  # rows that differ, by kind
    squares: tuple[int, ...]  # the sum of their squared numbers in each group, by kind

    def clump(self, kinds: tuple[int, ...], cap: int) -> float:
        """How much of the cap differs together, for a row that differs; 1 where nothing is known."""
        differ = sum(self.differences[kind] for kind in kinds)
        return min(sum(self.squares[kind] for kind in kinds) / differ / cap, 1.0) if differ else 1.0


@dataclass(frozen=True, eq=False)
class Weighed:
    """Groups as a test of one limit takes them: sizes and differences as shares of the cap."""

    weight: Floats  # (G,) at most 1
    differ: Floats  # (G,) at most the weight
    cap: int
    likely_weight: float | None  # of a group, by the prior; None where there is no prior
    likely_full: float  # share of the groups whose weight is 1
    likely_clump: float  # what differs together

    def __len__(self) -> int:
        return len(self.weight)


@dataclass(frozen=True, eq=False)
class GroupCounts:
    """What one policy did on the rows of G groups."""

    sizes: Ints  # (G, n_classes) rows by their full decision
    at: Ints  # (E,) groups in which some row differs, ascending
    differences: Ints  # (E, n_differences) rows that differ there
    prior: Prior | None = None  # from other groups

    def __len__(self) -> int:
        return len(self.sizes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GroupCounts) or self.prior != other.prior:
            return False
        mine, others = (self.sizes, self.at, self.differences), (other.sizes, other.at)
        pairs = zip(mine, (*others, other.differences), strict=True)
        return all(np.array_equal(a, b) for a, b in pairs)

    def __hash__(self) -> int:
        return hash((len(self.sizes), len(self.at), self.prior))

    @property
    def largest(self) -> int:
        """Rows of the largest group."""
        return int(self._rows(None).max(initial=0))

    def cap(self, among: int | None) -> int:
        """The rows of the largest group, of all rows or of a class: here, or among those of the prior."""
        known = 1 if self.prior is None else self.prior.caps[0 if among is None else 1 + among]
        return max(int(self._rows(among).max(initial=0)), known)

    def weighed(self, kinds: tuple[int, ...], among: int | None) -> Weighed:
        """Sizes and differences for a limit on some kinds of difference, among all rows or a class."""
        rows, cap = self._rows(among).astype(np.float64), self.cap(among)
        differ = np.zeros(len(rows))
        differ[self.at] = self.differences[:, list(kinds)].sum(axis=1)
        likely_weight, likely_full = None, 0.0
        if self.prior is not None:
            index = 0 if among is None else 1 + among
            known = self.prior.caps[index]
            likely_weight = self.prior.weight[index] * known / cap
            likely_full = self.prior.full[index] if known == cap else 0.0
        return Weighed(
            weight=rows / cap,
            differ=differ / cap,
            cap=cap,
            likely_weight=likely_weight,
            likely_full=likely_full,
            likely_clump=1.0 if self.prior is None else self.prior.clump(kinds, cap),
        )

    def _rows(self, among: int | None) -> Ints:
        if among is not None:
            return self.sizes[:, among]
        # Adding a few columns takes less time than adding up the numbers of each row.
        rows: Ints = np.ascontiguousarray(self.sizes.T).sum(axis=0)
        return rows


@dataclass(frozen=True, eq=False)
class PathPrior:
    """A prior for each of K policies."""

    caps: tuple[int, ...]
    weight: tuple[float, ...]
    full: tuple[float, ...]
    differences: Ints  # (K, n_differences)
    squares: Ints  # (K, n_differences)

    @classmethod
    def of(cls, groups: PathGroups) -> PathPrior:
        """What these groups say about others."""
        sizes = np.column_stack([groups.sizes.sum(axis=1), groups.sizes])  # (G, 1 + n_classes)
        caps = np.maximum(sizes.max(axis=0), 1)
        return cls(
            tuple(int(cap) for cap in caps),
            tuple(float(mean) for mean in (sizes / caps).mean(axis=0)),
            tuple(float(share) for share in (sizes == caps).mean(axis=0)),
            *groups.totals(),
        )

    def __getitem__(self, k: int) -> Prior:
        """For the k-th policy. Where that differs too rarely to tell, a bolder one stands for it."""
        enough = np.flatnonzero(self.differences[k:].sum(axis=1) >= ENOUGH_DIFFERENCES)
        near = k + int(enough[0]) if len(enough) else len(self.differences) - 1
        sums = [tuple(int(n) for n in table[near]) for table in (self.differences, self.squares)]
        return Prior(self.caps, self.weight, self.full, *sums)


@dataclass(frozen=True, eq=False)
class PathGroups:
    """What each of K policies did on the rows of the same G groups."""

    sizes: Ints  # (G, n_classes)
    begin: Ints  # (K + 1,) where each policy's entries begin
    at: Ints  # (E,) groups in which some row differs, ascending for each policy
    differences: Ints  # (E, n_differences)
    prior: PathPrior | None = None

    def __getitem__(self, k: int) -> GroupCounts:
        """What the k-th policy did."""
        own = slice(int(self.begin[k]), int(self.begin[k + 1]))
        prior = None if self.prior is None else self.prior[k]
        return GroupCounts(self.sizes, self.at[own], self.differences[own], prior)

    def totals(self) -> tuple[Ints, Ints]:
        """Differences and squared differences over all groups, (K, n_differences) each."""
        K, kinds = len(self.begin) - 1, self.differences.shape[1]
        policy = np.repeat(np.arange(K), np.diff(self.begin))
        sums, squares = np.zeros((K, kinds), np.int64), np.zeros((K, kinds), np.int64)
        np.add.at(sums, policy, self.differences)
        np.add.at(squares, policy, self.differences**2)
        return sums, squares


class GroupCounter:
    """Collects what K policies do on rows whose groups are known, a block of rows at a time."""

    def __init__(self, units: npt.NDArray[np.intp], target: Target, n_policies: int = 1) -> None:
        self.units = units  # (N,) numbers from 0
        self.target = target
        self.full: Decided = np.zeros(len(units), dtype=np.intp)  # (N,) full decisions
        self.found: list[list[tuple[Any, Any]]] = [[] for _ in range(n_policies)]

    @property
    def n_groups(self) -> int:
        """How many groups there are."""
        return int(self.units.max(initial=-1)) + 1

    @property
    def alone(self) -> bool:
        """Whether every row is a group of its own, so that counting rows is the same."""
        return self.n_groups == len(self.units)

    def add(self, k: int, decided: Any, full: Decided, start: int = 0) -> None:
        """What the k-th policy decided about the rows from `start` on, and the full decisions."""
        rows, kinds = self.target.differing(decided, full)
        self.found[k].append((self.units[start + rows], kinds))
        self.full[start : start + len(full)] = full

    def groups(self, prior: PathPrior | None = None) -> PathGroups:
        """What was collected."""
        n_classes, n_kinds = self.target.n_classes, len(self.target.differences)
        n_groups = self.n_groups
        cells = np.bincount(self.units * n_classes + self.full, minlength=n_groups * n_classes)
        at, tables, begin = [], [], [0]
        for found in self.found:
            groups = np.concatenate([np.zeros(0, np.intp), *(unit for unit, _ in found)])
            kinds = np.concatenate([np.zeros(0, np.intp), *(kind for _, kind in found)])
            distinct, number = np.unique(groups, return_inverse=True)
            counts = np.bincount(number * n_kinds + kinds, minlength=len(distinct) * n_kinds)
            at.append(distinct.astype(np.int64))
            tables.append(counts.reshape(-1, n_kinds).astype(np.int64))
            begin.append(begin[-1] + len(distinct))
        return PathGroups(
            cells.reshape(n_groups, n_classes).astype(np.int64),
            np.array(begin, dtype=np.int64),
            np.concatenate(at),
            np.concatenate(tables),
            prior,
        )


class Differing:
    """Collects what K policies do on rows, a block of rows at a time, where groups are known only at the
    end: whether rows repeat shows when all of them have come."""

    def __init__(self, target: Target, n_policies: int = 1) -> None:
        self.target = target
        self._small = np.min_scalar_type(target.n_classes - 1)  # holds every class
        self._full: list[Decided] = []  # of each block
        # For each policy: rows that differ, counted from the first row of all, and in which way each.
        self._found: list[list[tuple[Any, Any]]] = [[] for _ in range(n_policies)]
        # The same for all policies: rows, (M,), and the policies that differ, (M, words).
        self._sets: list[tuple[Any, npt.NDArray[np.uint64]]] = []

    def add_sets(self, start: int, wrong: npt.NDArray[np.uint64], full: Decided) -> None:
        """The policies that decide each row of a block differently, as sets (N, words), and the full
        decisions, of two classes. Blocks come in order."""
        self._full.append(full.astype(self._small))
        rows = np.flatnonzero((wrong != 0).any(axis=1))
        self._sets.append(((start + rows).astype(_row_dtype(start + len(full))), wrong[rows]))

    def add(self, start: int, k: int, decided: Any, full: Decided) -> None:
        """What the k-th policy decided about the block that begins at row `start`, and the full
        decisions. Blocks come in order, and the first policy first."""
        if k == 0:
            self._full.append(full.astype(self._small))
        rows, kinds = self.target.differing(decided, full)
        dtype = _row_dtype(start + len(full))
        self._found[k].append(((start + rows).astype(dtype), kinds.astype(self._small)))

    def by_group(self, units: npt.NDArray[np.intp]) -> GroupCounter:
        """The same, counted by group: `units` (N,) are numbers from 0."""
        counter = GroupCounter(units, self.target, len(self._found))
        counter.full = np.concatenate(self._full)
        for k, found in enumerate(self._found):
            counter.found[k] = [(units[rows], kinds) for rows, kinds in found]
            for rows, sets in self._sets:
                own = rows[has_policy(sets, k)]
                counter.found[k].append((units[own], 1 - counter.full[own].astype(np.intp)))
        return counter


def _row_dtype(n_rows: int) -> type[np.unsignedinteger[Any]] | type[np.signedinteger[Any]]:
    """What holds the numbers of so many rows in little memory."""
    return np.uint32 if n_rows < 2**32 else np.intp
