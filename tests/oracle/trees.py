"""Trees on rows: leaves, scores and full scores. Twin of native/core/forest.cpp, of the engines and of the
kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from qwyc.model.ensemble import Ensemble

Array = npt.NDArray[Any]


def tree_leaves(ensemble: Ensemble, rows: Array) -> Array:
    """The leaf, counted over all trees, that every row reaches in every tree: (N, T)."""
    trees = ensemble.base_models.trees
    leaves = np.empty((len(rows), trees.n_trees), dtype=np.int64)
    for t in range(trees.n_trees):
        first, first_leaf = trees.node_begin[t], trees.leaf_begin[t]
        single_leaf = trees.node_begin[t + 1] == first
        at = np.full(len(rows), -1 if single_leaf else 0, dtype=np.int64)  # < 0: at leaf ~at
        while (at >= 0).any():
            for node in np.unique(at[at >= 0]):
                here = at == node
                left = goes_left(ensemble, first + node, rows[here, trees.feature[first + node]])
                at[here] = np.where(left, trees.left[first + node], trees.right[first + node])
        leaves[:, t] = first_leaf + ~at
    return leaves


def goes_left(ensemble: Ensemble, node: int, x: Array) -> Array:
    """Which of the values x (n,) go to the left child of a node, counted over all trees: (n,)."""
    trees, flags = ensemble.base_models.trees, int(ensemble.base_models.trees.flags[node])
    default_left, categorical, in_set_left, zero_is_missing = (
        bool(flags & b) for b in (1, 2, 4, 8)
    )
    missing = np.isnan(x)
    if zero_is_missing:
        missing |= np.abs(x) <= np.float32(1e-35)
    if categorical:
        words = trees.category_words[trees.category_begin[node] : trees.category_begin[node + 1]]
        members = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
        code = np.trunc(np.where(missing, -1, x))
        known = (
            np.isin(code, members) & (code < 2**24) & (ensemble.base_models.truncates | (x >= 0))
        )
        left = known == in_set_left
    else:
        threshold = trees.threshold[node]
        left = x <= threshold if ensemble.base_models.less_equal else x < threshold
    return np.where(missing, default_left, left)


def full_score(ensemble: Ensemble, leaves: Array) -> Array:
    """The full score (N,) from the leaves (N, T), added up as the source library does."""
    values = ensemble.base_models.trees.leaf_value[leaves]
    N, T = leaves.shape
    late = ensemble.base_models.summation in (3, 4)  # the base comes last
    if ensemble.base_models.summation in (0, 4):  # float32, one after the other
        total32 = np.full(N, 0 if late else ensemble.base_models.start, dtype=np.float32)
        for t in range(T):
            total32 += values[:, t].astype(np.float32)
        if late:
            total32 = (total32 + np.float64(ensemble.base_models.start)).astype(np.float32)
        return total32.astype(np.float64)
    total = np.full(N, 0 if late else ensemble.base_models.start, dtype=np.float64)
    other = np.zeros(N)
    for t in range(T):
        total += values[:, t]
        if ensemble.base_models.summation == 2:
            other += ensemble.base_models.trees.leaf_other[leaves[:, t]]
    if late:
        total = total * ensemble.base_models.scale + ensemble.base_models.start
    else:
        total = total / ensemble.base_models.divisor
    if (
        ensemble.base_models.summation == 2
    ):  # two shares: the larger one decides, even by the last bit
        other /= ensemble.base_models.divisor
        above_half = np.nextafter(0.5, 1.0)
        total = np.where(total > other, np.maximum(total, above_half), np.minimum(total, 0.5))
    return total


def score_matrix(ensemble: Ensemble, leaves: Array) -> Array:
    """The value that every tree adds to the running sum, (N, T) float32, from the leaves (N, T)."""
    models = ensemble.base_models
    steps = models.trees.leaf_value / models.divisor * models.scale
    values: Array = steps.astype(np.float32)[leaves]
    return values
