"""Ensembles of anything: lists of callables, and scikit-learn's bagging, voting, AdaBoost and stacking of
any base estimator, taken apart into base models for `qwyc.Cascade`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.cascade import BaseModels
from qwyc.errors import InputError, ModelError
from qwyc.importers.live import as_pandas, derives_from, made_by
from qwyc.importers.sklearn import has_tree_bases

Shares = npt.NDArray[np.float64]  # (n, 2) of the negative and the positive class

ABOVE_ZERO = float(np.nextafter(0.0, 1.0))  # positive where one share exceeds the other


def base_models(model: Any) -> BaseModels | None:
    """The base models of `model`, or None where it is not an ensemble of this kind."""
    if isinstance(model, BaseModels):
        return model
    if isinstance(model, (list, tuple)) and model and all(callable(m) for m in model):
        return BaseModels(list(model))
    if not made_by(model, "sklearn"):
        return None
    for name, take_apart in (
        ("BaggingClassifier", _bagging),
        ("VotingClassifier", _voting),
        ("AdaBoostClassifier", _ada_boost),
        ("StackingClassifier", _stacking),
    ):
        if derives_from(model, name):
            if name in ("BaggingClassifier", "AdaBoostClassifier") and has_tree_bases(model):
                return None  # read as trees, which is faster and can be saved
            if not hasattr(model, "estimators_"):
                raise ModelError(f"this {name} is not fitted; call fit first")
            if len(model.classes_) != 2:
                raise ModelError(
                    f"this {name} has {len(model.classes_)} classes; qwyc supports binary classifiers"
                )
            return take_apart(model)
    return None


def _bagging(model: Any) -> BaseModels:
    """Mean of predict_proba, or of votes, each base estimator on its own columns."""

    def shares_of(estimator: Any, features: npt.NDArray[Any]) -> Callable[[Any], Shares]:
        def shares(X: Any) -> Shares:
            columns = _plain(X)[:, features]
            if hasattr(estimator, "predict_proba"):
                return _by_class(estimator.predict_proba(columns), estimator.classes_)
            return _one_hot(estimator.predict(columns))

        return shares

    pairs = zip(model.estimators_, model.estimators_features_, strict=True)
    return _shares([shares_of(e, f) for e, f in pairs], len(model.estimators_), model)


def _voting(model: Any) -> BaseModels:
    """Weighted mean of predict_proba (soft) or weighted votes (hard)."""
    weights = model._weights_not_none
    factors = (
        np.ones(len(model.estimators_)) if weights is None else np.asarray(weights, dtype=float)
    )
    soft = model.voting == "soft"

    def shares_of(estimator: Any, weight: float) -> Callable[[Any], Shares]:
        def shares(X: Any) -> Shares:
            if soft:
                return np.asarray(estimator.predict_proba(X)) * weight
            return _one_hot(estimator.predict(X)) * weight

        return shares

    pairs = zip(model.estimators_, factors, strict=True)
    divisor = float(factors.sum()) if soft else 1.0
    return _shares([shares_of(e, w) for e, w in pairs], divisor, model)


def _ada_boost(model: Any) -> BaseModels:
    """Each base estimator adds its weight to the class it predicts and takes it from the other."""
    negative, positive = model.classes_

    def shares_of(estimator: Any, weight: float) -> Callable[[Any], Shares]:
        def shares(X: Any) -> Shares:
            predicted = np.asarray(estimator.predict(_plain(X, finite=True)))
            matches = np.stack([predicted == negative, predicted == positive], axis=1)
            return np.where(matches, weight, -1.0 * weight)

        return shares

    weights = model.estimator_weights_[: len(model.estimators_)]
    pairs = zip(model.estimators_, weights, strict=True)
    return _shares(
        [shares_of(e, float(w)) for e, w in pairs],
        float(model.estimator_weights_.sum()),
        model,
    )


def _stacking(model: Any) -> BaseModels:
    """A linear final estimator adds up what the base estimators say, each times its coefficient."""
    final = model.final_estimator_
    linear = derives_from(final, "LinearClassifierMixin")
    coefficients = np.atleast_2d(np.asarray(final.coef_, dtype=float)) if linear else np.empty(0)
    if len(coefficients) != 1:
        raise ModelError(
            f"this StackingClassifier's final estimator is {type(final).__name__}, for which the base "
            "estimators do not add up to a score; qwyc supports linear ones (LogisticRegression)"
        )
    weights, at = coefficients[0], 0

    def part_of(estimator: Any, method: str, weight: float) -> Callable[[Any], Any]:
        def part(X: Any) -> Any:
            said = np.asarray(getattr(estimator, method)(X), dtype=float)
            return weight * (said if said.ndim == 1 else said[:, -1])

        return part

    models: list[Callable[[Any], Any]] = []
    for estimator, method in zip(model.estimators_, model.stack_method_, strict=True):
        models.append(part_of(estimator, method, float(weights[at])))
        at += 1
    if model.passthrough:
        rest = weights[at:]
        models.append(lambda X: np.asarray(_plain(X) @ rest, dtype=float))
    elif at != len(weights):
        raise ModelError(
            "this StackingClassifier's base estimators give more than one number a row"
        )
    return BaseModels(
        models,
        base=float(np.ravel(final.intercept_)[0]),
        threshold=ABOVE_ZERO,
        classes=np.asarray(model.classes_),
        prepare=_columns_of(model),
    )


def _shares(models: Sequence[Callable[[Any], Shares]], divisor: float, source: Any) -> BaseModels:
    return BaseModels(
        models,
        divisor=float(divisor),
        threshold=ABOVE_ZERO,
        classes=np.asarray(source.classes_),
        prepare=_columns_of(source),
    )


def _columns_of(source: Any) -> Callable[[Any], Any]:
    """Rows with the columns that the ensemble was fitted on, in its order; an error where they are not
    there. Base estimators fitted on bare arrays could not tell."""
    names = getattr(source, "feature_names_in_", None)
    count = getattr(source, "n_features_in_", None)

    def prepare(X: Any) -> Any:
        X = as_pandas(X)
        given = getattr(X, "columns", None)
        if names is not None and given is not None and not callable(given):
            missing = [name for name in names if name not in set(given)]
            if missing:
                raise InputError(f"X has no column {missing[0]!r}, which the model was trained on")
            return X[list(names)] if list(given) != list(names) else X
        shape = np.shape(X)
        if count is not None and (len(shape) != 2 or shape[1] != count):
            raise InputError(f"X has shape {shape}; the model was trained on {count} columns")
        return X

    return prepare


def _plain(X: Any, *, finite: bool = False) -> Any:
    """Rows as the ensemble hands them to its base estimators: an array, or a sparse matrix."""
    if hasattr(X, "tocsr"):
        return X
    rows = np.asarray(X)
    if finite and rows.dtype.kind == "f" and not np.isfinite(rows).all():
        raise InputError("X has missing or infinite values, which the model refuses")
    return rows


def _by_class(proba: npt.NDArray[Any], encoded: npt.NDArray[Any]) -> Shares:
    """Columns by encoded class: a base estimator may have seen one class only."""
    if proba.shape[1] == 2:
        return proba
    shares = np.zeros((len(proba), 2))
    shares[:, np.asarray(encoded, dtype=np.intp)] = proba
    return shares


def _one_hot(predicted: npt.NDArray[Any]) -> Shares:
    """Votes for encoded classes 0 and 1."""
    votes = np.asarray(predicted).astype(np.intp)
    return np.eye(2)[votes]
