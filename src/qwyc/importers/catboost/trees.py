"""CatBoost's trees: splits, numbered for all trees at once, and trees of one split a level or any shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.importers.catboost.ctr import Ctr
from qwyc.importers.catboost.document import Document
from qwyc.importers.flatten import (
    NodeTable,
    bit_sets,
    check_words,
    flatten,
    offsets,
    to_int32,
)
from qwyc.limits import MAX_DEPTH
from qwyc.model.trees import NodeFlag, Trees
from qwyc.rows.schema import Category

Array = npt.NDArray[Any]

_NO_CODES = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Splits:
    """Every split by its number, (n,)."""

    column: Array
    border: Array
    flags: Array
    codes: Sequence[Array]  # of a split on categories; empty for numbers
    # The hashes of every categorical column; a None after them: all other hashes count, too.
    categories: dict[int, tuple[Category, ...]]
    combined: Sequence[Ctr]  # statistics of combinations, each a column after those of the model


def splits_of(document: Document) -> Splits:
    """The splits that a document numbers: those on numbers, on what is estimated, on categories."""
    column = [np.full(len(f.borders), f.column, np.int64) for f in document.floats]
    border = [f.borders for f in document.floats]
    low = int(NodeFlag.DEFAULT_LEFT)
    flags = [np.where(f.missing_is_high & (f.borders < np.inf), 0, low) for f in document.floats]
    n_numeric = sum(len(b) for b in border)
    _refuse_other_splits(document, n_numeric)
    codes: list[Array] = [np.empty(0, np.int64)] * (n_numeric + document.n_estimated)
    column.append(np.zeros(document.n_estimated, np.int64))
    border.append(np.zeros(document.n_estimated, np.float32))
    flags.append(np.zeros(document.n_estimated, np.int64))
    cats = [f.column for f in document.others if f.kind == "categorical"]
    known = _known_hashes(document, len(cats))
    for feature, values in document.one_hot:
        column.append(np.full(len(values), cats[feature]))
        flags.append(np.full(len(values), int(NodeFlag.CATEGORICAL)))
        codes += [np.searchsorted(known[feature], [value]) for value in values]
        border.append(np.zeros(len(values), np.float32))
    combined = [ctr for ctr in document.ctrs if not ctr.of.is_single]
    place = {
        id(ctr): k for k, ctr in enumerate(combined, len(document.floats) + len(document.others))
    }
    is_used = np.zeros(len(codes) + sum(len(ctr.borders) for ctr in document.ctrs), bool)
    is_used[document.splits[document.splits < len(is_used)]] = True
    n_codes = 0
    for ctr in document.ctrs:
        if not ctr.of.is_single:  # a column of its own, after all others
            column.append(np.full(len(ctr.borders), place[id(ctr)]))
            border.append(ctr.borders)
            flags.append(np.full(len(ctr.borders), low))
            codes += [np.empty(0, np.int64)] * len(ctr.borders)
            continue
        column.append(np.full(len(ctr.borders), cats[ctr.feature]))
        border.append(np.zeros(len(ctr.borders), np.float32))
        used = is_used[len(codes) : len(codes) + len(ctr.borders)]
        statistic = np.empty(0, np.float32)
        if used.any():
            statistic = np.full(len(known[ctr.feature]), ctr.default)  # by code
            statistic[np.searchsorted(known[ctr.feature], ctr.hashes)] = ctr.values()
        # A category goes right where its statistic is above the border. The set is of those that go
        # another way than all that are not known.
        rest_right = ctr.default > ctr.borders
        inside = int(NodeFlag.CATEGORICAL | NodeFlag.IN_SET_LEFT)
        flags.append(np.where(rest_right, inside, int(NodeFlag.CATEGORICAL)))
        for limit, right, needed in zip(ctr.borders, rest_right, used, strict=True):
            # No split of a tree needs the others, and a file may describe very many.
            found = np.flatnonzero((statistic > limit) != right) if needed else _NO_CODES
            codes.append(found)
            n_codes += len(found)
            check_words(n_codes)
    hashes: dict[int, tuple[Category, ...]] = {f.column: () for f in document.others}
    hashes |= {cats[i]: tuple(int(h) for h in known[i]) for i in range(len(cats))}
    for i in {i for ctr in combined for i in (*ctr.of.categories, *dict(ctr.of.equal))}:
        hashes[cats[i]] += (None,)  # combinations are of categories that the model does not list
    return Splits(
        np.concatenate([np.empty(0, np.int64), *column]),
        np.concatenate([np.empty(0, np.float32), *border]),
        np.concatenate([np.empty(0, np.int64), *flags]).astype(np.uint8),
        codes,
        hashes,
        combined,
    )


def _known_hashes(document: Document, n_features: int) -> list[Array]:
    """All hashes that the model has of every categorical feature, sorted: a hash's place is its code."""
    found: list[list[Array]] = [[np.empty(0, np.int64)] for _ in range(n_features)]
    single = [ctr for ctr in document.ctrs if ctr.of.is_single]
    # A table once, however many statistics are made of it.
    pairs = {(ctr.feature, id(ctr.counted)): (ctr.feature, ctr.hashes) for ctr in single}.values()
    for feature, values in [*document.one_hot, *pairs]:
        if not 0 <= feature < n_features:
            raise ModelError("a split is on a categorical feature that the model does not have")
        found[feature].append(values)
    return [np.unique(np.concatenate(parts)) for parts in found]


def _refuse_other_splits(document: Document, n_numeric: int) -> None:
    """Name the first feature that trees split on and that cannot be read."""
    categorical = [f for f in document.others if f.kind == "categorical"]
    for ctr in document.ctrs:
        of = ctr.of
        if any(not 0 <= i < len(categorical) for i in (*of.categories, *dict(of.equal))):
            raise ModelError("a statistic is of a categorical feature that the model does not have")
        if any(not 0 <= i < len(document.floats) for i, _ in of.above) or not of.categories:
            raise ModelError("a statistic is of features that the model does not have")
    used = document.splits
    if document.steps is not None:
        used = used[(document.steps != 0).any(axis=1)]
    if not used.size:
        return
    if used.min() < 0:
        raise ModelError("a tree's split has a negative number")
    estimated = (used >= n_numeric) & (used < n_numeric + document.n_estimated)
    if estimated.any():
        kinds = {f.kind for f in document.others} & {"text", "embedding"}
        names = ", ".join(_name(f.name, f.column) for f in document.others if f.kind in kinds)
        raise ModelError(
            f"the trees split on what is computed from {' and '.join(sorted(kinds))} features "
            f"({names}), which qwyc does not read; train without them"
        )
    on_categories = [values for _, values in document.one_hot]
    on_categories += [ctr.borders for ctr in document.ctrs]
    n_splits = n_numeric + document.n_estimated + sum(len(each) for each in on_categories)
    if used.max() >= n_splits:
        raise ModelError("a tree's split has a number that the model does not describe")


def _name(name: str, column: int) -> str:
    return repr(name) if name else f"column {column}"


def trees_of(document: Document, splits: Splits) -> tuple[Trees, Array]:
    """The trees as flat arrays, oblivious trees in full, other trees (`document.steps`) node by node; and
    what their leaves add, (n_leaves, K). The leaf values in the trees are the first of these K."""
    numbered = (_oblivious if document.steps is None else _stepwise)(document, splits)
    number = numbered.leaf_value.astype(np.int64)
    known = document.leaf_weights
    return replace(
        numbered,
        leaf_value=document.leaf_values[number, 0],
        leaf_weight=known[number] if len(known) == len(document.leaf_values) else np.empty(0),
    ), document.leaf_values[number]


def _oblivious(document: Document, splits: Splits) -> Trees:
    """Trees with one split per level, written out in full, and in leaves their numbers. The last split is
    the root's, so that leaves stay in their order: split i is bit i of a leaf's number."""
    sizes = document.sizes
    if sizes.min() < 0 or sizes.max() > MAX_DEPTH:
        raise ModelError(f"a tree's depth is not 0 to {MAX_DEPTH}")
    if sizes.sum() != len(document.splits) or (1 << sizes).sum() != len(document.leaf_values):
        raise ModelError("the trees' splits or leaves are too many or too few")
    begin = offsets(sizes)
    node_begin = offsets((1 << sizes) - 1)
    split = np.empty(node_begin[-1], np.int64)  # (n,)
    left, right = np.empty_like(split), np.empty_like(split)
    for depth in np.unique(sizes[sizes > 0]):
        n = (1 << int(depth)) - 1
        level = np.log2(np.arange(n) + 1).astype(np.int64)  # (n,) nodes level by level
        trees = np.flatnonzero(sizes == depth)
        rows = (node_begin[trees, None] + np.arange(n)).ravel()
        split[rows] = document.splits[(begin[trees, None] + depth - 1 - level)].ravel()
        for child, at in ((left, 1), (right, 2)):
            to = 2 * np.arange(n) + at
            child[rows] = np.tile(np.where(to < n, to, ~(to - n)), len(trees))
    category_begin, category_words = _sets(split, splits)
    return Trees(
        node_begin=node_begin,
        leaf_begin=offsets(1 << sizes),
        feature=to_int32(splits.column[split], "a split's column"),
        threshold=splits.border[split],
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        flags=splits.flags[split],
        category_begin=category_begin,
        category_words=category_words,
        leaf_value=np.arange(len(document.leaf_values), dtype=np.float64),
        leaf_other=np.empty(0),
    )


def _stepwise(document: Document, splits: Splits) -> Trees:
    """Trees of any shape, and in leaves their numbers: a node has the distance to each child, and 0 ends in
    the node's leaf."""
    steps, leaf_of = document.steps, document.leaf_of
    assert steps is not None
    assert leaf_of is not None
    sizes, n = document.sizes, len(steps)
    if sizes.min() < 1 or sizes.sum() != n or len(leaf_of) != n or len(document.splits) != n:
        raise ModelError("the trees' nodes are too many or too few")
    is_leaf = (steps == 0).all(axis=1)
    # A node with one child gets its leaf as another node, after all others of its tree.
    extra = np.flatnonzero(~is_leaf & (steps == 0).any(axis=1))
    tree_of = np.repeat(np.arange(len(sizes)), sizes)
    grown = sizes + np.bincount(tree_of[extra], minlength=len(sizes))
    begin, old_begin = offsets(grown), offsets(sizes)
    row = np.arange(n) - old_begin[tree_of] + begin[tree_of]  # (n,) where each node goes
    rank = np.arange(len(extra)) - np.searchsorted(tree_of[extra], tree_of[extra])
    extra_row = begin[tree_of[extra]] + sizes[tree_of[extra]] + rank
    total = int(begin[-1])
    at = np.arange(n) - old_begin[tree_of]  # (n,) within the tree
    child = np.where(steps != 0, at[:, None] + steps, -1)  # (n, 2)
    child[extra] = np.where(
        child[extra] < 0, (extra_row - begin[tree_of[extra]])[:, None], child[extra]
    )
    child[is_leaf] = -1
    ends = np.concatenate([np.flatnonzero(is_leaf), extra])
    if ends.size and not 0 <= leaf_of[ends].min() <= leaf_of[ends].max() < len(
        document.leaf_values
    ):
        raise ModelError("a tree's leaf has a number that the model does not have")
    split = np.where(is_leaf, 0, document.splits)

    def spread(values: Array, fill: Any) -> Array:
        out = np.full(total, fill, values.dtype)
        out[row] = values
        return out

    number = np.zeros(total)
    number[row[is_leaf]] = leaf_of[is_leaf]
    number[extra_row] = leaf_of[extra]
    numeric = len(splits.column)  # leaves take what is appended: no split
    split = np.where(is_leaf, numeric, split)
    column, flags = np.append(splits.column, 0), np.append(splits.flags, np.uint8(0))
    everywhere = spread(split, numeric)
    border = np.append(splits.border, np.float32(0))
    # Thresholds are the numbers of the splits until the nodes have their order.
    trees = flatten(
        NodeTable(
            begin=begin,
            left=spread(child[:, 0], -1),
            right=spread(child[:, 1], -1),
            feature=column[everywhere],
            threshold=everywhere.astype(np.float64),
            flags=flags[everywhere],
            value=number,
        )
    )
    split = trees.threshold.astype(np.int64)  # (n_nodes,)
    category_begin, category_words = _sets(split, splits)
    return replace(
        trees,
        threshold=border[split],
        category_begin=category_begin,
        category_words=category_words,
    )


def _sets(split: Array, splits: Splits) -> tuple[Array, Array]:
    """The category set of every node, `split` (n,), as bits: where each begins, (n + 1,), and the words."""
    used = np.unique(split)
    codes = [splits.codes[i] for i in used.tolist()]
    begin, words = bit_sets(
        offsets([len(each) for each in codes]), np.concatenate([_NO_CODES, *codes])
    )
    if not len(words):
        return np.zeros(len(split) + 1, np.int64), words
    place = np.searchsorted(used, split)  # (n,)
    places = offsets(np.diff(begin)[place])
    check_words(int(places[-1]))
    parts = [words[begin[i] : begin[i + 1]] for i in place.tolist()]
    return places, np.concatenate(parts)
