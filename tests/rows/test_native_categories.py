"""Categories of frames are looked up where they lie, as they are after a conversion."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwyc.rows.categories import category_hash
from qwyc.rows.schema import Schema
from table_paths import check_paths, decider

LONG = "a text of more than twelve bytes, which views do not hold"
KNOWN = ("red", "", "grün", "a\0b", LONG, "a", 5, 0.5, True)
TEXTS = ["red", None, "", "grün", "gr\u0075\u0308n", "a\0b", "a\0c", "a", LONG, LONG + "!", "twelve bytes",
         "red", "5", "pink", None, "日本語のテキスト"]  # fmt: skip
SEEN = ["red", None, "", "grün", "a\0b", "a", LONG, "red"]
SHOWN = Schema(n_features=2, names=("x", "colour"), dtype="float32", categories={1: KNOWN})
SCHEMAS = {
    **{unseen: replace(SHOWN, unseen=unseen) for unseen in ("missing", "invalid", "first", "error")},
    "float64": replace(SHOWN, dtype="float64"),
    "None is known": replace(SHOWN, categories={1: (*KNOWN, None)}, unseen="invalid"),
    "only numbers are known": replace(SHOWN, categories={1: (5, 6)}, unseen="invalid"),
    "nothing is known": replace(SHOWN, categories={1: ()}),
    "nothing is known, strictly": replace(SHOWN, categories={1: ()}, unseen="error"),
    "no nulls": replace(SHOWN, accepts_missing=False),
    "a code means missing": replace(SHOWN, missing=2.0),
    "must have": replace(SHOWN, must_have=(1,), unseen="invalid"),
    "no categories": replace(SHOWN, categories={}),
    "no text": replace(SHOWN, categories={1: ("\ud800", "red", None)}),
    "hashes": replace(SHOWN, categories={1: (category_hash("red"), category_hash(LONG))},
                      hashed=True, unseen="invalid"),
}  # fmt: skip
schemas = pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())


def frame_of(column):
    x = np.arange(len(column)) - 2.5
    if isinstance(column, pd.Series):
        return pd.DataFrame({"x": x, "colour": column})
    if isinstance(column, pl.Series):
        return pl.DataFrame({"x": x, "colour": column})
    return pa.table({"x": x, "colour": column})


def arrow_columns(values):
    kinds = {"string": pa.string(), "large": pa.large_string(), "view": pa.string_view()}
    for name, kind in kinds.items():
        array = pa.array(values, kind)
        yield name, array
        yield f"{name} sliced", pa.array(["red", None, LONG, *values, "a"], kind)[3:-1]
        yield f"{name} in chunks", pa.chunked_array([array[:3], array[:0], array[3:4], array[4:]])
    array = pa.array(values)
    texts = array.dictionary_encode()
    for index in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(),
                  pa.uint32(), pa.uint64()):  # fmt: skip
        whole = pa.DictionaryArray.from_arrays(texts.indices.cast(index), texts.dictionary)
        yield f"dictionary of {index}", whole
        yield f"dictionary of {index} sliced", whole[2:]
    for name, kind in kinds.items():
        if name != "view":
            by_kind = texts.cast(pa.dictionary(pa.int32(), kind))
            yield f"dictionary to {name}", by_kind
    other = pa.DictionaryArray.from_arrays(
        pa.array([1, 0, None, 2], pa.int32()), pa.array(["pink", "red", None, "unused"])
    )
    yield "dictionary with a null", other
    yield "dictionaries that differ", pa.chunked_array([texts[1:], other, texts[:2], other[1:]])
    sliced = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["-", *values])[1:])
    yield "dictionary that is sliced", sliced
    yield "nulls", pa.nulls(3, pa.string())
    yield "dictionary of nulls", pa.nulls(3, texts.type)
    yield "null", pa.nulls(3)
    yield "integers", pa.array([5, 1, None, 7])
    yield "booleans", pa.array([True, None, False])
    yield "floats", pa.array([0.5, None, np.nan])
    yield "dictionary of integers", pa.array([5, None, 7]).dictionary_encode()
    offsets = np.array([0, 3, 8], np.int32).tobytes()
    unaligned = pa.py_buffer(b"-" + offsets)[1:]
    yield "unaligned", pa.StringArray.from_buffers(2, unaligned, pa.py_buffer(b"redgreen"))


def columns_of(values):
    for name, column in arrow_columns(values):
        yield f"arrow {name}", column
        dtype = pd.ArrowDtype(column.type)
        yield f"pandas arrow {name}", pd.Series(pd.array(column.to_pylist(), dtype))
    filled = [value for value in values if value is not None]
    distinct = list(dict.fromkeys(filled))
    for dtype in ("str", "string[pyarrow]", "string[python]", object):
        yield f"pandas {dtype}", pd.Series(values, dtype=dtype)
        yield f"pandas {dtype} backwards", pd.Series(values, dtype=dtype)[::-2]
        categories = pd.Index(distinct, dtype=dtype)
        yield f"pandas categories of {dtype}", pd.Series(pd.Categorical(values, categories))
    yield "pandas no value", pd.Series([*values, pd.NA, np.nan], dtype=object)
    yield "pandas category", pd.Series(pd.Categorical(values))
    ordered = pd.Categorical(values, ["unused", *distinct[::-1]], ordered=True)
    yield "pandas ordered", pd.Series(ordered)
    yield "pandas category backwards", pd.Series(ordered)[::-2]
    few = [value if value == "red" else None for value in values]
    yield "pandas few categories", pd.Series(pd.Categorical(few, ["red"]))
    yield "pandas unused categories", pd.Series(pd.Categorical(["red"] * 3, ["red", "unused"]))
    many = pd.Categorical(["red", "39", "299"], ["red", *map(str, range(300))])
    yield "pandas many categories", pd.Series(many)
    for numbers in ([5, 7, 5], [0.5, 5.0, 1.0], [True, False, True], pd.to_datetime(["2020"] * 3)):
        yield f"pandas categories {numbers[0]!r}", pd.Series(pd.Categorical(numbers))
    for numbers in (pd.array([5, None, 7], "Int64"), [5, 6, 1], [0.5, np.nan, 7.0], [True, False]):
        yield f"pandas numbers {numbers}", pd.Series(numbers)
    yield "pandas mixed", pd.Series(["red", 5, 0.5, None, True, 7], dtype=object)
    for dtype in (pl.String, pl.Categorical, pl.Enum([*distinct, "unused"])):
        series = pl.Series(values, dtype=dtype)
        name = f"polars {str(dtype)[:11]}"
        yield name, series
        yield f"{name} sliced", series[2:]
        yield f"{name} in chunks", pl.concat([series[:2], series[5:], series], rechunk=False)
        yield f"{name} nulls", pl.Series([None] * 3, dtype=dtype)
    yield "polars numbers", pl.Series([5, None, 7])
    yield "polars booleans", pl.Series([True, None, False])
    yield "polars null", pl.Series([None] * 3, dtype=pl.Null)


ALL = {
    **{f"unseen: {name}": column for name, column in columns_of(TEXTS)},
    **{f"seen: {name}": column for name, column in columns_of(SEEN)},
}


@schemas
@pytest.mark.parametrize("column", ALL.values(), ids=ALL.keys())
def test_categories_in_every_form(column, schema):
    frame = frame_of(column)
    for some in (frame, frame[1:], frame[:0], frame[:1]):
        check_paths(some, schema)


@schemas
@pytest.mark.parametrize("texts", [TEXTS, SEEN], ids=["unseen", "seen"])
def test_many_rows_in_chunks(texts, schema):
    """More rows than are looked up one by one, and than a block has."""
    values = np.random.default_rng(0).choice(np.array(texts, object), 20000).tolist()
    if schema in (SCHEMAS["no nulls"], SCHEMAS["hashes"], SCHEMAS["must have"]):
        values = [text or "red" for text in values]
    array = pa.array(values)
    encoded = array.dictionary_encode()
    chunks = pa.chunked_array([encoded[:7000], encoded[7000:7001], encoded[7001:]])
    series = pl.Series(values)
    columns = [array, chunks, pl.concat([series[:9999], series[9999:]], rechunk=False),
               series.cast(pl.Categorical), pd.Series(values, dtype="str"),
               pd.Series(pd.Categorical(values))]  # fmt: skip
    answers = [check_paths(frame_of(column), schema, threads=3) for column in columns]
    if None not in schema.categories.get(1, ()):
        assert isinstance(answers[0], str) or all(found == answers[0] for found in answers)


@settings(max_examples=150, deadline=None)
@given(
    values=st.lists(st.one_of(st.none(), st.text(max_size=20), st.sampled_from(TEXTS)), max_size=9),
    cut=st.integers(0, 9),
    name=st.sampled_from(sorted(SCHEMAS)),
)
def test_any_text(values, cut, name):
    array = pa.array(values, pa.string())
    series = pl.Series(values, dtype=pl.String)
    chunks = pa.chunked_array([array[:cut], array[cut:]], pa.string())
    columns = [chunks, chunks.cast(pa.string_view()), chunks.dictionary_encode(),
               pl.concat([series[:cut], series[cut:]], rechunk=False), series.cast(pl.Categorical),
               pd.Series(values, dtype="str"), pd.Series(pd.Categorical(values))]  # fmt: skip
    for column in columns:
        check_paths(frame_of(column), SCHEMAS[name])


def objects_of(kind, texts, last, n=700):
    """A column of objects, (n,), that ends with `last`: one object for each text, or one for each cell."""
    values = np.random.default_rng(1).choice(np.array(texts, object), n)
    if kind == "own":
        values = [x if x is None else x.encode().decode() for x in values]
    return pd.Series([*values, last], dtype=object)


@schemas
@pytest.mark.parametrize(
    "last", [None, np.nan, "red", "pink", "gr\u00fcn", "\ud800", 7, b"red"], ids=repr
)
@pytest.mark.parametrize("kind", ["shared", "own"])
def test_objects(schema, kind, last):
    """The last value decides: what is no text is found wherever it is, on any number of threads."""
    check_paths(frame_of(objects_of(kind, ["red", "", "grün", "日本", "a\0b", LONG], last)), schema)
    check_paths(frame_of(objects_of(kind, ["red", "a", LONG], last)), schema, threads=2)


def test_objects_are_not_kept():
    texts = ["red", "a\u1234", LONG]
    frame = frame_of(objects_of("shared", texts, None))
    fast = decider(SCHEMAS["missing"])
    fast.decide(frame)
    before = [sys.getrefcount(text) for text in texts], sys.getsizeof(texts[1])
    for _ in range(5):
        fast.decide(frame)
    assert ([sys.getrefcount(text) for text in texts], sys.getsizeof(texts[1])) == before
