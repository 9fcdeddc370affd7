"""Some of the trees of an ensemble, in another order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.model.trees import Trees


def some_trees(trees: Trees, chosen: npt.NDArray[np.intp]) -> Trees:
    """Some of the trees, in this order."""
    nodes, leaves = np.diff(trees.node_begin)[chosen], np.diff(trees.leaf_begin)[chosen]
    node = spans(trees.node_begin[chosen], nodes)
    leaf = spans(trees.leaf_begin[chosen], leaves)
    sets = np.diff(trees.category_begin)[node]
    words = spans(trees.category_begin[node], sets)

    def of_leaves(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return array[leaf] if len(array) else array

    return Trees(
        node_begin=offsets(nodes),
        leaf_begin=offsets(leaves),
        feature=trees.feature[node],
        threshold=trees.threshold[node],
        left=trees.left[node],
        right=trees.right[node],
        flags=trees.flags[node],
        category_begin=offsets(sets),
        category_words=trees.category_words[words],
        leaf_value=of_leaves(trees.leaf_value),
        leaf_other=of_leaves(trees.leaf_other),
        leaf_weight=of_leaves(trees.leaf_weight),
    )


def offsets(sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Where each of some runs begins, and where the last one ends, (n + 1,)."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def spans(first: npt.NDArray[np.int64], size: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The numbers first[i] to first[i] + size[i], for one i after the other."""
    begin = offsets(size)
    return np.arange(begin[-1]) + np.repeat(first - begin[:-1], size)
