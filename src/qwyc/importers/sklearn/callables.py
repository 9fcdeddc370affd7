"""Ensembles of anything: lists of callables, and scikit-learn's bagging, voting, AdaBoost and stacking of
any base estimator, taken apart into base models for `qwyc.Cascade`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import InputError, ModelError
from qwyc.importers.live import as_pandas, derives_from, made_by
from qwyc.importers.sklearn.bases import has_tree_bases
from qwyc.model.callables import callable_ensemble
from qwyc.model.ensemble import Ensemble

Shares = npt.NDArray[np.float64]  # (n, 2) of the negative and the positive class

ABOVE_ZERO = float(np.nextafter(0.0, 1.0))  # positive where one share exceeds the other


def take_apart(model: Any) -> Ensemble | None:
    """An ensemble of the base models of `model`, or None where it is not of this kind."""
    if isinstance(model, (list, tuple)):
        if not model:
            raise ModelError(
                "the list of base models is empty; pass a callable for each base model"
            )
        if any(isinstance(item, Ensemble) for item in model):
            raise ModelError(
                "the list holds ensembles; pass one, or put ensembles of lattices together with "
                "qwyc.lattice.ensemble"
            )
        return callable_ensemble(model)  # says which of them cannot be called
    if not made_by(model, "sklearn"):
        return None
    for name, read in (
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
                    f"this {name} has {len(model.classes_)} classes; qwyc runs it as Python callables, "
                    "which decide between two. Of more classes, qwyc reads trees: forests, boosting, and "
                    "BaggingClassifier and AdaBoostClassifier of trees"
                )
            return read(model)
    return None


# Base models are small classes rather than closures, so that a classifier over them can be pickled
# wherever the estimators can.


@dataclass(frozen=True)
class _BaggedShares:
    """predict_proba, or a vote, of a base estimator on its own columns."""

    estimator: Any
    features: npt.NDArray[Any]

    def __call__(self, X: Any) -> Shares:
        columns = _plain(X)[:, self.features]
        if hasattr(self.estimator, "predict_proba"):
            return _by_class(self.estimator.predict_proba(columns), self.estimator.classes_)
        return _one_hot(self.estimator.predict(columns))


def _bagging(model: Any) -> Ensemble:
    """Mean of predict_proba, or of votes, each base estimator on its own columns."""
    pairs = zip(model.estimators_, model.estimators_features_, strict=True)
    return _shares([_BaggedShares(e, f) for e, f in pairs], len(model.estimators_), model)


@dataclass(frozen=True)
class _VotedShares:
    """predict_proba (soft) or a vote (hard), times a weight."""

    estimator: Any
    weight: float
    soft: bool

    def __call__(self, X: Any) -> Shares:
        if self.soft:
            return np.asarray(self.estimator.predict_proba(X)) * self.weight
        return _one_hot(self.estimator.predict(X)) * self.weight


def _voting(model: Any) -> Ensemble:
    """Weighted mean of predict_proba (soft) or weighted votes (hard)."""
    weights = model._weights_not_none
    factors = (
        np.ones(len(model.estimators_)) if weights is None else np.asarray(weights, dtype=float)
    )
    soft = model.voting == "soft"
    pairs = zip(model.estimators_, factors, strict=True)
    divisor = float(factors.sum()) if soft else 1.0
    return _shares([_VotedShares(e, w, soft) for e, w in pairs], divisor, model)


@dataclass(frozen=True)
class _BoostedShares:
    """A weight for the class that is predicted, and the same taken from the other."""

    estimator: Any
    weight: float
    classes: npt.NDArray[Any]

    def __call__(self, X: Any) -> Shares:
        predicted = np.asarray(self.estimator.predict(_plain(X, finite=True)))
        matches = np.stack([predicted == label for label in self.classes], axis=1)
        return np.where(matches, self.weight, -1.0 * self.weight)


def _ada_boost(model: Any) -> Ensemble:
    """Each base estimator adds its weight to the class it predicts and takes it from the other."""
    weights = model.estimator_weights_[: len(model.estimators_)]
    pairs = zip(model.estimators_, weights, strict=True)
    return _shares(
        [_BoostedShares(e, float(w), model.classes_) for e, w in pairs],
        float(model.estimator_weights_.sum()),
        model,
    )


@dataclass(frozen=True)
class _Stacked:
    """What a base estimator says, times its coefficient."""

    estimator: Any
    method: str
    weight: float

    def __call__(self, X: Any) -> npt.NDArray[np.float64]:
        said = np.asarray(getattr(self.estimator, self.method)(X), dtype=float)
        part: npt.NDArray[np.float64] = self.weight * (said if said.ndim == 1 else said[:, -1])
        return part


@dataclass(frozen=True)
class _PassedThrough:
    """The columns themselves, times their coefficients."""

    weights: npt.NDArray[np.float64]

    def __call__(self, X: Any) -> npt.NDArray[np.float64]:
        return np.asarray(_plain(X) @ self.weights, dtype=float)


def _stacking(model: Any) -> Ensemble:
    """A linear final estimator adds up what the base estimators say, each times its coefficient."""
    final = model.final_estimator_
    linear = derives_from(final, "LinearClassifierMixin")
    coefficients = np.atleast_2d(np.asarray(final.coef_, dtype=float)) if linear else np.empty(0)
    if len(coefficients) != 1:
        raise ModelError(
            f"this StackingClassifier's final estimator is {type(final).__name__}, for which the base "
            "estimators do not add up to a score; qwyc supports linear ones (LogisticRegression)"
        )
    weights, count = coefficients[0], len(model.estimators_)
    bases = zip(model.estimators_, model.stack_method_, weights[:count], strict=False)
    models: list[Callable[[Any], Any]] = [
        _Stacked(estimator, method, float(weight)) for estimator, method, weight in bases
    ]
    if model.passthrough:
        models.append(_PassedThrough(weights[count:]))
    elif count != len(weights):
        raise ModelError(
            "this StackingClassifier's base estimators give more than one number a row"
        )
    return callable_ensemble(
        models,
        base=float(np.ravel(final.intercept_)[0]),
        threshold=ABOVE_ZERO,
        classes=np.asarray(model.classes_),
        prepare=columns_of(model),
    )


def _shares(models: Sequence[Callable[[Any], Shares]], divisor: float, source: Any) -> Ensemble:
    return callable_ensemble(
        models,
        divisor=float(divisor),
        threshold=ABOVE_ZERO,
        classes=np.asarray(source.classes_),
        prepare=columns_of(source),
    )


@dataclass(frozen=True)
class Columns:
    """Rows with the columns that the ensemble was fitted on, in its order; an error where they are not
    there. Base estimators fitted on bare arrays could not tell."""

    names: Sequence[str] | None
    count: int | None

    def __call__(self, X: Any) -> Any:
        X = as_pandas(X)
        given = getattr(X, "columns", None)
        if self.names is not None and given is not None and not callable(given):
            missing = [name for name in self.names if name not in set(given)]
            if missing:
                raise InputError(f"X has no column {missing[0]!r}, which the model was trained on")
            return X[self.names] if list(given) != self.names else X
        shape = np.shape(X)
        if self.count is not None and (len(shape) != 2 or shape[1] != self.count):
            raise InputError(f"X has shape {shape}; the model was trained on {self.count} columns")
        return X


def columns_of(model: Any) -> Columns:
    """The columns of a scikit-learn estimator."""
    names = getattr(model, "feature_names_in_", None)
    return Columns(None if names is None else list(names), getattr(model, "n_features_in_", None))


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
