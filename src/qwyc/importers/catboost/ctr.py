"""CatBoost's statistics of categories (CTR): of one feature, they are a number for each category, known
by its hash, and another for all the rest. Both kinds of document have them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
_FACTOR = 0x4906BA494954CB65  # a category's key in its table is its hash times this, twice
_UNDO = pow(_FACTOR * _FACTOR, -1, 1 << 64)
_NO_KEY = (1 << 64) - 1


@dataclass(frozen=True, eq=False)
class Ctr:
    """A statistic of categories that splits compare with borders."""

    features: tuple[int, ...]  # which categorical features
    borders: npt.NDArray[np.float32]
    hashes: Array  # (n,) of its feature's categories
    values: Array  # (n,) float32
    default: np.float32  # of every other category
    combined: bool = False  # with other features; then nothing else is known


@dataclass(frozen=True)
class _Counts:
    """What was counted in training, by category."""

    keys: Array  # (n,) uint64
    counts: Array  # (n, k)
    denominator: int


def ctrs_from_json(ctrs: Sequence[Any], tables: Mapping[str, Any]) -> list[Ctr]:
    found = []
    for ctr in ctrs:
        elements = ctr["elements"]
        features = tuple(int(e["cat_feature_index"]) for e in elements if "cat_feature_index" in e)
        borders = np.asarray(ctr["borders"], np.float32)
        if len(elements) != 1 or len(features) != 1:
            found.append(_combined(features, borders))
            continue
        facts = tables[ctr["identifier"]]
        stride = int(facts["hash_stride"])
        flat = facts["hash_map"]
        if stride < 2 or len(flat) % stride:
            raise ModelError("a table of categories is damaged")
        keys = np.array([int(key) for key in flat[::stride]], dtype=np.uint64)
        counts = [flat[k::stride] for k in range(1, stride)]
        table = _Counts(keys, np.asarray(counts, np.float64).T, int(facts["counter_denominator"]))
        names = ("prior_numerator", "prior_denomerator", "shift", "scale")
        numbers = [np.float32(ctr[name]) for name in names]
        kind = str(ctr["ctr_type"])
        found.append(
            _simple(features, borders, kind, table, int(ctr["target_border_idx"]), numbers)
        )
    return found


def ctrs_from_cbm(ctrs: Sequence[Table], rest: bytes) -> list[Ctr]:
    """From a cbm file: what follows the flatbuffer is a number of tables, each after its size."""
    found = []
    tables = _tables(rest) if ctrs else {}
    for table in ctrs:
        ctr = table.table(0)
        base = ctr.table(0) if ctr is not None else None
        if ctr is None or base is None:
            raise ModelError("a statistic of categories names no features")
        features, simple = _features(base)
        borders = table.array(1, np.float32).astype(np.float32)
        kind = base.integer(1, 0, "b")
        if not simple:
            found.append(_combined(features, borders))
            continue
        if (kind, features) not in tables:
            raise ModelError("a table of categories is missing")
        defaults = ((2, 0.0), (3, 1.0), (4, 0.0), (5, 1.0))
        numbers = [np.float32(ctr.real(field, default, "f")) for field, default in defaults]
        counts = tables[kind, features]
        found.append(_simple(features, borders, _KINDS[kind], counts, ctr.integer(1, 0), numbers))
    return found


def _features(base: Table) -> tuple[tuple[int, ...], bool]:
    """The categorical features, and whether there is one and nothing else."""
    combination = base.table(0)
    if combination is None:
        raise ModelError("a statistic of categories names no features")
    features = tuple(int(i) for i in combination.array(0, np.int32).tolist())
    pair = np.dtype([("index", "<i4"), ("value", "<i4")])
    others = len(combination.array(1, pair)) + len(combination.array(2, pair))
    exact = tuple(int(i) for i in combination.array(2, pair)["index"].tolist())
    return (*features, *exact), len(features) == 1 and not others


def _tables(rest: bytes) -> dict[tuple[int, tuple[int, ...]], _Counts]:
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
            features, simple = _features(base)
            kind = base.integer(1, 0, "b")
            if not 0 <= kind < len(_KINDS):
                raise ModelError("a statistic of categories is of an unknown kind")
            if simple:
                found[kind, features] = _counts(table, _KINDS[kind])
    except struct.error:
        raise ModelError("the file is cut off") from None
    return found


def _counts(table: Table, kind: str) -> _Counts:
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
        width = 1 if kind in ("Counter", "FeatureFreq") else max(1, table.integer(4, 0))
        counts = np.frombuffer(blob, "<i4").reshape(-1, width).astype(np.float64)
    if len(used) and used["index"].max() >= len(counts):
        raise ModelError("a table of categories is damaged")
    return _Counts(used["key"].astype(np.uint64), counts[used["index"]], table.integer(3, 0))


def _combined(features: tuple[int, ...], borders: Array) -> Ctr:
    return Ctr(features, borders, np.empty(0), np.empty(0), np.float32(0), combined=True)


def _simple(
    features: tuple[int, ...],
    borders: Array,
    kind: str,
    table: _Counts,
    which: int,
    numbers: Sequence[np.float32],
) -> Ctr:
    """The statistic of every category, in float32 as CatBoost computes it."""
    kept = table.keys != np.uint64(_NO_KEY)
    keys, counts = table.keys[kept], table.counts[kept]
    prior, weight, shift, scale = numbers

    def calculate(good: Any, total: Any) -> Any:
        ratio = (np.float32(good) + prior) / (np.float32(total) + weight)
        return (ratio + shift) * scale

    n_counts = counts.shape[1]
    nothing = 0
    if kind in ("Counter", "FeatureFreq"):
        good, nothing = counts[:, 0], table.denominator
        total = np.full(len(counts), float(table.denominator))
    elif kind.endswith("MeanValue"):
        good, total = counts[:, 0], counts[:, 1]
    elif kind == "Buckets" and 0 <= which < n_counts:
        good, total = counts[:, which], counts.sum(axis=1)
    elif kind == "Borders" and 0 <= which < n_counts - 1:
        good, total = counts[:, which + 1 :].sum(axis=1), counts.sum(axis=1)
    else:
        raise ModelError(f"a statistic of categories is a {kind} of {n_counts} classes")
    hashes = (keys * np.uint64(_UNDO)) & np.uint64(0xFFFFFFFF)
    values = np.asarray(calculate(good, total), np.float32)
    default = np.float32(calculate(0, nothing))
    return Ctr(features, borders, hashes.astype(np.int64), values, default)
