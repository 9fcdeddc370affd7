"""The trees of an XGBoost model's document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.importers.flatten import NodeTable, offsets
from qwyc.importers.xgboost.objective import SUPPORTED
from qwyc.model.trees import NodeFlag

REMEDY = "save it again with Booster.save_model('model.ubj')"

Document = Mapping[str, Any]
Array = npt.NDArray[Any]


def trees_in_use(
    model: Document, best_iteration: str | None, n_outputs: int
) -> tuple[Sequence[Document], Array]:
    """The trees that predict, all or those up to the best iteration, and the output of each, (T,)."""
    total = len(model["trees"])
    counted = int(model["gbtree_model_param"]["num_trees"])
    if counted != total:
        raise ModelError(f"the model should have {counted} trees but holds {total}; {REMEDY}")
    if not total:
        raise ModelError("the model has no trees; train it for one round at least")
    output = np.asarray(model["tree_info"], dtype=np.int64)
    if output.shape != (total,):
        raise ModelError(f"the model has {total} trees but outputs of {output.size}; {REMEDY}")
    if n_outputs == 1 and output.any():
        raise ModelError(f"the model's trees belong to several outputs; {SUPPORTED}")
    if not 0 <= output.min() <= output.max() < n_outputs:
        raise ModelError(f"a tree belongs to an output outside 0 to {n_outputs - 1}; {REMEDY}")
    used = total if best_iteration is None else _trees_up_to(model, int(best_iteration), n_outputs)
    return model["trees"][:used], output[:used]


def _trees_up_to(model: Document, iteration: int, n_outputs: int) -> int:
    """How many trees there are up to an iteration."""
    total = len(model["trees"])
    if "iteration_indptr" in model:
        ends = [int(end) for end in model["iteration_indptr"]]
    else:
        per_output = max(1, int(model["gbtree_model_param"].get("num_parallel_tree", 1)))
        vectors = leaf_size(model["trees"]) > 1
        ends = list(range(0, total + 1, per_output * (1 if vectors else n_outputs)))
    if not 0 < iteration + 1 < len(ends) or not 0 < ends[iteration + 1] <= total:
        raise ModelError(f"the best iteration is {iteration}, which the model does not have")
    return ends[iteration + 1]


def in_parallel(model: Document) -> bool:
    """Whether a round has several trees of an output, as in forests."""
    return int(model["gbtree_model_param"].get("num_parallel_tree", 1)) > 1


def leaf_size(trees: Sequence[Document]) -> int:
    """How many numbers a leaf holds."""
    sizes = {max(1, int(tree["tree_param"].get("size_leaf_vector", 0))) for tree in trees}
    if len(sizes) > 1:
        raise ModelError(f"the model's leaves are vectors of different sizes; {REMEDY}")
    return sizes.pop()


def leaf_vectors(trees: Sequence[Document], table: NodeTable, size: int) -> Array:
    """What each leaf adds to the outputs, (n, size); of inner nodes it means nothing.

    Versions up to 3.1 keep it in base_weights, by node. Later ones keep it in leaf_weights, by leaf, and a
    leaf's number in place of its right child."""
    vectors = np.zeros((len(table.left), size))
    for first, end, tree in zip(table.begin[:-1], table.begin[1:], trees, strict=True):
        leaves = first + np.flatnonzero(table.left[first:end] < 0)
        by_leaf = "leaf_weights" in tree
        values = np.asarray(tree["leaf_weights" if by_leaf else "base_weights"], dtype=np.float32)
        place = table.right[leaves] if by_leaf else leaves - first
        if (
            values.ndim != 1
            or len(values) % size
            or np.any((place < 0) | (place >= len(values) // size))
        ):
            raise ModelError(f"a tree's leaves do not have {size} numbers each; {REMEDY}")
        vectors[leaves] = values.reshape(-1, size)[place]
    return vectors


def node_table(trees: Sequence[Document]) -> NodeTable:
    """The nodes of all trees. A leaf's value means nothing where leaves hold vectors."""

    def column(name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        pieces = [np.asarray(tree[name], dtype=dtype) for tree in trees]
        if any(piece.shape != (size,) for piece, size in zip(pieces, sizes, strict=True)):
            raise ModelError(f"a tree's {name} does not have one entry per node")
        return np.concatenate(pieces)

    sizes = [len(tree["left_children"]) for tree in trees]
    begin = offsets(sizes)
    left = column("left_children", np.int64)
    # Inner nodes hold their threshold here, leaves their value.
    condition = column("split_conditions", np.float32)
    flags = np.where(column("default_left", np.int64) != 0, NodeFlag.DEFAULT_LEFT, 0)
    if "split_type" in trees[0]:
        categorical = column("split_type", np.int64) == 1
    else:  # written before there were categories
        categorical = np.zeros(len(left), dtype=bool)
    flags |= np.where(categorical, NodeFlag.CATEGORICAL, 0)
    set_begin, set_codes = _category_sets(trees, begin)
    return NodeTable(
        begin=begin,
        left=left,
        right=column("right_children", np.int64),
        feature=column("split_indices", np.int64),
        threshold=np.where(categorical, np.float32(0), condition),
        flags=flags.astype(np.uint8),
        value=condition.astype(np.float64),
        weight=_curvature(trees, sizes),
        set_begin=set_begin,
        set_codes=set_codes,
    )


def _curvature(trees: Sequence[Document], sizes: Sequence[int]) -> npt.NDArray[np.float64] | None:
    """The sum of p (1 - p) over the training rows at each node, (n,); None where a tree does not say."""
    pieces = [np.asarray(tree.get("sum_hessian", ()), dtype=np.float64) for tree in trees]
    if any(piece.shape != (size,) for piece, size in zip(pieces, sizes, strict=True)):
        return None
    return np.concatenate(pieces)


def weighed(table: NodeTable, weight: Array, base: Array | None) -> NodeTable:
    """Leaves of the dart booster, which gives every tree a weight, (T,) or more.

    XGBClassifier.predict adds weight * ((base + leaf) - base), Booster.predict weight * leaf. `base` (T,)
    is what the sum of each tree's output starts from."""
    sizes = np.diff(table.begin)
    leaf = table.value.astype(np.float32)
    if base is not None:
        start = np.repeat(base, sizes)
        leaf = (start + leaf) - start
    value = leaf * np.repeat(weight[: len(sizes)], sizes)
    # Dropped trees had no part in the probabilities that the leaves' weights are made of.
    return replace(table, value=value.astype(np.float64), weight=None)


def _category_sets(
    trees: Sequence[Document], begin: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Every node's category codes one after the other, and where each node's begin, (n + 1,)."""
    sizes = np.zeros(begin[-1], dtype=np.int64)  # (n,) codes in the node's set
    codes = []
    for first, end, tree in zip(begin[:-1], begin[1:], trees, strict=True):
        if len(tree.get("categories_nodes", ())) == 0:
            continue
        nodes, starts, counts, values = (
            np.asarray(tree["categories" + name], dtype=np.int64)
            for name in ("_nodes", "_segments", "_sizes", "")
        )
        if (
            not len(nodes) == len(starts) == len(counts)
            or np.any(np.diff(nodes) <= 0)  # written in the order of the nodes, without gaps
            or not 0 <= nodes[0] <= nodes[-1] < end - first
            or counts.min() < 0
            or not np.array_equal(starts, np.cumsum(counts) - counts)
            or counts.sum() != len(values)
        ):
            raise ModelError("a tree's category sets do not fit its nodes")
        sizes[first + nodes] = counts
        codes.append(values)
    return offsets(sizes), np.concatenate(codes) if codes else np.empty(0, dtype=np.int64)
