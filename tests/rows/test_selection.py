"""Parts of rows are in a container of the same kind, with the same values as by position."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import qwyc
from qwyc.rows.selection import part, take

ROWS = np.arange(40.0).reshape(10, 4)
NAMES = list("abcd")
CONTAINERS = {
    "array": ROWS,
    "columns": np.asfortranarray(ROWS),
    "list": ROWS.tolist(),
    "pandas": pd.DataFrame(ROWS, columns=NAMES, index=range(5, 15)),
    "polars": pl.DataFrame(ROWS, schema=NAMES),
    "arrow": pa.concat_tables(
        [pa.table(dict(zip(NAMES, ROWS[i : i + 3].T, strict=True))) for i in range(0, 10, 3)]
    ),
    "sparse": sparse.coo_array(ROWS),
}


def values(X):
    if hasattr(X, "toarray"):
        return X.toarray()
    return np.column_stack([X[name] for name in NAMES]) if hasattr(X, "schema") else np.asarray(X)


@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize(("start", "stop"), [(0, 10), (0, 4), (2, 7), (9, 10)])
def test_a_part_is_what_is_at_its_positions(kind, start, stop):
    X = CONTAINERS[kind]
    found = part(X, start, stop)
    np.testing.assert_array_equal(values(found), ROWS[start:stop])
    assert type(found) is type(take(X, np.arange(start, stop)))


def test_what_has_no_parts_is_refused():
    with pytest.raises(qwyc.InputError, match="cannot select rows of set"):
        part({1, 2, 3}, 0, 1)
