"""One row at a time: in any form that users have it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qwyc.errors import InputError
from qwyc.model.base_models import Runner
from qwyc.model.ensemble import Ensemble
from qwyc.rows.named_row import NamedRow
from qwyc.rows.sparse import is_sparse


@dataclass(frozen=True, eq=False)
class OneRow:
    """Decides one row in any form: as a table of one row."""

    ensemble: Ensemble
    runner: Runner

    def __call__(self, row: Any) -> Any:
        return self.ensemble.decide(as_table(row, self.ensemble), self.runner).label.tolist()[0]


def as_table(row: Any, ensemble: Ensemble) -> Any:
    """One row as a table of one row, if it is not one already."""
    if isinstance(row, np.ndarray) and row.ndim == 1:
        return row[np.newaxis]
    if isinstance(row, Mapping):
        return _named_row(list(row.keys()), list(row.values()), ensemble, type(row).__name__)
    series = getattr(sys.modules.get("pandas"), "Series", None)
    if series is not None and isinstance(row, series):
        if _goes_by_labels(row.index, ensemble):
            return _named_row(row.index.tolist(), row.tolist(), ensemble, "Series")
        return row.to_numpy()[np.newaxis]
    if isinstance(row, Sequence) and not isinstance(row, (str, bytes)):
        return [list(row)]
    if not isinstance(row, np.ndarray) and hasattr(row, "columns") and len(row) == 1:
        return row
    if is_sparse(row) and (len(row.shape) == 1 or row.shape[0] == 1):
        return row if len(row.shape) == 2 else row.reshape(1, -1)
    shape = f" of shape {row.shape}" if hasattr(row, "shape") else ""
    raise InputError(
        "predict_one takes a one-dimensional NumPy array, a sequence of values, a dict of values by column "
        f"name, a pandas Series, or a table or sparse matrix of one row; got {type(row).__name__}{shape}"
    )


def _goes_by_labels(labels: Any, ensemble: Ensemble) -> bool:
    """Whether the labels of a pandas Series are names of columns, not only its positions."""
    names = None if ensemble.schema is None else ensemble.schema.names
    if ensemble.transform is None and names is None:
        return False
    known = names or ()
    return any(isinstance(label, str) or str(label) in known for label in labels)


def _named_row(names: list[Any], values: list[Any], ensemble: Ensemble, kind: str) -> Any:
    """Values by the name of their column as a table of one row."""
    if ensemble.transform is not None:  # which takes tables
        return NamedRow(names, values).to_pandas()
    if ensemble.schema is None or ensemble.schema.names is None:
        raise InputError(
            "the model has no names of columns, so predict_one takes values by their position; got "
            f"{kind}: pass a sequence of the values in the order of the columns"
        )
    return NamedRow(names, values)
