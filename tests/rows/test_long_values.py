"""Long values in messages are cut."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from matrices import COLOURS, F64
from qwyc.errors import RowsError
from qwyc.rows.categories import category_hash
from qwyc.rows.matrix import to_matrix
from qwyc.rows.odd_rows import take_rows
from qwyc.rows.values import quoted

LONG = "x" * 5000
HASHED = replace(COLOURS, categories={1: (category_hash("red"),)}, hashed=True, unseen="invalid")


def test_values_are_quoted_and_cut():
    assert quoted("red") == "'red'"
    assert quoted(2.5) == "2.5"
    assert quoted(LONG) == f"'{'x' * 60}'..."
    assert quoted(b"y" * 99) == f"b'{'y' * 60}'..."
    assert quoted(10**200) == f"1{'0' * 59}..."
    assert quoted(list(range(999))).endswith("...")
    assert quoted(10**9000) == "a number (int) of too many digits to show"


@pytest.mark.parametrize(
    ("X", "schema", "message"),
    [
        (pa.table({"x": [1.0], "colour": [LONG]}), replace(COLOURS, unseen="error"), "'x{60}'"),
        (
            pa.table({"x": [1.0], "colour": ["pink"]}),
            replace(COLOURS, categories={1: (LONG,) * 30}, unseen="error"),
            "it knows 'x{60}'[.]{3}, 'x",
        ),
        (
            pd.DataFrame({"x": [1.0], "colour": [LONG]}),
            replace(COLOURS, categories={1: (3, 7)}),
            "'x{60}'[.]{3}, which is not a number",
        ),
        (np.array([[1, LONG, 2]], object), F64, "column 1 is 'x{60}'[.]{3} [(]str"),
        (np.array([[1, 10**9000, 2]], object), F64, "column 1 is a number [(]int"),
        (
            pd.DataFrame({"x": [1.0], "colour": [tuple(range(3000))]}),
            HASHED,
            r"column 'colour' is \(0, 1",
        ),
    ],
    ids=["unknown", "categories", "text", "arrays", "digits", "hashed"],
)
def test_messages_show_the_start_of_long_values(X, schema, message):
    with pytest.raises(RowsError, match=message) as raised:
        to_matrix(X, replace(schema))
    assert len(str(raised.value)) < 1800
    reasons = take_rows(X, replace(schema), "flag").reason if schema is not HASHED else [""]
    assert len(str(reasons[0])) < 200
