"""scikit-learn's regressors that average trees, and IsolationForest, whose path lengths add up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.importers.sklearn.bases import check_tree_bases
from qwyc.importers.sklearn.trees import as_sklearn, inputs_of, split_trees, split_vector_trees
from qwyc.model.class_trees import class_tree_ensemble
from qwyc.model.ensemble import Ensemble
from qwyc.model.link import Link
from qwyc.model.output import IDENTITY, Output
from qwyc.model.trees import tree_ensemble
from qwyc.target.boundary import smallest_positive


def read_forest_regressor(model: Any, name: str) -> Ensemble:
    """Random forests, extra trees and single trees: the mean of their leaves."""
    estimators = getattr(model, "estimators_", [model])
    return _mean(model, name, estimators)


def read_bagging_regressor(model: Any, name: str) -> Ensemble:
    """BaggingRegressor of trees: a forest whose trees may each see columns of their own."""
    check_tree_bases(model, name)
    return _mean(model, name, model.estimators_, model.estimators_features_)


def _mean(
    model: Any,
    name: str,
    estimators: Sequence[Any],
    columns: Sequence[npt.NDArray[Any]] | None = None,
) -> Ensemble:
    trees = [estimator.tree_ for estimator in estimators]
    schema = inputs_of(
        model,
        "float32",
        accepts_missing=bool(estimators[0]._support_missing_values(np.empty((0, 0)))),
        accepts_infinity=False,
    )
    values = np.concatenate([tree.value[:, :, 0] for tree in trees])  # (n, n_outputs)
    if values.shape[1] > 1:
        flat, vectors = split_vector_trees(trees, values, columns)
        return class_tree_ensemble(
            flat,
            schema,
            classes=np.empty(0),
            **as_sklearn(name),
            divisor=float(len(trees)),
            leaf_vector=vectors,
            output=IDENTITY,
        )
    return tree_ensemble(
        split_trees(trees, values[:, 0], None, columns),
        schema=schema,
        **as_sklearn(name),
        base=0.0,
        divisor=float(len(trees)),
        threshold=0.0,
        classes=np.empty(0),
        link=Link("none"),
        output=IDENTITY,
    )


def read_isolation_forest(model: Any, name: str) -> Ensemble:
    """IsolationForest: rows with short paths are outliers, -1. The score is the sum of path lengths."""
    lengths, averages = (
        getattr(model, field, None)
        for field in ("_decision_path_lengths", "_average_path_length_per_tree")
    )
    if lengths is None or averages is None:
        raise ModelError(
            f"this {name} was made by a version of scikit-learn before 1.3; fit it again"
        )
    trees = [estimator.tree_ for estimator in model.estimators_]
    value = np.concatenate([a + b - 1.0 for a, b in zip(lengths, averages, strict=True)])
    longest = len(trees) * _average_path(int(model._max_samples))
    if not longest > 0:
        raise ModelError(f"this {name} was fitted on too few rows to tell any apart")
    output, offset = Output("path length", scale=longest), float(model.offset_)

    def is_inlier(length: float) -> bool:
        return bool(-(2.0 ** -(np.float64(length) / longest)) - offset >= 0)

    return tree_ensemble(
        split_trees(trees, value, None, model.estimators_features_),
        schema=inputs_of(model, "float32", accepts_infinity=True),
        **as_sklearn(name),
        base=0.0,
        divisor=1.0,
        threshold=_turn(is_inlier),
        classes=np.array([-1, 1]),
        link=Link("none"),
        output=output,
    )


def _turn(is_inlier: Callable[[float], bool]) -> float:
    """The smallest path length that makes a row an inlier."""
    with np.errstate(over="ignore"):
        try:
            return smallest_positive(is_inlier, np.float64)
        except ValueError:
            raise ModelError(
                "this IsolationForest calls every row the same, whatever its score"
            ) from None


def _average_path(n: int) -> float:
    """The average path length in a tree of n rows, as IsolationForest has it."""
    if n <= 1:
        return 0.0
    if n == 2:
        return 1.0
    return float(2.0 * (np.log(n - 1.0) + np.euler_gamma) - 2.0 * (n - 1.0) / n)
