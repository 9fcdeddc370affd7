"""Slices by the names of columns, and by values."""

import numpy as np
import pandas as pd
import polars
import pytest

import qwyc
from qwyc.rows.slices import slice_columns

TABLE = pd.DataFrame({"a": [1.0, 2.0], "region": ["north", "south"]})


@pytest.mark.parametrize("slices", ["region", ["region"], ("region",)])
@pytest.mark.parametrize("table", [TABLE, polars.from_pandas(TABLE)])
def test_names_of_columns(slices, table):
    (found,) = slice_columns(slices, table).items()
    assert found[0] == "region"
    assert list(found[1]) == ["north", "south"]


def test_values_and_nothing():
    assert slice_columns({"r": [1, 2]}, np.zeros((2, 1))) == {"r": [1, 2]}
    assert slice_columns(None, TABLE) == {}


@pytest.mark.parametrize(
    ("slices", "X", "message"),
    [
        (["regio"], TABLE, r"'regio' is not a column of X, which has \['a', 'region'\]"),
        ("region", np.zeros((2, 1)), "X is a ndarray without column names; pass a mapping"),
        (3, TABLE, "slices must name columns of X"),
        ([3], TABLE, "slices must name columns of X"),
    ],
)
def test_what_is_refused(slices, X, message):
    with pytest.raises(qwyc.OptionError, match=message):
        slice_columns(slices, X)
