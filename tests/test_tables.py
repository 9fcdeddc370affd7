"""Rows in every form that users have them -> the same matrix, or an error that says what to do."""

from __future__ import annotations

import datetime
import decimal
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from qwyc.ensemble import Inputs
from qwyc.errors import InputError
from qwyc.tables import to_matrix

NAN = float("nan")
F32 = Inputs(n_features=3, names=None, dtype="float32")
F64 = Inputs(n_features=3, names=None, dtype="float64")
NAMED = Inputs(n_features=3, names=("a", "b", "c"), dtype="float64")
COLOURS = Inputs(
    n_features=2,
    names=("x", "colour"),
    dtype="float64",
    categories={1: ("red", "green", "blue")},
)


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def check(X: Any, inputs: Inputs, expected: Any) -> None:
    got = to_matrix(X, inputs)
    assert type(got) is np.ndarray
    assert got.dtype in (np.float32, np.float64)  # the engine reads either as inputs.dtype
    assert got.flags.c_contiguous
    assert got.flags.aligned
    with np.errstate(all="ignore"):
        as_read = got.astype(inputs.dtype)
        expected = np.asarray(expected, inputs.dtype)
    assert got.shape == expected.shape
    np.testing.assert_array_equal(as_read, expected)


# ---- arrays ---------------------------------------------------------------------------------


@pytest.mark.parametrize("inputs", [F32, F64])
def test_a_fitting_array_is_not_copied(inputs):
    X = np.arange(12, dtype=inputs.dtype).reshape(4, 3)
    assert to_matrix(X, inputs) is X
    X.flags.writeable = False
    assert to_matrix(X, inputs) is X


DTYPES = ["f2", "f4", "f8", "g", ">f4", ">f8", "?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]


@settings(max_examples=300, deadline=None)
@given(data=st.data(), dtype=st.sampled_from(DTYPES), inputs=st.sampled_from([F32, F64]))
def test_any_dtype_order_and_stride(data, dtype, inputs):
    dtype = np.dtype(dtype)
    elements = None
    if dtype.kind == "f":  # hypothesis knows no longdouble; any of float32's numbers will do
        elements = st.floats(width=16 if dtype.itemsize == 2 else 32)
    n = data.draw(st.integers(0, 5))
    whole = data.draw(hnp.arrays(dtype, (2 * n, 6), elements=elements))
    view = whole[:: data.draw(st.sampled_from([2, -2])), :: data.draw(st.sampled_from([2, -2]))]
    how = data.draw(st.sampled_from(["view", "fortran", "transposed", "read-only", "unaligned"]))
    if how == "fortran":
        view = np.asfortranarray(view)
    elif how == "transposed":
        view = np.ascontiguousarray(view.T).T
    elif how == "read-only":
        view.flags.writeable = False
    elif how == "unaligned":
        raw = np.empty(view.nbytes + 1, np.uint8)
        shifted = raw[1:].view(view.dtype).reshape(view.shape)
        shifted[...] = view
        view = shifted
    before = view.copy()
    with np.errstate(all="ignore"):
        expected = np.array(view.tolist() if dtype.kind in "b" else view).astype(inputs.dtype)
    check(view, inputs, expected.reshape(view.shape))
    np.testing.assert_array_equal(view, before)


def test_integers_go_to_float32_directly():
    # Rounded to float64 first, this lies halfway between two float32 and is rounded down.
    i = 2**60 + 2**36 + 1
    assert np.float32(np.float64(i)) != np.array([i]).astype(np.float32)[0]
    one = replace(F32, n_features=1, names=("a",))
    expected = np.array([[i]]).astype(np.float32)
    check(np.array([[i]]), one, expected)
    check(pd.DataFrame({"a": [i]}), one, expected)
    check(pl.DataFrame({"a": [i]}), one, expected)
    check(pa.table({"a": [i]}), one, expected)
    nulls = np.vstack([expected, [[np.nan]]])
    check(pd.DataFrame({"a": pd.array([i, None], "Int64")}), one, nulls)
    check(pd.DataFrame({"a": pd.array([i, None], "int64[pyarrow]")}), one, nulls)
    check(pl.DataFrame({"a": [i, None]}), one, nulls)
    check(pa.table({"a": [i, None]}), one, nulls)


def test_sequences_objects_and_masks():
    check([[1, 2, 3], (4, 5.5, True)], F32, [[1, 2, 3], [4, 5.5, 1]])
    check([[1, None, 3]], F64, [[1, NAN, 3]])
    check(np.array([[1, None, pd.NA], [True, decimal.Decimal("0.5"), np.int8(3)]], object), F64,
          [[1, NAN, NAN], [1, 0.5, 3]])  # fmt: skip
    check(np.empty((0, 3)), F32, np.empty((0, 3)))
    check(np.empty((0, 3), object), F32, np.empty((0, 3)))
    for dtype in ("f4", "f8", "i8", "O"):
        X = np.ma.array(np.arange(6).reshape(2, 3).astype(dtype), mask=[[0, 1, 0], [1, 0, 0]])
        check(X, F32, [[0, NAN, 2], [NAN, 4, 5]])
        assert X.data[0, 1] == 1  # X is as it was
    check(np.ma.array(np.ones((2, 3), "f4")), F32, np.ones((2, 3)))
    check(np.array([[1, 2, 3]]).view(np.matrix), F64, [[1, 2, 3]])


class Tensor:
    """Something with its own conversion, as other libraries' arrays have."""

    def __init__(self, values, error=None):
        self.values, self.error = np.asarray(values), error

    def __array__(self, dtype=None, copy=None):
        if self.error:
            raise self.error
        return self.values


def test_anything_with_array():
    check(Tensor([[1, 2, 3]]), F32, [[1, 2, 3]])
    with pytest.raises(InputError, match="call detach"):
        to_matrix(Tensor([[1, 2, 3]], RuntimeError("call detach() first")), F32)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros(3), r"two dimensions.*shape \(3,\).*reshape\(1, -1\)"),
        (np.zeros((1, 3, 1)), "two dimensions"),
        ([1.0, 2.0, 3.0], "reshape"),
        ([], "reshape"),
        ({"a": [1]}, "not a table"),
        (5.0, "not a table"),
        ([[1, 2, 3], [4]], "not a table of rows and columns"),
        (np.zeros((2, 4)), "X has 4 columns; the model was trained on 3"),
        (np.zeros((2, 2)), "X has 2 columns; the model was trained on 3"),
        (np.zeros((2, 3), complex), "numbers.*complex128"),
        (np.array([["1", "2", "3"]]), "numbers.*<U1"),
        (np.array([[b"1", b"2", b"3"]]), "numbers.*S1"),
        (np.zeros((2, 3), "M8[s]"), "numbers.*datetime64"),
        (np.zeros((2, 3), "m8[s]"), "numbers.*timedelta64"),
        (np.zeros(2, [("a", "f4"), ("b", "f4"), ("c", "f4")]), "numbers"),
        ("model.json", "not a table"),
        (np.array([[1, 2, 3], [4, "five", 6]], object), "row 1 of column 1 is 'five'"),
        (np.array([[1, 2, [3]]], object), r"row 0 of column 2 is \[3\] \(list\)"),
        (np.array([[1, 2, 10**400]], object), "row 0 of column 2"),
        (np.array([[1, datetime.date(2020, 1, 1), 3]], object), "row 0 of column 1.*date"),
        (scipy.sparse.csr_matrix((2, 3)), r"sparse.*dense.*X\.toarray\(\)"),
        (scipy.sparse.coo_array((2, 3)), "sparse.*dense"),
        (pl.LazyFrame({"a": [1], "b": [1], "c": [1]}), r"lazy.*X\.collect\(\)"),
        (pd.Series([1.0, 2, 3]), "two dimensions.*Series"),
        (pl.Series([1.0, 2, 3]), "two dimensions.*Series"),
        (pa.chunked_array([[1.0]]), "two dimensions.*ChunkedArray"),
        (pd.DataFrame({"a": [1], "b": [1]}), "X has 2 columns; the model was trained on 3"),
    ],
)  # fmt: skip
def test_what_is_no_table_of_numbers_is_refused(X, message):
    with pytest.raises(InputError, match=f"(?s){message}"):
        to_matrix(X, F64)


def test_a_wrong_column_count_names_the_columns():
    with pytest.raises(InputError, match=r"X has 2 columns; .* trained on 3 .'a', 'b', 'c'."):
        to_matrix(np.zeros((1, 2)), NAMED)


# ---- data frames ----------------------------------------------------------------------------


def record_batch(table: pa.Table) -> pa.RecordBatch:
    return table.combine_chunks().to_batches()[0]


FRAMES = {
    "pandas": pd.DataFrame,
    "polars": lambda d: pl.DataFrame(d, strict=False),
    "arrow": pa.table,
    "batch": lambda d: record_batch(pa.table(d)),
}
frames = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())


@frames
def test_columns_are_matched_by_name(frame):
    X = frame({"extra": ["s", "t"], "c": [5.5, NAN], "a": [1, 2], "b": [True, False]})
    check(X, NAMED, [[1, 1, 5.5], [2, 0, NAN]])
    check(X, replace(NAMED, dtype="float32"), [[1, 1, 5.5], [2, 0, NAN]])


@frames
def test_columns_without_names_go_by_position(frame):
    check(frame({"q": [1.0, 2], "p": [3.0, 4], "o": [5, 6]}), F64, [[1, 3, 5], [2, 4, 6]])


@frames
def test_a_missing_column_is_named(frame):
    inputs = replace(NAMED, names=("age", "hours", "c"))
    with pytest.raises(
        InputError, match=r"no column 'age', which .* \(X has: 'Age', 'hours', 'c'\).*mean 'Age'"
    ):
        to_matrix(frame({"Age": [1], "hours": [1], "c": [1]}), inputs)
    with pytest.raises(InputError, match=r"no columns 'age', 'hours', which .* \(X has: 'c'\)$"):
        to_matrix(frame({"c": [1]}), inputs)


def test_duplicate_columns_are_refused():
    twice = pd.DataFrame([[1, 2, 3]], columns=["a", "b", "b"])
    table = pa.table([[1], [2], [3]], names=["a", "b", "b"])
    for X in (twice, table):
        for inputs in (NAMED, F64):
            with pytest.raises(InputError, match="more than one column named 'b'"):
                to_matrix(X, inputs)
    mixed = pd.DataFrame([[1, 2, 3]], columns=[0, "0", "b"])  # the same text
    with pytest.raises(InputError, match="more than one column named '0'"):
        to_matrix(mixed, F64)


def test_names_with_spaces_may_have_become_underscores():
    inputs = replace(NAMED, names=("hours_per_week", "a_b", "c"))
    X = pd.DataFrame({"a b": [2], "hours per week": [1], "c": [3]})
    check(X, inputs, [[1, 2, 3]])
    for exact in (X.assign(a_b=7), X.assign(a_b=7)[["a_b", *X.columns]]):
        check(exact, inputs, [[1, 7, 3]])  # the exact name comes first
    with pytest.raises(InputError, match="no column 'hours_per_week'"):
        to_matrix(X.assign(**{"hours per_week": 7}), inputs)  # which one?


def test_pandas_labels_that_are_integers():
    X = pd.DataFrame(np.arange(6.0).reshape(2, 3), columns=[2, 0, 1])
    check(X, replace(NAMED, names=("0", "1", "2")), [[1, 2, 0], [4, 5, 3]])
    check(X, F64, X.to_numpy())


def numeric_columns():
    """Every numeric column type, as 1, 0, null."""
    for dtype in ("Int8", "UInt16", "Int64", "Float32", "Float64", "boolean"):
        yield f"pandas {dtype}", pd.DataFrame({"a": pd.array([1, 0, None], dtype)})
    for dtype in ("int64[pyarrow]", "double[pyarrow]", "bool[pyarrow]"):
        yield f"pandas {dtype}", pd.DataFrame({"a": pd.array([1, 0, None], dtype)})
    yield "pandas float", pd.DataFrame({"a": [1.0, 0, None]})
    yield "pandas object", pd.DataFrame({"a": pd.Series([1, False, None], dtype=object)})
    yield "pandas NA", pd.DataFrame({"a": pd.Series([1, 0.0, pd.NA], dtype=object)})
    yield "pandas sparse", pd.DataFrame({"a": pd.arrays.SparseArray([1.0, 0, NAN])})
    decimals = [decimal.Decimal(1), decimal.Decimal(0), None]
    yield "pandas decimal", pd.DataFrame({"a": decimals})
    yield "arrow decimal", pa.table({"a": decimals})
    yield "polars decimal", pl.DataFrame({"a": decimals})
    for kind in (pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.bool_()):
        yield f"arrow {kind}", pa.table({"a": pa.array([1, 0, None]).cast(kind)})
    yield "arrow chunks", pa.table({"a": pa.chunked_array([[1], [0, None]])})
    for kind in (pl.Int8, pl.UInt64, pl.Int128, pl.Float32, pl.Float64, pl.Boolean):
        yield f"polars {kind}", pl.DataFrame({"a": pl.Series([1, 0, None]).cast(kind)})
    yield "polars NaN", pl.DataFrame({"a": [1.0, 0, NAN]})


NUMERIC = dict(numeric_columns())


@pytest.mark.parametrize("X", NUMERIC.values(), ids=NUMERIC.keys())
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_numeric_column_type(X, dtype):
    one = Inputs(n_features=1, names=("a",), dtype=dtype)
    check(X, one, [[1], [0], [NAN]])
    check(X, replace(one, categories={0: (5, 1, 0)}), [[1], [2], [NAN]])


def test_columns_that_are_all_null():
    one = Inputs(n_features=1, names=("a",), dtype="float32")
    nothing = [[NAN], [NAN]]
    for categories in ({}, {0: ("x", "y")}):
        inputs = replace(one, categories=categories)
        check(pl.DataFrame({"a": [None, None]}), inputs, nothing)
        check(pa.table({"a": pa.nulls(2)}), inputs, nothing)
        if categories:
            check(
                pl.DataFrame({"a": pl.Series([None, None], dtype=pl.Categorical)}), inputs, nothing
            )
            check(pa.table({"a": pa.nulls(2, pa.string())}), inputs, nothing)
            check(pd.DataFrame({"a": pd.Categorical([None, None])}), inputs, nothing)
        check(pd.DataFrame({"a": pd.Series([None, None], dtype=object)}), inputs, nothing)
        check(pd.DataFrame({"a": [NAN, NAN]}), inputs, nothing)
        check(pd.DataFrame({"a": pd.array([None, None], "Int64")}), inputs, nothing)


@pytest.mark.parametrize("dtype", [pl.Float64, pl.String, pl.Categorical])
def test_frames_without_rows(dtype):
    X = pl.DataFrame(schema={"x": pl.Int8, "colour": dtype})
    for form in (X, X.to_arrow(), X.to_pandas()):
        check(form, COLOURS, np.empty((0, 2)))


# ---- categories -----------------------------------------------------------------------------

VALUES = ["green", None, "red", "blue", "pink", "green"]
CODES = [1.0, NAN, 0.0, 2.0, None, 1.0]  # None: unseen


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


def test_numbers_match_numbers_and_not_text():
    inputs = replace(COLOURS, categories={1: (3, 7, 2**53 + 1)}, unseen="invalid")
    x = [0.0, 0, 0, 0]
    for colour in (
        np.array([3, 2**53 + 1, 7, 2**53]),  # as float64 the second and last are equal
        np.array([3, 2**53 + 1, 7, 2**53], object),
        pd.Categorical([3, 2**53 + 1, 7, 2**53]),
    ):
        check(pd.DataFrame({"x": x, "colour": colour}), inputs, [[0, 0], [0, 2], [0, 1], [0, -1]])
    for dtype in ("i1", "u8", "f2", "f4", "f8"):
        colour = np.array([3, 4, 7, 3], dtype)
        check(pd.DataFrame({"x": x, "colour": colour}), inputs, [[0, 0], [0, -1], [0, 1], [0, 0]])
        check(pl.DataFrame({"x": x, "colour": colour}) if dtype != "f2" else
              pl.DataFrame({"x": x, "colour": colour.astype("f4")}), inputs,
              [[0, 0], [0, -1], [0, 1], [0, 0]])  # fmt: skip
    text = pd.DataFrame({"x": x, "colour": ["3", "7", None, "3"]})
    check(text, inputs, [[0, -1], [0, -1], [0, NAN], [0, -1]])
    numbers = pa.table({"x": x, "colour": pa.array([7, 3, None, 5]).dictionary_encode()})
    check(numbers, inputs, [[0, 1], [0, 0], [0, NAN], [0, -1]])
    with pytest.raises(InputError, match="'colour' holds 5, a category"):
        to_matrix(numbers, replace(inputs, unseen="error"))
    with pytest.raises(InputError, match="'colour' holds 4, a category"):
        to_matrix(pd.DataFrame({"x": x, "colour": [3, 7, 4, 3]}), replace(inputs, unseen="error"))
    fractions = replace(inputs, categories={1: (0.1, 2.5)})
    check(pd.DataFrame({"x": x, "colour": [2.5, 0.1, NAN, 9]}), fractions,
          [[0, 1], [0, 0], [0, NAN], [0, -1]])  # fmt: skip
    flags = replace(inputs, categories={1: (False, True)})
    check(pd.DataFrame({"x": x, "colour": [True, False, True, True]}), flags,
          [[0, 1], [0, 0], [0, 1], [0, 1]])  # fmt: skip


def test_a_feature_that_never_had_a_value():
    inputs = replace(COLOURS, categories={1: ()}, unseen="invalid")
    check(pd.DataFrame({"x": [0, 0], "colour": [1.0, NAN]}), inputs, [[0, -1], [0, NAN]])
    check(pd.DataFrame({"x": [0, 0], "colour": ["a", None]}), inputs, [[0, -1], [0, NAN]])


def test_none_among_the_categories_is_a_value_where_the_source_sees_none():
    inputs = replace(COLOURS, categories={1: ("red", None)}, arrays_hold_values=True)
    values = ["red", None, "pink"] * 100
    x = np.zeros(len(values))
    as_value = np.column_stack([x, [0, 1, NAN] * 100])
    as_missing = np.column_stack([x, [0, NAN, NAN] * 100])
    for n in (3, 300):
        objects = np.column_stack([x[:n].astype(object), np.array(values[:n], object)])
        check(objects, inputs, as_value[:n])
        objects[1, 1] = NAN
        check(objects[:3], inputs, as_missing[:3])
        for dtype in (pl.String, pl.Categorical):
            column = pl.Series(values[:n], dtype=dtype)
            check(pl.DataFrame({"x": x[:n], "colour": column}), inputs, as_value[:n])
        objects = pd.Series(values[:n], dtype=object)
        check(pd.DataFrame({"x": x[:n], "colour": objects}), inputs, as_value[:n])
        column = objects.astype("category")
        check(pd.DataFrame({"x": x[:n], "colour": column}), inputs, as_missing[:n])
    numbers = replace(inputs, categories={1: (3, None)})
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
    ],
    ids=lambda column: str(getattr(column, "dtype", getattr(column, "type", "?"))),
)
def test_other_column_types_are_refused(column):
    X = frame_of(column, x=[1.0])
    for inputs in (replace(COLOURS, categories={}), COLOURS):
        with pytest.raises(InputError, match="'colour'"):
            to_matrix(X, inputs)


# ---- missing values and infinities ----------------------------------------------------------


def test_a_value_may_mean_missing():
    X = np.array([[-999.0, 1, np.inf], [0.1, NAN, -999]])
    check(X, replace(F64, missing=-999.0), [[NAN, 1, np.inf], [0.1, NAN, NAN]])
    check(X, replace(F64, missing=np.inf), [[-999, 1, NAN], [0.1, NAN, -999]])
    assert X[0, 0] == -999
    # Compared as the trees see it: 0.1 in float32.
    check(X, replace(F32, missing=0.1), [[-999, 1, np.inf], [NAN, NAN, -999]])
    check(pl.DataFrame(X), replace(F64, missing=-999.0), [[NAN, 1, np.inf], [0.1, NAN, NAN]])
    X = X.astype(np.float32)
    assert to_matrix(X, replace(F32, missing=12.0)) is X


def test_missing_values_are_refused_where_the_source_refuses_them():
    inputs = replace(F64, accepts_missing=False)
    X = np.zeros((5, 3))
    assert to_matrix(X, inputs) is X
    X[3, 1] = NAN
    with pytest.raises(InputError, match=r"missing value in row 3 of column 1;.*refuses missing"):
        to_matrix(X, inputs)
    with pytest.raises(InputError, match="row 3 of column 'b'"):
        to_matrix(X, replace(inputs, names=("a", "b", "c")))
    with pytest.raises(InputError, match="row 0 of column 2"):
        to_matrix([[1, 2, None]], inputs)
    X[3, 1] = np.inf
    assert to_matrix(X, inputs) is X


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e300])
def test_infinities_are_refused_where_the_source_refuses_them(value):
    inputs = replace(F32, accepts_infinity=False)
    X = np.zeros((5, 3))
    X[2, 0] = NAN
    X[4, 2] = value
    with pytest.raises(InputError, match=r"infinity.* in row 4 of column 2;.*refuses infinities"):
        to_matrix(X, inputs)
    with pytest.raises(InputError, match="row 4 of column 'c'"):
        to_matrix(pd.DataFrame(X, columns=["a", "b", "c"]), replace(inputs, names=("a", "b", "c")))
    expected = X.copy()
    expected[4, 2] = np.sign(value) * np.inf
    check(X, F32, expected)
    if np.isfinite(value):
        assert to_matrix(X, replace(F64, accepts_infinity=False)) is X
