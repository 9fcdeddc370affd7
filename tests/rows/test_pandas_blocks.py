"""Columns of pandas frames that native code takes from their blocks: text, objects and categories."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from qwyc import _native
from qwyc.rows import pandas_blocks, tables
from qwyc.rows.schema import Schema
from table_paths import check_paths

SCHEMA = Schema(
    n_features=4,
    names=("a", "b", "c", "d"),
    dtype="float32",
    categories={1: ("red", "green", "blue"), 3: ("x", "y")},
    unseen="invalid",
)
KINDS = ["str", "object", "string[python]", "string[pyarrow]", "category"]


def frame(kind, n=20, seed=0):
    rng = np.random.default_rng(seed)
    columns = {
        "d": pd.Series(rng.choice(np.array(["x", "y", None], object), n)).astype(kind),
        "b": pd.Series(rng.choice(np.array(["red", "green", "pink"], object), n)).astype(kind),
        "other": pd.Series(["text"] * n, dtype=object),
        "c": rng.integers(0, 9, n),
        "a": rng.normal(size=n),
    }
    return pd.DataFrame(columns)


def left_to_python(reader, X):
    """The positions of the columns that native code does not take from the blocks."""
    positions, _ = reader._match(X.columns)
    taken = reader._taken_columns(positions, X.shape[1], reader._texts.codes(False))
    table = _native.Table(len(X), reader._shape)
    return [at for at, _ in pandas_blocks.add_blocks(table, X, taken.columns)]


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_a_known_kind_are_taken_from_the_blocks(kind):
    reader, X = tables.FrameReader(replace(SCHEMA)), frame(kind)
    first = reader.matrix(X, c_order=True)
    expected = [0, 1] if kind == "string[python]" else []  # its values are those of Python
    assert left_to_python(reader, X) == expected
    np.testing.assert_array_equal(reader.matrix(X, c_order=True), first)
    for seed in range(3):
        check_paths(frame(kind, seed=seed), SCHEMA)


def test_categories_are_looked_at_again_where_they_are_others():
    reader = tables.FrameReader(replace(SCHEMA))
    values = [["red", "blue", "red"], ["blue", "red", "red"]]
    codes = {"red": 0.0, "blue": 2.0}
    frames = [
        pd.DataFrame({"a": 0.0, "b": pd.Categorical(v, v[:2]), "c": 1, "d": ["x", "y", "x"]})
        for v in values
    ]
    for X, v in [*zip(frames, values, strict=True)] * 2:
        assert left_to_python(reader, X)[:1] == [1]  # those of the frame before
        np.testing.assert_array_equal(
            reader.matrix(X, c_order=True)[:, 1], [codes[value] for value in v]
        )
        assert left_to_python(reader, X) == []


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_that_turn_out_not_to_be_as_expected(kind, monkeypatch):
    """What was taken from the blocks before that is taken once."""
    reader, X = tables.FrameReader(replace(SCHEMA)), frame(kind, 300)
    expected = reader.matrix(X, c_order=True)
    add_blocks, calls = tables.add_blocks, []

    def then_refuse(*given):
        calls.append(add_blocks(*given))

    monkeypatch.setattr(tables, "add_blocks", then_refuse)
    np.testing.assert_array_equal(reader.matrix(X, c_order=True), expected)
    assert len(calls) == 1
    assert calls[0] is not None


@pytest.mark.parametrize("values", [["red", 3], ["red", b"red"], ["red", object()]])
@pytest.mark.parametrize("n", [1, 500])
def test_objects_that_are_no_text_are_left_to_python(values, n):
    schema = replace(SCHEMA)
    X = frame("object", 2 * n)
    X["b"] = np.array(values * n, object)
    reader = tables.FrameReader(schema)
    assert left_to_python(reader, X) == [1]
    check_paths(X, schema)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"features": [0], "numbers": [], "objects": [False], "arrow": [False], "texts": [None]},
            "one entry",
        ),
        (
            {
                "features": [0],
                "numbers": [True],
                "objects": [True],
                "arrow": [True],
                "texts": [None],
            },
            "codes",
        ),
    ],
)
def test_columns_that_are_not_sound_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        _native.TakenColumns(**given, arrow_types=set())


def test_features_that_a_table_does_not_have_are_refused():
    reader = tables.FrameReader(replace(SCHEMA))
    taken = _native.TakenColumns([7], [True], [False], [False], [None], set())
    table = _native.Table(2, reader._shape)
    with pytest.raises(ValueError, match="no such feature"):
        table.add_blocks(pd.DataFrame({"a": [1.0, 2.0]})._mgr.blocks, taken)
    columns = _native.ArrowColumns([7], [None])
    import pyarrow as pa

    with pytest.raises(ValueError, match="no such feature"):
        table.add_arrow(pa.table({"a": [1.0, 2.0]}).__arrow_c_stream__(), columns, one=False)


def test_frames_with_labels_of_their_own_are_matched_by_text():
    reader = tables.FrameReader(replace(SCHEMA))
    first = reader._match(frame("str").columns)
    for kind in KINDS:
        assert reader._match(frame(kind).columns)[0] is first[0]
        assert reader._match(list(frame(kind).columns))[0] == first[0]
    moved = frame("str")[["a", "b", "c", "d"]]
    assert reader._match(moved.columns) == ([0, 1, 2, 3], True)
    assert reader._match(frame("str").columns) == first
    numbers = tables.FrameReader(replace(SCHEMA, names=("1", "True", "1.0", "x")))
    assert numbers._match(pd.Index([1, True, 1.0, "x"], dtype=object)) == ([0, 1, 2, 3], True)
    assert numbers._match(pd.Index([1.0, True, 1, "x"], dtype=object))[0] == [2, 1, 0, 3]
