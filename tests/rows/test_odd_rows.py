"""Odd values in arrays, lists and special columns: which rows are left out, and what the reason says."""

from __future__ import annotations

import datetime
import decimal
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from qwyc.errors import InputError, QwycWarning, RowsError
from qwyc.rows import matrix, odd_rows
from qwyc.rows.categories import category_hash
from qwyc.rows.named_row import NamedRow
from qwyc.rows.schema import Schema

NAN, INF = float("nan"), float("inf")
NUMBERS = Schema(n_features=2, names=("a", "b"), dtype="float64")
FINITE = replace(NUMBERS, accepts_missing=False, accepts_infinity=False)
VALUES = Schema(
    n_features=2,
    names=("a", "job"),
    dtype="float64",
    categories={1: ("cook", "pilot")},
    unseen="error",
    arrays_hold_values=True,
)
HASHED = replace(
    VALUES,
    categories={1: tuple(category_hash(t) for t in ("cook", "7"))},
    hashed=True,
    unseen="invalid",
)
CHECKED = Schema(n_features=2, names=None, dtype="float32", integers="checked")
AMBIGUOUS = 2**60 + 2**36 + 1  # becomes another float32 by way of float64


def take_rows(X, schema, unseen):
    return odd_rows.take_rows(X, replace(schema), unseen)  # which keeps nothing for frames


def to_matrix(X, schema):
    return matrix.to_matrix(X, replace(schema))


def flagged(X, schema):
    """The reasons of all rows. The rows that are left are those that the model takes by themselves."""
    taken = take_rows(X, schema, "flag")
    kept = [i for i, reason in enumerate(taken.reason) if reason is None]
    assert taken.rows.shape == (len(kept), schema.n_features)
    assert taken.kept is None or np.flatnonzero(taken.kept).tolist() == kept
    return list(taken.reason)


def same_matrix(found, expected):
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


# ---- arrays and lists -----------------------------------------------------------------------


@pytest.mark.parametrize("make", [np.array, lambda rows, *_: rows, lambda rows, *_: tuple(rows)])
def test_text_in_rows_of_numbers(make):
    rows = [[1, 2.5], ["abc", 3], [None, 4], [5, (1, 2)[0]]]
    X = make(rows, object)
    reasons = flagged(X, NUMBERS)
    assert reasons == [None, "column 'a': 'abc' is not a number", None, None]
    same_matrix(
        take_rows(X, NUMBERS, "flag").rows, to_matrix([rows[i] for i in (0, 2, 3)], NUMBERS)
    )
    rows[1] = [None, 3]
    same_matrix(take_rows(X, NUMBERS, "missing").rows, to_matrix(make(rows, object), NUMBERS))


def test_a_list_is_read_as_without_the_rows_that_are_left_out():
    schema = replace(NUMBERS, dtype="float32", integers="float32")  # LightGBM
    rows = [[2**24 + 1, 1], [2, 3], ["x", 2.5]]
    same_matrix(take_rows(rows, schema, "flag").rows, to_matrix(rows[:2], schema))
    integers = [[AMBIGUOUS, 1], [2, 3], ["x", 2]]
    assert flagged(integers, CHECKED) == [
        f"column 0: {AMBIGUOUS} is past 2**53, and the source library rounds it in two ways",
        None,
        "column 0: 'x' is not a number",
    ]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_missing_and_infinite_numbers_of_arrays(dtype, order):
    X = np.array([[1, 2], [NAN, 2], [3, INF], [4, 5], [NAN, -INF]], dtype, order=order)
    before = X.copy()
    missing = "the value is missing, and the model refuses missing values"
    infinite = "the number is infinite, and the model refuses it"
    assert flagged(X, FINITE) == [
        None,
        f"column 'a': {missing}",
        f"column 'b': {infinite}",
        None,
        f"column 'a': {missing}; column 'b': {infinite}",
    ]
    np.testing.assert_array_equal(take_rows(X, FINITE, "flag").rows, X[[0, 3]])
    np.testing.assert_array_equal(X, before)
    for option in ("missing", "error"):
        with pytest.raises(InputError, match=r"row 1 of column 'a'.*refuses missing values"):
            take_rows(X, FINITE, option) if option == "missing" else to_matrix(X, FINITE)


def test_a_reason_names_three_columns_and_counts_the_others():
    X = pd.DataFrame({name: ["x", 1.0, 2.0] for name in "abcde"}, dtype=object)
    X.loc[1, ["b", "d", "e"]] = "y"
    X.loc[2, list("abce")] = "z"
    x, y, z = (f"'{text}' is not a number" for text in "xyz")
    assert flagged(X, replace(NUMBERS, n_features=5, names=tuple("abcde"))) == [
        f"column 'a': {x}; column 'b': {x}; column 'c': {x}; and 2 more columns",
        f"column 'b': {y}; column 'd': {y}; column 'e': {y}",
        f"column 'a': {z}; column 'b': {z}; column 'c': {z}; and 1 more column",
    ]


def test_numbers_past_float32_are_infinite():
    schema = replace(FINITE, dtype="float32")
    expected = "column 'b': the number is infinite or past float32, and the model refuses it"
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 1e300]})
    for X in (np.array([[1, 1], [2, 1e300]]), frame, pl.DataFrame(frame), pa.table(frame)):
        assert flagged(X, schema) == [None, expected]


def test_values_of_categories_in_arrays():
    X = np.array([[1, "cook"], [2, "astronaut"], [3, None], [4, ["cook"]], [5, 7]], object)
    known = "is not a category that the model knows"
    assert flagged(X, VALUES) == [
        None,
        f"column 'job': 'astronaut' {known}",
        None,
        "column 'job': a list is not a category",
        f"column 'job': 7 {known}",
    ]
    expected = [[1, 0], [2, NAN], [3, NAN], [4, NAN], [5, NAN]]
    np.testing.assert_array_equal(take_rows(X, VALUES, "missing").rows, expected)
    np.testing.assert_array_equal(take_rows(X.tolist(), VALUES, "missing").rows, expected)
    texts = np.array([["1", "cook"], ["2", "astronaut"]])
    assert flagged(texts, VALUES) == [None, f"column 'job': 'astronaut' {known}"]
    numbers = np.ma.MaskedArray([[1.0, 0.0], [2.0, 1.0]], [[False, True], [False, False]])
    assert flagged(numbers, VALUES) == [None, f"column 'job': 1.0 {known}"]
    same_matrix(take_rows(numbers, VALUES, "missing").rows, np.array([[1, NAN], [2, NAN]]))


@pytest.mark.parametrize("dtype", ["U3", "S3", "M8[D]", "complex128"])
def test_arrays_of_a_type_that_the_model_does_not_take(dtype):
    X = np.zeros((2, 2)).astype(dtype) if dtype != "M8[D]" else np.zeros((2, 2), dtype)
    reasons = flagged(X, NUMBERS)
    assert all(
        "column 'a' holds" in reason and "; column 'b' holds" in reason for reason in reasons
    )
    assert np.isnan(take_rows(X, NUMBERS, "missing").rows).all()


def test_one_row_of_values_by_name():
    row = NamedRow(["job", "a"], ["astronaut", "x"])
    (reason,) = flagged(row, VALUES)
    assert reason == (
        "column 'a': 'x' is not a number; "
        "column 'job': 'astronaut' is not a category that the model knows"
    )
    assert np.isnan(take_rows(row, VALUES, "missing").rows).all()
    assert flagged(NamedRow(["job", "a"], ["cook", 2]), VALUES) == [None]


# ---- CatBoost: categories by their hash -----------------------------------------------------


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_missing_categories_of_catboost(make):
    X = make({"a": [1.0, 2.0, NAN], "job": ["cook", None, "new"]})
    reason = "column 'job': the category is missing, and CatBoost refuses missing categories"
    assert flagged(X, HASHED) == [None, reason, None]
    np.testing.assert_array_equal(take_rows(X, HASHED, "flag").rows, [[1, 0], [NAN, -1]])
    with pytest.raises(InputError, match=r"row 1 of column 'job'.*CatBoost refuses missing"):
        take_rows(X, HASHED, "missing")


def test_values_that_catboost_does_not_hash():
    values = ["cook", 7, 2.5, None, "new", "\ud800"]
    frame = pd.DataFrame({"a": 1.0, "job": pd.Series(values, dtype=object)})
    for X in (frame, [[1.0, v] for v in values]):
        reasons = flagged(X, HASHED)
        assert [reason is None for reason in reasons] == [True, True, False, False, True, False]
        assert (
            reasons[2] == "column 'job': 2.5 is neither text nor an integer, as CatBoost takes them"
        )
    with pytest.raises(
        InputError, match=r"row 2 of column 'job' cannot be taken as missing.*'flag'"
    ):
        take_rows(frame, HASHED, "missing")


# ---- columns of frames ----------------------------------------------------------------------

DAY = datetime.date(2024, 5, 31)
WRONG = {
    "text": ["x", None, "3.5"],
    "dates": [DAY, None, DAY],
    "times": [datetime.datetime(2024, 5, 31), None, datetime.datetime(2024, 5, 31)],
    "spans": [datetime.timedelta(1), None, datetime.timedelta(1)],
    "bytes": [b"1", None, b"2"],
    "lists": [[1], None, [2]],
}


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"]
)
@pytest.mark.parametrize("values", WRONG.values(), ids=WRONG.keys())
def test_a_column_of_a_wrong_type_is_odd_wherever_it_is_not_null(make, values):
    if make is pd.DataFrame and values is WRONG["bytes"]:
        values = [[b"1"], None, [b"2"]]  # NumPy reads numbers from bytes
    X = make({"a": values, "b": [1, 2, 3]})
    with pytest.raises(InputError):
        to_matrix(X, NUMBERS)
    reasons = flagged(X, NUMBERS)
    assert [reason is None for reason in reasons] == [False, True, False]
    assert reasons[0].startswith("column 'a'")
    expected = [[NAN, 1], [NAN, 2], [NAN, 3]]
    np.testing.assert_array_equal(take_rows(X, NUMBERS, "missing").rows, expected)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_column_of_a_wrong_type_for_categories(make):
    schema = replace(VALUES, unseen="missing")
    numbers = make({"a": [1, 2, 3], "job": [5.0, None, 6.0]})
    known = "is not a category that the model knows"
    assert flagged(numbers, schema) == [
        f"column 'job': {v} {known}" if v else None for v in (5.0, 0, 6.0)
    ]
    np.testing.assert_array_equal(
        take_rows(numbers, schema, "missing").rows, [[1, NAN], [2, NAN], [3, NAN]]
    )
    dates = make({"a": [1, 2], "job": [datetime.datetime(2024, 5, 31), None]})
    assert [reason is None for reason in flagged(dates, schema)] == [False, True]


def test_a_null_of_polars_is_a_category_of_its_own():
    schema = replace(VALUES, categories={1: ("cook", None)})
    for odd in (7, datetime.date(2024, 5, 31)):
        X = pl.DataFrame({"a": [1.0, 2.0], "job": [odd, None]})
        np.testing.assert_array_equal(take_rows(X, schema, "flag").rows, [[2, 1]])
        np.testing.assert_array_equal(take_rows(X, schema, "missing").rows, [[1, 1], [2, 1]])


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table])
def test_categories_that_are_numbers(make):
    values = pd.Categorical([2.5, 7.0, None])
    if make is pa.table:
        values = pa.array([2.5, 7.0, None]).dictionary_encode()
    X = make({"a": values, "job": [1, 2, 3]})
    reasons = flagged(X, replace(NUMBERS, names=("a", "job")))
    assert (
        reasons[:2] == ["column 'a' holds categories, and the model takes none of its values"] * 2
    )
    assert reasons[2] is None
    hashed = make({"a": [1.0, 2.0, 3.0], "job": values})
    assert "neither text nor an integer" in flagged(hashed, HASHED)[0]
    assert "CatBoost refuses missing categories" in flagged(hashed, HASHED)[2]


class Subclass(pd.DataFrame):
    """Frames of classes that the native reader of tables does not know are converted column by column."""

    @property
    def _constructor(self):
        return Subclass


def test_frames_that_are_converted_column_by_column():
    columns = {"a": [1.0, 2.0, 3.0], "job": ["cook", "astronaut", None]}
    X = Subclass(columns)
    assert flagged(X, VALUES) == flagged(pd.DataFrame(columns), VALUES)
    same_matrix(take_rows(X, VALUES, "missing").rows, np.array([[1, 0], [2, NAN], [3, NAN]]))


def test_objects_of_all_kinds_in_a_pandas_column():
    values = [
        1,
        2.5,
        "3",
        None,
        pd.NA,
        decimal.Decimal("1.5"),
        10**400,
        [1],
        True,
        np.float32(2),
        {},
    ]
    X = pd.DataFrame({"a": pd.Series(values, dtype=object), "b": 0.0})
    reasons = flagged(X, NUMBERS)
    odd = [i for i, reason in enumerate(reasons) if reason is not None]
    assert odd == [2, 6, 7, 10]
    assert reasons[6].endswith("... is not a number")
    assert len(reasons[6]) < 120
    rows = take_rows(X, NUMBERS, "missing").rows[:, 0]
    np.testing.assert_array_equal(rows, [1, 2.5, NAN, NAN, NAN, 1.5, NAN, NAN, 1, 2, NAN])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_integers_that_are_rounded_in_two_ways(make):
    X = make({"a": [1, AMBIGUOUS, 3], "b": [1.0, 2.0, 3.0]})
    reasons = flagged(X, replace(CHECKED, names=("a", "b")))
    assert [reason is None for reason in reasons] == [True, False, True]
    assert "2**53" in reasons[1]
    with pytest.raises(InputError, match=r"2\*\*53"):
        take_rows(X, replace(CHECKED, names=("a", "b")), "missing")


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_sentinel_is_missing_and_no_unknown_category(make):
    schema = replace(VALUES, missing=-1.0)
    X = make({"a": [-1.0, 2.0, 3.0], "job": ["cook", "astronaut", "pilot"]})
    assert [reason is None for reason in flagged(X, schema)] == [True, False, True]
    np.testing.assert_array_equal(take_rows(X, schema, "flag").rows, [[NAN, 0], [3, 1]])
    np.testing.assert_array_equal(
        take_rows(X, schema, "missing").rows, [[NAN, 0], [2, NAN], [3, 1]]
    )


def test_rows_are_never_modified():
    frame = pd.DataFrame({"a": [1.0, NAN, INF], "b": [1.0, 2.0, 3.0]})
    objects = np.array([[1, "cook"], [2, "x"]], object)
    listed = objects.tolist()
    before = frame.copy(), objects.copy(), [list(row) for row in listed]
    for option in ("missing", "flag"):
        take_rows(objects, VALUES, option)
        take_rows(listed, VALUES, option)
    flagged(frame, FINITE)
    pd.testing.assert_frame_equal(frame, before[0])
    assert objects.tolist() == before[1].tolist()
    assert listed == before[2]


# ---- what stays an error --------------------------------------------------------------------


@pytest.mark.parametrize("option", ["missing", "flag"])
@pytest.mark.parametrize(
    ("X", "message"),
    [
        (pd.DataFrame({"a": ["x"]}), "has no column 'b'"),
        (pd.DataFrame([["x", 1, 2]], columns=["a", "b", "b"]), "more than one column named 'b'"),
        (np.array([["x", 1, 2]], object), "has 3 columns"),
        ([["x", 1], [2]], "is not a table|two dimensions"),
        ([], "two dimensions"),
        (np.array("x"), "not a table"),
        (scipy.sparse.csr_matrix((2, 2)), "sparse"),
        (pl.LazyFrame({"a": ["x"], "b": [1]}), "lazy"),
        (pd.Series(["x"]), "two dimensions"),
        (3, "not a table"),
        (None, "not a table"),
    ],
)
def test_wrong_columns_stay_errors(X, message, option):
    with pytest.raises(RowsError, match=message):
        take_rows(X, FINITE, option)


@pytest.mark.parametrize("option", ["missing", "flag"])
def test_arrays_for_a_model_that_takes_names_stay_errors(option):
    for X in (np.array([["x", 1]], object), [["x", 1]]):
        with pytest.raises(RowsError, match="has no column names"):
            take_rows(X, replace(VALUES, by_name=True), option)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_without_rows(make):
    X = make({"a": np.array([], float), "b": np.array([], "M8[ns]")})
    assert flagged(X, NUMBERS) == []
    assert take_rows(X, NUMBERS, "missing").rows.shape == (0, 2)
    assert flagged(np.empty((0, 2), object), NUMBERS) == []


def test_many_threads_look_for_odd_values_at_once():
    frames = [
        pd.DataFrame({"a": 1.0, "job": ["cook"] * k + ["astronaut"] + ["pilot"] * (50 - k)})
        for k in range(50)
    ]
    schema = replace(VALUES)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda X: flagged(X, schema), frames))
    for k, reasons in enumerate(found):
        assert [i for i, reason in enumerate(reasons) if reason is not None] == [k]


def test_a_column_that_is_lost_as_a_whole_is_said():
    text = pd.DataFrame({"a": ["1.5", "2.5"], "b": [1.0, 2.0]})
    with pytest.warns(QwycWarning, match="every value of column 'a' is taken as missing"):
        taken = take_rows(text, NUMBERS, "missing")
    assert np.isnan(taken.rows[:, 0]).all()
    partly = pd.DataFrame({"a": [1.5, "2.5"], "b": [1.0, 2.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        take_rows(partly, NUMBERS, "missing")


def test_text_of_known_categories_in_rows_of_codes_is_an_error():
    codes = replace(VALUES, arrays_hold_values=False)
    for unseen in ("missing", "flag"):
        with pytest.raises(RowsError, match="data frame"):
            take_rows([[1.0, "cook"], [2.0, 0.0]], codes, unseen)
        with pytest.raises(RowsError, match="data frame"):
            take_rows(np.array([[1.0, "cook"], [2.0, 0.0]], object), codes, unseen)
