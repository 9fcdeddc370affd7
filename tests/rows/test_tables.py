"""Rows in every form that users have them -> the same matrix, or an error that says what to do."""

from __future__ import annotations

import datetime
import decimal
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from matrices import COLOURS, F32, F64, NAMED, NAN, check, frames
from qwyc.errors import InputError
from qwyc.rows.matrix import to_matrix
from qwyc.rows.schema import Schema


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# ---- arrays ---------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", [F32, F64])
def test_a_fitting_array_is_not_copied(schema):
    X = np.arange(12, dtype=schema.dtype).reshape(4, 3)
    assert to_matrix(X, schema) is X
    X.flags.writeable = False
    assert to_matrix(X, schema) is X


@pytest.mark.parametrize("finite_only", [False, True])
@pytest.mark.parametrize("schema", [F32, F64])
def test_columns_and_parts_of_arrays_are_not_copied_where_any_order_will_do(schema, finite_only):
    schema = replace(schema, accepts_missing=not finite_only)
    wide = np.arange(40, dtype=schema.dtype).reshape(4, 10)
    tall = np.asfortranarray(wide)
    for X in (wide[:, 2:5], wide[::2, :3], tall[:, :3], tall[:, ::4], tall[1:, 5:8], tall[1:2, :3]):
        assert np.shares_memory(to_matrix(X, schema, c_order=False), X)
        copy = to_matrix(X, schema)
        assert copy.flags.c_contiguous
        assert not np.shares_memory(copy, X)
        check(X, schema, X.copy())
    for X in (wide[::-1, :3], wide[:, 2::-1], wide[:, ::4], tall[::2, :3], tall[:, 2::-1]):
        assert not np.shares_memory(to_matrix(X, schema, c_order=False), X)
        check(X, schema, X.copy())


DTYPES = ["f2", "f4", "f8", "g", ">f4", ">f8", "?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]


@settings(max_examples=300, deadline=None)
@given(data=st.data(), dtype=st.sampled_from(DTYPES), schema=st.sampled_from([F32, F64]))
def test_any_dtype_order_and_stride(data, dtype, schema):
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
        expected = np.array(view.tolist() if dtype.kind in "b" else view).astype(schema.dtype)
    check(view, schema, expected.reshape(view.shape))
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
        ("rows.csv", "such as pandas.read_csv returns for a file"),
        ([{"a": 1}, {"a": 2}], r"a list of dicts; pass a data frame, such as pandas.DataFrame"),
        (np.zeros((2, 4)), "X has 4 columns; the model was trained on 3"),
        (np.zeros((2, 2)), "X has 2 columns; the model was trained on 3"),
        (np.zeros((2, 3), complex), "numbers.*complex128"),
        (np.array([["1", "2", "3"]]), "numbers.*an array of text"),
        (np.array([[b"1", b"2", b"3"]]), "numbers.*an array of bytes"),
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


@frames
def test_columns_are_matched_by_name(frame):
    X = frame({"extra": ["s", "t"], "c": [5.5, NAN], "a": [1, 2], "b": [True, False]})
    check(X, NAMED, [[1, 1, 5.5], [2, 0, NAN]])
    check(X, replace(NAMED, dtype="float32"), [[1, 1, 5.5], [2, 0, NAN]])


@frames
def test_columns_without_names_go_by_position(frame):
    check(frame({"q": [1.0, 2], "p": [3.0, 4], "o": [5, 6]}), F64, [[1, 3, 5], [2, 4, 6]])


@pytest.mark.parametrize("schema", [NAMED, replace(NAMED, dtype="float32", accepts_infinity=False)])
@pytest.mark.parametrize("kinds", [("float64",) * 4, ("float32",) * 4, ("float32", "float64") * 2])
@pytest.mark.parametrize("columns", [list("abc"), list("cab"), list("cxab")])
def test_pandas_frames_of_one_type_are_read_at_once(columns, kinds, schema):
    rng = np.random.default_rng(0)
    table = {name: rng.normal(size=50) for name in columns}
    frame = pd.DataFrame(
        {name: table[name].astype(k) for name, k in zip(columns, kinds, strict=False)}
    )
    frame.iloc[3, 0] = np.nan
    before = frame.copy()
    found = to_matrix(frame, schema)
    expected = np.column_stack([frame[name].to_numpy() for name in "abc"])
    np.testing.assert_array_equal(found.astype(schema.dtype), expected.astype(schema.dtype))
    assert found.flags.c_contiguous
    pd.testing.assert_frame_equal(frame, before)


@frames
def test_a_missing_column_is_named(frame):
    schema = replace(NAMED, names=("age", "hours", "c"))
    with pytest.raises(
        InputError, match=r"no column 'age', which .* \(it has: 'Age', 'hours', 'c'\).*mean 'Age'"
    ):
        to_matrix(frame({"Age": [1], "hours": [1], "c": [1]}), schema)
    with pytest.raises(InputError, match=r"no columns 'age', 'hours', which .* \(it has: 'c'\)$"):
        to_matrix(frame({"c": [1]}), schema)


@pytest.mark.parametrize(
    ("label", "hint"),
    [
        ("Feat3", r"; did you mean 'Feat3'\?$"),
        ("FEAT 3", r"; did you mean 'FEAT 3'\?$"),
        ("feat_33", r"; did you mean 'feat_33'\?$"),
        ("zone", r"\)$"),  # not 'feat_23', which is another feature
    ],
)
def test_a_column_that_is_in_use_is_not_what_was_meant(label, hint):
    schema = replace(NAMED, names=("feat_3", "feat_23", "c"))
    with pytest.raises(InputError, match=rf"no column 'feat_3', which .*{hint}"):
        to_matrix(pd.DataFrame({label: [1], "feat_23": [1], "c": [1]}), schema)


def test_duplicate_columns_are_refused():
    twice = pd.DataFrame([[1, 2, 3]], columns=["a", "b", "b"])
    table = pa.table([[1], [2], [3]], names=["a", "b", "b"])
    for X in (twice, table):
        for schema in (NAMED, F64):
            with pytest.raises(InputError, match="more than one column named 'b'"):
                to_matrix(X, schema)
    mixed = pd.DataFrame([[1, 2, 3]], columns=[0, "0", "b"])  # the same text
    with pytest.raises(InputError, match="more than one column named '0'"):
        to_matrix(mixed, F64)


def test_names_with_spaces_may_have_become_underscores():
    schema = replace(NAMED, names=("hours_per_week", "a_b", "c"))
    X = pd.DataFrame({"a b": [2], "hours per week": [1], "c": [3]})
    check(X, schema, [[1, 2, 3]])
    for exact in (X.assign(a_b=7), X.assign(a_b=7)[["a_b", *X.columns]]):
        check(exact, schema, [[1, 7, 3]])  # the exact name comes first
    with pytest.raises(InputError, match="no column 'hours_per_week'"):
        to_matrix(X.assign(**{"hours per_week": 7}), schema)  # which one?


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
    one = Schema(n_features=1, names=("a",), dtype=dtype)
    check(X, one, [[1], [0], [NAN]])
    check(X, replace(one, categories={0: (5, 1, 0)}), [[1], [2], [NAN]])


def test_columns_that_are_all_null():
    one = Schema(n_features=1, names=("a",), dtype="float32")
    nothing = [[NAN], [NAN]]
    for categories in ({}, {0: ("x", "y")}):
        schema = replace(one, categories=categories)
        check(pl.DataFrame({"a": [None, None]}), schema, nothing)
        check(pa.table({"a": pa.nulls(2)}), schema, nothing)
        if categories:
            check(
                pl.DataFrame({"a": pl.Series([None, None], dtype=pl.Categorical)}), schema, nothing
            )
            check(pa.table({"a": pa.nulls(2, pa.string())}), schema, nothing)
            check(pd.DataFrame({"a": pd.Categorical([None, None])}), schema, nothing)
        check(pd.DataFrame({"a": pd.Series([None, None], dtype=object)}), schema, nothing)
        check(pd.DataFrame({"a": [NAN, NAN]}), schema, nothing)
        check(pd.DataFrame({"a": pd.array([None, None], "Int64")}), schema, nothing)


@pytest.mark.parametrize("dtype", [pl.Float64, pl.String, pl.Categorical])
def test_frames_without_rows(dtype):
    X = pl.DataFrame(schema={"x": pl.Int8, "colour": dtype})
    for form in (X, X.to_arrow(), X.to_pandas()):
        check(form, COLOURS, np.empty((0, 2)))


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
    schema = replace(F64, accepts_missing=False)
    X = np.zeros((5, 3))
    assert to_matrix(X, schema) is X
    X[3, 1] = NAN
    with pytest.raises(InputError, match=r"missing value in row 3 of column 1;.*refuses missing"):
        to_matrix(X, schema)
    with pytest.raises(InputError, match="row 3 of column 'b'"):
        to_matrix(X, replace(schema, names=("a", "b", "c")))
    with pytest.raises(InputError, match="row 0 of column 2"):
        to_matrix([[1, 2, None]], schema)
    X[3, 1] = np.inf
    assert to_matrix(X, schema) is X


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e300])
def test_infinities_are_refused_where_the_source_refuses_them(value):
    schema = replace(F32, accepts_infinity=False)
    X = np.zeros((5, 3))
    X[2, 0] = NAN
    X[4, 2] = value
    with pytest.raises(InputError, match=r"infinity.* in row 4 of column 2;.*refuses infinities"):
        to_matrix(X, schema)
    with pytest.raises(InputError, match="row 4 of column 'c'"):
        to_matrix(pd.DataFrame(X, columns=["a", "b", "c"]), replace(schema, names=("a", "b", "c")))
    expected = X.copy()
    expected[4, 2] = np.sign(value) * np.inf
    check(X, F32, expected)
    if np.isfinite(value):
        assert to_matrix(X, replace(F64, accepts_infinity=False)) is X


def test_of_a_wide_frame_only_the_features_are_read():
    wide = pd.DataFrame({f"x{i}": np.full(3, float(i)) for i in range(50)}).assign(text="t")
    schema = replace(NAMED, names=("x7", "x3", "x40"))
    np.testing.assert_array_equal(to_matrix(wide, schema), [[7.0, 3.0, 40.0]] * 3)
