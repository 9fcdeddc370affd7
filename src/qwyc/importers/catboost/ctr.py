"""CatBoost's statistics of categories (CTR): a number for each category, known by its hash, or for each
combination of features, known by its key; and another for all the rest. Both kinds of document have
them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.importers.wire.flatbuffer import Table

Array = npt.NDArray[Any]

_KINDS = (
    "Borders",
    "Buckets",
    "BinarizedTargetMeanValue",
    "FloatTargetMeanValue",
    "Counter",
    "FeatureFreq",
)
_OF_ALL = ("Counter", "FeatureFreq")  # by the number of all rows
_FACTOR = 0x4906BA494954CB65  # a category's key in its table is its hash times this, twice
_UNDO = pow(_FACTOR * _FACTOR, -1, 1 << 64)
_NO_KEY = (1 << 64) - 1
_LOW = (1 << 32) - 1


@dataclass(frozen=True)
class Combination:
    """The features that a statistic is of, in the order in which they make its key."""

    categories: tuple[int, ...]  # which categorical features
    above: tuple[tuple[int, float], ...]  # which numeric features, and whether above which border
    equal: tuple[tuple[int, int], ...]  # which categorical features, and whether of which hash

    @property
    def is_single(self) -> bool:
        """Whether it is one category and nothing else."""
        return len(self.categories) == 1 and not self.above and not self.equal


@dataclass(frozen=True, eq=False)
class Counts:
    """What was counted in training, by key. Many statistics may share it."""

    keys: Array  # (n,) uint64
    counts: Array  # (n, k)
    denominator: int

    @cached_property
    def hashes(self) -> Array:
        """Of a single category, the hashes that the keys are of, (n,)."""
        hashes = (self.keys * np.uint64(_UNDO)) & np.uint64(0xFFFFFFFF)
        return hashes.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Ctr:
    """A statistic of a combination that splits compare with borders. Its values are computed where they are
    needed: a small file can describe thousands of statistics of one large table."""

    of: Combination
    borders: npt.NDArray[np.float32]
    counted: Counts
    kind: str  # one of _KINDS
    which: int  # of "Buckets" and "Borders": which class
    numbers: Sequence[np.float32]  # prior, weight, shift, scale
    table: Any  # the same for statistics that have the same keys

    @property
    def feature(self) -> int:
        """Of a single category, which categorical feature it is."""
        return self.of.categories[0]

    @property
    def keys(self) -> Array:
        """The keys of the table, (n,) uint64."""
        return self.counted.keys

    @property
    def hashes(self) -> Array:
        """Of a single category, the hashes that the keys are of, (n,)."""
        return self.counted.hashes

    @property
    def default(self) -> np.float32:
        """The statistic of every other key."""
        nothing = self.counted.denominator if self.kind in _OF_ALL else 0
        return np.float32(self._calculate(0, nothing))

    def values(self) -> Array:
        """The statistic of every key, (n,), in float32 as CatBoost computes it."""
        counts, kind = self.counted.counts, self.kind
        if kind in _OF_ALL:
            good, total = counts[:, 0], np.full(len(counts), float(self.counted.denominator))
        elif kind.endswith("MeanValue"):
            good, total = counts[:, 0], counts[:, 1]
        elif kind == "Buckets":
            good, total = counts[:, self.which], counts.sum(axis=1)
        else:
            good, total = counts[:, self.which + 1 :].sum(axis=1), counts.sum(axis=1)
        return np.asarray(self._calculate(good, total), np.float32)

    def _calculate(self, good: Any, total: Any) -> Any:
        prior, weight, shift, scale = self.numbers
        ratio = (np.float32(good) + prior) / (np.float32(total) + weight)
        return (ratio + shift) * scale


def ctrs_from_json(ctrs: Sequence[Any], tables: Mapping[str, Any]) -> list[Ctr]:
    found, read = [], {}
    for ctr in ctrs:
        name = ctr["identifier"]
        if name not in read:
            read[name] = _counts_from_json(tables[name])
        names = ("prior_numerator", "prior_denomerator", "shift", "scale")
        numbers = [np.float32(ctr[name]) for name in names]
        borders = np.asarray(ctr["borders"], np.float32)
        kind, which = str(ctr["ctr_type"]), int(ctr["target_border_idx"])
        of = _combination_from_json(ctr["elements"])
        found.append(_ctr(of, borders, kind, read[name], which, numbers, name))
    return found


def _combination_from_json(elements: Sequence[Mapping[str, Any]]) -> Combination:
    categories, above, equal = [], [], []
    for element in elements:
        kind = element["combination_element"]
        if kind == "cat_feature_value":
            categories.append(int(element["cat_feature_index"]))
        elif kind == "float_feature":
            border = float(np.float32(element["border"]))
            above.append((int(element["float_feature_index"]), border))
        elif kind == "cat_feature_exact_value":
            equal.append((int(element["cat_feature_index"]), int(element["value"]) & _LOW))
        else:
            raise ModelError(f"a statistic of categories is of a {kind}, which is not known")
    return Combination(tuple(categories), tuple(above), tuple(equal))


def _counts_from_json(facts: Mapping[str, Any]) -> Counts:
    stride, flat = int(facts["hash_stride"]), facts["hash_map"]
    denominator = int(facts["counter_denominator"])
    if not 2 <= stride < 1 << 31 or len(flat) % stride:
        raise ModelError("a table of categories is damaged")
    if not flat:  # then the stride is as large as the file likes
        return Counts(np.empty(0, np.uint64), np.empty((0, stride - 1)), denominator)
    keys = np.array([int(key) for key in flat[::stride]], dtype=np.uint64)
    counts = [flat[k::stride] for k in range(1, stride)]
    known = keys != np.uint64(_NO_KEY)
    by_key = np.asarray(counts, np.float64).T
    return Counts(keys[known], by_key[known], denominator)


def ctrs_from_cbm(ctrs: Sequence[Table], rest: bytes) -> list[Ctr]:
    """From a cbm file: what follows the flatbuffer is a number of tables, each after its size."""
    found = []
    tables = _tables(rest) if ctrs else {}
    for table in ctrs:
        ctr = table.table(0)
        base = ctr.table(0) if ctr is not None else None
        if ctr is None or base is None:
            raise ModelError("a statistic of categories names no features")
        name = _table_name(base)
        if name not in tables:
            raise ModelError("a table of categories is missing")
        kind, _, of = name
        borders = table.array(1, np.float32).astype(np.float32)
        defaults = ((2, 0.0), (3, 1.0), (4, 0.0), (5, 1.0))
        numbers = [np.float32(ctr.real(field, default, "f")) for field, default in defaults]
        which = ctr.integer(1, 0)
        found.append(_ctr(of, borders, _KINDS[kind], tables[name], which, numbers, name))
    return found


_TableName = tuple[int, int, Combination]  # kind, which borders of the target, features


def _table_name(base: Table) -> _TableName:
    combination = base.table(0)
    if combination is None:
        raise ModelError("a statistic of categories names no features")
    kind = base.integer(1, 0, "b")
    if not 0 <= kind < len(_KINDS):
        raise ModelError("a statistic of categories is of an unknown kind")
    above = combination.array(1, np.dtype([("index", "<i4"), ("border", "<f4")]))
    equal = combination.array(2, np.dtype([("index", "<i4"), ("value", "<i4")]))
    of = Combination(
        tuple(int(i) for i in combination.array(0, np.int32).tolist()),
        tuple((int(i), float(border)) for i, border in above.tolist()),
        tuple((int(i), int(value) & _LOW) for i, value in equal.tolist()),
    )
    return kind, base.integer(2, 0), of


def _tables(rest: bytes) -> dict[_TableName, Counts]:
    found = {}
    try:
        (count,), at = struct.unpack_from("<I", rest), 4
        for _ in range(count):
            (size,) = struct.unpack_from("<I", rest, at)
            if size > len(rest) - at - 4:
                raise ModelError("the file is cut off")
            table = Table.root(rest[at + 4 : at + 4 + size])
            at += 4 + size
            base = table.table(0)
            if base is None:
                raise ModelError("a table of categories names no features")
            name = _table_name(base)
            found[name] = _counts(table, _KINDS[name[0]])
    except struct.error:
        raise ModelError("the file is cut off") from None
    return found


def _counts(table: Table, kind: str) -> Counts:
    buckets = table.array(1, np.uint8)
    entry = np.dtype([("key", "<u8"), ("index", "<u4")])
    if len(buckets) % entry.itemsize:
        raise ModelError("a table of categories is damaged")
    used = np.frombuffer(buckets.tobytes(), entry)
    used = used[used["key"] != _NO_KEY]
    blob = table.array(2, np.uint8).tobytes()
    if kind.endswith("MeanValue"):
        pairs = np.frombuffer(blob, np.dtype([("sum", "<f4"), ("count", "<i4")]))
        counts = np.stack([pairs["sum"].astype(float), pairs["count"].astype(float)], axis=1)
    else:
        width = 1 if kind in _OF_ALL else max(1, table.integer(4, 0))
        counts = np.frombuffer(blob, "<i4").reshape(-1, width).astype(np.float64)
    if len(used) and used["index"].max() >= len(counts):
        raise ModelError("a table of categories is damaged")
    return Counts(used["key"].astype(np.uint64), counts[used["index"]], table.integer(3, 0))


def _ctr(
    of: Combination,
    borders: Array,
    kind: str,
    counted: Counts,
    which: int,
    numbers: Sequence[np.float32],
    name: Any,
) -> Ctr:
    """A statistic that its table has the counts for."""
    if kind not in _KINDS:
        raise ModelError(f"a statistic of categories is a {kind}, which is not known")
    n_counts = counted.counts.shape[1]
    needed = {"Buckets": which + 1, "Borders": which + 2}.get(kind, 1 + kind.endswith("MeanValue"))
    if n_counts < needed or (kind in ("Buckets", "Borders") and which < 0):
        raise ModelError(f"a statistic of categories is a {kind} of {n_counts} classes")
    return Ctr(of, borders, counted, kind, which, numbers, name)
