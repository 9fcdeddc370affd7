"""Category columns that are all null: their rows get what a null gets in a column that has values too."""

from __future__ import annotations

from dataclasses import replace

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import qwyc
from matrices import COLOURS, NAN, record_batch
from qwyc.distributed.work import Deciding
from qwyc.errors import InputError
from qwyc.rows.categories import category_hash
from qwyc.rows.matrix import to_matrix
from trained import QUIET

ROWS = [0, 1, 200, 201, 5000]  # up to 200 rows, each is looked up by itself
DICTIONARY = pa.dictionary(pa.int8(), pa.string())


def in_chunks(values, kind):
    half = len(values) // 2
    return pa.chunked_array([pa.array(values[:half], kind), pa.array(values[half:], kind)])


# What makes a column of values that may be all null.
MAKE = {
    "pandas object": lambda values: pd.Series(values, dtype=object),
    "pandas str": lambda values: pd.Series(values, dtype="str"),
    "pandas string": lambda values: pd.Series(values, dtype="string"),
    "pandas category": lambda values: pd.Series(pd.Categorical(values, categories=["red"])),
    "pandas arrow": lambda values: pd.Series(pd.array(values, pd.ArrowDtype(pa.string()))),
    "pandas dictionary": lambda values: pd.Series(pd.array(values, pd.ArrowDtype(DICTIONARY))),
    "polars string": lambda values: pl.Series(values, dtype=pl.String),
    "polars categorical": lambda values: pl.Series(values, dtype=pl.Categorical),
    "polars enum": lambda values: pl.Series(values, dtype=pl.Enum(["blue", "red"])),
    "arrow string": lambda values: pa.array(values, pa.string()),
    "arrow large": lambda values: pa.array(values, pa.large_string()),
    "arrow view": lambda values: pa.array(values, pa.string_view()),
    "arrow dictionary": lambda values: pa.array(values, DICTIONARY),
    "arrow chunks": lambda values: in_chunks(values, pa.string()),
    "arrow dictionary chunks": lambda values: in_chunks(values, DICTIONARY),
}
# Columns that hold nulls alone, by what they are in a column with values.
ALONE = {
    "pandas arrow": {
        "null": lambda n: pd.Series(pd.array([None] * n, pd.ArrowDtype(pa.null()))),
    },
    "polars string": {"null": lambda n: pl.Series([None] * n, dtype=pl.Null)},
    "arrow string": {
        "null": pa.nulls,
        "null chunks": lambda n: pa.chunked_array([pa.nulls(n // 2), pa.nulls(n - n // 2)]),
        "null in the dictionary": lambda n: pa.DictionaryArray.from_arrays(
            pa.array([0] * n, pa.int32()), pa.array([None], pa.string())
        ),
        "dictionary without use": lambda n: pa.DictionaryArray.from_arrays(
            pa.nulls(n, pa.int32()), pa.array(["red", "pink"])
        ),
        "dictionary of nulls": lambda n: pa.DictionaryArray.from_arrays(
            pa.array([0] * n, pa.int32()), pa.nulls(1)
        ),
        "dictionary of numbers": lambda n: pa.nulls(n, pa.dictionary(pa.int32(), pa.int64())),
    },
}
COLUMNS = [
    *[pytest.param(make, lambda n, m=make: m([None] * n), id=name) for name, make in MAKE.items()],
    *[
        pytest.param(MAKE[name], alone, id=f"{name}: {kind}")
        for name, kinds in ALONE.items()
        for kind, alone in kinds.items()
    ],
]
MODES = {
    **{unseen: replace(COLOURS, unseen=unseen) for unseen in ("missing", "invalid", "first", "error")},
    "None is known": replace(COLOURS, categories={1: ("red", None)}, arrays_hold_values=True),
    "nothing is known": replace(COLOURS, categories={1: ()}),
}  # fmt: skip
HASHED = replace(
    COLOURS,
    hashed=True,
    unseen="invalid",
    categories={1: (category_hash("red"), category_hash("blue"))},
)


def frame_of(column):
    x = np.zeros(len(column))
    if isinstance(column, pd.Series):
        return pd.DataFrame({"x": x, "colour": column})
    if isinstance(column, pl.Series):
        return pl.DataFrame({"x": x, "colour": column})
    return pa.table({"x": x, "colour": column})


@pytest.mark.parametrize("schema", MODES.values(), ids=MODES.keys())
@pytest.mark.parametrize(("make", "alone"), COLUMNS)
def test_nulls_alone_are_as_nulls_among_values(make, alone, schema):
    for n in ROWS:
        known = ["red"] if schema.categories[1] else []
        among = to_matrix(frame_of(make([*known, *[None] * n])), schema)[len(known) :]
        got = to_matrix(frame_of(alone(n)), schema)
        assert got.shape == (n, 2)
        np.testing.assert_array_equal(got, among)
        if schema.unseen != "missing":
            assert np.isnan(got[:, 1]).all()


@pytest.mark.parametrize(("make", "alone"), COLUMNS)
def test_hashed_categories_refuse_nulls_in_words(make, alone):
    assert to_matrix(frame_of(alone(0)), HASHED).shape == (0, 2)
    for n in ROWS[1:]:
        with pytest.raises(InputError, match=r"row 0 of column 'colour' is .*CatBoost.*refuses"):
            to_matrix(frame_of(alone(n)), HASHED)
        with pytest.raises(InputError, match=r"row 1 of column 'colour' is .*CatBoost.*refuses"):
            to_matrix(frame_of(make(["red", *[None] * n])), HASHED)
        unused = replace(HASHED, categories={1: ()})
        np.testing.assert_array_equal(to_matrix(frame_of(alone(n)), unused)[:, 1], [-1.0] * n)


@pytest.mark.parametrize("n", ROWS)
def test_record_batches_and_numbers_of_nulls_alone(n):
    for kind in (pa.null(), pa.string(), DICTIONARY):
        table = frame_of(pa.nulls(n, kind))
        batch = record_batch(table) if n else pa.RecordBatch.from_pylist([], table.schema)
        np.testing.assert_array_equal(to_matrix(batch, COLOURS)[:, 1], [NAN] * n)
    numbers = replace(COLOURS, categories={})
    for column in (pa.nulls(n), pl.Series([None] * n, dtype=pl.Null)):
        np.testing.assert_array_equal(to_matrix(frame_of(column), numbers)[:, 1], [NAN] * n)


@pytest.fixture(scope="module")
def coloured():
    """A LightGBM model that looks at a text category, as a classifier."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=600)})
    X["colour"] = pd.Categorical(rng.choice(["red", "green", "blue"], 600))
    y = (X["x"] > 0) ^ (X["colour"] == "green")
    model = lightgbm.LGBMClassifier(n_estimators=20, **QUIET).fit(X, y)
    return qwyc.optimize(model, alpha=0)


@pytest.mark.parametrize("kind", [pa.null(), pa.string(), pa.large_string(), DICTIONARY], ids=str)
@pytest.mark.parametrize("n", ROWS)
def test_a_batch_of_nulls_is_decided_on_an_engine(coloured, kind, n):
    x = np.random.default_rng(1).normal(size=n)
    work = Deciding(("x", "colour"), ("x",), ("label", "steps", "score", "complete"))
    answer = work.on_arrow(coloured, pa.table({"x": x, "colour": pa.nulls(n, kind)}))
    assert answer.column_names == ["x", "label", "steps", "score", "complete"]
    among = pd.DataFrame({"x": [0.0, *x], "colour": ["red", *[None] * n]})
    expected = coloured.decide(among)
    assert answer["label"].to_pylist() == expected.label[1:].tolist()
    assert answer["score"].to_pylist() == expected.score[1:].tolist()
