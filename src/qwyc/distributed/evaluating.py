"""What a worker does with one batch of rows for a model that is evaluated in full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.distributed.adding import CLASSIFIER, Adding
from qwyc.distributed.shipping import digest
from qwyc.distributed.work import as_rows
from qwyc.errors import InputError, OptionError
from qwyc.model.ensemble import Ensemble
from qwyc.model.probabilities import (
    class_probabilities,
    full_scores,
    probability_dtype,
    values_of,
)
from qwyc.policy.columns import arrow_type, score_columns
from qwyc.predictor import Predictor
from qwyc.rows.odd_values import ERROR

LABEL, VALUE, PROBA = "label", "value", "proba"


@dataclass(frozen=True)
class Evaluating(Adding):
    """Adds the label or the values of a model, and the probabilities of its classes, to a batch of rows."""

    value_dtype: str = "float64"
    proba_dtype: str = ""  # "" where probabilities are not asked for

    def types(self, classes: npt.NDArray[Any]) -> dict[str, Any]:
        """The columns added, and their Arrow types."""
        import pyarrow

        floats = {"float32": pyarrow.float32(), "float64": pyarrow.float64()}
        known = {CLASSIFIER: pyarrow.string()}
        if LABEL in self.added:
            known[LABEL] = arrow_type(classes)
        return {name: known.get(name) or floats[self._dtype(name)] for name in self.added}

    def nothing(self, classes: npt.NDArray[Any]) -> list[Any]:
        """An empty array of the type of each of `added`."""
        import pandas

        known = {LABEL: pandas.Series(classes)[:0]}  # text is of pandas' own kind
        return [known.get(name, np.empty(0, self._dtype(name))) for name in self.added]

    def _dtype(self, name: str) -> str:
        """The dtype of a column that holds values or probabilities."""
        return self.proba_dtype if name.startswith(f"{PROBA}_") else self.value_dtype

    def decided(self, model: Predictor, rows: Any) -> list[Any]:
        """The columns added, for an Arrow table or record batch."""
        import pyarrow

        arrays = self._columns(model, as_rows(model, rows.select(list(self.features))))
        kinds = self.types(model.classes).values()
        return [pyarrow.array(values, kind) for values, kind in zip(arrays, kinds, strict=True)]

    def on_pandas(self, model: Predictor, frame: Any) -> Any:
        """A pandas frame, with the columns added; its index is kept."""
        return self.with_columns(frame, self._columns(model, frame[list(self.features)]))

    def _columns(self, model: Predictor, rows: Any) -> list[Any]:
        """An array (N,) for each of `added`. Base models are evaluated once."""
        try:
            scores = full_scores(model, rows, threads=1)
            columns: list[Any] = []
            if LABEL in self.added:
                columns.append(model.classes[np.asarray(model.target.decide(scores), np.intp)])
            if gives_values(model):
                columns += score_columns(values_of(model, scores, threads=1))
            if self.proba_dtype:
                shares = class_probabilities(model, rows, threads=1, scores=scores)
                columns += score_columns(shares)
        except InputError as error:  # which counts rows within the batch
            raise error.about(f"a batch of {len(rows):,} rows") from None
        return [*columns, [digest(model)] * len(scores)] if self.digest else columns


def gives_values(model: Ensemble) -> bool:
    """Whether a model gives values: those without classes do, and isolation forests give an anomaly score
    beside their label."""
    return not model.has_classes or model.is_isolation_forest


def evaluating(
    model: Predictor,
    features: tuple[str, ...],
    keep: tuple[str, ...],
    names: tuple[str, ...],
    added: tuple[str, ...],
    proba: bool,
) -> Evaluating:
    """The work of a model, with the types of its columns."""
    value = "float64" if model.output is None else model.output.dtype
    shares = probability_dtype(model) if proba else ""
    return Evaluating(features, keep, names, added, ERROR, value, shares)


def evaluated_columns(model: Predictor, with_digest: bool, proba: bool) -> tuple[str, ...]:
    """What is known of an evaluated row."""
    labels = model.classes.tolist()
    names = [LABEL] if model.has_classes else []
    if gives_values(model):
        several = model.by_class and not model.has_classes
        scores = range(model.base_models.n_scores)
        names += [f"{VALUE}_{i}" for i in scores] if several else [VALUE]
    if proba:
        probability_dtype(model)  # refuses a model that has none
        names += [f"{PROBA}_{label}" for label in labels]
    return (*names, CLASSIFIER) if with_digest else tuple(names)


def first_output(model: Predictor) -> str | None:
    """What a column of a model holds where nothing else is asked for: its label or its value; None, a
    struct, where it has several values."""
    if model.has_classes:
        return LABEL
    return None if model.by_class else VALUE


def check_unseen_of(unseen: str) -> None:
    """Raise an `OptionError` for an option that models evaluated in full do not have."""
    if unseen != ERROR:
        raise OptionError(
            f"unseen={unseen!r} is for classifiers that quit early; a model that is evaluated in full "
            "refuses rows with values that its source refuses: clean them before"
        )
