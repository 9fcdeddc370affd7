"""Regressors, as ONNX Runtime adds up their trees on one thread."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.importers.flatten import NodeTable, flatten, flatten_vectors
from qwyc.importers.onnx.classes import MAX_NUMBERS
from qwyc.importers.onnx.graph import TreeGraph
from qwyc.importers.onnx.trees import Weights
from qwyc.model.class_trees import class_tree_ensemble
from qwyc.model.ensemble import Ensemble, Source
from qwyc.model.link import Link
from qwyc.model.output import Output
from qwyc.model.trees import Summation, tree_ensemble
from qwyc.rows.schema import Schema

Array = npt.NDArray[Any]

_SUM, _AVERAGE = (1, b"SUM"), (0, b"AVERAGE")
_OUTPUTS = {"NONE": "identity", "LOGISTIC": "mirrored", "SOFTMAX": "single softmax"}


def value_ensemble(
    graph: TreeGraph,
    table: NodeTable,
    weights: Weights,
    bases: list[float],
    transform: str,
    *,
    less_equal: bool,
    schema: Schema,
    source: Source,
) -> Ensemble:
    """The values of one target, or of several."""
    attributes, T = graph.trees.attributes, len(table.begin) - 1
    K = max(int(attributes.get("n_targets", 1)), 1)
    how = attributes.get("aggregate_function", _SUM[0])
    if how not in (*_SUM, *_AVERAGE):
        raise ModelError(
            "the trees' outputs are neither added up nor averaged (aggregate_function is not SUM or "
            "AVERAGE), so the model is not a sum of base models"
        )
    # Base values are those of all targets, or not used.
    bases = bases if len(bases) == K else []
    output, divisor = _output(graph, transform, how in _AVERAGE, any(bases), T, K)
    summation = Summation.FLOAT64_LATE if graph.wide else Summation.FLOAT32_LATE
    if divisor != 1:
        summation = Summation.FLOAT64
    if K == 1:
        if set(weights.ids) - {0}:
            raise ModelError("a weight belongs to a target that is not there")
        return tree_ensemble(
            flatten(table),
            schema=schema,
            summation=summation,
            less_equal=less_equal,
            truncates=False,
            base=(bases or [0.0])[0],
            divisor=divisor,
            threshold=0.0,
            classes=np.empty(0),
            source=source,
            link=Link("none"),
            output=output,
        )
    trees, vectors, tree_class = _of_targets(table, weights, K)
    return class_tree_ensemble(
        trees,
        schema,
        classes=np.empty(0),
        source=source,
        summation=summation,
        less_equal=less_equal,
        truncates=False,
        start=np.asarray(bases) if bases else np.zeros(K),
        divisor=divisor,
        tree_class=tree_class,
        leaf_vector=vectors,
        output=output,
    )


def _output(
    graph: TreeGraph, transform: str, average: bool, based: bool, T: int, K: int
) -> tuple[Output, float]:
    """What becomes of the sums, and what they are divided by before that."""
    # One target is given as it is, whatever the post_transform but PROBIT.
    if transform not in _OUTPUTS and (K > 1 or transform == "PROBIT"):
        raise ModelError(
            f"the values are made by the post_transform {transform}; supported are NONE, LOGISTIC and "
            "SOFTMAX"
        )
    kind = _OUTPUTS[transform] if K > 1 else "identity"
    # A TreeEnsembleRegressor gives float32, whatever its rows are.
    wide = graph.wide and graph.trees.kind == "TreeEnsemble"
    if not average:
        return Output(kind, "float64" if wide and kind == "identity" else "float32"), 1.0
    if based or (kind != "identity" and not graph.wide):
        raise ModelError(
            "the trees are averaged, and base values or a post_transform follow; use SUM"
        )
    if graph.wide:
        return Output(kind, "float64" if wide and kind == "identity" else "float32"), float(T)
    return Output("quotient", "float32", float(T)), 1.0


def _of_targets(
    table: NodeTable, weights: Weights, K: int
) -> tuple[Any, Array | None, Array | None]:
    """Trees of one target each, or trees whose leaves hold a number for each target."""
    if not len(weights.nodes):
        raise ModelError(
            "a TreeEnsemble with several targets is not read; export a TreeEnsembleRegressor"
        )
    if weights.of_class.min() < 0 or weights.of_class.max() >= K:
        raise ModelError(f"a weight belongs to a target that is not one of {K}")
    if len(table.left) * K > max(MAX_NUMBERS, 4 * len(weights.values)):
        raise ModelError(f"the leaves of {K} targets take too many numbers to hold")
    T = len(table.begin) - 1
    tree_of = np.searchsorted(table.begin, weights.nodes, side="right") - 1  # (m,)
    low, high = np.full(T, K), np.full(T, -1)
    np.minimum.at(low, tree_of, weights.of_class)
    np.maximum.at(high, tree_of, weights.of_class)
    if np.array_equal(low, high) and len(np.unique(low)) == K:
        value = np.zeros(len(table.left))
        value[weights.nodes] = weights.values
        return flatten(replace(table, value=value)), None, low
    every = np.zeros((len(table.left), K))
    every[weights.nodes, weights.of_class] = weights.values
    return *flatten_vectors(table, every), None
