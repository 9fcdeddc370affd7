"""Categorical columns of Polars with many rows, which are read as positions in their categories."""

from __future__ import annotations

import gc
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from matrices import check
from qwyc.errors import InputError
from qwyc.rows import polars_categories
from qwyc.rows.matrix import to_matrix
from qwyc.rows.schema import Schema
from qwyc.rows.tables import FrameReader, reader_of

N = 5_000
TOWNS = ["Bern", "Basel", "a town whose name is longer than most", "Zug"]
CITY = Schema(
    2, names=("x", "city"), dtype="float64", categories={1: tuple(TOWNS)}, unseen="missing"
)


def rows(texts, seed=0):
    random = np.random.default_rng(seed)
    return [texts[i] for i in random.integers(0, len(texts), N)]


def frame(values, categories=None):
    dtype = pl.Categorical if categories is None else pl.Categorical(categories)
    return pl.DataFrame({"x": np.arange(float(N)), "city": pl.Series(values, dtype=dtype)})


def codes(values, known=TOWNS, unseen=np.nan):
    place = {text: float(i) for i, text in enumerate(known)} | {None: np.nan}
    return np.column_stack([np.arange(float(N)), [place.get(v, unseen) for v in values]])


def is_read_as_positions(X, schema):
    reader = reader_of(schema)
    features, texts, _ = reader._texts.arrow_features(True)
    return bool(reader._polars.with_positions(X, features, texts)[1])


needs_lists = pytest.mark.skipif(
    not hasattr(getattr(pl, "Categories", None), "to_series"), reason="an older Polars"
)


@pytest.mark.parametrize("unseen", ["missing", "invalid", "error"])
def test_positions_give_the_codes_of_text(unseen):
    schema = replace(CITY, unseen=unseen)
    values = rows([*TOWNS, None])
    np.testing.assert_array_equal(to_matrix(frame(values), schema), codes(values))


@needs_lists
def test_they_are_read_for_many_rows_only():
    values = rows(TOWNS)
    schema = replace(CITY)
    assert is_read_as_positions(frame(values), schema)
    assert not is_read_as_positions(frame(values)[:100], schema)
    assert not is_read_as_positions(frame(values).cast({"city": pl.String}), schema)
    numbers = replace(CITY, categories={})
    with pytest.raises(InputError, match="city"):
        to_matrix(frame(values), numbers)


def test_unknown_categories_are_treated_as_text_is():
    values = [*rows(TOWNS)[:-1], "Genf"]
    np.testing.assert_array_equal(to_matrix(frame(values), replace(CITY)), codes(values))
    refusing = replace(CITY, unseen="error")
    with pytest.raises(InputError, match=f"row {N - 1:,}.*Genf"):
        to_matrix(frame(values), refusing)
    known = rows(TOWNS, seed=1)  # Polars' list of categories still has the unknown one
    np.testing.assert_array_equal(to_matrix(frame(known), refusing), codes(known))


def test_categories_that_are_added_later_are_found():
    schema = replace(CITY)
    few = rows(TOWNS[:2])
    np.testing.assert_array_equal(to_matrix(frame(few), schema), codes(few))
    more = rows([*TOWNS, "a new one", "Thun"])
    np.testing.assert_array_equal(to_matrix(frame(more), schema), codes(more))


@needs_lists
@pytest.mark.parametrize("physical", [pl.UInt8, pl.UInt16, pl.UInt32])
def test_lists_of_all_widths_with_the_same_text_in_another_order(physical):
    schema = replace(CITY, unseen="error")
    for order in (TOWNS, TOWNS[::-1]):
        own = pl.Categories.random(physical=physical)
        pl.Series(order, dtype=pl.Categorical(own))  # in this order
        values = rows([*TOWNS, None])
        X = frame(values, own)
        assert is_read_as_positions(X, schema)
        np.testing.assert_array_equal(to_matrix(X, schema), codes(values))
        parts = pl.concat([X[:2_000], X[2_000:]], rechunk=False)
        np.testing.assert_array_equal(to_matrix(parts, schema), codes(values))


@pytest.mark.parametrize("name", [None, "towns"])
def test_a_list_that_was_forgotten_and_made_again_in_another_order(name):
    if name and not hasattr(pl, "Categories"):
        pytest.skip("an older Polars")
    schema = replace(CITY, unseen="error")
    for order in (TOWNS, TOWNS[::-1], TOWNS[1:] + TOWNS[:1]):
        values = [*order, *rows(TOWNS)][:N]
        X = frame(values, pl.Categories(name) if name else None)
        np.testing.assert_array_equal(to_matrix(X, schema), codes(values))
        del X
        gc.collect()


@needs_lists
def test_a_list_that_grows_while_another_call_makes_codes_of_it(monkeypatch):
    schema, towns = replace(CITY), pl.Categories("growing")
    few = frame(rows(TOWNS[:2]), towns)
    make, inner = polars_categories._native.PositionCodes, []

    def make_while_another_call_runs(texts, stream):
        made = make(texts, stream)
        if not inner:
            inner.append(None)
            inner[0] = to_matrix(frame(rows(TOWNS), towns), schema)
        return made

    monkeypatch.setattr(
        polars_categories, "_native", SimpleNamespace(PositionCodes=make_while_another_call_runs)
    )
    np.testing.assert_array_equal(to_matrix(few, schema), codes(rows(TOWNS[:2])))
    np.testing.assert_array_equal(inner[0], codes(rows(TOWNS)))
    np.testing.assert_array_equal(to_matrix(frame(rows(TOWNS), towns), schema), codes(rows(TOWNS)))


@needs_lists
def test_long_lists_are_exported(monkeypatch):
    monkeypatch.setattr(polars_categories, "_MOST_CATEGORIES", 3)
    values, own = rows(TOWNS), pl.Categories.random()
    X, schema = frame(values, own), replace(CITY)
    assert not is_read_as_positions(X, schema)
    np.testing.assert_array_equal(to_matrix(X, schema), codes(values))


def test_new_codes_of_a_model_that_hashes_text_are_used():
    reader = FrameReader(replace(CITY))
    values = rows(TOWNS)
    X = frame(values)
    for _ in range(2):
        np.testing.assert_array_equal(reader.matrix(X, c_order=True), codes(values))
        reader._texts.forget()  # as when texts are learned


@pytest.mark.parametrize("n_unknown", [1, 20, 200])
def test_unknown_entries_of_a_dictionary_do_no_harm_where_they_do_not_occur(n_unknown):
    schema = replace(CITY, unseen="error")
    entries = [*[f"unknown {i}" for i in range(n_unknown)], *TOWNS]
    values = rows(TOWNS)
    indices = pa.array([entries.index(value) for value in values], pa.int32())
    column = pa.DictionaryArray.from_arrays(indices, pa.array(entries))
    X = pa.table({"x": np.arange(float(N)), "city": column})
    check(X, schema, codes(values))
    np.testing.assert_array_equal(reader_of(schema).matrix(X, c_order=True), codes(values))
