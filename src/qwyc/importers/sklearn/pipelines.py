"""scikit-learn pipelines that end in an ensemble: their own steps stay Python and make the rows, the
ensemble at the end is read."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from qwyc.errors import InputError, ModelError
from qwyc.importers.files import reason
from qwyc.importers.live import as_pandas, derives_from, made_by, unwrapped
from qwyc.model.ensemble import Ensemble
from qwyc.rows.sparse import is_sparse, takes_sparse


def is_pipeline(model: object) -> bool:
    """Whether `model` is a scikit-learn pipeline, or derives from one."""
    return derives_from(model, "Pipeline") and made_by(model, "sklearn")


def last_step(model: Any) -> Any:
    """The classifier at the end of a pipeline, without searches or frozen estimators around it."""
    final = unwrapped(model.steps[-1][1])
    if final is None or isinstance(final, str):
        raise ModelError(
            "the pipeline ends in no classifier ('passthrough'); qwyc reads its last step"
        )
    return final


class _Transform:
    """What the steps before the last make of rows. A class, so that a classifier with it can be pickled."""

    def __init__(self, pipeline: Any, sparse: bool) -> None:
        self.pipeline = pipeline
        self.sparse = sparse  # whether the last step, as it was read, takes sparse rows
        # A sparse matrix leaves zeros out; XGBoost takes what is left out for missing.
        self.absent = np.nan if made_by(last_step(pipeline), "xgboost") else 0.0

    def __call__(self, X: Any) -> Any:
        if len(self.pipeline.steps) < 2:
            return X
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows = self.pipeline[:-1].transform(as_pandas(X))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"the pipeline's own steps cannot take X: {reason(error)}") from error
        if is_pipeline(last_step(self.pipeline)):
            return rows  # as its own steps take them
        return self._dense(rows) if is_sparse(rows) and not self.sparse else rows

    def _dense(self, rows: Any) -> Any:
        entries = rows.tocoo()
        dense = np.full(rows.shape, self.absent, dtype=np.result_type(rows.dtype, np.float32))
        dense[entries.row, entries.col] = entries.data
        return dense

    def __str__(self) -> str:
        return ", ".join(type(step).__name__ for _, step in self.pipeline.steps[:-1])


def with_transform(model: Any, inner: Ensemble) -> Ensemble:
    """The last step as it was read, and rows as the pipeline takes them."""
    transform: Callable[[Any], Any] = _Transform(model, takes_sparse(inner.schema))
    if inner.transform is not None:  # the last step is a pipeline too
        transform = _Chain(transform, inner.transform)
    return replace(inner, transform=transform)


class _Chain:
    def __init__(self, first: Callable[[Any], Any], then: Callable[[Any], Any]) -> None:
        self.first, self.then = first, then

    def __call__(self, X: Any) -> Any:
        return self.then(self.first(X))

    def __str__(self) -> str:
        return f"{self.first}, {self.then}"
