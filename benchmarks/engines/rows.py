"""The rows that every engine decides: UCI Adult's test rows, repeated, as numbers and as text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import qwyc

from ..cache import trained
from ..cases import TRAINING_ROWS, adult, train_xgboost
from ..contest import ASKED, CONFIDENCE, enlarged
from .contestants import Nothing, Sums, XGBoost

TREES, DEPTH, LEARNING_RATE = 500, 5, 0.05
FILES = 8


@dataclass(frozen=True)
class Case:
    """A model, its classifier, rows in files, and what the answers must add up to."""

    title: str
    fast: Any
    own: XGBoost
    folder: Path
    features: list[str]
    rows: int
    expected: dict[str, Sums]
    differ: float  # share of held-out decisions that quitting changes
    arrow_bytes: float  # per row, of the features

    @property
    def nothing(self) -> Nothing:
        """What every engine takes for itself."""
        return Nothing()

    @property
    def disk_bytes(self) -> float:
        """Per row, Parquet."""
        return sum(path.stat().st_size for path in self.folder.glob("*.parquet")) / self.rows


def numbers(rows: int, folder: Path) -> Case:
    """14 columns of float32, text as codes."""
    model = trained(train_xgboost, trees=TREES, depth=DEPTH, learning_rate=LEARNING_RATE).model
    train, _, test = adult()
    features = [f"f{i}" for i in range(test.shape[1])]
    fast = _optimised(model, train[TRAINING_ROWS:])
    many = enlarged(test, rows)
    columns = dict(zip(features, many.T, strict=True))
    own = XGBoost(_content(model))
    return _case("numbers", model, fast, own, test, many, columns, folder)


def text(rows: int, folder: Path) -> Case:
    """6 columns of int64 and 8 of text, as in the data set itself."""
    import pandas
    import xgboost

    from qwyc.datasets import load_adult

    train, test = load_adult("train"), load_adult("test")
    kinds = {
        name: tuple(sorted({value for value in column if value is not None}))
        for name, column in train.columns.items()
        if column.dtype == object
    }

    def frame(table: Any) -> Any:
        made = pandas.DataFrame(table.columns)
        return made.astype({n: pandas.CategoricalDtype(list(kinds[n])) for n in kinds})

    learnt = frame(train)
    model = xgboost.XGBClassifier(
        n_estimators=TREES, max_depth=DEPTH, learning_rate=LEARNING_RATE, enable_categorical=True
    )
    model.fit(learnt[:TRAINING_ROWS], train.label[:TRAINING_ROWS])
    fast = _optimised(model, learnt[TRAINING_ROWS:])
    tested = frame(test)
    many = tested.iloc[enlarged(np.arange(len(tested)), rows)].reset_index(drop=True)
    columns = {
        name: many[name].astype(object).where(many[name].notna(), None)
        if name in kinds
        else many[name]
        for name in many
    }
    own = XGBoost(_content(model), tuple(kinds.items()))
    return _case("text", model, fast, own, tested, many, columns, folder)


CASES = {"numbers": numbers, "text": text}


def _optimised(model: Any, sample: Any) -> Any:
    return qwyc.optimize(model, sample, alpha=ASKED, confidence=CONFIDENCE, progress=False)


def _content(model: Any) -> bytes:
    return bytes(model.get_booster().save_raw("ubj"))


def _case(
    title: str,
    model: Any,
    fast: Any,
    own: XGBoost,
    test: Any,
    many: Any,
    columns: dict[str, Any],
    folder: Path,
) -> Case:
    """Writes the files, and decides all rows once without an engine."""
    import pyarrow
    import pyarrow.parquet

    n = len(many)
    table = pyarrow.table({"id": np.arange(n), **columns})
    size = -(-n // FILES)
    for i in range(FILES):
        pyarrow.parquet.write_table(table.slice(i * size, size), folder / f"{i}.parquet")
    full, early = model.predict(many), fast.predict(many)
    expected = {
        "nothing": Sums(n, 0),
        "XGBoost": Sums(n, int(full.sum())),
        "qwyc, full": Sums(n, int(full.sum())),
        "qwyc, quitting": Sums(n, int(early.sum())),
    }
    differ = float(np.mean(model.predict(test) != fast.predict(test)))
    arrow = table.drop_columns(["id"]).nbytes / n
    return Case(title, fast, own, folder, list(columns), n, expected, differ, arrow)
