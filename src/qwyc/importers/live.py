"""Live models of libraries that qwyc itself never imports."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.model.ensemble import Sample
from qwyc.rows.sparse import canonical, is_sparse


@dataclass(frozen=True)
class Predictions:
    """The labels and scores that a live model itself gives some rows."""

    labels: npt.NDArray[Any]  # (N,)
    scores: npt.NDArray[np.float64] | None = None  # (N,); None: the labels alone are compared
    tolerance: float = 0.0  # relative; above 0 where the library's own sums are not reproducible
    absolute: float = 0.0  # the same, in units of the score
    ties: bool = False  # whether a row so close to the threshold may be decided either way

    @classmethod
    def of(cls, labels: Any, scores: Any, tolerance: float = 0.0) -> Predictions:
        """From what a library gives."""
        return cls(np.asarray(labels), np.asarray(scores, dtype=np.float64), tolerance)


def softmax_error(n_classes: int) -> float:
    """How far a softmax in float32 may be from the exact one: each addition rounds once."""
    return max(2e-6, 2.0**-24 * (n_classes + 8))


def made_by(model: object, library: str) -> bool:
    """Whether the class of `model`, or one that it derives from, is of `library`."""
    return any(base.__module__.split(".")[0] == library for base in type(model).__mro__)


def derives_from(model: object, name: str) -> bool:
    """Whether the class of `model`, or one that it derives from, is called `name`."""
    return any(base.__name__ == name for base in type(model).__mro__)


# Top-level modules that define models which are read, or the classes that these derive from.
_LIBRARIES = ("catboost", "keras", "lightgbm", "sklearn", "tf_keras", "treelite", "xgboost", "ydf")


def overridden(model: Any) -> list[str]:
    """The methods for predictions of a library's model that are not the library's own."""
    names = ("predict", "predict_proba", "decision_function", "score_samples")
    if not any(made_by(model, library) for library in _LIBRARIES):
        return []
    return [name for name in names if hasattr(model, name) and not _is_of_library(model, name)]


def _is_of_library(model: Any, name: str) -> bool:
    """Whether a method is defined by a class of a library, and not by one derived from it or by hand."""
    bases = [base for base in type(model).__mro__ if name in vars(base)]
    by_hand = name in getattr(model, "__dict__", {})
    return not by_hand and (not bases or bases[0].__module__.split(".")[0] in _LIBRARIES)


def unwrapped(model: Any) -> Any:
    """The estimator that decides inside a fitted search over parameters or a frozen estimator."""
    while made_by(model, "sklearn"):
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif derives_from(model, "FrozenEstimator"):
            model = model.estimator
        else:
            break
    return model


def as_pandas(X: Any) -> Any:
    """Arrow tables as the data frames that the libraries take in their place; anything else as it is."""
    return X.to_pandas() if made_by(X, "pyarrow") and hasattr(X, "to_pandas") else X


def predict_on(predict: Callable[[Any], Any], sample: Sample) -> Any:
    """The result of `predict` on rows. An array or a pandas frame is passed as it was given, so that
    the library does its own conversion; if the library refuses it, the matrix is passed. Where the
    matrix has codes that are not the library's, only the given rows are passed."""
    schema, X = sample.ensemble.schema, sample.given
    assert schema is not None  # of a model that was read
    only_itself = bool(schema.categories) and schema.arrays_hold_values
    rows = X
    if is_sparse(X):
        return _predict_sparse(predict, X)
    if only_itself:
        rows = _in_order(_without_mask(as_pandas(X)), schema.names)
    elif made_by(X, "pandas"):
        rows = _in_order(X, schema.names)
    elif not _is_plain(X):
        rows = sample.rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as: X has no feature names
        try:
            return predict(rows)
        except Exception:  # every library has its own exceptions
            if only_itself or (rows is not X and not hasattr(rows, "columns")):
                raise
            return predict(sample.rows)


def _predict_sparse(predict: Callable[[Any], Any], X: Any) -> Any:
    """The result of `predict` on sparse rows, which stay sparse: absent entries need not be zeros.
    Libraries that take no integers get them as floats."""
    rows = canonical(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return predict(rows)
        except Exception:  # every library has its own exceptions
            if rows.dtype.kind == "f":
                raise
            return predict(rows.astype(np.float64))


def _is_plain(X: Any) -> bool:
    """Whether X is an array of numbers that every library reads right: none looks at a mask."""
    return (
        isinstance(X, np.ndarray)
        and not isinstance(X, np.ma.MaskedArray)
        and X.dtype.kind in "fiub"
        and X.dtype.isnative
        and X.dtype.itemsize <= 8
    )


def _in_order(X: Any, names: Sequence[str] | None) -> Any:
    """A frame's columns as the model has them; anything else as it is."""
    if names is None or not hasattr(X, "columns") or list(X.columns) == list(names):
        return X
    return X[list(names)] if set(names) <= set(X.columns) else X


def _without_mask(X: Any) -> Any:
    """A masked array with NaN where it is masked; anything else as it is."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    return np.ma.filled(X if X.dtype.kind in "fO" else X.astype(np.float64), np.nan)
