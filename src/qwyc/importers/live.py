"""Live models of libraries that qwyc itself never imports."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from qwyc.ensemble import Ensemble


def made_by(model: object, library: str) -> bool:
    """Whether the class of `model`, or one that it derives from, is of `library`."""
    return any(base.__module__.split(".")[0] == library for base in type(model).__mro__)


def derives_from(model: object, name: str) -> bool:
    """Whether the class of `model`, or one that it derives from, is called `name`."""
    return any(base.__name__ == name for base in type(model).__mro__)


def unwrapped(model: Any) -> Any:
    """What decides inside scikit-learn's searches over parameters, once fitted, and frozen estimators."""
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


def ask(predict: Callable[[Any], Any], X: Any, ensemble: Ensemble) -> Any:
    """What `predict` says of the rows X: of X as it stands where it is an array or a pandas frame,
    so that the library does its own conversion, and of its matrix where the library refuses X."""
    rows = X
    if type(X).__module__.split(".")[0] == "pandas" and hasattr(X, "columns"):
        names = ensemble.inputs.names
        if names is not None and list(X.columns) != list(names) and set(names) <= set(X.columns):
            rows = X[list(names)]
    elif not (
        isinstance(X, np.ndarray)
        and X.dtype.kind in "fiub"
        and X.dtype.isnative
        and X.dtype.itemsize <= 8
    ):
        rows = ensemble.matrix(X)  # a table, or numbers that not every library reads right
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as: X has no feature names
        try:
            return predict(rows)
        except Exception:  # every library has its own
            if rows is not X and not hasattr(rows, "columns"):
                raise
            return predict(ensemble.matrix(X))
