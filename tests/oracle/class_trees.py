"""Trees of K classes, one row and one tree at a time: what src/qwyc/model/class_trees.py documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from oracle.trees import tree_leaves
from qwyc.model.class_trees import ClassTreeModels
from qwyc.model.ensemble import Ensemble
from qwyc.model.trees import Summation

Array = npt.NDArray[Any]


def class_leaves(ensemble: Ensemble, rows: Array) -> Array:
    """The number of the leaf that each row reaches in each tree, (N, n_trees)."""
    models = ensemble.base_models
    assert isinstance(models, ClassTreeModels)
    plain = Ensemble(models.structure, ensemble.schema, 0.0, np.array([0, 1]))
    return tree_leaves(plain, rows)


def class_scores(ensemble: Ensemble, leaves: Array) -> tuple[Array, Array]:
    """What base models add to running sums, (N, R, K) float32, and full scores, (N, K)."""
    models: Any = ensemble.base_models
    N, R, K = len(leaves), models.n_models, models.n_scores
    late = models.summation in (Summation.FLOAT64_LATE, Summation.FLOAT32_LATE)
    narrow = models.summation in (Summation.FLOAT32, Summation.FLOAT32_LATE)
    kind = np.float32 if narrow else np.float64
    values = np.zeros((N, R, K), dtype=np.float32)
    full = np.tile(np.zeros(K) if late else models.start, (N, 1)).astype(kind)
    for r in range(R):
        for t in range(models.step_begin[r], models.step_begin[r + 1]):
            leaf = leaves[:, t]
            if models.has_vectors:
                classes, added = np.arange(K), models.leaf_vector[leaf]  # (N, K)
            else:
                classes, added = models.tree_class[t], models.trees.leaf_value[leaf]
            values[:, r, classes] = (added / models.divisor).astype(np.float32)
            full[:, classes] = full[:, classes] + added.astype(kind)
    if late:
        total = full.astype(np.float64) + models.start
        return values, total.astype(kind).astype(np.float64)
    if narrow:
        return values, full.astype(np.float64)
    return values, full / models.divisor
