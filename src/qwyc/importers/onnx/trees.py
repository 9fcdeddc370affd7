"""ONNX's trees: nodes and weights that go by tree and number, or the lists of the newer TreeEnsemble."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.importers.flatten import NodeTable
from qwyc.importers.onnx.graph import TREES
from qwyc.model.trees import NodeFlag

_MODES = {
    "BRANCH_LEQ": "<=",
    "BRANCH_LT": "<",
    "BRANCH_GTE": ">=",
    "BRANCH_GT": ">",
    "BRANCH_EQ": "==",
    "BRANCH_NEQ": "!=",
    "LEAF": "",
}
_MODE_NUMBERS = np.array(["<=", "<", ">=", ">", "==", "!=", "in a set"])

Array = npt.NDArray[Any]
Attributes = Mapping[str, Any]
_NONE: Array = np.empty(0, np.int64)


class Weights:
    """What leaves add: which classes have weights, and whether all are 0 or more. Of a classifier also each
    weight's node, class and value, (m,)."""

    def __init__(self, ids: Array, values: Array, nodes: Array = _NONE) -> None:
        self.ids = np.unique(ids).tolist()
        self.all_positive = bool((values >= 0).all())
        self.nodes, self.of_class, self.values = nodes, ids, values


Trees = tuple[NodeTable, npt.NDArray[np.str_], Weights]  # nodes, when each goes left, weights


def trees_of(kind: str, attributes: Attributes, real: np.dtype[Any]) -> Trees:
    """The trees of an operator; `real` is the type of its rows."""
    if kind == "TreeEnsemble":
        return _listed(attributes, real)
    return _keyed(attributes, real, "class" if kind == TREES[0] else "target")


def first(attributes: Attributes, *names: str) -> Array:
    """The first of these attributes that is there, as an array."""
    for name in names:
        value = attributes.get(name)
        if value is not None and np.size(value):
            return np.asarray(value)
    return np.empty(0)


def text(value: Any, default: str) -> str:
    """An attribute that is text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else default


def _integers(attributes: Attributes, name: str) -> Array:
    return first(attributes, name).astype(np.int64)


def _missing_left(attributes: Attributes, n: int) -> Array:
    """Whether missing values go left, (n,); nowhere if the attribute is not there."""
    tracks = _integers(attributes, "nodes_missing_value_tracks_true")
    return tracks if len(tracks) else np.zeros(n, np.int64)


# ---- TreeEnsembleClassifier and TreeEnsembleRegressor ----------------------------------------


class _Places:
    """Where nodes that go by their tree's and their own number stand in the lists, (n,)."""

    def __init__(self, tree: Array, node: Array) -> None:
        starts = np.flatnonzero(np.append(True, tree[1:] != tree[:-1]))
        self.trees = tree[starts]  # (T,) their numbers
        if len(np.unique(self.trees)) != len(starts):
            raise ModelError("a tree's nodes are not together")
        self.begin = np.append(starts, len(tree)).astype(np.int64)  # (T + 1,)
        self.rank = np.repeat(np.arange(len(starts)), np.diff(self.begin))  # (n,) of the tree
        self.span = int(node.max()) + 1
        if node.min() < 0 or self.span > 1 << 31:
            raise ModelError("a node's number is out of range")
        self.order = np.lexsort((node, self.rank))
        self.keys = self.rank[self.order] * self.span + node[self.order]  # (n,) sorted
        if np.any(np.diff(self.keys) == 0):
            raise ModelError("a tree has two nodes with the same number")

    def ranks(self, tree: Array) -> Array:
        """Which trees have these numbers, counted from 0."""
        by_number = np.argsort(self.trees)
        known = self.trees[by_number]
        at = np.minimum(np.searchsorted(known, tree), len(known) - 1)
        if np.any(known[at] != tree):
            raise ModelError("a weight belongs to a tree that is not there")
        return by_number[at]

    def of(self, rank: Array, node: Array) -> Array:
        """Where nodes of these numbers stand, of trees counted from 0."""
        wanted = rank * self.span + node
        at = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        if np.any((self.keys[at] != wanted) | (node < 0) | (node >= self.span)):
            raise ModelError("a tree refers to a node that it does not have")
        return self.order[at]


def _keyed(attributes: Attributes, real: np.dtype[Any], prefix: str) -> Trees:
    """Nodes that go by tree and node number, and weights that go by tree, node and class."""
    tree, node, true, false, feature = (
        _integers(attributes, f"nodes_{name}")
        for name in ("treeids", "nodeids", "truenodeids", "falsenodeids", "featureids")
    )
    n = len(tree)
    modes = [text(mode, "") for mode in attributes["nodes_modes"]]
    values = first(attributes, "nodes_values_as_tensor", "nodes_values").astype(real)
    missing_left = _missing_left(attributes, n)
    columns = (modes, node, true, false, feature, values, missing_left)
    if not n or any(len(column) != n for column in columns):
        raise ModelError("the trees' attributes differ in length")
    if unknown := set(modes) - set(_MODES):
        raise ModelError(f"a node has the unknown mode {min(unknown)!r}")
    places = _Places(tree, node)
    is_leaf = np.array([mode == "LEAF" for mode in modes])
    rank = places.rank[~is_leaf]
    left, right = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    for child, numbers in ((left, true), (right, false)):
        child[~is_leaf] = places.of(rank, numbers[~is_leaf]) - places.begin[rank]
    value, weights = _keyed_weights(attributes, real, prefix, places)
    table = NodeTable(
        begin=places.begin,
        left=left,
        right=right,
        feature=feature,
        threshold=np.where(is_leaf, real.type(0), values),
        flags=np.where(missing_left != 0, NodeFlag.DEFAULT_LEFT, 0).astype(np.uint8),
        value=value,
    )
    return table, np.array([_MODES[mode] for mode in modes]), weights


def _keyed_weights(
    attributes: Attributes, real: np.dtype[Any], prefix: str, places: _Places
) -> tuple[Array, Weights]:
    """What every node adds, (n,), and what is known of all weights."""
    tree, node, ids = (
        _integers(attributes, f"{prefix}_{name}") for name in ("treeids", "nodeids", "ids")
    )
    weight = first(attributes, f"{prefix}_weights_as_tensor", f"{prefix}_weights").astype(real)
    if not len(weight) or any(len(part) != len(weight) for part in (tree, node, ids)):
        raise ModelError("the leaves' weights differ in length, or there are none")
    where = places.of(places.ranks(tree), node)
    if len(np.unique(np.stack([where, ids]), axis=1)[0]) != len(where):
        raise ModelError("a leaf has two weights for one class")
    # With weights for both classes, ONNX Runtime looks at the second's.
    chosen = ids == ids.max()
    value = np.zeros(len(places.keys))
    value[where[chosen]] = weight[chosen]
    return value, Weights(ids, weight, where)


# ---- TreeEnsemble ----------------------------------------------------------------------------


def _listed(attributes: Attributes, real: np.dtype[Any]) -> Trees:
    """One list of inner nodes and one of leaves for all trees."""
    splits = first(attributes, "nodes_splits").astype(real)
    n = len(splits)
    true, true_leaf, false, false_leaf, mode, feature = (
        _integers(attributes, f"nodes_{name}")
        for name in (
            "truenodeids",
            "trueleafs",
            "falsenodeids",
            "falseleafs",
            "modes",
            "featureids",
        )
    )
    missing_left = _missing_left(attributes, n)
    weight = first(attributes, "leaf_weights").astype(real)
    target, roots = _integers(attributes, "leaf_targetids"), _integers(attributes, "tree_roots")
    columns = (true, true_leaf, false, false_leaf, mode, feature, missing_left)
    if any(len(column) != n for column in columns):
        raise ModelError("the trees' attributes differ in length")
    if len(weight) != len(target) or not len(weight) or not len(roots):
        raise ModelError("the leaves' weights differ in length, or there are none")
    if not 0 <= roots.min() <= roots.max() < n:
        raise ModelError("a tree begins at a node that is not there")
    if mode.min() < 0 or mode.max() >= len(_MODE_NUMBERS):
        raise ModelError("a node has an unknown mode")
    children = [(true, true_leaf), (false, false_leaf)]
    begin, which, leaf, left, right = _walk(roots.tolist(), children, n, len(weight))
    inner = which >= 0

    def of_nodes(values: Array) -> Array:
        return np.where(inner, values[which], 0)

    table = NodeTable(
        begin=begin,
        left=left,
        right=right,
        feature=of_nodes(feature),
        threshold=of_nodes(splits).astype(real),
        flags=np.where(of_nodes(missing_left) != 0, NodeFlag.DEFAULT_LEFT, 0).astype(np.uint8),
        value=np.where(inner, 0.0, weight[leaf].astype(np.float64)),
    )
    return table, np.where(inner, _MODE_NUMBERS[of_nodes(mode)], ""), Weights(target, weight)


def _walk(
    roots: list[int], children: list[tuple[Array, Array]], n_nodes: int, n_leaves: int
) -> tuple[Array, Array, Array, Array, Array]:
    """The trees level by level, each node as often as trees have it: where each tree begins, (T + 1,);
    then of every row, (m,), its node or its leaf in the lists, the other being -1, and both children,
    counted within the tree. `children`: of either side the number, (n_nodes,), and whether it is a
    leaf's."""
    rows: list[tuple[int, int]] = []  # (node, -1) or (-1, leaf)
    pairs: list[list[int]] = []
    begin = [0]
    for root in roots:
        at = first_row = len(rows)
        rows.append((root, -1))
        pairs.append([-1, -1])
        while at < len(rows):
            node = rows[at][0]
            if node >= 0:
                if len(rows) > 4 * (n_nodes + n_leaves + len(roots)):
                    raise ModelError("a tree refers to itself")
                for side, (numbers, is_leaf) in enumerate(children):
                    pairs[at][side] = len(rows) - first_row
                    child = int(numbers[node])
                    if not 0 <= child < (n_leaves if is_leaf[node] else n_nodes):
                        raise ModelError("a tree refers to a node that it does not have")
                    rows.append((-1, child) if is_leaf[node] else (child, -1))
                    pairs.append([-1, -1])
            at += 1
        begin.append(len(rows))
    (which, leaf), (left, right) = np.array(rows, np.int64).T, np.array(pairs, np.int64).T
    return np.array(begin, np.int64), which, leaf, left, right
