"""scikit-learn's GradientBoostingClassifier, and AdaBoostClassifier of trees."""

from __future__ import annotations

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
from qwyc.target.boundary import smallest_sum_above_zero


def read_boosting(model: Any, name: str) -> Ensemble:
    """GradientBoostingClassifier and -Regressor: the prior's raw scores plus learning_rate times every
    leaf. Of more than two classes, every round has a tree for each."""
    K = model.estimators_.shape[1]
    trees = [estimator.tree_ for estimator in model.estimators_.ravel()]
    value = np.concatenate([tree.value[:, 0, 0] for tree in trees])  # (n,)
    flat = split_trees(trees, model.learning_rate * value)
    schema = inputs_of(model, "float32", accepts_missing=False, accepts_infinity=False)
    start = _initial_scores(model)
    if not hasattr(model, "classes_"):
        return tree_ensemble(
            flat,
            schema=schema,
            **as_sklearn(name),
            base=float(start[0]),
            divisor=1.0,
            threshold=0.0,
            classes=np.empty(0),
            link=Link("none"),
            output=IDENTITY,
        )
    if K > 1:
        return class_tree_ensemble(
            flat,
            schema,
            classes=np.asarray(model.classes_),
            **as_sklearn(name),
            start=start,
            tree_class=np.tile(np.arange(K), len(model.estimators_)),
            output=Output("numpy softmax"),
        )
    return tree_ensemble(
        flat,
        schema=schema,
        **as_sklearn(name),
        base=float(start[0]),
        divisor=1.0,
        threshold=0.0,  # its predict is score >= 0, with either loss
        classes=np.asarray(model.classes_),
        link=Link("logistic", scale=2.0 if model.loss == "exponential" else 1.0),
    )


def _initial_scores(model: Any) -> npt.NDArray[np.float64]:
    """What every row starts from, (1,) or (K,); only an init that looks at no row can be read."""
    init = model.init_
    constant = isinstance(init, str) or (
        type(init).__name__ == "DummyClassifier"
        and init.strategy in ("prior", "most_frequent", "constant")
    )
    constant = constant or type(init).__name__ == "DummyRegressor"
    if not constant:
        raise ModelError(
            f"this {type(model).__name__} starts from an estimator of its own "
            f"(init={type(init).__name__}), which is not supported; qwyc supports init=None and "
            "init='zero'"
        )
    raw = model._raw_predict_init(np.zeros((1, model.n_features_in_), np.float32))  # (1, K)
    return np.asarray(raw[0], dtype=np.float64)


def read_ada_boost(model: Any, name: str) -> Ensemble:
    """AdaBoostClassifier of trees: each adds its weight to its class and takes it from the others.
    Of two classes, the score is the difference, twice the one."""
    check_tree_bases(model, name)
    if getattr(model, "algorithm", "") == "SAMME.R":
        raise ModelError(
            "this AdaBoostClassifier has algorithm='SAMME.R', which scikit-learn has dropped since; "
            "qwyc supports SAMME"
        )
    trees = [estimator.tree_ for estimator in model.estimators_]
    total = float(model.estimator_weights_.sum())
    if not 0 < total < np.inf:
        raise ModelError(f"this AdaBoostClassifier's weights add up to {total}, not above 0")
    schema = inputs_of(model, "float32", accepts_missing=False, accepts_infinity=False)
    if len(model.classes_) > 2:
        flat, vectors = split_vector_trees(trees, _class_votes(model))
        return class_tree_ensemble(
            flat,
            schema,
            classes=np.asarray(model.classes_),
            **as_sklearn(name),
            divisor=total,
            leaf_vector=vectors,
            output=Output("numpy softmax by column", scale=len(model.classes_) - 1.0),
        )
    values = []
    for estimator, weight in zip(model.estimators_, model.estimator_weights_, strict=False):
        says = np.argmax(estimator.tree_.value[:, 0, :], axis=1)  # (n,)
        positive = np.asarray(estimator.classes_)[says] == model.classes_[1]
        values.append(np.where(positive, 2 * weight, -2 * weight))
    value = np.concatenate(values)
    return tree_ensemble(
        split_trees(trees, value),
        schema=schema,
        **as_sklearn(name),
        base=0.0,
        divisor=total,
        threshold=smallest_sum_above_zero(value, 0.0) / total,
        classes=np.asarray(model.classes_),
        link=Link("logistic", form="softmax"),
    )


def _class_votes(model: Any) -> npt.NDArray[np.float64]:
    """What every node of AdaBoost's trees adds to each class, (n, K)."""
    K, votes = len(model.classes_), []
    for estimator, weight in zip(model.estimators_, model.estimator_weights_, strict=False):
        says = np.asarray(estimator.classes_)[np.argmax(estimator.tree_.value[:, 0, :], axis=1)]
        chosen = says[:, np.newaxis] == model.classes_  # (n, K)
        votes.append(np.where(chosen, weight, -1 / (K - 1) * weight))
    return np.concatenate(votes)
