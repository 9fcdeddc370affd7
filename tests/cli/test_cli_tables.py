"""Tables in practice: dialects of CSV, every type of column, compressed and mislabelled files."""

import bz2
import gzip
import io
import os
import subprocess

import catboost
import numpy as np
import pandas as pd
import pyarrow
import pytest
import xgboost
from pyarrow import ipc, parquet

import qwyc
from commands import command_line, one_line, run
from qwyc.rows.files import csv_reader, parquet_reader
from trained import named_model


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    model, X = named_model(rows=3000, trees=10)
    qwyc.optimize(model, X[1000:], alpha=0.02, progress=False).save(folder / "m.qwyc")
    rows = X[:50]
    return folder, rows, qwyc.load(folder / "m.qwyc").predict(rows).tolist()


def labels(done):
    assert done.returncode == 0, done.stderr
    return pd.read_csv(io.BytesIO(done.stdout))["label"].tolist()


SPELLINGS = {
    "a byte order mark": lambda text: b"\xef\xbb\xbf" + text,
    "CRLF": lambda text: text.replace(b"\n", b"\r\n"),
    "semicolons": lambda text: text.replace(b",", b";"),
    "tabs": lambda text: text.replace(b",", b"\t"),
    "pipes": lambda text: text.replace(b",", b"|"),
    "blank lines": lambda text: text.replace(b"\n", b"\n\n"),
    "no newline at the end": lambda text: text.rstrip(b"\n"),
    "gzip": gzip.compress,
    "gzip in two parts": lambda text: gzip.compress(text[:99], mtime=0) + gzip.compress(text[99:]),
    "bz2": bz2.compress,
    "zstd": lambda text: pyarrow.compress(text, codec="zstd", asbytes=True),
    "another column, not in UTF-8": lambda text: text.replace(b"\n", b",\xe9\n").replace(
        b",\xe9\n", b",name\n", 1
    ),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spellings_of_csv(made, tmp_path, spelling):
    folder, rows, expected = made
    content = SPELLINGS[spelling](rows.to_csv(index=False).encode())
    (tmp_path / "rows.csv").write_bytes(content)
    assert labels(run("predict", folder / "m.qwyc", tmp_path / "rows.csv")) == expected
    assert labels(run("predict", folder / "m.qwyc", "-", stdin=content)) == expected


@pytest.mark.parametrize("name", ["rows.csv.gz", "rows.tsv", "rows.TSV.GZ"])
def test_names_that_say_what_a_file_is(made, tmp_path, name):
    folder, rows, expected = made
    text = rows.to_csv(index=False, sep="\t" if "sv" in name.lower() else ",").encode()
    (tmp_path / name).write_bytes(gzip.compress(text, mtime=0) if "gz" in name.lower() else text)
    assert labels(run("predict", folder / "m.qwyc", tmp_path / name)) == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b"\n\n", "cannot read"),
        ("a,b,c,d\n1,2,3,4\n".encode("utf-16"), "it is UTF-16; save it as UTF-8"),
        (b"a,b,c,d,\xe9\n1,2,3,4,5\n", "it is not UTF-8 text"),
        (b"1,2,3,4\n5,6,7,8\n", "has no columns 'a', 'b', 'c', 'd'"),
        (b"a,b,c,c\n1,2,3,4\n", "more than one column named 'c'"),
        (b"a,b,c,d\n1,2,3\n", "row 0 has 3 values, but the header has 4"),
        (b"a,b,c,d\n1,2,3,4\n\n1,2,3,4,5\n", "row 1 has 5 values, but the header has 4"),
        (
            b'a,b,c,d\n"1,234",2,3,4\n',
            "row 0 of column 'a' holds '1,234', but the model takes numbers",
        ),
        (
            b"a;b;c;d\n1;2;3;4\n\n1,5;2;3;4\n",
            "row 1 of column 'a' holds '1,5', but the model takes",
        ),
        (b"a,b,c,d\n?,2,3,4\n", "row 0 of column 'a' holds '?'"),
        (b"a,b,c,d\n1,2,3,4\0\0\0", "row 0 of column 'd' holds"),
        (gzip.compress(b"a,b,c,d\n1,2,3,4\n", mtime=0)[:-9], "cannot read"),
        (b"PAR1....PAR1", "it is Parquet; say so with --format parquet"),
        (b"ARROW1\0\0....", "it is Arrow; say so with --format arrow"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "cannot read"),
    ],
)
def test_what_is_no_csv_of_the_model(made, tmp_path, content, message):
    (tmp_path / "rows.csv").write_bytes(content)
    assert message in one_line(run("predict", made[0] / "m.qwyc", tmp_path / "rows.csv"))


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "-"])
@pytest.mark.parametrize("command", ["predict", "verify"])
def test_rows_are_counted_in_the_whole_input(tmp_path, monkeypatch, command, name):
    """predict reads batch by batch, and verify reads all rows; both count from the first row."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"k": pd.Categorical(rng.choice(["u", "v"], 3000)), "x": rng.normal(size=3000)}
    )
    model = xgboost.XGBClassifier(n_estimators=3, enable_categorical=True).fit(X, X["k"] == "u")
    qwyc.optimize(model, alpha=0).save(tmp_path / "m.qwyc")
    odd = X.assign(k=X["k"].astype(str))
    odd.loc[[2345, 2900], "k"] = ["strange", "stranger"]
    monkeypatch.setattr(csv_reader, "BLOCK", 2000)
    monkeypatch.setattr(parquet_reader, "BATCH_ROWS", 7)
    if name.endswith("parquet"):
        odd.to_parquet(tmp_path / name)
    elif name != "-":
        odd.to_csv(tmp_path / name, index=False)
    given = [command, "m.qwyc", name, *(["-o", "out.csv"] if command == "predict" else [])]
    message = one_line(run(*given, cwd=tmp_path, stdin=odd.to_csv(index=False).encode()))
    assert "row 2,345 of column 'k' holds 'strange', a category that the model was not" in message


@pytest.fixture(params=[1, 2])
def _threads_of_arrow(request):
    """With several, Arrow's own error does not tell the row."""
    before = pyarrow.cpu_count()
    pyarrow.set_cpu_count(request.param)
    yield
    pyarrow.set_cpu_count(before)


@pytest.mark.usefixtures("_threads_of_arrow")
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1,2,bad,4", "row 700 of column 'c' holds 'bad', but the model takes numbers there"),
        ("1,?,bad,4", "row 700 of column 'b' holds '?', but the model takes numbers there"),
        ("1,2,\xe9,4", "row 700 of column 'c' holds '\ufffd', but the model takes numbers there"),
        ("1,2,3", "row 700 has 3 values, but the header has 4"),
        ("1,2,3,4\r\n\n\n1,2,\xe9,4,5", "row 701 has 5 values, but the header has 4"),
        ("1,2,3,4\n1,2,3\n1,2,bad,4", "row 701 has 3 values, but the header has 4"),
        ("1,2,3,4\n1,2,bad,4\n1,2,3", "row 701 of column 'c' holds 'bad', but the model takes"),
        ('1,2,"3\n3",4', "row 700 of column 'c' holds '3\\n3', but the model takes numbers there"),
        (f"1,{'x' * 900},3,4", f"row 700 of column 'b' holds '{'x' * 80}...', but the model takes"),
        ('1,"2,3,4', "row 700 has more than 1,000 bytes; close its quotes"),
    ],
)
def test_a_row_past_the_first_block_is_named(made, tmp_path, monkeypatch, row, message):
    monkeypatch.setattr(csv_reader, "HEAD", 1000)
    monkeypatch.setattr(csv_reader, "BLOCK", 1000)
    lines = ["a,b,c,d", *["1.5,2.5,3.5,4.5"] * 700, row, *["1,2,3,4"] * 900]
    text = "\n".join(lines).encode("latin-1")
    (tmp_path / "rows.csv").write_bytes(text)
    command = ["predict", made[0] / "m.qwyc", "rows.csv", "-o", "out.csv"]
    assert f"rows.csv: {message}" in one_line(run(*command, cwd=tmp_path))
    command[2] = "-"
    piped = one_line(run(*command, cwd=tmp_path, stdin=text))
    assert f"standard input: {message}" in piped
    assert os.listdir(tmp_path) == ["rows.csv"]


def test_text_that_is_not_utf8_is_named(made, tmp_path):
    rows = made[1].assign(who="someone").to_csv(index=False).replace("someone", "Zo\xeb", 1)
    (tmp_path / "rows.csv").write_bytes(rows.encode("latin-1"))
    command = ["predict", made[0] / "m.qwyc", tmp_path / "rows.csv"]
    assert labels(run(*command)) == made[2]  # the column is not read
    message = one_line(run(*command, "--keep", "who"))
    assert "rows.csv: row 0 of column 'who' holds b'Zo\\xeb', which is not UTF-8 text" in message


def test_a_header_without_end(made, monkeypatch):
    monkeypatch.setattr(csv_reader, "HEAD", 30)
    message = one_line(run("predict", made[0] / "m.qwyc", "-", stdin=b"a," * 30 + b"\n"))
    assert "standard input as csv: its header has more than 30 bytes" in message


def test_a_column_of_true_and_false_stays_one(made, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_reader, "HEAD", 60)
    text = b"a,b,c,d\n" + b"true,2,3,4\n" * 9
    assert len(labels(run("predict", made[0] / "m.qwyc", "-", stdin=text))) == 9
    command = ["predict", made[0] / "m.qwyc", "-", "-o", tmp_path / "out.csv"]
    message = one_line(run(*command, stdin=text + b"7,2,3,4\n"))
    assert "row 9 of column 'a' holds '7', and the first rows hold true or false there" in message


def test_a_header_is_a_table_without_rows(made):
    for text in (b"a,b,c,d\n", b"a,b,c,d", b"d;c;b;a"):
        done = run("predict", made[0] / "m.qwyc", "-", stdin=text)
        assert done.stdout == b"label,steps,score,complete\n"


def test_spellings_of_missing_are_those_of_pandas(made):
    folder, _, _ = made
    words = ["", "NA", "NaN", "nan", "null", "NULL", "N/A", "n/a", "#N/A", "None", "<NA>", "-nan"]
    text = "a,b,c,d\n" + "".join(f"1,{word},0,0\n" for word in words)
    missing = pd.read_csv(io.StringIO(text))
    assert missing["b"].isna().all()
    found = labels(run("predict", folder / "m.qwyc", "-", stdin=text.encode()))
    assert found == qwyc.load(folder / "m.qwyc").predict(missing).tolist()


def test_a_category_may_be_called_na(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"region": pd.Categorical(rng.choice(["NA", "EU", "None"], 3000)), "x": 0.0})
    model = xgboost.XGBClassifier(n_estimators=3, enable_categorical=True, max_cat_to_onehot=9)
    model.fit(X, X["region"] == "NA")
    qwyc.optimize(model, alpha=0).save(tmp_path / "m.qwyc")
    done = run("predict", tmp_path / "m.qwyc", "-", stdin=X[:60].to_csv(index=False).encode())
    assert labels(done) == model.predict(X[:60]).tolist()
    assert set(model.predict(X[:60])) == {0, 1}


def test_a_hashed_category_may_be_called_na(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"region": rng.choice(["NA", "EU", "None"], 3000), "x": rng.normal(size=3000)})
    model = catboost.CatBoostClassifier(iterations=3, verbose=0, allow_writing_files=False)
    model.fit(X, (X["region"] == "NA").astype(int), cat_features=["region"])
    qwyc.optimize(model, alpha=0).save(tmp_path / "m.qwyc")
    done = run("predict", tmp_path / "m.qwyc", "-", stdin=X[:60].to_csv(index=False).encode())
    assert labels(done) == model.predict(X[:60]).tolist()
    assert set(labels(done)) == {0, 1}
    void = run("predict", tmp_path / "m.qwyc", "-", stdin=b"region,x\nN/A,1\n")
    assert "refuses missing values" in one_line(void)


@pytest.mark.parametrize("n", [3, 300])
@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.arrow"])
@pytest.mark.parametrize("kind", ["null", "string", "dictionary"])
def test_columns_that_are_all_null(tmp_path, name, kind, n):
    """A column of text and a column of numbers, without a single value, of each type that files have."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=3000), "y": rng.normal(size=3000)})
    X["k"] = pd.Categorical(np.where(rng.random(3000) < 0.2, None, rng.choice(["u", "v"], 3000)))
    X.loc[rng.random(3000) < 0.3, "y"] = np.nan
    y = (X["x"] > 0) ^ (X["k"] == "u") ^ (X["k"].isna() & X["y"].isna())
    model = xgboost.XGBClassifier(n_estimators=20, enable_categorical=True).fit(X, y)
    qwyc.optimize(model, alpha=0).save(tmp_path / "m.qwyc")
    types = {"null": pyarrow.null(), "string": pyarrow.string()}
    dictionary = pyarrow.dictionary(pyarrow.int8(), pyarrow.string())
    table = pyarrow.table(
        {
            "k": pyarrow.nulls(n, types.get(kind, dictionary)),
            "x": X["x"][:n].to_numpy(),
            "y": pyarrow.nulls(n, pyarrow.null() if kind == "null" else pyarrow.float64()),
        }
    )
    if name.endswith("csv"):
        table.to_pandas().to_csv(tmp_path / name, index=False)
    elif name.endswith("parquet"):
        parquet.write_table(table, tmp_path / name)
    else:
        (tmp_path / name).write_bytes(written(table, ipc.new_file))
    nulls = pd.Categorical([None] * n, categories=["u", "v"])
    expected = model.predict(X[:n].assign(y=np.nan, k=nulls))
    assert labels(run("predict", tmp_path / "m.qwyc", tmp_path / name)) == expected.tolist()
    assert n < 300 or set(expected) == {0, 1}


def arrow_table(made):
    return pyarrow.Table.from_pandas(made[1], preserve_index=False)


def written(table, new):
    content = io.BytesIO()
    with new(content, table.schema) as sink:
        sink.write_table(table)
    return content.getvalue()


@pytest.mark.parametrize("new", [ipc.new_stream, ipc.new_file], ids=["stream", "file"])
def test_arrow_streams_and_files_through_pipes(made, new):
    """In another process, because only a real pipe cannot seek."""
    folder, _, expected = made
    table = arrow_table(made)
    table = table.append_column("who", pyarrow.array(["x", "y"] * 25).dictionary_encode())
    done = subprocess.run(
        command_line("predict", folder / "m.qwyc", "-", "--format", "arrow", "--keep", "who"),
        input=written(table, new),
        capture_output=True,
    )
    assert labels(done) == expected


@pytest.mark.parametrize(
    "column",
    [
        pyarrow.array([{"x": 1}] * 50),
        pyarrow.array([[1, 2]] * 50),
        pyarrow.array([b"\xff"] * 50),
        pyarrow.array([b"\xff"] * 50).dictionary_encode(),
    ],
    ids=lambda column: str(column.type)[:12],
)
def test_columns_that_csv_does_not_hold(made, tmp_path, column):
    folder, _, expected = made
    parquet.write_table(arrow_table(made).append_column("odd", column), tmp_path / "rows.parquet")
    command = ["predict", folder / "m.qwyc", tmp_path / "rows.parquet"]
    assert labels(run(*command)) == expected
    message = one_line(run(*command, "--keep", "odd"))
    assert "column 'odd' is" in message
    assert "write Parquet or Arrow (--to parquet)" in message
    assert run(*command, "--keep", "odd", "-o", tmp_path / "out.parquet").returncode == 0
    assert parquet.read_table(tmp_path / "out.parquet")["odd"].to_pylist() == column.to_pylist()
    (tmp_path / "out.parquet").unlink()
    assert sorted(os.listdir(tmp_path)) == ["rows.parquet"]


def test_a_file_that_is_not_what_its_name_says(made, tmp_path):
    folder, _, expected = made
    parquet.write_table(arrow_table(made), tmp_path / "rows.csv")
    command = ["predict", folder / "m.qwyc", tmp_path / "rows.csv"]
    assert "it is Parquet; say so with --format parquet" in one_line(run(*command))
    assert "it is Parquet" in one_line(run(*command, "--format", "arrow"))
    assert labels(run(*command, "--format", "parquet")) == expected
