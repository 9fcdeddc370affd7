"""Categories by their value, in every kind of column -> the codes that a model stores."""

from __future__ import annotations

import datetime
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from matrices import COLOURS, NAN, check, frames
from qwyc.errors import InputError
from qwyc.rows.matrix import to_matrix

VALUES = ["green", None, "red", "blue", "pink", "green"]
CODES = [1.0, NAN, 0.0, 2.0, None, 1.0]  # None: unseen


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def text_columns(values):
    series, array = pd.Series(values, dtype=object), pa.array(values)
    seen = sorted({v for v in values if v is not None})
    yield "pandas category", series.astype("category")
    yield "pandas unused", pd.Series(pd.Categorical(values, categories=[*seen, "unused"]))
    yield "pandas str", series.astype("str")
    yield "pandas string", series.astype("string")
    yield "pandas object", series
    yield "pandas arrow", pd.Series(pd.array(values, pd.ArrowDtype(pa.string())))
    dictionary = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
    yield "pandas arrow dictionary", pd.Series(pd.array(values, dictionary))
    yield "polars string", pl.Series(values, dtype=pl.String)
    yield "polars categorical", pl.Series(values, dtype=pl.Categorical)
    yield "polars enum", pl.Series(values, dtype=pl.Enum([*reversed(seen), "unused"]))
    yield "arrow string", array
    yield "arrow large", array.cast(pa.large_string())
    yield "arrow view", array.cast(pa.string_view())
    yield "arrow dictionary", array.dictionary_encode()
    half = len(values) // 2
    parts = [pa.array(part).dictionary_encode() for part in (values[:half], values[half:])]
    yield "arrow chunks", pa.chunked_array(parts)


TEXT = list(dict(text_columns(VALUES)))


def frame_of(column, **others):
    if isinstance(column, pd.Series):
        return pd.DataFrame({**others, "colour": column})
    if isinstance(column, pl.Series):
        return pl.DataFrame({**others, "colour": column})
    return pa.table({**others, "colour": column})


@pytest.mark.parametrize("times", [1, 100], ids=["few", "many"])
@pytest.mark.parametrize("kind", TEXT)
def test_text_columns_become_codes(kind, times):
    values = VALUES * times
    X = frame_of(dict(text_columns(values))[kind], x=np.arange(len(values)))
    for unseen, code in [("missing", NAN), ("invalid", -1.0)]:
        codes = [code if c is None else c for c in CODES * times]
        expected = np.column_stack([np.arange(len(values)), codes])
        check(X, replace(COLOURS, unseen=unseen), expected)
    with pytest.raises(InputError, match=r"'colour' holds 'pink'.*it knows 'red', 'green', 'blue'"):
        to_matrix(X, replace(COLOURS, unseen="error"))
    known = dict(text_columns([v for v in values if v != "pink"]))[kind]
    to_matrix(frame_of(known, x=np.zeros(len(known))), replace(COLOURS, unseen="error"))


@pytest.mark.parametrize("kind", TEXT)
def test_text_without_a_mapping_is_refused(kind):
    X = frame_of(dict(text_columns(VALUES))[kind], x=np.zeros(6))
    with pytest.raises(InputError, match=r"'colour' holds.*does not store.*codes as numbers"):
        to_matrix(X, replace(COLOURS, categories={}))


@frames
def test_numbers_where_the_categories_are_text_are_refused(frame):
    with pytest.raises(
        InputError, match=r"'colour' holds numbers.*'red', 'green'.*not their codes"
    ):
        to_matrix(frame({"x": [1.0], "colour": [1]}), COLOURS)


def test_numbers_match_numbers():
    schema = replace(COLOURS, categories={1: (3, 7, 2**53 + 1)}, unseen="invalid")
    x = [0.0, 0, 0, 0]
    for colour in (
        np.array([3, 2**53 + 1, 7, 2**53]),  # as float64 the second and last are equal
        np.array([3, 2**53 + 1, 7, 2**53], object),
        pd.Categorical([3, 2**53 + 1, 7, 2**53]),
    ):
        check(pd.DataFrame({"x": x, "colour": colour}), schema, [[0, 0], [0, 2], [0, 1], [0, -1]])
    for dtype in ("i1", "u8", "f2", "f4", "f8"):
        colour = np.array([3, 4, 7, 3], dtype)
        check(pd.DataFrame({"x": x, "colour": colour}), schema, [[0, 0], [0, -1], [0, 1], [0, 0]])
        check(pl.DataFrame({"x": x, "colour": colour}) if dtype != "f2" else
              pl.DataFrame({"x": x, "colour": colour.astype("f4")}), schema,
              [[0, 0], [0, -1], [0, 1], [0, 0]])  # fmt: skip
    numbers = pa.table({"x": x, "colour": pa.array([7, 3, None, 5]).dictionary_encode()})
    check(numbers, schema, [[0, 1], [0, 0], [0, NAN], [0, -1]])
    with pytest.raises(InputError, match="'colour' holds 5, a category"):
        to_matrix(numbers, replace(schema, unseen="error"))
    with pytest.raises(InputError, match="'colour' holds 4, a category"):
        to_matrix(pd.DataFrame({"x": x, "colour": [3, 7, 4, 3]}), replace(schema, unseen="error"))
    fractions = replace(schema, categories={1: (0.1, 2.5)})
    check(pd.DataFrame({"x": x, "colour": [2.5, 0.1, NAN, 9]}), fractions,
          [[0, 1], [0, 0], [0, NAN], [0, -1]])  # fmt: skip
    flags = replace(schema, categories={1: (False, True)})
    check(pd.DataFrame({"x": x, "colour": [True, False, True, True]}), flags,
          [[0, 1], [0, 0], [0, 1], [0, 1]])  # fmt: skip


def test_a_feature_that_never_had_a_value():
    schema = replace(COLOURS, categories={1: ()}, unseen="invalid")
    check(pd.DataFrame({"x": [0, 0], "colour": [1.0, NAN]}), schema, [[0, -1], [0, NAN]])
    check(pd.DataFrame({"x": [0, 0], "colour": ["a", None]}), schema, [[0, -1], [0, NAN]])


def test_none_among_the_categories_is_a_value_where_the_source_sees_none():
    schema = replace(COLOURS, categories={1: ("red", None)}, arrays_hold_values=True)
    values = ["red", None, "pink"] * 100
    x = np.zeros(len(values))
    as_value = np.column_stack([x, [0, 1, NAN] * 100])
    as_missing = np.column_stack([x, [0, NAN, NAN] * 100])
    for n in (3, 300):
        objects = np.column_stack([x[:n].astype(object), np.array(values[:n], object)])
        check(objects, schema, as_value[:n])
        objects[1, 1] = NAN
        check(objects[:3], schema, as_missing[:3])
        for dtype in (pl.String, pl.Categorical):
            column = pl.Series(values[:n], dtype=dtype)
            check(pl.DataFrame({"x": x[:n], "colour": column}), schema, as_value[:n])
        objects = pd.Series(values[:n], dtype=object)
        check(pd.DataFrame({"x": x[:n], "colour": objects}), schema, as_value[:n])
        column = objects.astype("category")
        check(pd.DataFrame({"x": x[:n], "colour": column}), schema, as_missing[:n])
    numbers = replace(schema, categories={1: (3, None)})
    check(pl.DataFrame({"x": [0.0, 0], "colour": [3, None]}), numbers, [[0, 0], [0, 1]])
    check(pd.DataFrame({"x": [0.0, 0], "colour": [3, None]}), numbers, [[0, 0], [0, NAN]])


def test_arrays_hold_codes_unless_the_model_says_values():
    X = np.array([[0.5, 2.0], [0.5, NAN], [0.5, 7.0]])
    numbers = replace(COLOURS, categories={1: (2, 5, 7)})
    assert to_matrix(X, COLOURS) is X
    assert to_matrix(X, numbers) is X
    values = replace(numbers, arrays_hold_values=True)
    before = X.copy()
    check(X, values, [[0.5, 0], [0.5, NAN], [0.5, 2]])
    np.testing.assert_array_equal(X, before)
    check(X.astype("f4"), values, [[0.5, 0], [0.5, NAN], [0.5, 2]])
    check([[1, 5], [1, None]], values, [[1, 1], [1, NAN]])
    masked = np.ma.array([[1, 5], [1, 6]], mask=[[0, 0], [0, 1]])
    check(masked, replace(values, unseen="error"), [[1, 1], [1, NAN]])
    with pytest.raises(InputError, match="column 'colour' holds 6, a category"):
        to_matrix(masked.data, replace(values, unseen="error"))

    text = replace(COLOURS, arrays_hold_values=True)
    check(
        np.array([[0.5, "blue"], [1, "pink"], [2, None]], object),
        text,
        [[0.5, 2], [1, NAN], [2, NAN]],
    )
    check([[0.5, "blue"], [1, "red"]], text, [[0.5, 2], [1, 0]])
    check(np.array([["0.5", "blue"], ["1", "red"]]), text, [[0.5, 2], [1, 0]])
    both = replace(text, categories={0: (5, 6), 1: ("red", "green", "blue")})
    check([[6, "blue"], (5, "red")], both, [[1, 2], [0, 0]])
    hidden = np.ma.array([[0.5, "?"], [1, "red"]], object, mask=[[0, 1], [0, 0]])
    check(hidden, replace(text, unseen="error"), [[0.5, NAN], [1, 0]])
    with pytest.raises(InputError, match="holds numbers"):
        to_matrix(np.zeros((1, 2)), text)
    with pytest.raises(InputError, match="row 0 of column 'colour' is a list"):
        to_matrix(np.array([[0.5, ["red"]]], object), text)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.to_datetime(["2020-01-01"])),
        pd.Series(pd.to_timedelta([1], unit="s")),
        pd.Series(pd.period_range("2020", periods=1)),
        pd.Series([1 + 2j]),
        pl.Series([datetime.date(2020, 1, 1)]),
        pl.Series([datetime.datetime(2020, 1, 1)]),
        pl.Series([[1, 2]]),
        pl.Series([b"x"]),
        pa.array([datetime.date(2020, 1, 1)]),
        pa.array([{"k": 1}]),
        pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
    ],
    ids=lambda column: str(getattr(column, "dtype", getattr(column, "type", "?"))),
)
def test_other_column_types_are_refused(column):
    X = frame_of(column, x=[1.0])
    for schema in (replace(COLOURS, categories={}), COLOURS):
        with pytest.raises(InputError, match="'colour'"):
            to_matrix(X, schema)
