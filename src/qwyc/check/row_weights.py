"""What a training row counts in a tree: 1, or the curvature of the loss at the row's scores so far."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.model.base_models import BaseModels
from qwyc.model.class_trees import ClassTreeModels
from qwyc.model.trees import TreeModels

Numbers = npt.NDArray[np.intp]
Weights = npt.NDArray[np.float32]

LARGEST_SCORE = 30.0  # beyond it, a row weighs nearly nothing


@dataclass(frozen=True, eq=False)
class CountingTrees:
    """Trees that count their training rows."""

    models: TreeModels  # all trees; of K classes, without what they add
    first: float | None = None  # what a row weighs in the first tree; None: every row counts 1
    # (scores of base models, some trees) -> (T', N) what each row weighs in them
    weigh: Callable[[npt.NDArray[Any], Numbers], Weights] | None = None


def counting_trees(models: BaseModels) -> CountingTrees | None:
    """The trees of a model that count their training rows, as far as it is known how; otherwise None."""
    if isinstance(models, TreeModels):
        if models.weighs == "rows":
            return CountingTrees(models)
        p = 1 / (1 + math.exp(-models.start))
        return CountingTrees(models, p * (1 - p), partial(_of_one_score, models.start))
    if not isinstance(models, ClassTreeModels):
        return None
    if models.weighs == "rows":
        return CountingTrees(models.structure)
    if models.has_vectors or models.ties.kind != "softmax":
        return None
    share = _softmax(models.start[np.newaxis])[0, models.tree_class[0]]
    first = float(2 * share * (1 - share))  # XGBoost takes twice the curvature
    return CountingTrees(models.structure, first, partial(_of_classes, models))


def _of_one_score(start: float, values: npt.NDArray[Any], trees: Numbers) -> Weights:
    """p (1 - p) of every row before each of some trees, (T', N), as the trainer has added it up."""
    weight = np.empty((len(trees), len(values)), dtype=np.float32)
    margin, done = np.full(len(values), start), 0
    for k in np.argsort(trees):
        for t in range(done, int(trees[k])):
            margin += values[:, t]
        done = int(trees[k])
        p = 1 / (1 + np.exp(-np.clip(margin, -LARGEST_SCORE, LARGEST_SCORE)))
        weight[k] = p * (1 - p)
    return weight


def _of_classes(models: ClassTreeModels, values: npt.NDArray[Any], trees: Numbers) -> Weights:
    """p (1 - p), with the share p of the tree's class, of every row before the round of each of some trees,
    (T', N)."""
    step = np.repeat(np.arange(models.n_models), np.diff(models.step_begin))[trees]  # (T',)
    weight = np.empty((len(trees), len(values)), dtype=np.float32)
    sums, done = np.repeat(models.start[np.newaxis], len(values), axis=0), 0  # (N, K)
    for r in np.unique(step):
        for t in range(done, int(r)):
            sums += values[:, t]
        done = int(r)
        share = _softmax(sums)
        for k in np.flatnonzero(step == r):
            p = share[:, models.tree_class[trees[k]]]
            weight[k] = p * (1 - p)
    return weight


def _softmax(sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The share of each class, (N, K)."""
    powers = np.exp(sums - sums.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))
