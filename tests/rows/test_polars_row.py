"""Polars frames of one row, whose values are taken as Python has them."""

from __future__ import annotations

import datetime
import decimal
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from qwyc import _native
from qwyc.errors import InputError
from qwyc.rows.matrix import to_matrix
from qwyc.rows.schema import Schema
from qwyc.rows.tables import reader_of

TOWNS = ("Bern", "Zürich", "", "a town whose name is longer than most")
CITY = Schema(2, names=("x", "city"), dtype="float64", categories={1: TOWNS}, unseen="missing")
WHOLE = 2**53 + 2
NUMBERS = [
    pl.Series([0.1, -0.0, np.inf, np.nan, None, -1.0]),
    pl.Series([0.1, 1e30, -1.0], dtype=pl.Float32),
    pl.Series([1, -1, None, 2**53, 2**53 + 1, -(2**63), 2**63 - 1]),
    pl.Series([1, 2**63, 2**64 - 1, WHOLE], dtype=pl.UInt64),
    pl.Series([-128, 127, -1], dtype=pl.Int8),
    pl.Series([2**32 - 1, 0], dtype=pl.UInt32),
    pl.Series([True, False, None]),
    pl.Series([None, None], dtype=pl.Null),
    pl.Series([decimal.Decimal("1.5"), None], dtype=pl.Decimal(10, 2)),
    pl.Series([datetime.date(2020, 1, 1), None]),
    pl.Series(["1", "two"]),
    pl.Series([1, "two"], dtype=pl.Object),
]
CITIES = [
    pl.Series([*TOWNS, "Basel", "Ber", None]),
    pl.Series([*TOWNS, "Basel", None], dtype=pl.Categorical),
    pl.Series([*TOWNS, None], dtype=pl.Enum(TOWNS)),
    pl.Series(["Bern", 1], dtype=pl.Object),
    pl.Series([1, 2]),
    pl.Series([b"Bern"]),
]
SCHEMAS = [
    CITY,
    replace(CITY, dtype="float32"),
    replace(CITY, unseen="error"),
    replace(CITY, unseen="invalid", missing=-1.0),
    replace(CITY, accepts_missing=False, accepts_infinity=False),
    replace(CITY, integers="checked"),
    replace(CITY, categories={1: (*TOWNS, None)}),
]


def found(X, schema):
    """The matrix of a frame, or the error; rows are named in both."""
    try:
        return to_matrix(X, schema).tolist()
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("column", [*range(len(NUMBERS) + len(CITIES))])
def test_one_row_is_read_as_two_are(schema, column):
    is_number = column < len(NUMBERS)
    values = NUMBERS[column] if is_number else CITIES[column - len(NUMBERS)]
    for i in range(len(values)):
        one = values[i : i + 1].alias("x" if is_number else "city")
        other = pl.Series("city", ["Bern"]) if is_number else pl.Series("x", [1.5])
        X = pl.DataFrame([one, other] if is_number else [other, one])
        for frame in (X, X[:, ::-1], X.with_columns(more=pl.lit("?"))):
            alone = found(frame, replace(schema))
            twice = found(pl.concat([frame, frame]), replace(schema))
            if isinstance(twice, str):
                assert alone == twice
            else:
                np.testing.assert_array_equal(alone, twice[:1])


def test_values_of_a_row_are_taken_without_an_export(monkeypatch):
    reader = reader_of(replace(CITY))
    X = pl.DataFrame({"x": [1.5], "city": pl.Series(["Zürich"], dtype=pl.Categorical)})
    table = _native.Table(1, reader._shape)
    columns = reader._texts.arrow_features(True).columns
    assert table.add_row(X.row(0), columns)
    assert table.matrix64(1).tolist() == [[1.5], [1.0]]
    for values in [(None, "Bern"), (True, "Bern"), (1.5, None), (1.5, "\ud800"), (2**63, "Bern")]:
        assert not _native.Table(1, reader._shape).add_row(values, columns)
    for n, values in [(2, (1.5, "Bern")), (1, (1.5,)), (1, (1.5, "Bern", 2.0))]:
        with pytest.raises(ValueError, match="one value per feature"):
            _native.Table(n, reader._shape).add_row(values, columns)
