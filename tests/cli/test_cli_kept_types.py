"""`qwyc predict --keep` copies columns with their types, in any number of batches."""

import datetime
import decimal
import io

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

import qwyc
from commands import one_line, run
from qwyc.rows.files import arrow_reader, parquet_reader
from trained import named_model

N = 50


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    model, X = named_model(rows=1000, trees=5)
    qwyc.optimize(model, alpha=0).save(folder / "m.qwyc")
    return folder, pa.Table.from_pandas(X[:N], preserve_index=False)


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    monkeypatch.setattr(parquet_reader, "BATCH_ROWS", 7)
    monkeypatch.setattr(arrow_reader, "BATCH_ROWS", 7)


def columns():
    """Columns of many types, each with a null."""
    day = datetime.date(2024, 5, 31)
    noon = datetime.datetime(2024, 5, 31, 12)

    def some(make, kind):
        return pa.array([None if i == 3 else make(i) for i in range(N)], kind)

    text = some(lambda i: f"text {i % 19}", pa.string())
    return {
        "dictionary": text.dictionary_encode(),
        "ordered": pa.DictionaryArray.from_arrays(
            pa.array(np.arange(N) % 3, pa.int32()), pa.array(["low", "mid", "high"]), ordered=True
        ),
        "decimal": some(lambda i: decimal.Decimal(i) / 8, pa.decimal128(12, 3)),
        "date": some(lambda i: day + datetime.timedelta(i), pa.date32()),
        "zone": some(lambda i: noon, pa.timestamp("us", tz="Europe/Zurich")),
        "nanoseconds": some(lambda i: noon, pa.timestamp("ns")),
        "time": some(lambda i: datetime.time(i % 24), pa.time64("us")),
        "large": some(lambda i: "x" * i, pa.large_string()),
        "bytes": some(lambda i: bytes([i]), pa.binary()),
        "small": some(lambda i: i, pa.int8()),
        "unsigned": some(lambda i: 2**64 - 1 - i, pa.uint64()),
        "flag": some(lambda i: i % 2 == 0, pa.bool_()),
        "list": some(lambda i: [i] * (i % 3), pa.list_(pa.int16())),
        "struct": some(
            lambda i: {"a": i, "b": ["x"]},
            pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))]),
        ),
        "map": some(lambda i: [("k", i)], pa.map_(pa.string(), pa.int32())),
    }


def write(table, path):
    if path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=20)
        return
    with ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def read(path):
    return parquet.read_table(path) if path.suffix == ".parquet" else ipc.open_file(path).read_all()


@pytest.mark.parametrize("source", ["rows.parquet", "rows.arrow"])
@pytest.mark.parametrize("out", ["out.parquet", "out.arrow"])
def test_types_of_kept_columns_are_preserved(made, tmp_path, source, out):
    folder, rows = made
    kept = columns()
    for name, column in kept.items():
        rows = rows.append_column(name, column)
    write(rows, tmp_path / source)
    keep = [part for name in kept for part in ("--keep", name)]
    done = run("predict", folder / "m.qwyc", tmp_path / source, "-o", tmp_path / out, *keep)
    assert done.returncode == 0, done.stderr
    found = read(tmp_path / out)
    expected = read(tmp_path / source).select(list(kept))
    assert {f.name: f.type for f in found.schema if f.name in kept} == {
        f.name: f.type for f in expected.schema
    }
    for name in kept:
        assert found[name].to_pylist() == expected[name].to_pylist(), name


def test_a_pipe_keeps_dictionaries_too(made, tmp_path):
    folder, rows = made
    rows = rows.append_column("who", columns()["dictionary"])
    write(rows, tmp_path / "rows.arrow")
    done = run(
        "predict", folder / "m.qwyc", tmp_path / "rows.arrow", "--keep", "who", "--to", "arrow"
    )
    found = ipc.open_stream(io.BytesIO(done.stdout)).read_all()
    assert found["who"].type == rows["who"].type
    assert found["who"].to_pylist() == rows["who"].to_pylist()


def replaced_dictionaries(rows, size):
    """An Arrow stream whose batches have a dictionary of their own for the column who."""
    out, writer = io.BytesIO(), None
    for i in range(0, N, size):
        part = rows.slice(i, size)
        names = pa.array([f"name {i + j}" for j in range(part.num_rows)])
        codes = pa.array(np.arange(part.num_rows), pa.int8())
        who = pa.DictionaryArray.from_arrays(codes, names)
        part = part.append_column("who", who).combine_chunks()
        writer = writer or ipc.new_stream(out, part.schema)
        writer.write_table(part)
    writer.close()
    return out.getvalue()


def test_dictionaries_that_are_replaced_become_one(made, tmp_path):
    folder, rows = made
    (tmp_path / "rows.arrow").write_bytes(replaced_dictionaries(rows, 10))
    for out in ("out.arrow", "out.parquet"):
        command = ["predict", folder / "m.qwyc", tmp_path / "rows.arrow", "--keep", "who"]
        done = run(*command, "-o", tmp_path / out)
        assert done.returncode == 0, done.stderr
        assert read(tmp_path / out)["who"].to_pylist() == [f"name {i}" for i in range(N)]


def test_more_values_than_codes_number(made, tmp_path):
    folder, rows = made
    many = pa.concat_tables([rows] * 4).slice(0, 200)
    out = io.BytesIO()
    who = [pa.array([f"name {i}" for i in range(k, k + 100)]) for k in (0, 100)]
    codes = pa.array(np.arange(100), pa.int8())
    writer = None
    for k, names in enumerate(who):
        part = many.slice(100 * k, 100).combine_chunks()
        part = part.append_column("who", pa.DictionaryArray.from_arrays(codes, names))
        writer = writer or ipc.new_stream(out, part.schema)
        writer.write_table(part)
    writer.close()
    (tmp_path / "rows.arrow").write_bytes(out.getvalue())
    command = ["predict", folder / "m.qwyc", "rows.arrow", "--keep", "who", "-o", "out.arrow"]
    message = one_line(run(*command, cwd=tmp_path))
    assert "column 'who' is dictionary" in message
    assert "write Parquet (--to parquet)" in message
    assert [path.name for path in tmp_path.iterdir()] == ["rows.arrow"]


def test_a_type_that_parquet_does_not_have(made, tmp_path):
    folder, rows = made
    odd = pa.array([pa.MonthDayNano([1, 2, 3])] * N)
    write(rows.append_column("odd", odd), tmp_path / "rows.arrow")
    command = ["predict", folder / "m.qwyc", "rows.arrow", "--keep", "odd", "-o"]
    message = one_line(run(*command, "out.parquet", cwd=tmp_path))
    assert "cannot be written as parquet" in message
    assert "--to arrow" in message
    assert run(*command, "out.arrow", cwd=tmp_path).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.arrow", "rows.arrow"]
