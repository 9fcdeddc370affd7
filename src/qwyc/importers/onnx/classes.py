"""Classifiers of more than two classes, as ONNX Runtime adds up their scores and picks the largest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.importers.flatten import NodeTable, flatten, flatten_vectors
from qwyc.importers.live import softmax_error
from qwyc.importers.onnx.trees import Weights
from qwyc.model.class_trees import class_tree_ensemble
from qwyc.model.ensemble import Ensemble, Source
from qwyc.model.output import Output
from qwyc.model.trees import Summation
from qwyc.rows.schema import Schema

MAX_NUMBERS = 1 << 28  # 2 GB; more only if the model itself has as many weights

Array = npt.NDArray[Any]


def class_ensemble(
    table: NodeTable,
    weights: Weights,
    bases: list[float],
    *,
    less_equal: bool,
    schema: Schema,
    classes: Array,
    source: Source,
    output: Output | None,
) -> Ensemble:
    """Trees whose leaves add to one class each, or to several. The scores decide before any
    `post_transform`."""
    K, T = len(classes), len(table.begin) - 1
    if bases and len(bases) != K:
        raise ModelError(
            f"the model has {len(bases)} base values for {K} classes; expected none, or one for each"
        )
    if weights.of_class.min() < 0 or weights.of_class.max() >= K:
        raise ModelError(f"a weight belongs to a class that is not one of {K}")
    _check_scored(table, weights, bool(bases), K)
    wide = schema.dtype == "float64"
    tree_of = np.searchsorted(table.begin, weights.nodes, side="right") - 1  # (m,)
    low, high = np.full(T, K), np.full(T, -1)
    np.minimum.at(low, tree_of, weights.of_class)
    np.maximum.at(high, tree_of, weights.of_class)
    vectors, tree_class = None, None
    if np.array_equal(low, high) and len(np.unique(low)) == K:
        value = np.zeros(len(table.left))
        value[weights.nodes] = weights.values
        trees, tree_class = flatten(replace(table, value=value)), low
    else:
        if len(table.left) * K > max(MAX_NUMBERS, 4 * len(weights.values)):
            raise ModelError(f"the leaves of {K} classes take too many numbers to hold")
        every = np.zeros((len(table.left), K))
        every[weights.nodes, weights.of_class] = weights.values
        trees, vectors = flatten_vectors(table, every)
    return class_tree_ensemble(
        trees,
        schema,
        classes=classes,
        source=source,
        summation=Summation.FLOAT64_LATE if wide else Summation.FLOAT32_LATE,
        less_equal=less_equal,
        truncates=False,
        start=np.asarray(bases) if bases else 0.0,
        tree_class=tree_class,
        leaf_vector=vectors,
        output=output,
    )


def _check_scored(table: NodeTable, weights: Weights, based: bool, K: int) -> None:
    """ONNX Runtime does not choose a class that has neither a base value nor a weight on a row's way,
    however low the others are. That must not happen, or must not matter."""
    n = len(table.left)
    tree_of = np.repeat(np.arange(len(table.begin) - 1), np.diff(table.begin))  # (n,)
    is_leaf = table.left < 0
    leaves = np.bincount(tree_of[is_leaf], minlength=len(table.begin) - 1)  # (T,)
    used = is_leaf[weights.nodes]
    tree = tree_of[weights.nodes[used]]
    # Leaves of each tree that have a weight of each class, (T, K), and of any.
    by_class = np.zeros((len(leaves), K), dtype=np.int64)
    np.add.at(by_class, (tree, weights.of_class[used]), 1)
    weighed = np.zeros(n, dtype=bool)
    weighed[weights.nodes[used]] = True
    any_class = np.bincount(tree_of[weighed], minlength=len(leaves))
    always = (by_class == leaves[:, np.newaxis]).any(axis=0)  # (K,)
    above = bool((weights.values > 0).all() and (any_class == leaves).any())
    if not (based or always.all() or above):
        missing = int(np.flatnonzero(~always)[0])
        raise ModelError(
            f"class number {missing} has no weight in some leaves of every tree; ONNX Runtime does not "
            "choose it for rows that reach only these. Export with base values, or with a weight for every "
            "class in every leaf"
        )


def softmax(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The softmax of each row, (N, K)."""
    power = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(power / power.sum(axis=1, keepdims=True))


def scores_of_probabilities(
    ours: npt.NDArray[np.float64], theirs: Array, transform: str
) -> npt.NDArray[np.float64]:
    """Scores, (N, K), to compare with: ours where they make the outputs `theirs`, and otherwise theirs, as
    far as they can be told. Outputs of a `transform` are compared within rounding, others to the bit."""
    near = softmax_error(ours.shape[1])
    if transform == "NONE":
        same = ours.astype(np.float32) == theirs.astype(np.float32)
        return np.asarray(np.where(same, ours, theirs))
    if transform == "SOFTMAX":
        expected = softmax(ours)
        # Probabilities leave open what is added to all scores.
        found = np.log(np.maximum(theirs, 1e-37)) - np.log(np.maximum(expected, 1e-37)) + ours
    elif transform == "LOGISTIC":
        expected = 1 / (1 + np.exp(-np.clip(ours, -700, 700)))
        p = np.clip(theirs, 1e-37, 1 - 1e-16)
        found = np.log(p) - np.log1p(-p)
    else:
        return ours  # the labels alone are compared
    same = (np.abs(theirs - expected) <= near).all(axis=1, keepdims=True)
    return np.asarray(np.where(same, ours, found))
