"""Parts that the readers of scikit-learn's models share: trees as flat arrays, columns, versions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from qwyc.importers.flatten import offsets
from qwyc.model.ensemble import Source
from qwyc.model.trees import NodeFlag, Summation, Trees
from qwyc.rows.schema import FINITE_ZERO, REFUSED, Schema


def source(name: str) -> Source:
    """A kind of model, of the scikit-learn that is loaded."""
    version = str(getattr(sys.modules.get("sklearn"), "__version__", ""))
    return Source(library="scikit-learn", version=version, kind=name)


class AsSklearn(TypedDict):
    """How scikit-learn's trees compare and add up, and which kind of model it is."""

    source: Source
    summation: Summation
    less_equal: bool
    truncates: bool


def as_sklearn(name: str, summation: Summation = Summation.FLOAT64) -> AsSklearn:
    """What all trees of scikit-learn have in common, for `tree_ensemble` and `class_tree_ensemble`."""
    return AsSklearn(source=source(name), summation=summation, less_equal=True, truncates=False)


def inputs_of(model: Any, dtype: str, **rest: Any) -> Schema:
    """What rows the model takes, by its own `feature_names_in_`."""
    names = getattr(model, "feature_names_in_", None)
    return Schema(
        n_features=int(model.n_features_in_),
        names=None if names is None else tuple(str(name) for name in names),
        dtype=dtype,
        arrays_hold_values=bool(rest.get("categories")),
        unseen="missing",
        integers="checked" if dtype == "float32" else "direct",
        absent=FINITE_ZERO if dtype == "float32" else REFUSED,  # of histograms
        **rest,
    )


def split_trees(
    trees: Sequence[Any],
    value: npt.NDArray[np.float64],
    other: npt.NDArray[np.float64] | None = None,
    columns: Sequence[npt.NDArray[Any]] | None = None,
) -> Trees:
    """sklearn.tree's trees, whose rows are float32 and whose splits are numeric. Where each tree has
    columns of its own, they are given."""
    features = [tree.feature for tree in trees]
    if columns is not None:
        pairs = zip(columns, features, strict=True)
        features = [np.asarray(own)[np.maximum(feature, 0)] for own, feature in pairs]
    left_of_missing = np.concatenate([tree.missing_go_to_left for tree in trees]) != 0
    n_nodes = len(left_of_missing)
    return flat_trees(
        begin=offsets([tree.node_count for tree in trees]),
        left=np.concatenate([tree.children_left for tree in trees]),
        right=np.concatenate([tree.children_right for tree in trees]),
        feature=np.concatenate(features),
        threshold=_round_down(np.concatenate([tree.threshold for tree in trees])),
        flags=np.where(left_of_missing, NodeFlag.DEFAULT_LEFT, 0),
        value=value,
        other=other,
        sets=np.empty((0, 0), np.uint32),
        has_set=np.zeros(n_nodes, bool),
        weight=np.concatenate([tree.n_node_samples for tree in trees]).astype(np.float64),
    )


def split_vector_trees(
    trees: Sequence[Any],
    vectors: npt.NDArray[np.float64],
    columns: Sequence[npt.NDArray[Any]] | None = None,
) -> tuple[Trees, npt.NDArray[np.float64]]:
    """The same for leaves that hold a number for each class: the trees, and what their leaves hold,
    (n_leaves, K), of `vectors`, (n, K), for all nodes."""
    flat = split_trees(trees, np.zeros(len(vectors)), None, columns)
    is_leaf = np.concatenate([tree.children_left for tree in trees]) < 0  # in the order of leaves
    return flat, np.ascontiguousarray(vectors[is_leaf])


def _round_down(threshold: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """The largest float32 <= threshold: the same split for every row of float32."""
    with np.errstate(over="ignore"):
        near = threshold.astype(np.float32)
        return np.where(near > threshold, np.nextafter(near, np.float32(-np.inf)), near)


def flat_trees(
    *,
    begin: npt.NDArray[np.int64],  # (T + 1,) tree t owns nodes begin[t]:begin[t+1], root first
    left: npt.NDArray[Any],  # (n,) counted within the tree; < 0 at leaves
    right: npt.NDArray[Any],  # (n,)
    feature: npt.NDArray[Any],  # (n,)
    threshold: npt.NDArray[Any],  # (n,)
    flags: npt.NDArray[Any],  # (n,)
    value: npt.NDArray[np.float64],  # (n,)
    sets: npt.NDArray[np.uint32],  # (n_sets, words) bit sets of the nodes that have one, in order
    has_set: npt.NDArray[np.bool_],  # (n,)
    other: npt.NDArray[np.float64] | None = None,  # (n,)
    weight: npt.NDArray[np.float64],  # (n,) training rows
) -> Trees:
    """Number inner nodes and leaves apart. scikit-learn already has parents before children."""
    is_leaf = left < 0
    inner = np.flatnonzero(~is_leaf)  # (n_nodes,)
    leaves = np.flatnonzero(is_leaf)  # (n_leaves,)
    node_begin = np.searchsorted(inner, begin).astype(np.int64)
    leaf_begin = np.searchsorted(leaves, begin).astype(np.int64)
    tree_of = np.repeat(np.arange(len(begin) - 1), np.diff(begin))  # (n,)
    number = np.empty(len(left), np.int32)  # (n,) a node's new number within its tree; ~leaf
    number[inner] = np.arange(len(inner)) - node_begin[tree_of[inner]]
    number[leaves] = ~(np.arange(len(leaves)) - leaf_begin[tree_of[leaves]])
    first = begin[tree_of[inner]]
    return Trees(
        node_begin=node_begin,
        leaf_begin=leaf_begin,
        feature=feature[inner].astype(np.int32),
        threshold=threshold[inner],
        left=number[first + left[inner]],
        right=number[first + right[inner]],
        flags=flags[inner].astype(np.uint8),
        category_begin=offsets(has_set[inner] * sets.shape[1]),
        category_words=np.ascontiguousarray(sets, np.uint32).ravel(),
        leaf_value=np.ascontiguousarray(value[leaves]),
        leaf_other=np.empty(0) if other is None else np.ascontiguousarray(other[leaves]),
        leaf_weight=weight[leaves],
    )
