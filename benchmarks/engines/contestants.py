"""What every worker does with a batch of rows: nothing, XGBoost, or qwyc."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Sums:
    """What comes back from a pass over the data, to be checked."""

    rows: int
    positive: int


@dataclass(frozen=True)
class Nothing:
    """Every row negative: what the engine takes to bring rows to Python and labels back."""

    def __call__(self, table: Any) -> Any:
        """Labels for a table of features."""
        import pyarrow

        return pyarrow.table({"label": np.zeros(table.num_rows, dtype=np.int64)})


_boosters: dict[int, Any] = {}  # in a worker


@dataclass(frozen=True)
class XGBoost:
    """The model's own library, loaded once by each process, on one thread."""

    content: bytes  # of the model's file
    categories: tuple[tuple[str, tuple[str, ...]], ...] = ()  # of each column of text

    def __call__(self, table: Any) -> Any:
        """Labels for a table of features."""
        import pyarrow

        rows = self.frame(table) if self.categories else self.matrix(table)
        probability = self.booster().inplace_predict(rows)
        return pyarrow.table({"label": (probability > 0.5).astype(np.int64)})

    def matrix(self, table: Any) -> Any:
        """Numbers as an array, (N, n_features)."""
        rows = np.empty((table.num_rows, table.num_columns), dtype=np.float32)
        for i, column in enumerate(table.columns):
            rows[:, i] = column.to_numpy()
        return rows

    def frame(self, table: Any) -> Any:
        """Numbers and text as a pandas frame, whose text has the categories of the training rows."""
        import pandas

        frame = table.to_pandas()
        for name, known in self.categories:
            frame[name] = pandas.Categorical(frame[name], categories=list(known))
        return frame

    def booster(self) -> Any:
        """The live model, in this process."""
        import xgboost

        key = hash(self.content)
        if key not in _boosters:
            _boosters[key] = xgboost.Booster(model_file=bytearray(self.content))
            _boosters[key].set_param({"nthread": 1})
        return _boosters[key]
