"""Values of another type than the model's categories: odd values, whatever unknown categories are."""

from __future__ import annotations

import datetime
from dataclasses import replace

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import qwyc
from qwyc.errors import InputError, RowsError
from qwyc.rows.categories import category_hash
from qwyc.rows.matrix import to_matrix
from qwyc.rows.named_row import NamedRow
from qwyc.rows.odd_rows import take_rows
from qwyc.rows.schema import Schema
from table_paths import decider

NAN = float("nan")
ZONES = Schema(n_features=2, names=("x", "zone"), dtype="float64", categories={1: (1, 2, 3)})
JOBS = replace(ZONES, categories={1: ("cook", "pilot")})
UNSEEN = ("missing", "invalid", "first", "error")
IS_TEXT = "is text, and the model's categories are numbers"
UNKNOWN = "is not a category that the model knows"


def zones(values):
    """Columns of these values, of every kind that can hold them."""
    yield pd.DataFrame({"x": 1.0, "zone": pd.Series(values, dtype=object)})
    yield pd.DataFrame({"x": 1.0, "zone": pd.Categorical(values)})
    if all(value is None or isinstance(value, str) for value in values):
        yield pd.DataFrame({"x": 1.0, "zone": pd.Series(values, dtype="string")})
        yield pd.DataFrame({"x": 1.0, "zone": pd.array(values, pd.ArrowDtype(pa.string()))})
        for times in (1, 100):  # few rows, and many
            column, x = values * times, np.ones(len(values) * times)
            yield pl.DataFrame({"x": x, "zone": column})
            yield pl.DataFrame({"x": x, "zone": pl.Series(column, dtype=pl.Categorical)})
            yield pa.table({"x": x, "zone": column})
            yield pa.table({"x": x, "zone": pa.array(column).dictionary_encode()})


def reasons(X, schema):
    return [None if r is None else r.split(": ")[1] for r in take_rows(X, schema, "flag").reason]


@pytest.mark.parametrize("unseen", UNSEEN)
def test_text_is_odd_where_the_categories_are_numbers(unseen):
    schema = replace(ZONES, unseen=unseen)
    for X in zones([None, "2", "x", None]):
        message = (
            r"row 1 of column 'zone' holds '2', which is not a number.*categories 1, 2, 3; pass"
        )
        with pytest.raises(RowsError, match=message) as raised:
            to_matrix(X, replace(schema))
        assert (raised.value.row, raised.value.column) == (1, "zone")
        found = reasons(X, replace(schema))
        assert found[:4] == [None, f"'2' {IS_TEXT}", f"'x' {IS_TEXT}", None]
        rows = take_rows(X, replace(schema), "missing").rows
        assert np.isnan(rows[:, 1]).all()
        assert len(rows) == len(found) == len(X)


@pytest.mark.parametrize("unseen", UNSEEN)
def test_numbers_are_odd_where_the_categories_are_text(unseen):
    schema = replace(JOBS, unseen=unseen)
    for X in zones([1, None, 7]):
        with pytest.raises(RowsError, match=r"column 'zone' holds .*not their codes"):
            to_matrix(X, replace(schema))
        found = reasons(X, replace(schema))
        assert [reason is None for reason in found] == [False, True, False]
        assert all(reason is None or reason.endswith(UNKNOWN) for reason in found)
        assert np.isnan(take_rows(X, replace(schema), "missing").rows[:, 1]).all()


def test_other_values_of_the_same_column_keep_their_codes():
    values = [3, "2", 1, None, 9, datetime.date(2024, 5, 31)]
    X = pd.DataFrame({"x": 1.0, "zone": pd.Series(values, dtype=object)})
    schema = replace(ZONES, unseen="invalid")
    date = f"datetime.date(2024, 5, 31) {UNKNOWN}"
    assert reasons(X, replace(schema)) == [None, f"'2' {IS_TEXT}", None, None, None, date]
    np.testing.assert_array_equal(
        take_rows(X, replace(schema), "missing").rows[:, 1], [2, NAN, 0, NAN, -1, NAN]
    )
    mixed = X.head(5).assign(zone=pd.Categorical(values[:5], categories=["2", 1, 3, 9]))
    assert reasons(mixed, replace(schema)) == [None, f"'2' {IS_TEXT}", None, None, None]


def test_text_among_unused_categories_is_no_odd_value():
    X = pd.DataFrame({"x": 1.0, "zone": pd.Categorical([3, None, 1], categories=[1, 3, "old"])})
    np.testing.assert_array_equal(to_matrix(X, replace(ZONES))[:, 1], [2, NAN, 0])


def test_categories_of_both_types_and_none():
    both = replace(ZONES, categories={1: (1, "b")})
    X = pd.DataFrame({"x": 1.0, "zone": pd.Series([1, "b", "c"], dtype=object)})
    np.testing.assert_array_equal(to_matrix(X, both)[:, 1], [0, 1, NAN])
    none = replace(ZONES, categories={1: ()})
    assert np.isnan(to_matrix(X, none)[:, 1]).all()


def test_arrays_and_rows_by_name():
    schema = replace(ZONES, arrays_hold_values=True)
    rows = [[1.0, 2], [1.0, "2"]]
    for X in (rows, np.array(rows, object)):
        with pytest.raises(RowsError, match="holds '2', which is not a number"):
            to_matrix(X, schema)
        assert reasons(X, schema) == [None, f"'2' {IS_TEXT}"]
        np.testing.assert_array_equal(take_rows(X, schema, "missing").rows, [[1, 1], [1, NAN]])
    row = NamedRow(["x", "zone"], [1.0, "2"])
    assert reasons(row, schema) == [f"'2' {IS_TEXT}"]
    with pytest.raises(RowsError, match="holds '2', which is not a number"):
        row.to_matrix(schema)


def test_columns_that_no_base_model_looks_at_are_checked_too():
    schema = replace(ZONES, names=("x", "zone"))
    fast = decider(schema, n_trees=1)
    for X in zones(["2", None]):
        with pytest.raises(InputError, match="column 'zone' holds '2'"):
            fast.decide(X)


@pytest.mark.parametrize("library", ["lightgbm", "scikit-learn"])
def test_models_that_take_unknown_categories_as_missing(library):
    rng = np.random.default_rng(0)
    zone, x = rng.integers(1, 4, 4000), rng.normal(size=4000)
    X = pd.DataFrame({"zone": pd.Categorical(zone), "x": x})
    y = (zone == 2) ^ (x > 0.5)
    if library == "lightgbm":
        model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1)
    else:
        model = HistGradientBoostingClassifier(max_iter=20, categorical_features="from_dtype")
    fast = qwyc.optimize(model.fit(X[:2000], y[:2000]), X[2000:], alpha=0.05)
    text = X.head(5).assign(zone=X["zone"].head(5).astype(str).astype("category"))
    with pytest.raises(InputError, match="row 0 of column 'zone' holds '"):
        fast.predict(text)
    assert fast.decide(text, unseen="flag").not_decided == 5
    null = X.head(5).assign(zone=pd.Categorical([None] * 5, categories=[1, 2, 3]))
    with pytest.warns(qwyc.errors.QwycWarning, match="every value of column 'zone'"):
        found = fast.predict(text, unseen="missing")
    assert found.tolist() == fast.predict(null).tolist()
    # A category of the right type that is not known is the library's matter.
    unknown = X.head(5).assign(zone=pd.Categorical([7] * 5))
    assert fast.predict(unknown).tolist() == fast.predict(null).tolist()


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_whose_columns_are_all_converted(make):
    hashed = Schema(
        n_features=1,
        names=("job",),
        dtype="float32",
        categories={0: (category_hash("cook"),)},
        unseen="invalid",
        hashed=True,
    )
    X = make({"job": ["cook", "pilot"]})
    np.testing.assert_array_equal(to_matrix(X, hashed), [[0], [-1]])
    numbers = Schema(n_features=1, names=("zone",), dtype="float32", categories={0: (1, 2)})
    np.testing.assert_array_equal(to_matrix(make({"zone": [2, 1]}), numbers), [[1], [0]])
