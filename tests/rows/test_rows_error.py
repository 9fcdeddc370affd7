"""Errors about rows: what they say, what they know, and how a file or a batch names itself in them."""

import difflib
import pickle

import numpy as np
import pandas as pd
import pytest

from matrices import COLOURS, F64, NAMED
from qwyc.errors import InputError, RowsError
from qwyc.rows.column_names import quoted_names, similar_names
from qwyc.rows.matrix import to_matrix

MISSING = RowsError("{rows} has {what} in {place}; fill it in", row=1234, column="a", what="NaN")
UNKNOWN = RowsError("{place} holds {value}; it is unknown", row=7, column=2, value="'{rows} {'")
TOO_WIDE = RowsError("{rows} has {n} columns", n=5)
TYPE = RowsError("{place} holds text", column="{place}")
PLAIN = InputError("base model 3 failed: {rows}")


@pytest.mark.parametrize(
    ("error", "by_itself", "in_a_file"),
    [
        (
            MISSING,
            "X has NaN in row 1,234 of column 'a'; fill it in",
            "new.csv has NaN in row 1,334 of column 'a'; fill it in",
        ),
        (
            UNKNOWN,
            "row 7 of column 2 holds '{rows} {'; it is unknown",
            "new.csv: row 107 of column 2 holds '{rows} {'; it is unknown",
        ),
        (TOO_WIDE, "X has 5 columns", "new.csv has 5 columns"),
        (TYPE, "column '{place}' holds text", "new.csv: column '{place}' holds text"),
        (PLAIN, "base model 3 failed: {rows}", "new.csv: base model 3 failed: {rows}"),
    ],
    ids=["rows and place", "place", "rows", "column", "plain"],
)
def test_who_knows_better_names_the_rows(error, by_itself, in_a_file):
    named = error.about("new.csv", rows_before=100)
    assert str(error) == by_itself
    assert str(named) == in_a_file
    assert isinstance(named, InputError)
    assert named.column == error.column
    assert named.row == (None if error.row is None else error.row + 100)
    assert str(pickle.loads(pickle.dumps(named))) == in_a_file  # as workers hand it over
    assert pickle.loads(pickle.dumps(named)).row == named.row


def test_a_later_name_replaces_an_earlier_one():
    assert str(MISSING.about("a batch of 9 rows").about("new.csv", rows_before=6)) == (
        "new.csv has NaN in row 1,240 of column 'a'; fill it in"
    )


@pytest.mark.parametrize(
    ("X", "schema", "row", "column"),
    [
        (np.array([[1, 2, 3], [4, "five", 6]], object), F64, 1, 1),
        (np.array([[1, 2, 3], [4, "five", 6]], object), NAMED, 1, "b"),
        (pd.DataFrame({"x": [1, 2], "colour": [1, 2]}), COLOURS, None, "colour"),
        (np.zeros((2, 4)), F64, None, None),
    ],
)
def test_an_error_tells_the_row_and_the_column(X, schema, row, column):
    with pytest.raises(InputError) as caught:
        to_matrix(X, schema)
    assert caught.value.row == row
    assert caught.value.column == column


def test_similar_names_are_looked_for_among_few(monkeypatch):
    compared = []

    def close_matches(name, names, n):
        compared.append(len(names))
        return []

    monkeypatch.setattr(difflib, "get_close_matches", close_matches)
    absent, unused = [f"a{i}" for i in range(5000)], [f"b{i}" for i in range(5000)]
    assert similar_names(absent, unused) == []
    assert len(compared) <= 10
    assert max(compared) <= 1000


def test_long_names_are_neither_compared_nor_shown_in_full(monkeypatch):
    """Comparing two names of 20,000 letters took seconds, and the time grew with the square."""
    compared = []
    monkeypatch.setattr(
        difflib, "get_close_matches", lambda name, names, n: compared.append(name) or []
    )
    long, short = "x" * 100_000, "y" * 80
    assert similar_names([long, short], [f"{long}z"]) == []
    assert compared == [short]
    assert len(quoted_names([long] * 50)) < 1200
    assert quoted_names([short, "a"]) == f"'{short}', 'a'"
