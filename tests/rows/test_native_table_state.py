"""What readers of frames keep between calls: it is shared by threads, freed in time and not pickled."""

from __future__ import annotations

import copy
import functools
import gc
import operator
import pickle
import threading
import weakref
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from qwyc.errors import InputError
from qwyc.rows import categories, pandas_blocks, tables, text_codes
from qwyc.rows.categories import category_hash
from qwyc.rows.schema import Schema
from table_paths import answer, check_paths, converted, decider

SHOWN = Schema(
    n_features=3,
    names=("a", "b", "c"),
    dtype="float32",
    categories={1: ("red", "green", "blue")},
    unseen="invalid",
)


def frames(seed, n=300):
    """The same rows in frames of several kinds, with the columns in several orders."""
    rng = np.random.default_rng(seed)
    colours = rng.choice(np.array(["red", "green", "blue", "pink", None], object), n)
    whole = pd.DataFrame({"a": rng.normal(size=n), "b": colours, "c": rng.integers(-3, 9, n)})
    table = pa.table({"c": whole["c"], "b": colours.tolist(), "a": whole["a"]})
    categories = ["pink", "blue", "red", "green"][seed % 3 :]
    few = [colour if colour in categories else None for colour in colours]
    return [
        whole,
        whole.assign(b=pd.Categorical(few, categories)),
        whole[["c", "b", "a"]].astype({"b": "str"}),
        whole.assign(extra=pd.Timestamp(0)),
        table,
        pa.concat_tables([table[: n // 3], table[n // 3 :]]),
        pl.from_arrow(table),
        pl.from_arrow(table).with_columns(pl.col("b").cast(pl.Categorical)).select("b", "a", "c"),
    ]


def decided(classifier, frame):
    found = classifier.decide(frame, threads=1)
    return answer(lambda: (found.label, found.steps, found.score))


def test_threads_that_decide_different_frames_at_once():
    fast = decider(replace(SHOWN))
    many = [frame for seed in range(4) for frame in frames(seed)]
    expected = [
        answer(lambda X=X: fast.runner.decide(converted(X, SHOWN), threads=1)) for X in many
    ]
    wrong: list[object] = []
    start = threading.Barrier(6)

    def work(k):
        order = np.random.default_rng(k).permutation(len(many)).tolist()
        start.wait()
        try:
            for i in order * 5:
                if decided(fast, many[i]) != expected[i]:
                    wrong.append(i)
        except Exception as error:  # a thread would lose it
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_more_indexes_of_categories_than_are_kept():
    schema = replace(SHOWN)
    fast = decider(schema)
    for k in range(2 * tables._MOST_KEPT):
        column = pd.Categorical(["red", None, "blue"], ["blue", f"other {k}", "red"])
        frame = pd.DataFrame({"a": [0.5, 1, 2], "b": column, "c": [1, 2, 3]})
        expected = answer(lambda X=frame: fast.runner.decide(converted(X, SHOWN), threads=1))
        assert decided(fast, frame) == expected
        assert len(tables.reader_of(schema)._code_lists) <= tables._MOST_KEPT


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_do_not_take_along_what_was_kept(again):
    schema = replace(SHOWN)
    fast = decider(schema)
    expected = [decided(fast, frame) for frame in frames(0)]
    assert schema.kept
    assert "kept" not in again(schema).__dict__
    assert repr(again(schema)) == repr(schema)
    other = again(fast.ensemble)
    assert "_unused_features" not in other.__dict__
    if again is not copy.copy:  # a shallow copy has the same schema
        assert "kept" not in other.schema.__dict__
    found = [decided(replace(fast, ensemble=other), frame) for frame in frames(0)]
    assert found == expected


def test_what_was_kept_is_freed_at_once():
    """Services turn the collector off; what replaces a classifier must not add up."""
    schema = replace(SHOWN)
    fast = decider(schema)
    index = pd.Index(["red", "blue"])
    for frame in [*frames(0), frames(0)[0].assign(b=pd.Categorical(["red"] * 300, index))]:
        fast.decide(frame)
        fast.score_full(frame)
    del frame
    gone = [weakref.ref(schema), weakref.ref(tables.reader_of(schema)), weakref.ref(index)]
    gc.collect()
    gc.disable()
    try:
        del fast, schema, index
        assert [ref() for ref in gone] == [None] * 3
    finally:
        gc.enable()


def test_results_and_tables_outlive_the_frames():
    reader = tables.FrameReader(replace(SHOWN))
    for k in range(8):
        frame = frames(1, n=50_000)[k]
        expected = converted(frame, SHOWN)
        table = reader.table(frame, tables.frame_library(frame))
        fast = decider(replace(SHOWN))
        found, same = fast.decide(frame), fast.decide(expected)
        del frame
        gc.collect()
        pl.DataFrame({"x": np.arange(200_000.0)})  # memory that was freed may be used again
        assert found.score.tobytes() == same.score.tobytes()
        assert table is not None
        np.testing.assert_array_equal(table.matrix32(2).T, expected)


def test_pandas_without_its_private_blocks(monkeypatch):
    expected = [check_paths(frame, SHOWN) for frame in frames(2)]
    monkeypatch.setattr(pandas_blocks, "_from_blocks", lambda frame: None)
    assert [check_paths(frame, SHOWN) for frame in frames(2)] == expected


def test_blocks_that_are_not_as_expected():
    class Manager:
        def __init__(self, blocks):
            self.blocks = blocks

    class Frame:
        shape = (2, 1)

        def __init__(self, *blocks):
            self._mgr = Manager(blocks)

    class Block:
        def __init__(self, values, places):
            self.values = values
            self.mgr_locs = type("Places", (), {"as_array": np.array(places)})

    good = pandas_blocks._from_blocks(Frame(Block(np.ones((1, 2)), [0])))
    np.testing.assert_array_equal(good, np.ones((1, 2)))
    for frame in (
        Frame(),  # a column is in no block
        Frame(Block(np.ones((1, 3)), [0])),  # too many rows
        Frame(Block(np.ones((1, 2), "M8[s]"), [0])),  # a type that blocks do not have
        Frame(object()),  # another block
        Frame(Block([1, 2], [0])),  # no array
        type("Frame", (), {"shape": (2, 1)})(),  # no manager
    ):
        assert pandas_blocks._from_blocks(frame) is None


# ---- texts whose hashes are the model's categories ------------------------------------------


HASHED = Schema(
    n_features=3,
    names=("a", "b", "c"),
    dtype="float32",
    categories={1: tuple(category_hash(text) for text in ("red", "green", "blue", "blau"))},
    unseen="invalid",
    hashed=True,
)


def hashed_frames(texts):
    n = len(texts)
    whole = pd.DataFrame({"a": np.arange(n) % 7 - 3.0, "b": texts, "c": np.arange(n) % 3})
    table = pa.table({name: whole[name].tolist() for name in whole})
    coded = table.set_column(1, "b", table["b"].dictionary_encode())
    return [
        whole.astype({"b": object}),
        whole.astype({"b": "str"}),
        whole.astype({"b": "category"}),
        table,
        coded,
        pa.concat_tables([coded, coded]),  # chunks that share a dictionary
        pa.concat_tables(
            [coded, coded[:2], table.set_column(1, "b", table[::-1]["b"].dictionary_encode())]
        )
        if n > 2
        else coded,
        pl.from_arrow(table),
        pl.from_arrow(coded),
    ]


def test_hashed_texts_are_learned_and_later_read_natively(monkeypatch):
    schema = replace(HASHED)
    fast = decider(schema)
    rounds = [
        ["red", "blau"],
        ["red", "pink", "green", "blau"],
        ["", "blue", "long text " * 9, "red"],
    ]
    for texts in rounds:
        for frame in hashed_frames(texts):
            expected = fast.decide(converted(frame, schema))
            for _ in range(2):
                assert fast.decide(frame).score.tobytes() == expected.score.tobytes()
    hashes = []
    monkeypatch.setattr(categories, "city_hash_64", lambda text: hashes.append(text) or 0)
    for frame in hashed_frames(functools.reduce(operator.iadd, rounds, [])):
        frame = frame.sort_values("a") if isinstance(frame, pd.DataFrame) else frame
        if not (isinstance(frame, pd.DataFrame) and frame["b"].dtype == "category"):
            fast.decide(frame)
    assert hashes == []


@pytest.mark.parametrize("most", [0, 2])
def test_too_many_hashed_texts_are_converted_each_time(monkeypatch, most):
    monkeypatch.setattr(text_codes, "_MOST_TEXTS", most)
    schema = replace(HASHED)
    fast = decider(schema)
    for texts in (["red"], ["red", "blue"], ["green", "red", "x"], ["red", "y"]):
        for frame in hashed_frames(texts):
            expected = fast.decide(converted(frame, schema))
            assert fast.decide(frame).score.tobytes() == expected.score.tobytes()


@pytest.mark.parametrize("wrong", [None, 1.5])
def test_values_that_catboost_refuses_are_named_after_learning(wrong):
    schema = replace(HASHED)
    fast = decider(schema)
    texts = np.array(["red", wrong], object)
    good, bad = (
        pd.DataFrame({"a": [1.0, 2], "b": b, "c": [0, 1]}) for b in (["red", "red"], texts)
    )
    bad = bad.astype({"b": object})
    for _ in range(3):
        fast.decide(good.astype({"b": object}))
        with pytest.raises(InputError, match="CatBoost takes integers and text for categories"):
            fast.decide(bad)
        with pytest.raises(InputError, match="CatBoost takes integers and text for categories"):
            fast.decide(pl.DataFrame({"a": [1.0, 2], "b": ["red", None], "c": [0, 1]}))


def test_threads_that_learn_hashed_texts_at_once():
    schema = replace(HASHED)
    fast = decider(schema)
    many = [frame for k in range(12) for frame in hashed_frames(["red", f"text {k}", "blue"])]
    expected = [fast.runner.decide(converted(X, schema), threads=1)[2].tobytes() for X in many]
    found = [[] for _ in range(4)]

    def work(mine):
        for X in many:
            mine.append(fast.decide(X, threads=1).score.tobytes())

    threads = [threading.Thread(target=work, args=(mine,)) for mine in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(mine == expected for mine in found)
