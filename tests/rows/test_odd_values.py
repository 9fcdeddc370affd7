"""Values that a model refuses: taken as missing as if they were null, or left out with their rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matrices import record_batch
from qwyc.errors import InputError
from qwyc.rows.schema import Schema
from qwyc.rows.selection import take
from table_paths import decider

NAN = float("nan")
JOBS = ("clerk", "cook", "pilot")
SCHEMA = Schema(
    n_features=4,
    names=("age", "job", "zone", "pay"),
    dtype="float64",
    categories={1: JOBS, 2: (1, 2, 3)},
    unseen="error",
)
KINDS = {
    "float64": SCHEMA,
    "float32": replace(SCHEMA, dtype="float32"),
    "sentinel": replace(SCHEMA, missing=-1.0),
    "finite": replace(SCHEMA, accepts_infinity=False),
    "no missing": replace(SCHEMA, accepts_missing=False, accepts_infinity=False),
    "must have": replace(SCHEMA, must_have=(0,)),
    "lenient": replace(SCHEMA, unseen="missing"),
    "first": replace(SCHEMA, unseen="first"),
    "None": replace(SCHEMA, categories={1: (*JOBS, None), 2: (1, 2, 3)}),
}
kinds = pytest.mark.parametrize("schema", KINDS.values(), ids=KINDS.keys())

# Frames of columns of Python objects. Columns that hold one kind of value have its type.
LIBRARIES = {
    "pandas objects": lambda d: pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in d.items()}),
    "pandas": lambda d: pd.DataFrame(d),
    "pandas nullable": lambda d: pd.DataFrame(d).convert_dtypes(),
    "pandas categories": lambda d: pd.DataFrame(d).astype({"job": "category", "zone": "category"}),
    "polars": lambda d: pl.DataFrame(d, strict=False),
    "polars objects": lambda d: pl.DataFrame(
        {k: pl.Series(v, dtype=pl.Object) if k == "age" else v for k, v in d.items()}, strict=False
    ),
    "polars categories": lambda d: pl.DataFrame(d, strict=False).with_columns(
        pl.col("job").cast(pl.Categorical)
    ),
    "arrow": lambda d: pa.table(d),
    "batch": lambda d: record_batch(pa.table(d)),
    "dictionaries": lambda d: (t := pa.table(d)).set_column(1, "job", t["job"].dictionary_encode()),
    "chunks": lambda d: pa.concat_tables(
        [pa.table(d).slice(0, len(d["job"]) // 2), pa.table(d).slice(len(d["job"]) // 2)]
    ),
}
libraries = pytest.mark.parametrize("frame", LIBRARIES.values(), ids=LIBRARIES.keys())
objects = {"pandas objects", "polars objects"}  # that hold any value in a column


def good_columns(rng, n):
    """Columns that the model takes, if it takes missing values; some values are null."""
    return {
        "age": [None if rng.random() < 0.05 else float(rng.normal()) for _ in range(n)],
        "job": [None if rng.random() < 0.1 else str(rng.choice(JOBS)) for _ in range(n)],
        "zone": [int(rng.integers(1, 4)) for _ in range(n)],
        "pay": [int(rng.integers(0, 100)) for _ in range(n)],
    }


def same(found, expected):
    assert found.label.tolist() == expected.label.tolist()
    assert found.steps.tolist() == expected.steps.tolist()
    assert found.score.tobytes() == expected.score.tobytes()
    assert found.complete.tolist() == expected.complete.tolist()


def outcome(run):
    try:
        return run(), None
    except InputError as error:
        return None, error


def rows_of(X, rows):
    """Some rows of a frame, whose columns keep their types."""
    return X.take(pa.array(rows)) if isinstance(X, pa.RecordBatch) else take(X, rows)


def is_odd(name, value, schema):
    """Whether the model refuses a value: the rule of the documents, spelt out."""
    null = value is None or value != value
    refuses_null = not schema.accepts_missing or (name == "age" and bool(schema.must_have))
    if name == "job" and None in schema.categories[1] and null:
        return refuses_null
    if null:
        return refuses_null
    if name in ("job", "zone"):
        known = schema.categories[1 if name == "job" else 2]
        if value in known:
            return refuses_null and value == schema.missing
        return schema.unseen == "error"  # YDF, which takes "" as missing, refuses nothing
    if not isinstance(value, (int, float)):
        return True
    if value == schema.missing:
        return refuses_null
    return value in (float("inf"), float("-inf")) and not schema.accepts_infinity


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40), data=st.data())
@kinds
@libraries
def test_flag_decides_the_other_rows_as_if_they_were_alone(frame, schema, seed, n, data):
    rng = np.random.default_rng(seed)
    columns = good_columns(rng, n)
    odd = {"age": [float("inf"), NAN], "job": ["astronaut", ""], "zone": [7, -1], "pay": [-1]}
    if frame in (LIBRARIES["pandas objects"], LIBRARIES["polars objects"]):
        odd["age"] += ["abc", "3.5"]
    for _ in range(data.draw(st.integers(0, 5))):
        name = str(rng.choice(list(columns)))
        columns[name][rng.integers(n)] = odd[name][rng.integers(len(odd[name]))]
    bad = np.array(
        [any(is_odd(name, columns[name][i], schema) for name in columns) for i in range(n)]
    )
    fast = decider(replace(schema))
    found = fast.decide(frame(columns), unseen="flag")
    assert [reason is not None for reason in found.reason] == bad.tolist()
    assert found.not_decided == bad.sum()
    assert found.decided.tolist() == (~bad).tolist()
    for i in np.flatnonzero(bad):
        assert found.label[i] is None
        assert found.steps[i] == 0
        assert np.isnan(found.score[i])
        assert not found.complete[i]
        assert "column " in found.reason[i]
    kept = np.flatnonzero(~bad)
    if len(kept):
        alone = fast.decide(rows_of(frame(columns), kept))
        decided = type(found)(
            *(getattr(found, k)[kept] for k in ("label", "steps", "score", "complete"))
        )
        same(decided, alone)


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40), data=st.data())
@kinds
@libraries
def test_missing_is_as_if_the_values_were_null(frame, schema, seed, n, data):
    rng = np.random.default_rng(seed)
    columns = good_columns(rng, n)
    odd = {"job": ["astronaut"], "zone": [7], "age": [0.25]}
    if frame in (LIBRARIES["pandas objects"], LIBRARIES["polars objects"]):
        odd["age"] = ["abc", "3.5"]
    replaced = {name: list(values) for name, values in columns.items()}
    for _ in range(data.draw(st.integers(0, 5))):
        name, i = str(rng.choice(list(odd))), rng.integers(n)
        value = odd[name][rng.integers(len(odd[name]))]
        columns[name][i] = value
        lenient = name in ("job", "zone") and schema.unseen != "error"
        # A pandas null is NaN, although None may be a category of the model.
        pandas = frame in [LIBRARIES[k] for k in LIBRARIES if k.startswith("pandas")]
        null = NAN if pandas and name == "job" else None
        replaced[name][i] = value if lenient or value == 0.25 else null
    fast = decider(replace(schema))
    found, error = outcome(lambda: fast.decide(frame(columns), unseen="missing"))
    expected, expected_error = outcome(lambda: fast.decide(frame(replaced)))
    assert (error is None) == (expected_error is None), (error, expected_error)
    if error is None:
        same(found, expected)
        assert found.reason is None
        assert fast.predict(frame(columns), unseen="missing").tolist() == expected.label.tolist()
    else:
        assert "missing" in str(error)
        assert error.row is not None
        assert error.column in columns
