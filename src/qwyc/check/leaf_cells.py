"""Cells: parts of trees that hold enough training rows to be compared with other rows.

The leaves of a deep tree hold a few rows each. A cell is a node with all of its leaves, where these are too
small to be told apart, or several small leaves together."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.model.trees import Summation, TreeModels, Trees

LEAST_SHARE = 1 / 32  # of the training rows, in a cell
FEWEST_EXPECTED = 10.0  # of the given rows, in a cell
MOST_CELLS = 640  # over all trees
MOST_TREES = 64

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Cells:
    """Some trees of a model, each divided into cells."""

    models: TreeModels  # the chosen trees; what a leaf adds is the number of its cell
    trees: Numbers  # (T',) which trees were chosen
    begin: Numbers  # (T' + 1,) tree t has cells begin[t]:begin[t+1]
    shares: Floats  # (cells,) of the training rows, or of their weight; they add up to 1 in a tree
    most_rows: float  # the model has no more training rows; infinity where it cannot be told

    @classmethod
    def of(cls, models: TreeModels, n_rows: int, first: float | None = None) -> Cells | None:
        """Cells for `n_rows` given rows; None where the model does not count its training rows. `first` is
        what a row weighs in the first tree; None where rows count 1."""
        weight, begin = models.trees.leaf_weight, models.trees.leaf_begin
        if not len(weight) or not np.isfinite(weight).all() or weight.min() < 0:
            return None
        totals = np.add.reduceat(weight, begin[:-1])  # (T,)
        if totals.min() <= 0:
            return None
        least = max(LEAST_SHARE, FEWEST_EXPECTED / n_rows)
        kept: list[int] = []
        of_leaf: list[Numbers] = []
        shares: list[Floats] = []
        for t in _spread_out(models.n_models):
            cell = _cells_of_tree(models.trees, t, totals[t], least)
            if cell.max() == 0:
                continue
            if sum(map(len, shares)) + cell.max() + 1 > MOST_CELLS:
                break
            kept.append(t)
            of_leaf.append(cell)
            shares.append(np.bincount(cell, weight[begin[t] : begin[t + 1]]) / totals[t])
        if not kept:
            return None
        trees = _subset(models.trees, kept, of_leaf)
        return cls(
            models=replace(
                models, trees=trees, summation=Summation.FLOAT64, start=0.0, divisor=1.0
            ),
            trees=np.array(kept, dtype=np.intp),
            begin=np.concatenate([[0], np.cumsum([len(part) for part in shares])]).astype(np.intp),
            shares=np.concatenate(shares),
            most_rows=_most_training_rows(models, totals, first),
        )

    def of_rows(self, rows: Any, threads: int | None) -> npt.NDArray[np.int32]:
        """The cell that each row is in, (T', N), counted over all trees."""
        values, _ = self.models.scores(rows, threads=threads)
        cell: npt.NDArray[np.int32] = values.T.astype(np.int32)
        cell += self.begin[:-1, None].astype(np.int32)
        return cell


def _spread_out(n_trees: int) -> list[int]:
    """Up to `MOST_TREES` trees, such that the first few are far apart: cells may run out."""
    trees = np.unique(np.linspace(0, n_trees - 1, min(n_trees, MOST_TREES)).astype(int)).tolist()
    step = max(1, round(0.618 * len(trees)))
    while math.gcd(step, len(trees)) != 1:
        step += 1
    return [trees[(i * step) % len(trees)] for i in range(len(trees))]


def _most_training_rows(models: TreeModels, totals: Floats, first: float | None) -> float:
    """Twice the rows of a tree, which may have been grown on a part of the training rows. Infinity where
    the weights are no counts, as those of weighted rows."""
    rows = totals
    counts = models.trees.leaf_weight
    if first is not None:  # before the first tree, all rows weigh the same
        counts = counts[: models.trees.leaf_begin[1]] / first
        rows = counts.sum(keepdims=True)
    if np.abs(counts - np.round(counts)).max() > 1e-4 * max(1.0, float(counts.max())):
        return math.inf
    return 2.0 * float(rows.max())


def _cells_of_tree(trees: Trees, t: int, total: float, least: float) -> Numbers:
    """The cell of each leaf of a tree, (leaves,), from 0. Each has at least a share `least` of the training
    rows, if the tree has two such parts."""
    nodes, leaves = slice(*trees.node_begin[t : t + 2]), slice(*trees.leaf_begin[t : t + 2])
    leaf_weight = trees.leaf_weight[leaves] / total
    n_nodes = nodes.stop - nodes.start
    # Nodes and leaves in one numbering: leaf l is n_nodes + l.
    child = np.stack([trees.left[nodes], trees.right[nodes]]).astype(np.int64)  # (2, n_nodes)
    child = np.where(child < 0, n_nodes + ~child, child)
    levels, level = [], np.arange(min(n_nodes, 1))
    while level.size:
        levels.append(level)
        below = child[:, level].ravel()
        level = below[below < n_nodes]
    weight = np.concatenate([np.zeros(n_nodes), leaf_weight])
    for level in reversed(levels):
        weight[level] = weight[child[0, level]] + weight[child[1, level]]
    cell = np.zeros(len(weight), dtype=np.int64)  # a node's own number, or that of the cell above
    for level in levels:
        divided = (weight[level] >= 2 * least) & (cell[level] == level)
        for side in child:
            cell[side[level]] = np.where(divided, side[level], cell[level])
    return _pooled(cell[n_nodes:], leaf_weight, least)


def _pooled(cell: npt.NDArray[np.int64], weight: Floats, least: float) -> Numbers:
    """Cells of leaves, (leaves,), from 0, once those of too little weight are put together; and with the
    smallest other cell, if they are still too small."""
    size = np.bincount(cell, weight)
    small = size[cell] < least
    large = np.unique(cell[~small])
    if small.any():
        enough = weight[small].sum() >= least or not len(large)
        cell = np.where(small, -1 if enough else large[np.argmin(size[large])], cell)
    return np.unique(cell, return_inverse=True)[1].astype(np.intp)


def _subset(trees: Trees, chosen: list[int], cells: list[Numbers]) -> Trees:
    """Some of the trees, whose leaves add the numbers of their cells."""

    def parts(begin: npt.NDArray[np.int64], array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.concatenate([array[begin[t] : begin[t + 1]] for t in chosen])

    def offsets(sizes: npt.ArrayLike) -> npt.NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    nodes, leaves = trees.node_begin, trees.leaf_begin
    words = np.diff(trees.category_begin)  # (n_nodes,)
    return Trees(
        node_begin=offsets(np.diff(nodes)[chosen]),
        leaf_begin=offsets(np.diff(leaves)[chosen]),
        feature=parts(nodes, trees.feature),
        threshold=parts(nodes, trees.threshold),
        left=parts(nodes, trees.left),
        right=parts(nodes, trees.right),
        flags=parts(nodes, trees.flags),
        category_begin=offsets(parts(nodes, words)),
        category_words=parts(trees.category_begin[nodes], trees.category_words),
        leaf_value=np.concatenate(cells).astype(np.float64),
        leaf_other=np.empty(0),
    )
