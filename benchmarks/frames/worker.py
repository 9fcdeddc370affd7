"""A process that measures one installation of qwyc on data frames: `PYTHON worker.py CORE`.

It runs under the Python of that installation, so it uses names of qwyc that older versions have too.
Requests and answers are lines of JSON, as in benchmarks/batches/worker.py."""

from __future__ import annotations

import gc
import json
import os
import pickle
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet

import qwyc

ARRAY = "NumPy array"
PANDAS_TEXT, PANDAS_CATEGORIES = "pandas, text", "pandas, category"
# As pandas reads CSV: equal texts are mostly one object. And as some databases give them.
PANDAS_OBJECTS, PANDAS_OWN_OBJECTS = "pandas, objects", "pandas, an object per cell"
PANDAS_BLOCK, PANDAS_COLUMNS = "pandas, one block", "pandas, separate columns"
POLARS, POLARS_CATEGORIES = "Polars", "Polars, Categorical"
ARROW, ARROW_DICTIONARY = "Arrow", "Arrow, dictionary"
TEXT_FORMS = (
    ARRAY, PANDAS_CATEGORIES, PANDAS_TEXT, PANDAS_OBJECTS, PANDAS_OWN_OBJECTS, POLARS,
    POLARS_CATEGORIES, ARROW, ARROW_DICTIONARY,
)  # fmt: skip
FLOAT_FORMS = (ARRAY, PANDAS_BLOCK, PANDAS_COLUMNS, POLARS, ARROW)
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}

Categories = dict[str, list[str]]  # of each column of text


def frame_of(form: str, table: Any, categories: Categories) -> Any:
    """An Arrow table of text and numbers as a frame of the given form."""
    if form == ARROW:
        return table
    if form == ARROW_DICTIONARY:
        return pa.table(
            {
                name: column.dictionary_encode() if name in categories else column
                for name, column in zip(table.column_names, table.columns, strict=True)
            }
        )
    if form.startswith("Polars"):
        frame: Any = pl.from_arrow(table)
        if form == POLARS_CATEGORIES:
            frame = frame.with_columns(pl.col(list(categories)).cast(pl.Categorical))
        return frame
    columns = {name: table[name].to_numpy() for name in table.column_names}
    if form == ARRAY:
        coded = [
            pd.Categorical(values, categories[name]).codes.astype(float)
            if name in categories
            else values
            for name, values in columns.items()
        ]
        return np.column_stack(coded).astype(float)
    if form == PANDAS_BLOCK:
        return pd.DataFrame(np.column_stack(list(columns.values())), columns=list(columns))
    if form == PANDAS_CATEGORIES:
        return with_categories(pd.DataFrame(columns), categories)
    kind: Any = "str" if form == PANDAS_TEXT else object
    columns = {name: values.copy() for name, values in columns.items()}
    if form == PANDAS_OBJECTS:
        for name, known in categories.items():
            codes = pd.Categorical(columns[name], known).codes
            columns[name] = pd.Series(np.array(known, object)[codes], dtype=object)
        return pd.DataFrame(columns, copy=False)
    return pd.DataFrame(columns, copy=False).astype(dict.fromkeys(categories, kind))


def with_categories(frame: Any, categories: Categories) -> Any:
    """A pandas frame with categories in place of text."""
    return frame.astype({name: pd.CategoricalDtype(known) for name, known in categories.items()})


def library_input(frame: Any, categories: Categories, library: str) -> Any:
    """A frame as the library takes it: pandas, with categories for LightGBM and XGBoost."""
    if isinstance(frame, np.ndarray):
        return frame
    if isinstance(frame, (pl.DataFrame, pa.Table)):
        frame = frame.to_pandas()
    if library in ("lightgbm", "xgboost"):
        wrong = {
            name: known
            for name, known in categories.items()
            if not isinstance(frame[name].dtype, pd.CategoricalDtype)
            or list(frame[name].cat.categories) != known
        }
        return with_categories(frame, wrong) if wrong else frame
    return frame


class Bench:
    """The open case: its classifier, its model and its rows."""

    def __init__(self) -> None:
        self.calls: dict[str, Callable[[Any], Any]] = {}
        self.frames: dict[tuple[str, int], Any] = {}

    def open(self, file: str, rows: str, about: str, model: str) -> dict[str, Any]:
        """Read a `.qwyc` file, a Parquet file of rows, the categories and the pickled model."""
        fast = qwyc.load(file)
        full = fast.full()
        facts = json.loads(Path(about).read_text())
        self.categories: Categories = facts["categories"]
        library = facts["library"]
        own = pickle.loads(Path(model).read_bytes())  # written by the benchmark

        def prepared(frame: Any) -> Any:
            return library_input(frame, self.categories, library)

        # A pipeline's own steps are the same for everyone.
        given: Callable[[Any], Any] = lambda frame: frame  # noqa: E731
        if library == "sklearn":
            given = lambda frame: own[:-1].transform(prepared(frame))  # noqa: E731
        self.calls = {
            "quitting": lambda frame: fast.predict(given(frame), threads=1),
            "full": lambda frame: full.predict(given(frame), threads=1),
            "library": lambda frame: own.predict(prepared(frame)),
        }
        self.table = pyarrow.parquet.read_table(rows)
        self.frames = {}
        return {"n_models": int(fast.policy.n_models)}

    def answers(self, forms: list[str], to: str) -> dict[str, Any]:
        """Write the labels of all rows, by form and way. Forms that the model does not take are returned
        with the reason."""
        found, refused = {}, {}
        for form in forms:
            try:
                frame = self._frame(form, self.table.num_rows)
                labels = {way: np.asarray(self.calls[way](frame)) for way in ("quitting", "full")}
                if form != ARRAY:
                    labels["library"] = np.asarray(self.calls["library"](frame))
            except Exception as error:
                refused[form] = f"{type(error).__name__}: {str(error).splitlines()[0][:160]}"
                continue
            found |= {f"{form} | {way}": label.astype(int).ravel() for way, label in labels.items()}
        np.savez(to, **found)
        return {"refused": refused}

    def _frame(self, form: str, n: int) -> Any:
        if (form, n) not in self.frames:
            self.frames = {key: kept for key, kept in self.frames.items() if key[0] == form}
            self.frames[form, n] = frame_of(form, self.table[:n], self.categories)
        return self.frames[form, n]

    def time(
        self, way: str, form: str, size: int, seconds: float, clock: str, least: int
    ) -> dict[str, Any]:
        """Seconds of calls: as many as fit into `seconds`, and at least `least`, after one that is not
        counted."""
        frame, call, now = self._frame(form, size), self.calls[way], CLOCKS[clock]
        spent: list[float] = []
        gc.disable()
        call(frame)
        end = time.perf_counter() + seconds
        while len(spent) < least or time.perf_counter() < end:
            started = now()
            call(frame)
            spent.append(now() - started)
        gc.enable()
        return {"seconds": spent}


def main() -> None:
    """Answer requests until the input ends."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(sys.argv[1])})
    bench = Bench()
    about = {"version": qwyc.__version__, "where": os.path.dirname(qwyc.__file__)}
    print(json.dumps(about), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        answer = getattr(bench, request.pop("do"))(**request)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
