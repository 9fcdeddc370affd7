"""Columns that must have values, and rows whose columns are found by name only."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import qwyc
from forests import classifier_of, random_ensemble, random_rows, with_inputs
from matrices import F32, NAMED
from qwyc.files import parts
from qwyc.rows.matrix import to_matrix
from qwyc.rows.schema import Schema

STRICT = replace(NAMED, must_have=(0, 2))
BY_NAME = replace(NAMED, by_name=True)
COLUMNS = {"a": [1.0, 2.0], "b": [None, 3.0], "c": [4.0, 5.0]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_may_miss_what_is_not_needed(make):
    np.testing.assert_array_equal(to_matrix(make(COLUMNS), STRICT), [[1, np.nan, 4], [2, 3, 5]])
    wrong = make(COLUMNS | {"c": [4.0, None]})
    with pytest.raises(
        qwyc.InputError, match="a missing value in row 1 of column 'c', for which"
    ) as e:
        to_matrix(wrong, STRICT)
    assert (e.value.row, e.value.column) == (1, "c")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arrays_and_lists_too(dtype):
    strict = replace(F32, must_have=(1,))
    rows = np.array([[np.nan, 1, np.inf], [2, -np.inf, np.nan]], dtype)
    np.testing.assert_array_equal(to_matrix(rows, strict), rows)
    np.testing.assert_array_equal(to_matrix(rows.tolist(), strict), rows)
    rows[1, 1] = np.nan
    for given in (rows, rows.tolist(), np.asfortranarray(rows)):
        with pytest.raises(qwyc.InputError, match=r"row 1 of column 1.*missing_output"):
            to_matrix(given, strict)


def test_one_row_of_trees_is_checked_as_well():
    ensemble = with_inputs(random_ensemble(1, dtype="float64"), must_have=(1,))
    rows = np.nan_to_num(random_rows(1, ensemble))
    fast = classifier_of(ensemble, qwyc.fit_policy(ensemble.scores(rows), alpha=0.1))
    assert [fast.predict_one(row) for row in rows] == fast.predict(rows).tolist()
    allowed = rows[0].copy()
    allowed[0] = np.nan
    assert fast.predict_one(allowed) == fast.predict(allowed[None])[0]
    refused = rows[0].copy()
    refused[1] = np.nan
    for row in (refused, refused.tolist(), tuple(refused.tolist())):
        with pytest.raises(qwyc.InputError, match="row 0 of column 1"):
            fast.predict_one(row)


def test_rows_without_names_are_refused():
    frame = pd.DataFrame({"c": [3.0], "a": [1.0], "b": [2.0]})
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        np.testing.assert_array_equal(to_matrix(table, BY_NAME), [[1, 2, 3]])
    for given in (frame.to_numpy(), [[1, 2, 3]], ((1, 2, 3),), memoryview(np.ones((1, 3)))):
        with pytest.raises(qwyc.InputError, match="with the columns 'a', 'b', 'c'"):
            to_matrix(given, BY_NAME)
    with pytest.raises(qwyc.InputError, match="no column 'c'"):
        to_matrix(frame[["a", "b"]], BY_NAME)
    assert not BY_NAME.takes_plain_rows


def test_digests_and_files_of_other_models_are_as_before():
    facts, saved = F32.digest_facts(), parts.schema_facts(F32)
    assert not {"must_have", "by_name"} & ({*facts} | {*saved})
    assert parts.read_schema(saved).must_have == ()
    for changed in (replace(F32, must_have=(1,)), replace(NAMED, by_name=True)):
        again = parts.read_schema(parts.schema_facts(changed))
        assert str(again.digest_facts()) == str(changed.digest_facts()) != str(facts)
        assert (again.must_have, again.by_name) == (changed.must_have, changed.by_name)


def test_what_a_schema_takes():
    assert F32.takes_any_numbers
    assert not F32.finite_only
    for changes in ({"must_have": (0,)}, {"accepts_missing": False}, {"accepts_infinity": False}):
        schema = Schema(n_features=3, names=None, dtype="float32", **changes)
        assert schema.finite_only
        assert schema.takes_plain_rows
        assert not schema.takes_any_numbers
