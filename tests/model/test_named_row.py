"""One row as a dict, a pandas Series or a table of one row: decided and refused as in a table of many."""

from __future__ import annotations

import collections
import datetime
import types
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import qwyc
from qwyc.errors import InputError
from qwyc.rows.categories import category_hash
from qwyc.rows.schema import Schema
from table_paths import decider

NAMED = Schema(
    n_features=3,
    names=("a", "colour", "c"),
    dtype="float32",
    categories={1: ("red", "green", 5, "blue")},
    unseen="invalid",
)
LARGE = 2**60 + 2**36 + 1  # rounded to float64 and then to float32, it is another number
ROWS = pl.DataFrame(
    {
        "c": [0.1, None, 70.0, -1.0, float("nan"), 3e38],
        "extra": ["x"] * 6,
        "a": [1, 2, None, LARGE, -3, 0],
        "colour": ["red", "blue", None, "pink", "", "green"],
    }
)


def test_one_row_of_every_table_is_decided_as_among_others():
    fast = decider(replace(NAMED))
    expected = fast.predict(ROWS).tolist()
    arrow, pandas = ROWS.to_arrow(), ROWS.to_pandas(use_pyarrow_extension_array=True)
    assert len(set(expected)) == 2
    for i, label in enumerate(expected):
        named = ROWS.row(i, named=True)
        forms = {
            "dict": named,
            "ordered": collections.OrderedDict(reversed(named.items())),
            "mapping": types.MappingProxyType(named),
            "numpy": {k: np.array([v])[0] if v is not None else None for k, v in named.items()},
            "series": pd.Series(named, dtype=object),
            "polars": ROWS[i],
            "arrow": arrow.slice(i, 1),
            "batch": arrow.combine_chunks().to_batches()[0].slice(i, 1),
            "pandas": pandas.iloc[i : i + 1],
            "pandas categories": pandas.astype({"colour": "category"}).iloc[[i]],
            "pandas row": pandas.iloc[i],
        }
        for name, row in forms.items():
            assert fast.predict_one(row) == label, name


@pytest.mark.parametrize(
    "schema",
    [
        NAMED,
        replace(NAMED, dtype="float64", integers="checked"),
        replace(NAMED, dtype="float32", integers="checked"),
        replace(NAMED, unseen="error"),
        replace(NAMED, categories={}),
        replace(NAMED, accepts_missing=False, accepts_infinity=False),
        replace(NAMED, must_have=(2,)),
        replace(NAMED, missing=5.0, unseen="first"),
        replace(NAMED, by_name=True, arrays_hold_values=True),
        replace(NAMED, categories={1: (category_hash("red"), category_hash("5"))}, hashed=True),
    ],
)
def test_values_are_taken_and_refused_as_in_a_table(schema):
    fast = decider(replace(schema))
    values = [1, 5, 0.1, True, None, float("nan"), float("inf"), 1e300, LARGE, 2**63, "red", "pink", "",
              np.int8(5), np.float32(0.1), datetime.datetime(2020, 1, 1)]  # fmt: skip
    for name in ("a", "colour", "c"):
        for value in values:
            row = {"a": 1.5, "colour": "red", "c": 2, name: value}
            columns = {k: [v] for k, v in row.items()}
            table = pl.DataFrame(columns) if value is None else pd.DataFrame(columns)
            try:
                expected = fast.predict(table).tolist()[0]
            except InputError as error:
                with pytest.raises(InputError) as raised:
                    fast.predict_one(row)
                expected = str(error).replace("holds String", "holds text")  # a type's name
                same = str(raised.value).split(";")[0], expected.split(";")[0]
                if not isinstance(value, (str, datetime.datetime)):  # whose types have other names
                    assert same[0] == same[1]
            else:
                assert fast.predict_one(row) == expected


def test_what_is_missing_or_unknown_is_named():
    fast = decider(replace(NAMED, unseen="error"))
    row = {"a": 1.0, "colour": "red", "c": 2.0}
    fast.predict_one(row)
    with pytest.raises(
        InputError, match=r"no column 'a', which .*it has: 'A', 'colour', 'c'.*mean 'A'"
    ):
        fast.predict_one({"A": 1.0, "colour": "red", "c": 2.0})
    with pytest.raises(InputError, match=r"no columns 'a', 'colour', 'c', .*\(it has: none\)"):
        fast.predict_one({})
    with pytest.raises(InputError, match="no column 'c'"):
        fast.predict_one(pd.Series({"a": 1.0, "colour": "red"}))
    with pytest.raises(InputError, match="row 0 of column 'colour' holds 'pink', a category"):
        fast.predict_one({**row, "colour": "pink"})
    with pytest.raises(InputError, match="column 'colour' holds numbers"):
        fast.predict_one({**row, "colour": 7})
    with pytest.raises(InputError, match="row 0 of column 'colour' is a list"):
        fast.predict_one({**row, "colour": ["red"]})
    with pytest.raises(InputError, match="column 'c' holds text"):
        fast.predict_one({**row, "c": "2.0"})
    with pytest.raises(InputError, match="column 'c' holds datetime64"):
        fast.predict_one({**row, "c": np.datetime64("2020-01-01")})
    with pytest.raises(InputError, match="column 'c' holds datetime; the model"):
        fast.predict_one({**row, "c": datetime.datetime(2020, 1, 1)})
    with pytest.raises(InputError, match="more than one column named 'c'"):
        fast.predict_one(pd.Series([1.0, "red", 2.0, 3.0], index=["a", "colour", "c", "c"]))
    for library in (pd.DataFrame, pl.DataFrame, pa.table):
        with pytest.raises(InputError, match="a table or sparse matrix of one row; got"):
            fast.predict_one(library({k: [v, v] for k, v in row.items()}))


def test_series_go_by_position_where_labels_are_no_names():
    numbers = replace(NAMED, categories={})
    rows = np.random.default_rng(0).normal(size=(20, 3)) * 3
    for schema in (numbers, replace(numbers, names=None)):
        fast = decider(schema)
        expected = fast.predict(rows).tolist()
        assert [fast.predict_one(pd.Series(row)) for row in rows] == expected
        assert [fast.predict_one(pd.Series(row, index=[7, 5, 3])) for row in rows] == expected
    swapped = [pd.Series(row[::-1], index=["c", "colour", "a"]) for row in rows]
    assert [decider(numbers).predict_one(row) for row in swapped] == expected
    by_number = decider(replace(numbers, names=("0", "1", "2")))
    assert [
        by_number.predict_one(pd.Series(row[::-1], index=[2, 1, 0])) for row in rows
    ] == expected
    nameless = decider(replace(numbers, names=None))
    assert [nameless.predict_one(row) for row in swapped] == nameless.predict(
        rows[:, ::-1]
    ).tolist()
    with pytest.raises(InputError, match=r"no names of columns.*got dict"):
        nameless.predict_one({"a": 1.0, "colour": 2.0, "c": 3.0})
    with pytest.raises(InputError, match="2 columns; the model was trained on 3"):
        nameless.predict_one(pd.Series([1.0, 2.0]))


def test_a_pipeline_takes_a_dict():
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=300), "colour": rng.choice(["red", "green"], 300)})
    y = (X["x"] > 0) ^ (X["colour"] == "red")
    steps = make_column_transformer((OneHotEncoder(), ["colour"]), remainder="passthrough")
    model = make_pipeline(steps, RandomForestClassifier(10, random_state=0)).fit(X, y)
    fast = qwyc.optimize(model, alpha=0)
    expected = fast.predict(X[:20]).tolist()
    assert [fast.predict_one(row) for row in X[:20].to_dict("records")] == expected
    assert [fast.predict_one(row) for _, row in X[:20].iterrows()] == expected


def test_a_monitor_takes_a_dict():
    fast = decider(replace(NAMED))
    monitor = qwyc.Monitor(fast, rate=1.0)
    expected = fast.predict(ROWS).tolist()
    assert [monitor.predict_one(row) for row in ROWS.iter_rows(named=True)] == expected
