"""What the cells of a CSV file stand for: missing values, categories, true and false."""

from __future__ import annotations

import catboost
import numpy as np
import pandas as pd
import pytest

import qwyc
from qwyc.errors import InputError
from qwyc.rows.categories import category_hash
from qwyc.rows.files import csv_reader
from qwyc.rows.files.reader import TableFiles
from qwyc.rows.matrix import to_matrix
from qwyc.rows.schema import Schema

JOBS = Schema(
    n_features=3,
    names=("region", "job", "x"),
    dtype="float64",
    categories={0: ("NA", "EU"), 1: ("cook", "")},
)
HASHED = Schema(
    n_features=3,
    names=("region", "job", "x"),
    dtype="float64",
    categories={
        0: (category_hash("NA"), category_hash("EU")),
        1: (category_hash("cook"), category_hash("")),
    },
    hashed=True,
    unseen="invalid",
)
ONE = Schema(n_features=1, names=("x",), dtype="float64")


@pytest.fixture
def read(tmp_path):
    def reader(text, schema, **options):
        path = tmp_path / "rows.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return TableFiles(path, schema, **options)

    return reader


def values(table):
    return {name: table[name].to_pylist() for name in table.column_names}


# ---- missing values ---------------------------------------------------------------------------


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("schema", [JOBS, HASHED], ids=["values", "hashes"])
def test_a_spelling_of_missing_is_a_category_of_its_own_column_alone(read, schema, odd):
    text = "region,job,x,id\nNA,cook,NA,NA\nEU,NA,1,\nnull,None,,7\n,N/A,nan,null\n"
    features, kept = read(text, schema, keep=["id"], odd=odd).table()
    assert values(features) == {
        "region": ["NA", "EU", None, None],
        "job": ["cook", None, None, None],
        "x": [None, 1.0, None, None],
    }
    assert values(kept) == {"id": [None, None, "7", None]}


@pytest.mark.parametrize("schema", [JOBS, HASHED], ids=["values", "hashes"])
def test_an_empty_cell_is_the_category_that_is_empty_text(read, schema):
    features, _ = read('region,job,x\n,,\n"","",""\nEU,cook,2\n', schema).table()
    assert values(features) == {
        "region": [None, None, "EU"],
        "job": ["", "", "cook"],
        "x": [None, None, 2.0],
    }


def test_spellings_of_missing_beside_odd_values(read):
    text = "region,job,x\nNA,cook,NA\nEU,NA,wrong\nnull,,3\n"
    (batch,) = read(text, JOBS, odd=True).batches()
    assert values(batch.features) == {
        "region": ["NA", "EU", None],
        "job": ["cook", None, ""],
        "x": [None, None, 3.0],
    }
    assert [(part.feature, part.rows.tolist()) for part in batch.odd] == [(2, [1])]
    with pytest.raises(InputError, match="row 1 of column 'x' holds 'wrong'"):
        read(text, JOBS).table()


# ---- true and false ---------------------------------------------------------------------------


@pytest.mark.parametrize("row", [0, 2, 4])
def test_the_wrong_value_of_a_column_of_true_and_false_is_named(read, row):
    cells = ["true", "false", "TRUE", "", "False"]
    cells[row] = "maybe"
    text = "x\n" + "".join(f'"{cell}"\n' for cell in cells)
    with pytest.raises(InputError, match=rf"row {row} of column 'x' holds 'maybe'.*true or false"):
        read(text, ONE).table()


def test_the_first_text_is_named_where_few_values_are_true_or_false(read):
    with pytest.raises(InputError, match=r"row 1 of column 'x' holds 'true', but.*numbers"):
        read("x\n1.5\ntrue\n2.5\n3.5\n", ONE).table()


# ---- empty lines ------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("block", [None, 1, 2, 3, 4, 5, 7])
def test_empty_lines_are_rows_where_there_is_one_column(read, monkeypatch, end, block):
    if block:
        monkeypatch.setattr(csv_reader, "BLOCK", max(block, 4))
        monkeypatch.setattr(csv_reader, "HEAD", 3 + block)
    lines = ["x", "1", "", "2", "", "", '""', "3", ""]
    features, _ = read(end.join(lines) + end, ONE).table()
    assert values(features) == {"x": [1.0, None, 2.0, None, None, None, 3.0, None]}
    features, _ = read(end.join(lines[:-1]), ONE).table()
    assert values(features) == {"x": [1.0, None, 2.0, None, None, None, 3.0]}


def test_empty_lines_are_no_rows_where_there_are_more_columns(read):
    features, kept = read("x,id\n\n1,a\n\n\n2,b\n\n", ONE, keep=["id"]).table()
    assert values(features) == {"x": [1.0, 2.0]}
    assert values(kept) == {"id": ["a", "b"]}


def test_rows_are_counted_with_empty_lines(read):
    with pytest.raises(InputError, match="row 3 of column 'x' holds 'wrong'"):
        read("\n\nx\n1\n\n\nwrong\n", ONE).table()
    (batch,) = read("x\n1\n\n\nwrong\n", ONE, odd=True).batches()
    assert batch.odd[0].rows.tolist() == [3]


def test_a_byte_order_mark_after_the_header_is_part_of_a_value(read):
    text = "region,job,x\n\ufeffEU,cook,1\n"
    assert values(read(text, JOBS).table()[0])["region"] == ["\ufeffEU"]


# ---- integers as floats -----------------------------------------------------------------------


def test_integer_categories_of_catboost_may_be_written_as_floats(read):
    known = tuple(category_hash(text) for text in ("1", "-20", "0", "3.0"))
    schema = Schema(
        n_features=2,
        names=("zone", "x"),
        dtype="float64",
        categories={0: known},
        hashed=True,
        unseen="invalid",
    )
    cells = ["1.0", "1", "-20.0", "0.0", "3.0", "", "a.0", "01.0", "1.00", "7.0"]
    text = "zone,x\n" + "".join(f"{cell},1.0\n" for cell in cells)
    features, kept = read(text, schema, keep=["zone"]).table()
    assert values(features)["zone"] == ["1", "1", "-20", "0", "3.0", None, *cells[6:9], "7"]
    assert values(kept)["zone"] == ["1.0", "1", "-20.0", "0.0", "3.0", None, *cells[6:]]
    codes = to_matrix(features.slice(0, 5), schema)[:, 0]
    assert codes.tolist() == [0, 0, 1, 2, 3]


def test_integers_with_missing_values_of_a_catboost_model(read):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"zone": rng.integers(1, 5, 2000), "x": rng.normal(size=2000)})
    model = catboost.CatBoostClassifier(iterations=5, verbose=0, allow_writing_files=False)
    model.fit(X, (X["zone"] == 2).astype(int), cat_features=["zone"])
    schema = qwyc.read_model(model).schema
    features, _ = read(X.astype(float).to_csv(index=False), schema).table()
    np.testing.assert_array_equal(to_matrix(features, schema), to_matrix(X, schema))


# ---- values of a wrong type -------------------------------------------------------------------

NUMBERS = [
    *["1", "-1.5", "0.1", "-0", "1e5", "1E-7", "123456789012345678", "0.1234567890123456789", ".5"],
    *["5.", "inf", "-Infinity", "nan", "NaN", "<NA>", "None", "NULL", "1.#IND", "#N/A", " 7", "8 "],
    *["1e400", "1e-400", "00012.50", "9007199254740993", "179769313486231580793e289", "+3"],
]
WORDS = ["odd", "12 years", "1,5", "0x10", "--1", "1.2.3", "1e", "e", "infinit", "-", "+", "a\nb"]


def test_numbers_beside_odd_values_are_those_of_the_file_without_them(read):
    def lines(cells):
        return "x,id\n" + "".join(f'"{cell}",a\n' for cell in cells)

    good = []
    for cell in NUMBERS:  # as Arrow takes them
        try:
            read(lines([cell]), ONE).table()
        except InputError:
            continue
        good.append(cell)
    assert len(good) > 15
    cells = [cell for pair in zip(good, WORDS * 3, strict=False) for cell in pair]
    (batch,) = read(lines(cells), ONE, odd=True).batches()
    expected = read(lines(good), ONE).table()[0]["x"]
    assert str(batch.features["x"].to_pylist()[::2]) == str(expected.to_pylist())
    assert batch.odd[0].rows.tolist() == list(range(1, len(cells), 2))
    assert batch.features["x"].to_pylist()[1::2] == [None] * len(good)
    for word in WORDS:
        with pytest.raises(InputError, match="row 0 of column 'x' holds"):
            read(lines([word]), ONE).table()


def test_columns_that_become_odd_in_later_blocks(read, monkeypatch):
    monkeypatch.setattr(csv_reader, "BLOCK", 40)
    monkeypatch.setattr(csv_reader, "HEAD", 40)
    schema = Schema(n_features=3, names=("a", "b", "c"), dtype="float64")
    rows = [[f"{i}.5", str(i), str(-i)] for i in range(60)]
    wrong = {(9, 1), (10, 1), (25, 0), (25, 2), (40, 2), (59, 0), (59, 1)}
    for i, j in wrong:
        rows[i][j] = "odd"
    text = "unread,c,a,b\n" + "".join(f"odd,{c},{a},{b}\n" for a, b, c in rows)
    found, before, cells = set(), 0, []
    for batch in read(text, schema, odd=True).batches():
        for part in batch.odd:
            found |= {(int(row) + before, part.feature) for row in part.rows}
        before += batch.features.num_rows
        cells += zip(*values(batch.features).values(), strict=True)
    assert found == wrong
    assert cells == [tuple(None if cell == "odd" else float(cell) for cell in row) for row in rows]


def test_a_row_that_is_wrong_in_another_way_stays_an_error(read):
    with pytest.raises(InputError, match="row 1 has 1 value, but the header has 2"):
        read("x,id\nodd,a\n2\n", ONE, odd=True).table()
    with pytest.raises(InputError, match="not UTF-8"):
        read(b"x,id\nodd,a\n2,\xe9\n", ONE, odd=True, keep=["id"]).table()
