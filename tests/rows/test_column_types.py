"""Columns of decimal numbers, and what is said of columns that hold neither numbers nor categories."""

from __future__ import annotations

import datetime
import random
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from matrices import check
from qwyc.errors import RowsError
from qwyc.rows.matrix import to_matrix
from qwyc.rows.named_row import NamedRow
from qwyc.rows.odd_rows import take_rows
from qwyc.rows.schema import Schema

ONE = Schema(n_features=1, names=("a",), dtype="float64")
DECIMALS = {
    "decimal32": (pa.decimal32(9, 3), 9, 3),
    "decimal64": (pa.decimal64(18, 5), 18, 5),
    "decimal128": (pa.decimal128(38, 10), 38, 10),
    "decimal256": (pa.decimal256(76, 20), 70, 20),
}
decimals = pytest.mark.parametrize("kind", DECIMALS)
DAY = datetime.date(2024, 5, 31)


def frames_of(array):
    yield pa.table({"a": array})
    yield pd.DataFrame({"a": pd.Series(array, dtype=pd.ArrowDtype(array.type))})
    if str(array.type).startswith("decimal128"):
        yield pl.DataFrame({"a": pl.from_arrow(array)})


@decimals
def test_decimal_numbers_become_the_nearest_float(kind):
    arrow_type, digits, scale = DECIMALS[kind]
    rng = random.Random(1)
    numbers = [rng.randint(-(10 ** rng.randint(1, digits)), 10**digits) for _ in range(500)]
    values = [Decimal((int(n < 0), Decimal(abs(n)).as_tuple().digits, -scale)) for n in numbers]
    for X in frames_of(pa.array([*values, None], arrow_type)):
        check(X, ONE, [[float(value)] for value in values] + [[np.nan]])
        assert take_rows(X, replace(ONE), "flag").reason.tolist() == [None] * 501


@decimals
def test_decimal_numbers_may_be_categories(kind):
    array = pa.array([Decimal("2"), None, Decimal("1.5")], DECIMALS[kind][0])
    for X in frames_of(array):
        check(X, replace(ONE, categories={0: (1, 2, 1.5)}), [[1], [np.nan], [2]])
        with pytest.raises(RowsError, match="holds numbers"):
            to_matrix(X, replace(ONE, categories={0: ("x",)}))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_what_the_model_takes_is_said(make):
    for known in (("x", "y"), (1, 2)):
        with pytest.raises(RowsError, match="the model takes categories, as text or numbers"):
            to_matrix(make({"a": [datetime.timedelta(1)]}), replace(ONE, categories={0: known}))
    with pytest.raises(RowsError, match="the model takes numbers there"):
        to_matrix(make({"a": [datetime.timedelta(1)]}), ONE)


def test_what_the_model_takes_is_said_of_one_row():
    with pytest.raises(RowsError, match="holds date; the model takes categories"):
        NamedRow(["a"], [DAY]).to_matrix(replace(ONE, categories={0: ("x",)}))
    with pytest.raises(RowsError, match="holds date; the model takes numbers"):
        NamedRow(["a"], [DAY]).to_matrix(ONE)


def test_the_names_of_long_types_are_cut():
    kind = pa.struct([(f"field {i}", pa.int8()) for i in range(99)])
    with pytest.raises(RowsError, match=r"holds .*[.]{3}; the model takes numbers") as raised:
        to_matrix(pa.table({"a": pa.array([{}], kind)}), ONE)
    assert len(str(raised.value)) < 200
