"""`qwyc optimize` and `qwyc predict` on files and pipes: the results equal those in memory."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import pyarrow
import pytest
import xgboost
from pyarrow import csv, feather, ipc, parquet
from rich.console import Console
from sklearn.ensemble import HistGradientBoostingClassifier

import qwyc
from commands import command_line, run
from qwyc.rows.files import csv_reader as csvfiles
from qwyc.rows.files import parquet_reader
from qwyc.rows.files import reader as datafiles
from qwyc.runtime import progress


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A LightGBM model with a text category, its classifier, and the same new rows in four formats."""
    folder = tmp_path_factory.mktemp("streams")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(9000, 3)), columns=list("abc"))
    X["whole"] = rng.integers(0, 9, 9000)
    X["f"] = np.where(rng.random(9000) < 0.1, None, rng.choice(["x", "y, z"], 9000))
    X.loc[rng.random(9000) < 0.1, "a"] = np.nan
    frame = X.assign(f=X["f"].astype("category"))
    y = X["a"].fillna(0) + X["b"] * X["c"] + (X["f"] == "x") + X["whole"] / 9 > 0.5
    model = lightgbm.LGBMClassifier(n_estimators=60, verbose=-1).fit(frame[:3000], y[:3000])
    model.booster_.save_model(folder / "model.txt")
    X.insert(0, "id", [f"row {i}" for i in range(9000)])
    frame.insert(0, "id", X["id"])
    X[3000:6000].assign(entity=np.arange(3000) // 2).to_csv(folder / "sample.csv", index=False)
    X[6000:].to_csv(folder / "new.csv", index=False)
    new = frame[6000:].reset_index(drop=True)
    new.to_parquet(folder / "new.parquet", row_group_size=700)
    feather.write_feather(new, folder / "new.feather", chunksize=700)
    table = pyarrow.Table.from_pandas(new)
    with ipc.new_stream(folder / "new.stream", table.schema) as stream:
        stream.write_table(table, max_chunksize=700)
    done = run("optimize", "model.txt", "sample.csv", "--alpha", "0.02", "-o", "m.qwyc", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def in_memory(folder):
    fast = qwyc.load(folder / "m.qwyc")
    return fast.decide(pd.read_parquet(folder / "new.parquet"))


def assert_same(table, decisions):
    assert table["label"].to_numpy().tolist() == decisions.label.tolist()
    assert table["steps"].to_numpy().tolist() == decisions.steps.tolist()
    assert table["score"].to_numpy().tolist() == decisions.score.tolist()
    assert table["complete"].to_numpy().tolist() == decisions.complete.tolist()


def test_optimize_writes_what_the_library_makes(folder):
    same = qwyc.optimize(
        folder / "model.txt", pd.read_csv(folder / "sample.csv"), alpha=0.02, progress=False
    )
    written = qwyc.load(folder / "m.qwyc")
    assert written.certificate == same.certificate
    assert written.policy.lower.tolist() == same.policy.lower.tolist()


def test_optimize_says_what_it_made(folder, tmp_path):
    model, sample = folder / "model.txt", folder / "sample.csv"
    printed = run("optimize", model, sample, "--alpha", "0.02", cwd=tmp_path).stdout.decode()
    assert printed.startswith("qwyc.Classifier: 60 trees from lightgbm")
    assert printed.endswith("Wrote model.qwyc.\n")
    options = (
        "--alpha negative=0.02,positive=0.03 --confidence 0.9 --quit negative --threshold p=0.4"
    )
    options += " --costs size --groups entity --seed 3 --threads 1 -o n.qwyc --json"
    facts = json.loads(run("optimize", model, sample, *options.split(), cwd=tmp_path).stdout)
    assert facts["file"] == "n.qwyc"
    assert facts["certificate"]["alpha"] == {"negative": 0.02, "positive": 0.03}
    assert facts["certificate"]["seed"] == 3
    assert facts["quits"] in ("negative", "never")
    assert facts["threshold"] == pytest.approx(np.log(0.4 / 0.6))
    fast = qwyc.load(tmp_path / "n.qwyc")
    assert (fast.policy.costs > 1).any()
    (tmp_path / "costs.txt").write_text("\n".join(["2.5"] * 60))
    proof = run(
        "optimize", model, "--alpha", "0", "--costs", "costs.txt", "--max-rows", "5", cwd=tmp_path
    )
    assert b"Proven" in proof.stdout, proof.stderr


@pytest.mark.parametrize("name", ["new.csv", "new.parquet", "new.feather"])
@pytest.mark.parametrize("out", ["out.csv", "out.parquet", "out.arrow"])
def test_files_to_files(folder, tmp_path, name, out):
    target = tmp_path / out
    done = run("predict", folder / "m.qwyc", folder / name, "-o", target, "--keep", "id", "--json")
    assert done.returncode == 0, done.stderr
    read = {".csv": csv.read_csv, ".parquet": parquet.read_table, ".arrow": feather.read_table}
    table = read[target.suffix](target)
    assert table.column_names == ["id", "label", "steps", "score", "complete"]
    assert table["id"][17].as_py() == "row 6017"
    decisions = in_memory(folder)
    assert_same(table, decisions)
    facts = json.loads(done.stdout)
    assert facts["rows"] == 3000
    assert facts["mean_models"] == decisions.steps.mean()
    assert list(tmp_path.iterdir()) == [target]


def test_a_prefix_allows_columns_of_the_same_name(folder, tmp_path):
    rows = pd.read_csv(folder / "new.csv").rename(columns={"id": "label"})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    command = ["predict", folder / "m.qwyc", tmp_path / "rows.csv", "--keep", "label"]
    done = run(*command, "--prefix", "q_")
    table = csv.read_csv(io.BytesIO(done.stdout))
    assert table.column_names == ["label", "q_label", "q_steps", "q_score", "q_complete"]
    assert table["label"].to_pylist() == rows["label"].tolist()
    assert table["q_label"].to_pylist() == in_memory(folder).label.tolist()


def test_pipes(folder):
    decisions = in_memory(folder)
    done = run("predict", "m.qwyc", "-", cwd=folder, stdin=(folder / "new.csv").read_bytes())
    assert done.stderr == b""
    assert_same(csv.read_csv(io.BytesIO(done.stdout)), decisions)
    arrow = run(
        *["predict", "m.qwyc", "-", "--format", "arrow", "--to", "arrow", "--json"],
        cwd=folder,
        stdin=(folder / "new.stream").read_bytes(),
    )
    assert_same(ipc.open_stream(arrow.stdout).read_all(), decisions)
    assert json.loads(arrow.stderr)["rows"] == 3000
    verified = run(
        "verify", "m.qwyc", "-", "--json", cwd=folder, stdin=(folder / "new.csv").read_bytes()
    )
    assert json.loads(verified.stdout)["rows"] == 3000
    refused = run("predict", "m.qwyc", "-", "--format", "parquet", cwd=folder, stdin=b"PAR1" * 9)
    assert refused.returncode == 2


def test_a_reader_that_stops_early_is_no_error(folder):
    code = (
        f"{sys.executable} -c 'from qwyc.cli import main; main()' predict m.qwyc many.csv | head -2; "
        "echo ${PIPESTATUS[0]}"
    )
    header, rest = (folder / "new.csv").read_text().split("\n", 1)
    (folder / "many.csv").write_text(header + "\n" + rest * 30)
    done = subprocess.run(["bash", "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.stdout.splitlines()[0] == "label,steps,score,complete"
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


def batched(monkeypatch, size):
    monkeypatch.setattr(csvfiles, "HEAD", size)
    monkeypatch.setattr(csvfiles, "BLOCK", size)
    monkeypatch.setattr(parquet_reader, "BATCH_ROWS", 7)


@pytest.mark.parametrize("name", ["new.csv", "new.parquet", "new.feather"])
def test_batches_of_any_size_hold_the_same_rows(folder, monkeypatch, name):
    inputs = qwyc.load(folder / "m.qwyc").ensemble.schema
    whole, _ = datafiles.read_table(folder / name, inputs)
    seen = []
    batched(monkeypatch, 2000)
    parts, kept = datafiles.read_table(
        folder / name, inputs, keep=["id"], report=lambda *what: seen.append(what)
    )
    assert len(seen) > 3
    assert seen[-1][1] == seen[-1][2]
    assert parts.schema == whole.schema
    assert parts.equals(whole)
    assert kept["id"].to_pylist() == [f"row {i}" for i in range(6000, 9000)]


def test_types_are_the_models_not_the_batchs(tmp_path, monkeypatch):
    """Whole numbers first and fractions later, nothing first and numbers later, digits as categories."""
    rng = np.random.default_rng(1)
    n = 3000
    X = pd.DataFrame({"a": rng.integers(0, 5, n).astype(float), "b": np.nan, "c": ["7"] * n})
    X.loc[2000:, "a"] += 0.5
    X.loc[2500:, "b"] = rng.normal(size=n - 2500)
    X.loc[1500:, "c"] = rng.choice(["7", "8", "p"], n - 1500)
    frame = X.assign(c=X["c"].astype("category"))
    y = (X["a"] > 2) ^ (X["c"] == "8") ^ (X["b"].fillna(0) > 0)
    model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1).fit(frame, y)
    fast = qwyc.optimize(model, alpha=0)
    X.to_csv(tmp_path / "rows.csv", index=False, float_format="%.17g")
    batched(monkeypatch, 4000)
    table, _ = datafiles.read_table(tmp_path / "rows.csv", fast.ensemble.schema)
    assert [str(t) for t in table.schema.types] == ["double", "double", "string"]
    assert (fast.score_full(table) == fast.score_full(frame)).all()


def test_quoted_newlines_and_commas_pass_through(folder, tmp_path, monkeypatch):
    X = pd.read_csv(folder / "new.csv")
    X["id"] = [f'say "{i},\n{i}"' for i in range(len(X))]
    X.to_csv(tmp_path / "odd.csv", index=False)
    inputs = qwyc.load(folder / "m.qwyc").ensemble.schema
    batched(monkeypatch, 3000)
    _, kept = datafiles.read_table(tmp_path / "odd.csv", inputs, keep=["id"])
    assert kept["id"].to_pylist() == X["id"].tolist()


@pytest.mark.parametrize("name", ["none.csv", "none.parquet", "none.feather"])
def test_no_rows_are_no_error(folder, tmp_path, name):
    empty = pd.read_parquet(folder / "new.parquet")[:0]
    if name.endswith("csv"):
        empty.to_csv(tmp_path / name, index=False)
    elif name.endswith("parquet"):
        empty.to_parquet(tmp_path / name)
    else:
        empty.to_feather(tmp_path / name)
    done = run("predict", folder / "m.qwyc", tmp_path / name)
    assert done.stdout == b"label,steps,score,complete\n", done.stderr


def test_models_without_column_names_go_by_position(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 3)).astype(np.float32)
    model = xgboost.XGBClassifier(n_estimators=10).fit(X, X[:, 0] > 0)
    fast = qwyc.optimize(model, alpha=0)
    fast.save(tmp_path / "m.qwyc")
    frame = pd.DataFrame(X.astype(float), columns=["p", "q", "r"])
    frame.to_csv(tmp_path / "plain.csv", index=False)
    frame.assign(id=range(500)).to_csv(tmp_path / "more.csv", index=False)
    plain = run("predict", "m.qwyc", "plain.csv", cwd=tmp_path)
    kept = run("predict", "m.qwyc", "more.csv", "--keep", "id", cwd=tmp_path)
    assert_same(csv.read_csv(io.BytesIO(plain.stdout)), fast.decide(X))
    assert_same(csv.read_csv(io.BytesIO(kept.stdout)), fast.decide(X))
    wrong = run("predict", "m.qwyc", "more.csv", cwd=tmp_path)
    assert b"4 columns; the model was trained on 3" in wrong.stderr


def test_text_labels_and_categories_of_scikit_learn(tmp_path):
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"n": rng.normal(size=800), "k": rng.choice([3, 5, 9], 800)})
    X["t"] = pd.Categorical(rng.choice(["u", "v"], 800))
    y = np.where((X["n"] > 0) ^ (X["t"] == "u") ^ (X["k"] == 5), "good", "bad")
    model = HistGradientBoostingClassifier(max_iter=20, categorical_features=["k", "t"]).fit(X, y)
    fast = qwyc.optimize(model, alpha=0)
    fast.save(tmp_path / "m.qwyc")
    X.to_csv(tmp_path / "rows.csv", index=False)
    done = run("predict", "m.qwyc", "rows.csv", cwd=tmp_path)
    table = csv.read_csv(io.BytesIO(done.stdout))
    assert table["label"].to_pylist() == model.predict(X).tolist()
    assert_same(table, fast.decide(X))


def test_the_answer_may_replace_a_file_but_not_the_one_being_read(folder, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_bytes((folder / "new.csv").read_bytes())
    same = run("predict", folder / "m.qwyc", rows, "-o", rows)
    assert same.returncode == 2
    assert b"the command reads this file" in same.stderr
    old = tmp_path / "old.csv"
    old.write_text("old")
    old.chmod(0o640)
    link = tmp_path / "link.csv"
    link.symlink_to(old)
    assert run("predict", folder / "m.qwyc", rows, "-o", link).returncode == 0
    assert link.is_symlink()
    assert old.read_text().startswith("label,")
    assert old.stat().st_mode & 0o777 == 0o640
    assert Path("/dev/null").exists()
    assert run("predict", folder / "m.qwyc", rows, "-o", "/dev/null", "--to", "csv").returncode == 0


def test_progress_is_shown_on_terminals_only(folder):
    """Standard error is a terminal here. In other tests it is not, and nothing is on it."""
    terminal, other = os.openpty()
    done = subprocess.run(
        command_line("predict", "m.qwyc", "new.csv", "-o", os.devnull, "--to", "csv"),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=other,
    )
    os.close(other)
    output = b""
    with contextlib.suppress(OSError):  # the end of it
        while part := os.read(terminal, 4096):
            output += part
    os.close(terminal)
    assert done.stdout == b""
    assert b"Reading new.csv" in output
    assert b"left" in output
    assert b"3,000 rows in" in output
    assert re.search(rb"% are 1; [0-9.]+ of 60 base models per row. Wrote /dev/null.\r\n$", output)


@pytest.mark.parametrize(
    ("width", "total", "parts"),
    [
        (100, 8, ["Certifying", "━", "0:00:06", " 50%", "0:00:08 left"]),
        (100, None, ["Certifying", "━", "0:00:06"]),
        (40, 8, ["Certifying", " 50%", "0:00:08 left"]),
    ],
)
def test_a_bar_is_one_line_with_the_time_left(monkeypatch, width, total, parts):
    monkeypatch.setenv("COLUMNS", str(width))
    bar = progress.make_bar(transient=True)
    now = 0.0
    bar.get_time = lambda: now
    task = bar.add_task("Certifying", total=total)
    for now, done in ((2.0, 2), (4.0, 3), (6.0, 4)):  # noqa: B007 - the clock above reads it
        bar.update(task, completed=done)
    screen = Console(width=width, record=True, file=io.StringIO())
    screen.print(bar.get_renderable())
    text = screen.export_text()
    assert text.count("\n") == 1
    for part in parts:
        assert part in text
    assert ("left" in text) == (total is not None)
