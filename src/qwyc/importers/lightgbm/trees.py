"""The trees of a LightGBM model's text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.importers.flatten import check_words, offsets, to_int32
from qwyc.limits import MAX_CATEGORY_CODES
from qwyc.model.trees import NodeFlag, Trees

REMEDY = "save it again with Booster.save_model('model.txt')"
_ZERO = float(np.float32(1e-35))  # LightGBM takes every |x| up to this for 0

Fields = Mapping[str, str]


def trees_of(trees: Sequence[Fields]) -> Trees:
    """The trees whose key=value lines these are."""
    n_leaves = np.array([int(tree["num_leaves"]) for tree in trees], dtype=np.int64)  # (T,)
    if n_leaves.min() < 1:
        raise ModelError("a tree has no leaves")
    n_nodes = n_leaves - 1
    kind = _numbers(trees, "decision_type", n_nodes, int)  # (n,) bits, see below
    threshold = _numbers(trees, "threshold", n_nodes, float)
    category_begin, category_words = _category_sets(trees, n_nodes, kind, threshold)
    return Trees(
        node_begin=offsets(n_nodes),
        leaf_begin=offsets(n_leaves),
        feature=to_int32(_numbers(trees, "split_feature", n_nodes, int), "a split's feature"),
        threshold=_snap_to_zero(np.where(kind & 1, 0.0, threshold)),
        # Leaves are written as ~leaf, and nodes after their parents, just as Trees has them.
        left=to_int32(_numbers(trees, "left_child", n_nodes, int), "a child"),
        right=to_int32(_numbers(trees, "right_child", n_nodes, int), "a child"),
        flags=_flags(kind, threshold),
        category_begin=category_begin,
        category_words=category_words,
        leaf_value=_numbers(trees, "leaf_value", n_leaves, float),
        leaf_other=np.empty(0, dtype=np.float64),
        leaf_weight=_leaf_counts(trees, n_leaves),
    )


def _leaf_counts(
    trees: Sequence[Fields], n_leaves: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Training rows in each leaf, (n_leaves,); none where a tree does not say."""
    if any(
        len(tree.get("leaf_count", "").split()) != n
        for tree, n in zip(trees, n_leaves, strict=True)
    ):
        return np.empty(0)
    return np.asarray(_numbers(trees, "leaf_count", n_leaves, float))


def _numbers(
    trees: Sequence[Fields],
    name: str,
    sizes: npt.NDArray[np.int64],
    parse: type[int] | type[float],
) -> npt.NDArray[Any]:
    """One field of all trees, one after the other; `sizes` (T,) is what each tree must have."""
    texts = [tree.get(name, "").split() for tree in trees]
    if [len(text) for text in texts] != sizes.tolist():
        raise ModelError(f"a tree's {name} has too many or too few entries; {REMEDY}")
    numbers = (parse(token) for text in texts for token in text)
    return np.fromiter(numbers, dtype=np.float64 if parse is float else np.int64)


def _flags(
    kind: npt.NDArray[np.int64], threshold: npt.NDArray[np.float64]
) -> npt.NDArray[np.uint8]:
    """NodeFlags, (n,), from LightGBM's decision_type: bit 0 is set for categorical splits, bit 1
    where missing goes left, and bits 2-3 say what is missing: 0 nothing, 1 zero and NaN, 2 NaN."""
    categorical = (kind & 1) != 0
    missing = (kind >> 2) & 3
    if np.any((missing == 3) | (kind < 0) | (kind > 15)):
        raise ModelError(f"a split's decision_type is not known; {REMEDY}")
    # Where nothing is missing, NaN is 0.
    default_left = np.where(missing == 0, threshold >= 0.0, (kind & 2) != 0)
    # At a set of categories NaN always goes right.
    numerical = np.where(default_left, NodeFlag.DEFAULT_LEFT, 0)
    numerical |= np.where(missing == 1, NodeFlag.ZERO_IS_MISSING, 0)
    in_set = NodeFlag.CATEGORICAL | NodeFlag.IN_SET_LEFT
    return np.where(categorical, in_set, numerical).astype(np.uint8)


def _snap_to_zero(threshold: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Thresholds that put every |x| <= 1e-35 on the side of 0, as LightGBM rounds those x to 0."""
    tiny = np.abs(threshold) <= _ZERO
    moved = np.where(threshold < 0, np.nextafter(-_ZERO, -1.0), _ZERO)
    return np.where(tiny, moved, threshold)


def _category_sets(
    trees: Sequence[Fields],
    n_nodes: npt.NDArray[np.int64],
    kind: npt.NDArray[np.int64],
    threshold: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
    """Every node's bit set of category codes: where it begins, (n + 1,), and the words."""
    begin = offsets(n_nodes)  # (T + 1,)
    sizes = np.zeros(len(kind), dtype=np.int64)  # (n,) words in the node's set
    sets = [np.empty(0, dtype=np.uint32)]
    total = 0
    for first, end, tree in zip(begin[:-1], begin[1:], trees, strict=True):
        rows = first + np.flatnonzero(kind[first:end] & 1)  # the tree's categorical nodes
        if rows.size == 0:
            continue
        # Set k has words bounds[k]:bounds[k+1]; a categorical node's threshold is its set's number.
        bounds = np.array([int(token) for token in tree["cat_boundaries"].split()], dtype=np.int64)
        words = np.array([int(token) for token in tree["cat_threshold"].split()], dtype=np.uint32)
        number = threshold[rows].astype(np.int64)
        if (
            bounds.size < 2
            or bounds[0] != 0
            or np.any(np.diff(bounds) < 0)
            or bounds[-1] != len(words)
            or not 0 <= number.min() <= number.max() < len(bounds) - 1
        ):
            raise ModelError(f"a tree's category sets do not fit its nodes; {REMEDY}")
        sizes[rows] = np.diff(bounds)[number]
        if sizes[rows].max() * 32 > MAX_CATEGORY_CODES:
            raise ModelError(
                f"the model has category codes from {MAX_CATEGORY_CODES} on; renumber them"
            )
        total += int(sizes[rows].sum())
        check_words(total)
        sets += [words[bounds[k] : bounds[k + 1]] for k in number]
    return offsets(sizes), np.concatenate(sets)
