"""Trees in a library's own node numbering, turned into the flat arrays of `qwyc.model.trees.Trees`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.limits import MAX_CATEGORY_CODES, MAX_CATEGORY_WORDS
from qwyc.model.trees import Trees


def _no_codes() -> npt.NDArray[np.int64]:
    return np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class NodeTable:
    """All trees' nodes one after the other; inner nodes and leaves share one numbering per tree."""

    begin: npt.NDArray[np.int64]  # (T + 1,) tree t owns nodes begin[t]:begin[t+1], root first
    left: npt.NDArray[np.int64]  # (n,) counted within the tree; < 0 at leaves
    right: npt.NDArray[np.int64]  # (n,)
    feature: npt.NDArray[np.int64]  # (n,)
    threshold: npt.NDArray[Any]  # (n,)
    flags: npt.NDArray[np.uint8]  # (n,)
    value: npt.NDArray[np.float64]  # (n,) what a leaf adds
    other: npt.NDArray[np.float64] | None = (
        None  # (n,) the other class's share, where leaves have two
    )
    set_codes: npt.NDArray[np.int64] = field(
        default_factory=_no_codes
    )  # of all nodes' category sets
    set_begin: npt.NDArray[np.int64] = field(
        default_factory=_no_codes
    )  # (n + 1,), if there are any
    weight: npt.NDArray[np.float64] | None = None  # (n,) training rows, where leaves have them


def flatten(table: NodeTable) -> Trees:
    """Number inner nodes and leaves apart, parents before children, and drop unreachable nodes."""
    order = _parents_first(table)  # (m,) rows of the table that a walk can reach, tree by tree
    n_rows = len(table.left)
    tree_of = np.repeat(np.arange(len(table.begin) - 1), np.diff(table.begin))  # (n,)
    is_leaf = table.left < 0
    inner, leaves = order[~is_leaf[order]], order[is_leaf[order]]
    node_begin = offsets(np.bincount(tree_of[inner], minlength=len(table.begin) - 1))
    leaf_begin = offsets(np.bincount(tree_of[leaves], minlength=len(table.begin) - 1))

    number = np.empty(n_rows, dtype=np.int64)  # a row's new number within its tree: ~leaf or node
    number[inner] = np.arange(len(inner)) - node_begin[tree_of[inner]]
    number[leaves] = ~(np.arange(len(leaves)) - leaf_begin[tree_of[leaves]])
    first = table.begin[tree_of[inner]]
    category_begin, category_words = _bit_sets(table, inner)
    return Trees(
        node_begin=node_begin,
        leaf_begin=leaf_begin,
        feature=to_int32(table.feature[inner], "a split's feature"),
        threshold=table.threshold[inner],
        left=number[first + table.left[inner]].astype(np.int32),
        right=number[first + table.right[inner]].astype(np.int32),
        flags=table.flags[inner],
        category_begin=category_begin,
        category_words=category_words,
        leaf_value=table.value[leaves],
        leaf_other=np.empty(0) if table.other is None else table.other[leaves],
        leaf_weight=np.empty(0) if table.weight is None else table.weight[leaves],
    )


def flatten_vectors(
    table: NodeTable, vectors: npt.NDArray[np.float64]
) -> tuple[Trees, npt.NDArray[np.float64]]:
    """The same where leaves hold vectors: `vectors` (n, K) is what each node of the table adds as a leaf.
    Returns the trees and what their leaves add, (n_leaves, K)."""
    trees = flatten(replace(table, value=np.arange(len(vectors), dtype=np.float64)))
    return trees, vectors[trees.leaf_value.astype(np.int64)]


def to_int32(values: npt.NDArray[np.int64], what: str) -> npt.NDArray[np.int32]:
    """`values` as int32; ModelError where they do not fit."""
    if values.size and not -(1 << 31) <= values.min() <= values.max() < 1 << 31:
        raise ModelError(f"{what} is out of range")
    return values.astype(np.int32)


def offsets(sizes: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Where each of some runs begins, and where the last one ends: (n + 1,) for n sizes."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _parents_first(table: NodeTable) -> npt.NDArray[np.int64]:
    """Rows that can be reached, sorted by tree and then by depth. All trees go down level by level
    together."""
    sizes = np.diff(table.begin)  # (T,)
    if len(sizes) == 0 or sizes.min() < 1:
        raise ModelError("a tree has no nodes" if len(sizes) else "the model has no trees")
    last = np.repeat(sizes, sizes)  # (n,) number of nodes in the row's tree
    is_leaf = table.left < 0
    for child in (table.left, table.right):
        if np.any(~is_leaf & ((child < 0) | (child >= last))):
            raise ModelError("a tree has a child out of range")
    first = np.repeat(table.begin[:-1], sizes)  # (n,)
    seen = np.zeros(len(last), dtype=bool)
    level = table.begin[:-1]
    levels = []
    while level.size:
        if seen[level].any() or len(np.unique(level)) < len(level):
            raise ModelError("a tree reaches a node in two ways")
        seen[level] = True
        levels.append(level)
        inner = level[~is_leaf[level]]
        children = np.column_stack([table.left[inner], table.right[inner]])
        level = (children + first[inner, None]).ravel()
    order = np.concatenate(levels)
    tree_of = np.repeat(np.arange(len(sizes)), sizes)
    return order[np.argsort(tree_of[order], kind="stable")]


def _bit_sets(
    table: NodeTable, inner: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
    """The inner nodes' category sets as bits."""
    if table.set_codes.size == 0:
        return np.zeros(len(inner) + 1, dtype=np.int64), np.empty(0, dtype=np.uint32)
    sizes = np.diff(table.set_begin)  # (n,)
    place = np.full(len(sizes), -1, dtype=np.int64)  # (n,) the node's place among inner nodes
    place[inner] = np.arange(len(inner))
    of_code = np.repeat(place, sizes)  # (n_codes,)
    order = np.argsort(of_code, kind="stable")
    order = order[of_code[order] >= 0]
    return bit_sets(offsets(sizes[inner]), table.set_codes[order])


def check_words(n_words: int) -> None:
    """ModelError where category sets take more words than are held."""
    if n_words > MAX_CATEGORY_WORDS:
        raise ModelError(
            f"the category sets take {4 * n_words:,} bytes; at most {4 * MAX_CATEGORY_WORDS:,} are held: "
            "train with fewer categories, or number them from 0"
        )


def bit_sets(
    begin: npt.NDArray[np.int64], codes: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
    """Sets of category codes, set i being codes[begin[i]:begin[i+1]], as bits, 32 codes a word: where
    each begins, (n + 1,), and the words."""
    if codes.size and not 0 <= codes.min() <= codes.max() < MAX_CATEGORY_CODES:
        raise ModelError(f"a category code is outside 0 to {MAX_CATEGORY_CODES - 1}")
    row = np.repeat(np.arange(len(begin) - 1), np.diff(begin))  # (n_codes,)
    sizes = np.zeros(len(begin) - 1, dtype=np.int64)  # (n,) words that each set takes
    np.maximum.at(sizes, row, codes // 32 + 1)
    places = offsets(sizes)
    check_words(int(places[-1]))
    packed = np.zeros(places[-1], dtype=np.uint32)
    bit = np.left_shift(np.uint32(1), (codes % 32).astype(np.uint32))
    np.bitwise_or.at(packed, places[row] + codes // 32, bit)
    return places, packed
