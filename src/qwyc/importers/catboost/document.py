"""CatBoost's two kinds of model document, cbm (a flatbuffer) and JSON, as one structure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.importers.catboost.ctr import Ctr, ctrs_from_cbm, ctrs_from_json
from qwyc.importers.wire.flatbuffer import Table
from qwyc.limits import MAX_DEPTH

MAGIC = b"CBM1"
Array = npt.NDArray[Any]
_MAX_NESTING = 200  # of non-symmetric trees in JSON
_NO_LEAF = (1 << 32) - 1


@dataclass(frozen=True)
class FloatFeature:
    """A numeric column and the borders that splits may compare it with."""

    column: int
    name: str
    borders: npt.NDArray[np.float32]
    missing_is_high: bool  # NaN is above every border (otherwise below)


@dataclass(frozen=True)
class OtherFeature:
    """A column that is not numeric."""

    column: int
    name: str
    kind: str  # "categorical", "text" or "embedding"


@dataclass(frozen=True, eq=False)
class Document:
    """A CatBoost model as its file has it. Splits are numbered over all features: numeric ones by
    feature and border, then those from texts and embeddings, one-hot values, and statistics (CTR)."""

    floats: Sequence[FloatFeature]
    others: Sequence[OtherFeature]
    n_estimated: int  # splits on what is computed from texts and embeddings
    one_hot: Sequence[
        tuple[int, Array]
    ]  # (which categorical feature, hashes), a split for each hash
    ctrs: Sequence[Ctr]
    scale: float
    bias: Sequence[float]
    info: Mapping[str, Any]
    sizes: npt.NDArray[np.int64]  # (T,) depth of an oblivious tree; number of nodes otherwise
    splits: npt.NDArray[np.int64]  # all trees' splits one after the other
    steps: npt.NDArray[np.int64] | None  # (n, 2) to the left and right child; None: oblivious
    leaf_of: npt.NDArray[np.int64] | None  # (n,) where a step of 0 ends
    leaf_values: npt.NDArray[np.float64]  # (n_leaves, K); K is 1 for one score a row
    leaf_weights: npt.NDArray[np.float64]  # (n_leaves,) training rows; empty where not known


def scaled(document: Document) -> Document:
    """With as much of the scale in its leaves as leaves every sum's rounding as it is: a power of two, or
    the sign. What is left is above 0."""
    scale = document.scale
    if not scale or not math.isfinite(scale):
        raise ModelError(f"the model multiplies its sum by {scale:g}, which leaves nothing of it")
    leaves = document.leaf_values * scale
    if abs(math.frexp(scale)[0]) == 0.5 and np.all(leaves / scale == document.leaf_values):
        return replace(document, leaf_values=leaves, scale=1.0)
    sign = math.copysign(1.0, scale)
    return replace(document, leaf_values=document.leaf_values * sign, scale=abs(scale))


def from_cbm(content: bytes) -> Document:
    """A cbm file: the magic, the flatbuffer's size, the flatbuffer, then tables for categories."""
    size = int.from_bytes(content[4:8], "little")
    if size > len(content) - 8:
        raise ModelError("the file is cut off")
    core = Table.root(content[8 : 8 + size])
    trees = core.table(1)
    if trees is None:
        raise ModelError("the file has no trees")
    info = {table.text(0): table.text(1) for table in core.tables(2)}
    steps = trees.array(10, np.dtype([("left", "<u2"), ("right", "<u2")]))
    oblivious = len(steps) == 0
    bias = trees.array(16, np.float64).tolist() or [trees.real(15, 0.0)]
    K = max(1, trees.integer(0, 0))
    # A leaf's number counts numbers, of which it has K; it means nothing where no leaf is.
    leaf_of = trees.array(11, np.uint32).astype(np.int64)
    if np.any(leaf_of[(leaf_of % K != 0)] != _NO_LEAF):
        raise ModelError("a tree's leaf has a number that the model does not have")
    return Document(
        floats=[
            FloatFeature(
                column=table.integer(2, -1),
                name=table.text(4),
                borders=table.array(3, np.float32).astype(np.float32),
                missing_is_high=bool(table.integer(0, 0, "?")) and table.integer(5, 0, "b") == 2,
            )
            for table in trees.tables(5)
        ],
        others=[
            OtherFeature(table.integer(1, -1), table.text(2), kind)
            for field, kind in ((4, "categorical"), (12, "text"), (18, "embedding"))
            for table in trees.tables(field)
        ],
        n_estimated=sum(len(table.array(3, np.float32)) for table in trees.tables(13)),
        one_hot=[(t.integer(0, -1), _hashes(t.array(1, np.int32))) for t in trees.tables(6)],
        ctrs=ctrs_from_cbm(trees.tables(7), content[8 + size :]),
        scale=trees.real(14, 1.0),
        bias=bias,
        info={key: _parsed(value) for key, value in info.items()},
        sizes=trees.array(2, np.int32).astype(np.int64),
        splits=trees.array(1, np.int32).astype(np.int64),
        steps=None if oblivious else np.stack([steps["left"], steps["right"]], 1).astype(np.int64),
        leaf_of=None if oblivious else leaf_of // K,
        leaf_values=_by_leaf(trees.array(8, np.float64).astype(np.float64), K),
        leaf_weights=trees.array(9, np.float64).astype(np.float64),
    )


def _parsed(value: str) -> Any:
    """Metadata are texts, many of them JSON."""
    if value[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def from_json(content: bytes) -> Document:
    document = json.loads(content)
    features = document["features_info"]
    scale, bias = document.get("scale_and_bias", (1.0, [0.0]))
    if "oblivious_trees" in document:
        trees = document["oblivious_trees"] or []
        sizes = [len(tree["splits"] or ()) for tree in trees]
        splits = [int(s["split_index"]) for tree in trees for s in tree["splits"] or ()]
        values = [np.asarray(tree["leaf_values"], np.float64).ravel() for tree in trees]
        steps, leaf_of = None, None
        weights = [w for tree in trees for w in tree.get("leaf_weights") or ()]
        per_leaf = [len(v) / (1 << min(d, MAX_DEPTH)) for v, d in zip(values, sizes, strict=True)]
        K = max(1, int(max(per_leaf, default=1)))
        leaves = _by_leaf(np.concatenate(values) if values else np.empty(0), K)
    else:
        sizes, splits = [], []
        pairs: list[tuple[int, int]] = []
        ends: list[int] = []
        numbers: list[Any] = []
        weights = []  # left out: few such models are kept in JSON
        for tree in document["trees"]:
            size = len(splits)
            _walk(tree, splits, pairs, ends, numbers)
            sizes.append(len(splits) - size)
        steps, leaf_of = np.asarray(pairs, np.int64).reshape(-1, 2), np.asarray(ends, np.int64)
        if len({len(v) if isinstance(v, list) else 0 for v in numbers}) > 1:
            raise ModelError("the trees' leaves hold different numbers of values")
        leaves = np.asarray(numbers, np.float64).reshape(len(numbers), -1)
    categorical = features.get("categorical_features") or []
    return Document(
        floats=[
            FloatFeature(
                column=int(f["flat_feature_index"]),
                name=str(f.get("feature_id") or f.get("feature_name") or ""),
                borders=np.asarray(f["borders"] or [], np.float32),
                missing_is_high=bool(f["has_nans"]) and f["nan_value_treatment"] == "AsTrue",
            )
            for f in features.get("float_features") or []
        ],
        others=[
            OtherFeature(
                int(f["flat_feature_index"]), str(f.get("feature_id") or ""), "categorical"
            )
            for f in categorical
        ],
        n_estimated=0,
        one_hot=[
            (int(f["feature_index"]), _hashes(f["values"])) for f in categorical if f.get("values")
        ],
        ctrs=ctrs_from_json(features.get("ctrs") or [], document.get("ctr_data") or {}),
        scale=float(scale),
        bias=[float(b) for b in bias],
        info=document.get("model_info") or {},
        sizes=np.asarray(sizes, np.int64),
        splits=np.asarray(splits, np.int64),
        steps=steps,
        leaf_of=leaf_of,
        leaf_values=leaves,
        leaf_weights=np.asarray(weights, np.float64),
    )


def _by_leaf(values: Array, K: int) -> Array:
    """Leaf values, K for each leaf one after the other, as (n_leaves, K)."""
    if len(values) % K:
        raise ModelError(f"the trees' leaves do not hold {K} numbers each")
    return values.reshape(-1, K)


def _hashes(values: Any) -> Array:
    """Hashes as numbers from 0; the files have them with a sign."""
    return np.asarray(values, np.int64) & 0xFFFFFFFF


def _walk(
    tree: Mapping[str, Any],
    splits: list[int],
    steps: list[tuple[int, int]],
    ends: list[int],
    values: list[Any],
    depth: int = 0,
) -> int:
    """Append a nested tree, parents first; the number of its root."""
    if depth > _MAX_NESTING:
        raise ModelError(f"a tree is deeper than {_MAX_NESTING} levels")
    at = len(splits)
    if "value" in tree:
        splits.append(0)
        steps.append((0, 0))
        ends.append(len(values))
        values.append(tree["value"])
        return at
    splits.append(int(tree["split"]["split_index"]))
    steps.append((0, 0))
    ends.append(-1)
    left, right = (
        _walk(tree[k], splits, steps, ends, values, depth + 1) for k in ("left", "right")
    )
    steps[at] = (left - at, right - at)
    return at
