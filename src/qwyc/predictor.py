"""Predictor: a model that is evaluated in full, with what users call."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import importers
from qwyc.errors import ArtifactError, OptionError, QwycWarning
from qwyc.files import classifier_file
from qwyc.importers.live import overridden, unwrapped
from qwyc.model.ensemble import Ensemble
from qwyc.model.fitted import FittedEstimator
from qwyc.model.native import PlainArrays, one_value, plain_arrays
from qwyc.model.one_row import OneRow, as_table
from qwyc.model.probabilities import class_probabilities, full_scores, values_of


@dataclass(frozen=True, eq=False)
class Predictor(FittedEstimator, Ensemble):
    """A model that is evaluated in full. Its outputs equal those of the source model, bit for bit. Nothing
    is decided early: use `qwyc.optimize` for that.

    Rows may be NumPy arrays, pandas, Polars and Arrow tables, or sparse matrices of scipy, whose absent
    entries have the same meaning as in the source library. All methods may be called from many threads at
    once. To scikit-learn it is a fitted estimator, and `fit` does not change it."""

    @classmethod
    def of(cls, ensemble: Ensemble) -> Predictor:
        """A predictor of an ensemble."""
        if isinstance(ensemble, Predictor):
            return ensemble
        return cls(*(getattr(ensemble, name) for name in Ensemble.__dataclass_fields__))

    def predict(self, X: Any, *, threads: int | None = None) -> npt.NDArray[Any]:
        """The output of the source model's own `predict` for every row: its class, (N,), or for a
        regression, a ranking or another model of values its value, (N,) or (N, K). For boosters whose
        `predict` does not give classes, such as `xgboost.Booster`, it is the class that their library's
        classifier gives."""
        if not self.has_classes:
            return values_of(self, full_scores(self, X, threads=threads), threads=threads)
        plain = self._plain_arrays
        label: Any = None if plain is None else plain.predict(X, threads)
        if label is None and plain is not None and (frame := self.frame(X)) is not None:
            label = plain.predict(frame, threads)
        return self.decide(X, self.full_runner, threads=threads).label if label is None else label

    def predict_proba(self, X: Any, *, threads: int | None = None) -> npt.NDArray[Any]:
        """The probability of every class, (N, n_classes), as the source model's own `predict_proba` gives
        it."""
        return class_probabilities(self, X, threads=threads)

    @cached_property
    def predict_one(self) -> Callable[[Any], Any]:
        """`predict_one(row)`: the class or value of one row, (n_features,), in any form that
        `Classifier.predict_one` takes; several values are a list. Arrays of float32 or float64, and lists
        and tuples of Python's own numbers, take a few microseconds; everything else is converted first.
        Safe to call from many threads at once."""
        if not self.has_classes:
            any_value = _OneValue(self)
            return one_value(self.full_runner, self, any_value) or any_value
        any_row = OneRow(self, self.full_runner)
        if self.transform is not None:
            return any_row
        return self.full_runner.one_row(self.classes.tolist(), any_row, self.schema) or any_row

    def score_samples(self, X: Any, *, threads: int | None = None) -> npt.NDArray[np.float64]:
        """The anomaly score of every row, (N,), for an isolation forest: the lower, the more abnormal."""
        if not self.is_isolation_forest:
            raise OptionError(
                f"score_samples is for isolation forests; this is {self.description}: use predict, "
                "predict_proba or score_full"
            )
        scores: npt.NDArray[np.float64] = values_of(
            self, full_scores(self, X, threads=threads), threads=threads
        )
        return scores

    @cached_property
    def _plain_arrays(self) -> PlainArrays | None:
        """What decides NumPy arrays of floats in one native call."""
        return plain_arrays(self.full_runner, self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a `.qwyc` file that `qwyc.load` reads; an existing one is replaced in one step or not at
        all."""
        if self.has_code:
            raise ArtifactError(
                f"{self.description} cannot be saved, since a part of it is Python code, and files hold "
                "none; save the model without it"
            )
        classifier_file.write_model(path, self)

    def __repr__(self) -> str:
        return f"Predictor({self.description})"


@dataclass(frozen=True, eq=False)
class _OneValue:
    """The value of one row in any form."""

    predictor: Predictor

    def __call__(self, row: Any) -> Any:
        return self.predictor.predict(as_table(row, self.predictor), threads=1).tolist()[0]


def read_model(model: Any) -> Predictor:
    """Read a trained model, to evaluate it in full.

        model = qwyc.read_model("model.json")
        labels = model.predict(X)

    `model` is a path, or a model object of XGBoost, LightGBM, CatBoost, scikit-learn, YDF, Treelite, ONNX
    or TensorFlow Lattice, or a pipeline that ends in one. The result is a `Predictor`, with `predict`,
    `predict_one`, `score_full` and `save`, and `predict_proba` for classifiers. Its outputs equal the
    model's own, bit for bit (for TensorFlow Lattice, up to rounding). If the class of the model overrides
    `predict`, that code is not read, and a warning says so."""
    found = Predictor.of(importers.read_model(model))
    own = overridden(unwrapped(model))
    if own:
        warnings.warn(
            f"{type(unwrapped(model)).__name__} has its own {' and '.join(own)}, which is not read: the "
            "result gives what the library's own method gives for its base models",
            QwycWarning,
            stacklevel=2,
        )
    return found
