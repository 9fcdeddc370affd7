"""scikit-learn's trees that vote with class shares: forests, bagging and single trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.importers.sklearn.bases import check_tree_bases
from qwyc.importers.sklearn.trees import as_sklearn, inputs_of, split_trees, split_vector_trees
from qwyc.model.class_trees import class_tree_ensemble
from qwyc.model.ensemble import Ensemble
from qwyc.model.link import Link
from qwyc.model.output import IDENTITY
from qwyc.model.trees import Summation, tree_ensemble


def read_forest(model: Any, name: str) -> Ensemble:
    """Random forests, extra trees and single trees: each votes with its leaf's class shares."""
    estimators = getattr(model, "estimators_", [model])
    trees = [estimator.tree_ for estimator in estimators]
    shares = np.concatenate([tree.value[:, 0, :] for tree in trees])  # (n, K) as predict_proba has
    return _voting(model, name, estimators[0], trees, shares)


def read_bagging(model: Any, name: str) -> Ensemble:
    """BaggingClassifier of trees: a forest whose trees may each see columns of their own."""
    check_tree_bases(model, name)
    trees = [estimator.tree_ for estimator in model.estimators_]
    shares = [np.zeros((tree.node_count, len(model.classes_))) for tree in trees]
    for share, estimator, tree in zip(shares, model.estimators_, trees, strict=True):
        # Labels are encoded as 0 to K - 1; a tree may have seen some of them only.
        classes = np.asarray(estimator.classes_, np.intp)
        share[:, classes] = tree.value[:, 0, : len(classes)]
    columns = model.estimators_features_
    return _voting(model, name, model.estimators_[0], trees, np.concatenate(shares), columns)


def _voting(
    model: Any,
    name: str,
    first: Any,
    trees: Sequence[Any],
    shares: npt.NDArray[np.float64],
    columns: Sequence[npt.NDArray[Any]] | None = None,
) -> Ensemble:
    """Trees whose class shares, (n, K), are averaged; `first` is one of the estimators."""
    schema = inputs_of(
        model,
        "float32",
        accepts_missing=bool(first._support_missing_values(np.empty((0, 0)))),
        accepts_infinity=False,
    )
    if len(model.classes_) > 2:
        flat, vectors = split_vector_trees(trees, shares, columns)
        return class_tree_ensemble(
            flat,
            schema,
            classes=np.asarray(model.classes_),
            **as_sklearn(name),
            divisor=float(len(trees)),
            leaf_vector=vectors,
            output=IDENTITY,
        )
    return tree_ensemble(
        split_trees(trees, shares[:, 1], shares[:, 0], columns),
        schema=schema,
        **as_sklearn(name, Summation.SHARES),
        base=0.0,
        divisor=float(len(trees)),
        threshold=float(np.nextafter(0.5, 1.0)),  # a tie goes to the first class
        classes=np.asarray(model.classes_),
        link=Link("identity"),
    )
