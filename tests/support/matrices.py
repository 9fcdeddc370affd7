"""What rows must look like, kinds of frames, and a check of the matrix that is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from qwyc.rows.arrays import is_readable
from qwyc.rows.matrix import to_matrix
from qwyc.rows.schema import Schema

NAN = float("nan")
F32 = Schema(n_features=3, names=None, dtype="float32")
F64 = Schema(n_features=3, names=None, dtype="float64")
NAMED = Schema(n_features=3, names=("a", "b", "c"), dtype="float64")
COLOURS = Schema(
    n_features=2,
    names=("x", "colour"),
    dtype="float64",
    categories={1: ("red", "green", "blue")},
)


def record_batch(table: pa.Table) -> pa.RecordBatch:
    return table.combine_chunks().to_batches()[0]


FRAMES = {
    "pandas": pd.DataFrame,
    "polars": lambda d: pl.DataFrame(d, strict=False),
    "arrow": pa.table,
    "batch": lambda d: record_batch(pa.table(d)),
}
frames = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())


def check(X: Any, inputs: Schema, expected: Any) -> None:
    with np.errstate(all="ignore"):
        expected = np.asarray(expected, inputs.dtype)
    for c_order in (True, False):
        got = to_matrix(X, inputs, c_order=c_order)
        assert type(got) is np.ndarray
        assert got.dtype in (np.float32, np.float64)  # the engine reads either as inputs.dtype
        assert got.flags.c_contiguous or not c_order
        assert is_readable(got)
        with np.errstate(all="ignore"):
            as_read = got.astype(inputs.dtype)
        assert got.shape == expected.shape
        np.testing.assert_array_equal(as_read, expected)
