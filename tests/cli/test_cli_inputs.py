"""DATA of several files: folders, patterns and URLs give the rows of one file."""

import io
import json
import os
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xgboost
from pyarrow import feather, ipc

import qwyc
from commands import one_line, run
from qwyc.rows.files import remote
from qwyc.rows.files.inputs import LocalFiles
from trained import named_model

PARTS = 3
ROWS = 900


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A classifier, all rows in one file of each format, and the same rows in parts."""
    folder = tmp_path_factory.mktemp("inputs")
    model, X = named_model(rows=6000, trees=20)
    qwyc.optimize(model, X[2000:], alpha=0.02, progress=False).save(folder / "m.qwyc")
    rows = X[:ROWS].reset_index(drop=True).assign(id=[f"row {i}" for i in range(ROWS)])
    for kind, write in WRITERS.items():
        write(rows, folder / f"all.{kind}")
        (folder / kind).mkdir()
        for i, part in enumerate(np.array_split(np.arange(ROWS), [100, 450])):
            write(rows.iloc[part], folder / kind / f"part-{i}.{kind}")
        for hidden in ("_SUCCESS", "_metadata", f".part-0.{kind}.crc", f"_part-0.{kind}"):
            (folder / kind / hidden).write_bytes(b"not data")
        (folder / kind / "_temporary").mkdir()
        (folder / kind / "notes.txt").write_text("not data")
    return folder


def write_stream(rows, path):
    table = pa.Table.from_pandas(rows, preserve_index=False)
    with ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=70)


WRITERS = {
    "csv": lambda rows, path: rows.to_csv(path, index=False, float_format="%.17g"),
    "csv.gz": lambda rows, path: rows.to_csv(path, index=False, float_format="%.17g"),
    "parquet": lambda rows, path: rows.to_parquet(path, row_group_size=60),
    "feather": lambda rows, path: feather.write_feather(rows, str(path), chunksize=70),
    "arrow": write_stream,
}


def predicted(folder, *data, **options):
    done = run("predict", "m.qwyc", *data, "--keep", "id", cwd=folder, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", WRITERS)
def test_parts_are_one_file(made, kind):
    expected = predicted(made, f"all.{kind}")
    assert pd.read_csv(io.BytesIO(expected))["id"].tolist() == [f"row {i}" for i in range(ROWS)]
    names = [f"{kind}/part-{i}.{kind}" for i in range(PARTS)]
    assert predicted(made, *names) == expected
    assert predicted(made, kind) == expected
    assert predicted(made, f"{kind}/") == expected
    assert predicted(made, f"{kind}/*.{kind}") == expected
    assert predicted(made, f"{kind}/part-?.{kind}") == expected
    assert predicted(made, f"**/part-[01].{kind}", names[2]) == expected


def test_rows_come_in_the_order_of_the_names(made):
    names = [f"csv/part-{i}.csv" for i in (2, 0)]
    found = pd.read_csv(io.BytesIO(predicted(made, *names)))["id"].tolist()
    assert found == [f"row {i}" for i in (*range(450, 900), *range(100))]


@pytest.mark.parametrize("library", ["fsspec", "pyarrow"])
@pytest.mark.parametrize("kind", WRITERS)
def test_urls_of_files(made, monkeypatch, library, kind):
    if library == "fsspec":
        pytest.importorskip("fsspec")
    else:
        hide_fsspec(monkeypatch)
    expected, url = predicted(made, f"all.{kind}"), f"file://{made}"
    assert predicted(made, f"{url}/all.{kind}") == expected
    assert predicted(made, f"{url}/{kind}") == expected
    assert predicted(made, f"{url}/{kind}/part-*.{kind}") == expected
    assert predicted(made, f"{url}/**/part-[01].{kind}", f"{url}/{kind}/part-2.{kind}") == expected


def hide_fsspec(monkeypatch):
    """As if it were not installed."""
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)


@pytest.mark.parametrize("kind", WRITERS)
def test_urls_of_another_file_system(made, kind):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for path in (made / kind).iterdir():
        if path.is_file():
            memory.pipe_file(f"/rows-{kind}/{path.name}", path.read_bytes())
    expected = predicted(made, f"all.{kind}")
    assert predicted(made, f"memory://rows-{kind}") == expected
    assert predicted(made, f"memory://rows-{kind}/*.{kind}") == expected
    checked = run("verify", "m.qwyc", f"memory://rows-{kind}", cwd=made)
    assert checked.stdout == run("verify", "m.qwyc", f"all.{kind}", cwd=made).stdout
    missing = one_line(run("verify", "m.qwyc", "memory://rows/none.csv", cwd=made))
    assert "cannot read memory://rows/none.csv: no such file" in missing


class Failing:
    """A file of a service that does not answer."""

    closed = False

    def read(self, size=-1):
        raise RuntimeError("the service\nis down")

    def seekable(self):
        return True

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


@pytest.mark.parametrize("opens", [False, True])
def test_a_service_that_fails(made, tmp_path, monkeypatch, opens):
    fsspec = pytest.importorskip("fsspec")
    fsspec.filesystem("memory").pipe_file("/rows.csv", b"a,b,c,d\n1,2,3,4\n")

    def open_file(self, path):
        return Failing() if opens else Failing().read()

    monkeypatch.setattr(remote.FsspecFiles, "open", open_file)
    out = tmp_path / "out.csv"
    message = one_line(run("predict", made / "m.qwyc", "memory://rows.csv", "-o", out))
    assert message == "qwyc: cannot read memory://rows.csv: the service is down\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("library", ["fsspec", "pyarrow"])
def test_an_unknown_kind_of_url(made, monkeypatch, library):
    if library == "pyarrow":
        hide_fsspec(monkeypatch)
    message = one_line(run("predict", "m.qwyc", "nowhere://bucket/rows.csv", cwd=made))
    assert "cannot read nowhere://bucket/rows.csv: neither fsspec (" in message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (["none*.csv"], "cannot read none*.csv: no data file matches it"),
        (["empty"], "cannot read empty: it is a folder without data files"),
        (["nested"], "nested has folders in it (deep); name the files by a pattern, such as"),
        (["mixed"], "mixed/b.parquet is parquet and mixed/a.csv is csv; give files of one format"),
        (["all.csv", "all.parquet"], "all.parquet is parquet and all.csv is csv"),
        (["all.csv", "-"], "standard input (-) is read alone"),
        (["all.csv", "none.csv"], "cannot read none.csv: no such file"),
        (["all.csv", "m.qwyc"], "m.qwyc is a .qwyc file; rows were expected"),
        (
            ["int.parquet", "float.parquet"],
            "float.parquet differs from int.parquet: its "
            "column 'a' is double, and column 'a' is int64 there; write all files with the same",
        ),
        (["folder-of-types"], "b.parquet differs from folder-of-types/a.parquet"),
        (["all.csv", "short.csv"], "short.csv has no column 'c', which the model was trained on"),
        (["all.csv", "wrong.csv"], "wrong.csv: row 2 of column 'a' holds 'x', but the model takes"),
    ],
)
@pytest.mark.parametrize("command", ["predict", "verify", "recertify", "bench"])
def test_what_is_wrong_is_one_line(made, tmp_path, data, message, command):
    for name in ("empty", "nested/deep", "mixed", "folder-of-types"):
        (made / name).mkdir(parents=True, exist_ok=True)
    rows = pd.DataFrame({name: [1, 2, 3] for name in "abcd"})
    rows.to_csv(made / "mixed" / "a.csv", index=False)
    rows.to_parquet(made / "mixed" / "b.parquet")
    for name in ("int.parquet", "folder-of-types/a.parquet"):
        rows.to_parquet(made / name)
    for name in ("float.parquet", "folder-of-types/b.parquet"):
        rows.astype(float).to_parquet(made / name)
    rows.drop(columns="c").to_csv(made / "short.csv", index=False)
    rows.assign(a=["1", "2", "x"]).to_csv(made / "wrong.csv", index=False)
    out = ["-o", tmp_path / "out.csv"] if command in ("predict", "recertify") else []
    assert message in one_line(run(command, "m.qwyc", *data, *out, cwd=made))
    assert not list(tmp_path.iterdir())


def test_a_format_for_files_of_any_name(made, tmp_path):
    for i in range(PARTS):
        content = (made / "parquet" / f"part-{i}.parquet").read_bytes()
        (tmp_path / f"part-{i}").write_bytes(content)
    expected = predicted(made, "all.parquet")
    assert predicted(made, tmp_path, "--format", "parquet") == expected
    assert "without data files" in one_line(run("predict", "m.qwyc", tmp_path, cwd=made))


def test_a_row_is_counted_in_its_own_file(made, tmp_path):
    rng = np.random.default_rng(0)
    kinds = pd.Categorical(rng.choice(["u", "v"], 3000))
    X = pd.DataFrame({"k": kinds, "x": rng.normal(size=3000)})
    model = xgboost.XGBClassifier(n_estimators=3, enable_categorical=True).fit(X, X["k"] == "u")
    qwyc.optimize(model, alpha=0).save(tmp_path / "m.qwyc")
    odd = X.assign(k=X["k"].astype(str))
    odd.loc[2345, "k"] = "strange"
    odd[:1000].to_parquet(tmp_path / "a.parquet")
    odd[1000:].to_parquet(tmp_path / "b.parquet")
    for command in (["predict", "-o", "out.csv"], ["verify"], ["bench"]):
        message = one_line(run(*command, "m.qwyc", "a.parquet", "b.parquet", cwd=tmp_path))
        assert message.startswith("qwyc: b.parquet: row 1,345 of column 'k' holds 'strange'")


def test_no_command_replaces_a_file_that_it_reads(made):
    for data in ("csv", "csv/*.csv", f"file://{made}/csv/part-1.csv"):
        done = run("predict", "m.qwyc", data, "-o", "csv/part-1.csv", cwd=made)
        assert "the command reads this file; choose another file to write" in one_line(done)


def test_only_needed_columns_are_read(made, tmp_path, monkeypatch):
    """Of an Arrow file, as of Parquet: a column of 80 MB that is not needed is not read."""
    rows = pd.read_parquet(made / "all.parquet")
    table = pa.Table.from_pandas(rows, preserve_index=False)
    wide = table.append_column("wide", pa.array([os.urandom(90_000) for _ in range(ROWS)]))
    feather.write_feather(wide, str(tmp_path / "rows.arrow"), compression="uncompressed")
    read = []

    class Counting(io.FileIO):
        def read(self, size=-1):
            content = super().read(size)
            read.append(len(content))
            return content

    monkeypatch.setattr(LocalFiles, "open", lambda self, path: Counting(path))
    assert predicted(made, tmp_path / "rows.arrow") == predicted(made, "all.parquet")
    read.clear()
    predicted(made, tmp_path / "rows.arrow")
    assert 0 < sum(read) < 1_000_000


def test_optimize_and_bench_take_parts_too(made, tmp_path):
    model, X = named_model(rows=6000, trees=20)
    model.save_model(tmp_path / "m.json")
    (tmp_path / "parts").mkdir()
    X[2000:].to_csv(tmp_path / "all.csv", index=False, float_format="%.17g")
    for i, rows in enumerate(np.array_split(np.arange(2000, 6000), 3)):
        path = tmp_path / "parts" / f"{i}.csv"
        X.iloc[rows].to_csv(path, index=False, float_format="%.17g")
    for data, out in (("all.csv", "a.qwyc"), ("parts", "b.qwyc")):
        command = ["optimize", "m.json", data, "-o", out, "--alpha", "0.02"]
        assert run(*command, cwd=tmp_path).returncode == 0
    assert (tmp_path / "a.qwyc").read_bytes() == (tmp_path / "b.qwyc").read_bytes()
    done = run("bench", "a.qwyc", "parts", "--seconds", "0.01", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["rows"] == 4000
