"""Frames of numbers and of categories are decided where they lie, as they are after a conversion."""

from __future__ import annotations

import datetime
import decimal
import itertools
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matrices import record_batch
from qwyc.rows.categories import category_hash
from qwyc.rows.schema import Schema
from table_paths import check_paths

ABC = Schema(n_features=3, names=("a", "b", "c"), dtype="float32")
DOUBLE = replace(ABC, dtype="float64")
SCHEMAS = {
    "float32": ABC,
    "float64": DOUBLE,
    "positions": replace(ABC, names=None),
    "missing": replace(DOUBLE, missing=1.0),
    "finite": replace(ABC, accepts_missing=False, accepts_infinity=False),
    "must have": replace(DOUBLE, must_have=(1,)),
    "checked": replace(ABC, integers="checked"),
    "numbers are categories": replace(DOUBLE, categories={1: (7, 1, 0.5)}),
    "numbers are categories, strictly": replace(ABC, categories={1: (1, 0)}, unseen="error"),
    "text is categories": replace(ABC, categories={1: ("1", "x")}),
    "hashes": replace(
        DOUBLE, hashed=True, unseen="invalid", categories={1: (category_hash("1"), 5)}
    ),
    "a category that is no text": replace(DOUBLE, categories={1: ("\ud800", "1")}),
}
schemas = pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
LARGE = 2**60 + 2**36 + 1  # rounded to float64 and then to float32, it is another number


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def frame_of(column):
    """A frame of the library of a column, which is the second of three."""
    n = len(column)
    a, c = np.linspace(-1, 2, n), np.arange(n) % 5
    if isinstance(column, pd.Series):
        return pd.DataFrame({"a": a, "b": column, "c": c})
    if isinstance(column, pl.Series):
        return pl.DataFrame({"a": a, "b": column, "c": c})
    return pa.table({"a": a, "b": column, "c": c})


def numpy_columns():
    """Every dtype that may hold numbers, in every layout."""
    for dtype in ("f2", "f4", "f8", "g", ">f4", ">f8", ">i4", "?", "i1", "i2", "i4", "i8",
                  "u1", "u2", "u4", "u8"):  # fmt: skip
        values = np.array([1, 0, 1, 0, 1, 7]).astype(dtype)
        yield dtype, values
        yield f"{dtype} reversed", values[::-1]
        yield f"{dtype} with gaps", np.repeat(values, 3)[::3]
        yield f"{dtype} in rows", np.column_stack([values, values])[:, 1]
    yield "odd strides", np.array([(1, 5), (2, 6)], [("x", "f8"), ("y", "u1")])["x"]
    yield "bytes that are no booleans", np.array([0, 1, 2, 255], "u1").view(bool)
    yield "past float32", np.array([1e300, -1e300, 1e-320])
    yield "past float32 in long doubles", np.array([1e300, -1e300, 0], np.longdouble)
    yield "specials", np.array([np.nan, np.inf, -np.inf, -0.0, 1.0])
    yield "large integers", np.array([LARGE, -LARGE, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)])
    yield "large unsigned", np.array([LARGE, 2**64 - 1, 2**53], "u8")
    yield "large but equal", np.array([2**60, -(2**53), 2**53])
    for values in ([1, 0.5, None], [True, LARGE, pd.NA], [1, "1", None], [None] * 3, ["x", "1", ""],
                   [1, [2], 3], [decimal.Decimal("0.5"), np.int8(1), 1e300]):  # fmt: skip
        column = np.empty(len(values), object)
        column[:] = values
        yield f"objects {values}", column
    yield "complex", np.array([1j, 2])
    yield "dates", np.array(["2020-01-01", "2021-01-01"], "M8[s]")


NUMPY = dict(numpy_columns())


@schemas
@pytest.mark.parametrize("values", NUMPY.values(), ids=NUMPY.keys())
def test_numpy_columns_of_pandas(values, schema):
    n = len(values)
    values.flags.writeable = False
    a, c = np.linspace(-1, 2, n), np.arange(n) % 5
    columns = {"a": pd.Series(a), "b": pd.Series(values, copy=False), "c": pd.Series(c)}
    check_paths(pd.DataFrame(columns, copy=False), schema)
    check_paths(pd.DataFrame(columns)[["c", "b", "a"]], replace(schema, names=None))
    if values.dtype.kind in "fiub" and values.dtype.itemsize <= 8:  # three columns in one block
        block = pd.DataFrame(np.column_stack([values] * 3), columns=list("abc"))
        check_paths(block, schema)
        check_paths(block[::-1], schema)
        check_paths(block.iloc[1::2, ::-1], schema)


def typed_columns():
    """Columns of types that the libraries have of their own, with nulls."""
    for dtype in ("Int8", "UInt16", "Int64", "UInt64", "Float32", "Float64", "boolean"):
        yield f"pandas {dtype}", pd.Series(pd.array([1, 0, None, 1], dtype))
    yield "pandas Int64, large", pd.Series(pd.array([LARGE, None], "Int64"))
    yield "pandas sparse", pd.Series(pd.arrays.SparseArray([1.0, 0, np.nan]))
    yield "pandas sparse integers", pd.Series(pd.arrays.SparseArray([1, 0, 7]))
    yield "pandas dates", pd.Series(pd.to_datetime(["2020-01-01", None]))
    yield "pandas periods", pd.Series(pd.period_range("2020", periods=2))
    small = [1, 0, None, 1, 7]
    kinds = {
        **{str(kind): (kind, small) for kind in (
            pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(),
            pa.uint64(), pa.float32(), pa.float64(), pa.null(), pa.timestamp("s"))},
        "float16": (pa.float16(), [np.float16(1), None]),
        "bool": (pa.bool_(), [True, None, False] * 7),
        "decimal": (pa.decimal128(9, 1), [decimal.Decimal("0.5"), None, decimal.Decimal(1)]),
        "large": (pa.int64(), [LARGE, None, -LARGE]),
        "list": (pa.list_(pa.int64()), [[1], None]),
        "binary": (pa.binary(), [b"1", None]),
        "dictionary of numbers": (pa.dictionary(pa.int8(), pa.int64()), small),
    }  # fmt: skip
    for name, (kind, values) in kinds.items():
        values = [None] * 5 if kind == pa.null() else values
        array = pa.array(values, kind)
        yield f"arrow {name}", array
        yield f"arrow {name} sliced", pa.concat_arrays([array] * 3)[3:-2]
        chunks = pa.chunked_array([array[:1], array[:0], array[1:], array])
        yield f"arrow {name} in chunks", chunks
        yield f"pandas arrow {name}", pd.Series(pd.array(chunks, pd.ArrowDtype(kind)))
        try:
            series = pl.Series(pl.from_arrow(chunks))
        except pl.exceptions.PolarsError:
            continue
        yield f"polars {name}", series
        yield f"polars {name} in chunks", pl.concat([series[1:], series[:2], series[2:]])
    yield "polars Int128", pl.Series([1, None, LARGE], dtype=pl.Int128)
    yield "polars objects", pl.Series([1, 0.5, None], dtype=pl.Object)
    yield "polars durations", pl.Series([1, 2], dtype=pl.Duration)
    storage = pa.array([1, 0, None], pa.int8())
    yield "arrow extension", pa.ExtensionArray.from_storage(pa.bool8(), storage)
    yield "arrow text extension", pa.ExtensionArray.from_storage(pa.json_(), pa.array(["1", "x"]))
    data = np.array([1.0, 7.0]).tobytes()
    unaligned = [None, pa.py_buffer(b"-" + data)[1:]]
    yield "arrow unaligned", pa.Array.from_buffers(pa.float64(), 2, unaligned)


TYPED = dict(typed_columns())


@schemas
@pytest.mark.parametrize("column", TYPED.values(), ids=TYPED.keys())
def test_columns_with_types_of_the_libraries(column, schema):
    frame = frame_of(column)
    for some in (frame, frame[1:], frame[:0], frame[:1]):
        check_paths(some, schema)
    if isinstance(frame, pa.Table) and len(frame):
        check_paths(frame.combine_chunks().to_batches()[0].slice(1), schema)


def shapes_of(frame):
    """The same columns of pandas after what users do to frames."""
    yield frame[["c", "a", "b"]]
    yield frame.assign(extra=pd.Timestamp(0), text="x")
    inserted = frame[["a", "c"]].copy()
    inserted.insert(1, "b", frame["b"])
    yield inserted
    yield pd.concat([frame, frame[:1]], ignore_index=True)
    yield pd.concat([frame[["a"]], frame[["b", "c"]]], axis=1)
    yield frame[::-1][::2]
    yield frame.loc[[2, 0, 1]]
    changed, kept = frame.copy(deep=False), frame
    changed.loc[0, "a"] = 0.25
    yield changed
    yield kept
    yield frame.astype({"a": "float32", "b": "int8"})
    yield frame.T.T


@pytest.mark.parametrize("schema", [ABC, DOUBLE, replace(ABC, categories={1: (1, 0)})])
def test_frames_after_changes(schema):
    frame = pd.DataFrame({"a": [0.1, 1, 2], "b": [1, 0, 1], "c": [0.3, np.nan, 1e40]})
    for shape in shapes_of(frame):
        check_paths(shape, schema)
    for shape in shapes_of(frame.astype({"b": "float64"})):
        check_paths(shape, schema)


def test_one_memory_with_columns_of_two_types():
    memory = np.zeros(6)
    memory[2:4] = np.array([LARGE, LARGE]).view(float)
    columns = {"a": memory[:2], "b": memory[2:4].view(np.int64), "c": memory[4:]}
    check_paths(pd.DataFrame(columns, copy=False), ABC)


@pytest.mark.parametrize("dtype", ["float64", "int64", "object"])
def test_labels_of_any_type(dtype):
    for labels in ([2, 0, 1], [True, None, 1.5], [("a", 1), ("b", 2), ("c", 3)], [b"a", "b", 0]):
        frame = pd.DataFrame(np.eye(3), columns=labels).astype(dtype)
        check_paths(frame, replace(ABC, names=None))
        check_paths(frame, replace(ABC, names=("0", "1", "2")))
        check_paths(frame, replace(ABC, names=tuple(str(label) for label in frame.columns[::-1])))


@pytest.mark.parametrize("names", [("*", "b", "c"), ("^b.*$", "b", "c"), ("a b", "c", "b")])
def test_names_that_polars_takes_for_patterns(names):
    columns = {name: np.arange(3.0) + i for i, name in enumerate(("extra", *names))}
    for library in (pd.DataFrame, pl.DataFrame, pa.table):
        for some in (columns, dict(reversed(columns.items()))):
            assert not isinstance(check_paths(library(some), replace(ABC, names=names)), str)


def test_the_first_error_is_the_same():
    strict = replace(ABC, categories={0: ("x",)}, unseen="error")
    dates = [datetime.date(2020, 1, 1)] * 2
    for library in (pd.DataFrame, pl.DataFrame, pa.table):
        columns = {"a": ["x", "y"], "b": dates, "c": [1, 2]}
        assert "row 1 of column 'a' holds 'y'" in check_paths(library(columns), strict)
        columns = {"a": ["x", "x"], "b": dates, "c": ["z", "z"]}
        assert "column 'b'" in check_paths(library(columns), strict)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n", [255, 256, 257, 16383, 16384, 16385, 40000])
def test_sizes_near_those_of_blocks(n, threads):
    rng = np.random.default_rng(n)
    numbers = rng.normal(size=(n, 2))
    flags = rng.choice([True, False, None], n).tolist()
    batches = [{"a": numbers[:, 0], "b": flags, "c": numbers[:, 1]}]
    table = pa.table(batches[0])
    cut = pa.concat_tables([table[: n // 3], table[n // 3 : n // 2 + 1], table[n // 2 + 1 :]])
    frames = (pl.DataFrame(batches[0]), table, cut, record_batch(cut), pd.DataFrame(batches[0]))
    answers = [check_paths(frame, ABC, threads=threads) for frame in frames]
    assert all(answer == answers[0] for answer in answers)
    last = table.set_column(0, "a", pa.array([*numbers[:-1, 0], np.inf]))
    strict = replace(ABC, accepts_infinity=False)
    assert f"row {n - 1:,} of column 'a'" in check_paths(last, strict, threads=threads)


def test_columns_that_no_tree_looks_at():
    """They are not read, but what the model does not take is refused."""
    for dtype in ("float32", "float64"):
        wide = Schema(n_features=9, names=None, dtype=dtype, categories={8: ("x", "y")})
        frame = pd.DataFrame({str(j): np.arange(4.0) - j for j in range(9)})
        frame["3"] = [1, 0, 2, 3]
        for last in (list("xyzx"), ["x", None, "", "y"], [1, 2, 3, 4], [pd.Timestamp(0)] * 4):
            frame["8"] = last
            for schema in (wide, replace(wide, unseen="error"), replace(wide, must_have=(8,))):
                for X in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
                    check_paths(X, schema, n_trees=2)


CELLS = st.one_of(
    st.none(), st.integers(-3, 70), st.floats(width=32), st.sampled_from([LARGE, 0.1, 1.0, 1e300])
)


@settings(max_examples=150, deadline=None)
@given(
    columns=st.lists(st.lists(CELLS, min_size=6, max_size=6), min_size=3, max_size=3),
    kinds=st.lists(st.sampled_from(["f4", "f8", "i8", "u2", "O"]), min_size=3, max_size=3),
    cuts=st.lists(st.integers(0, 6), max_size=3),
    name=st.sampled_from(sorted(SCHEMAS)),
)
def test_any_columns_in_any_chunks(columns, kinds, cuts, name):
    series = {}
    for label, values, kind in zip("abc", columns, kinds, strict=True):
        if kind in ("i8", "u2"):
            values = [
                v if type(v) is int and (kind == "i8" or 0 <= v < 99) else None for v in values
            ]
        if kind == "O":
            series[label] = [None if v is None else v == v and v > 0 for v in values]
        else:
            kind = pa.from_numpy_dtype(kind)
            with np.errstate(all="ignore"):
                numbers = [None if v is None else kind.to_pandas_dtype()(v) for v in values]
            series[label] = pa.array(numbers, kind)
    table = pa.table(series)
    ends = sorted({0, 6, *cuts})
    parts = [table[i:j] for i, j in itertools.pairwise(ends)]
    whole = pa.concat_tables(parts)
    schema = SCHEMAS[name]
    for X in (whole, pl.concat([pl.from_arrow(part) for part in parts], rechunk=False),
              whole.to_pandas(), whole.to_pandas(types_mapper=pd.ArrowDtype)):  # fmt: skip
        check_paths(X, schema)
