"""Every command when something is wrong: one line, the documented exit code, nothing partly written."""

import contextlib
import os
import resource
import subprocess

import numpy as np
import pandas as pd
import pytest

import qwyc
from commands import command_line, one_line, run
from qwyc.cli import demo
from qwyc.runtime import output as outputs
from qwyc_experiments.paper import reproduce
from trained import named_model


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    model, X = named_model(rows=5000, trees=40)
    model.save_model(folder / "model.json")
    X[1000:].to_csv(folder / "rows.csv", index=False)
    X[:1000].to_csv(folder / "new.csv", index=False)
    X[1000:].rename(columns={"c": "cc"}).to_csv(folder / "wrong.csv", index=False)
    X[1000:].assign(c="text").to_csv(folder / "text.csv", index=False)
    late = X[1000:].astype(object)
    late.loc[4999, "c"] = "text"
    late.to_csv(folder / "late.csv", index=False)
    groups = pd.Series(np.arange(4000) // 2).astype("Int64")
    groups[7] = pd.NA
    X[1000:].assign(who=groups.to_numpy()).to_csv(folder / "groups.csv", index=False)
    (folder / "junk.csv").write_bytes(b'"a,b\n\xff\xfe')
    (folder / "junk.parquet").write_bytes(b"junk")
    (folder / "junk.arrow").write_bytes(b"junk")
    (folder / "broken.json").write_bytes(b'{"learner": {}}')
    (folder / "folder.csv").mkdir()
    (folder / "junk.qwyc").write_bytes(b"junk")
    (folder / "model.pkl").write_bytes(b"\x80\x04")
    (folder / "sub").mkdir()
    (folder / "sub" / "own.json").write_bytes((folder / "model.json").read_bytes())
    (folder / "own.qwyc").write_text("notes")
    (folder / "costs.txt").write_text("1 " * 40)
    qwyc.optimize(model, X[1000:], alpha=0.01, progress=False).save(folder / "m.qwyc")
    return folder


DATA = (
    "missing.csv",
    "folder.csv",
    "junk.csv",
    "junk.parquet",
    "junk.arrow",
    "wrong.csv",
    "text.csv",
    "late.csv",
)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize(
    "command",
    [
        ["optimize", "model.json", "DATA", "-o", "OUT"],
        ["predict", "m.qwyc", "DATA", "-o", "OUT", "--to", "csv"],
        ["predict", "m.qwyc", "DATA"],
        ["verify", "m.qwyc", "DATA"],
        ["bench", "m.qwyc", "DATA"],
    ],
    ids=lambda c: f"{c[0]}{len(c)}",
)
def test_data_that_is_missing_or_unreadable_or_wrong(made, tmp_path, command, data):
    out = tmp_path / "out"
    done = run(*[{"DATA": data, "OUT": out}.get(part, part) for part in command], cwd=made)
    message = one_line(done)
    assert data in message
    expected = {
        "missing.csv": "no such file",
        "folder.csv": "it is a folder without data files",
        "wrong.csv": "'c', which the model was trained on",
        "text.csv": "row 0 of column 'c' holds 'text', but the model takes numbers there",
        "late.csv": "row 3,999 of column 'c' holds 'text', but the model takes numbers there",
    }
    assert expected.get(data, f"cannot read {data} as {data.split('.')[1]}") in message
    assert not list(tmp_path.iterdir())
    assert done.stdout == b""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["optimize", "missing.json", "rows.csv"], "missing.json: No such file"),
        (["optimize", "folder.csv", "rows.csv"], "folder.csv: Is a directory"),
        (["optimize", "rows.csv", "rows.csv"], "is a CSV file; a model file was expected"),
        (
            ["optimize", "m.qwyc", "rows.csv"],
            "the command reads this file; choose another file to write",
        ),
        (["optimize", "sub/own.json", "rows.csv"], "own.qwyc exists and is not a qwyc file; name"),
        (["optimize", "model.pkl", "rows.csv"], "model.pkl is a pickle"),
        (["optimize", "model.json"], "a sample of rows is needed"),
        (["optimize", "model.json", "rows.csv", "--alpha", "much"], "alpha must be a number"),
        (["optimize", "model.json", "rows.csv", "--alpha", "0.0001"], "needs at least 30,156 rows"),
        (["optimize", "broken.json", "rows.csv"], "damaged: 'gradient_booster' is missing"),
        (
            ["optimize", "model.json", "rows.csv", "--groups", "who"],
            "rows.csv has no column 'who', which --groups names (it has: 'a', 'b', 'c', 'd')",
        ),
        (["optimize", "model.json", "--alpha", "0", "--groups", "a"], "give DATA too"),
        (
            ["optimize", "model.json", "rows.csv", "--groups", "a", "--method", "joint"],
            "--groups can be used with --method auto only, and not with --max-rows",
        ),
        (
            ["optimize", "model.json", "rows.csv", "--groups", "a", "--max-rows", "2000"],
            "--groups can be used with --method auto only, and not with --max-rows",
        ),
        (
            ["optimize", "model.json", "groups.csv", "--groups", "who"],
            "groups.csv: groups must be known for every row; row 7 has none",
        ),
        (["optimize", "model.json", "rows.csv", "--costs", "none.txt"], "cannot read none.txt"),
        (["optimize", "model.json", "rows.csv", "--costs", "rows.csv"], "must hold numbers only"),
        (["optimize", "model.json", "rows.csv", "--threshold", "p=2"], "a probability is above 0"),
        (
            ["optimize", "model.json", "rows.csv", "--threshold", "high"],
            "threshold must be a probability",
        ),
        (["optimize", "model.json", "rows.csv", "--quit", "never"], "'never'"),
        (["optimize", "model.json", "rows.csv", "-o", "none/m.qwyc"], "there is no folder none"),
        (["optimize", "model.json", "rows.csv", "-o", "/dev/full"], "it is a device"),
        (["optimize", "model.json", "rows.csv", "-o", "-"], "a file is needed"),
        (["optimize", "model.json", "rows.csv", "--groups", ""], "no column ''"),
        (["optimize", "model.json", "rows.csv", "--method", "x"], "'--method': 'x' is not one of"),
        (
            ["optimize", "model.json", "rows.csv", "--max-rows", "9"],
            "alpha = 0.5% at confidence 0.95",
        ),
        (["predict", "missing.qwyc", "rows.csv"], "missing.qwyc: No such file"),
        (["predict", "rows.csv", "rows.csv"], "rows.csv is a CSV file; a model file"),
        (["predict", "m.qwyc", "rows.csv", "--keep", "who"], "'who', which --keep names"),
        (
            ["predict", "m.qwyc", "rows.csv", "--keep", "label"],
            "rename the added columns with --prefix",
        ),
        (
            ["predict", "m.qwyc", "rows.csv", "--keep", "qlabel", "--prefix", "q"],
            "--keep qlabel: predict adds a column of the same name; rename the added columns with --prefix",
        ),
        (["predict", "m.qwyc", "rows.csv", "-o", "none/out.csv"], "there is no folder none"),
        (["predict", "m.qwyc", "rows.csv", "-o", "out.xlsx"], "give the format with --to"),
        (["predict", "m.qwyc", "rows.csv", "-o", "out.tsv"], "give the format with --to"),
        (["predict", "m.qwyc", "rows.csv", "-o", "folder.csv"], "it is a folder"),
        (["predict", "m.qwyc", "rows.csv", "-o", "/dev/full"], "cannot write /dev/full: No space"),
        (
            ["predict", "m.qwyc", "rows.csv", "-o", "rows.csv"],
            "rows.csv: the command reads this file",
        ),
        (
            ["predict", "m.qwyc", "rows.csv", "-o", "m.qwyc", "--to", "csv"],
            "cannot write m.qwyc: the command reads this file; choose another file to write",
        ),
        (["optimize", "model.json", "rows.csv", "-o", "rows.csv"], "the command reads this file"),
        (
            ["optimize", "model.json", "rows.csv", "-o", "./model.json"],
            "the command reads this file",
        ),
        (
            ["optimize", "model.json", "rows.csv", "--costs", "costs.txt", "-o", "costs.txt"],
            "the command reads this file",
        ),
        (["recertify", "m.qwyc", "rows.csv", "-o", "rows.csv"], "the command reads this file"),
        (["verify", "junk.qwyc", "rows.csv"], "not a qwyc file"),
        (["verify", "m.qwyc", "rows.csv", "--alpha", "2"], "alpha is a share"),
        (["inspect", "missing.qwyc"], "missing.qwyc: No such file"),
        (["inspect", "folder.csv"], "folder.csv: Is a directory"),
        (["inspect", "rows.csv"], "rows.csv is a CSV file; a .qwyc file was"),
        (["inspect", "/dev/null"], "cannot read /dev/null: not a qwyc file: it is empty"),
        (["bench", "m.qwyc", "rows.csv", "--model", "missing.json"], "missing.json"),
        (["bench", "m.qwyc", "rows.csv", "--seconds", "0"], "seconds"),
        (["demo", "-o", "/dev/full"], "it is a device"),
        (["demo", "--confidence", "2"], "confidence is a probability"),
        (["demo", "-o", "a.png", "--picture", "a.png"], "cannot both be a.png"),
        (["reproduce", "adult", "-o", "rows.csv"], "cannot write into rows.csv"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_everything_else_that_can_be_wrong(made, arguments, message):
    before = contents(made)
    assert message in one_line(run(*arguments, cwd=made))
    assert contents(made) == before


def contents(folder):
    return {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@contextlib.contextmanager
def full_disk():
    """No file may grow past a few bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("out", ["out.csv", "out.parquet", "out.arrow"])
def test_a_full_disk_leaves_what_was_there(made, tmp_path, out):
    (tmp_path / out).write_text("old")
    with full_disk():
        done = run("predict", made / "m.qwyc", made / "rows.csv", "-o", tmp_path / out)
    assert f"cannot write {tmp_path / out}: File too large" in one_line(done)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(out, "old")]


def test_a_full_disk_for_classifiers_and_pictures(made, tmp_path, monkeypatch):
    with full_disk():
        done = run(
            "optimize", made / "model.json", made / "rows.csv", "--alpha", "0.01", cwd=tmp_path
        )
    assert "model.qwyc: File too large" in one_line(done)
    monkeypatch.setattr(demo, "TREES", 60)
    monkeypatch.setattr(demo, "SECONDS", 0.01)
    with full_disk():
        assert "File too large" in one_line(run("demo", "--json", cwd=tmp_path))
    with full_disk(), pytest.raises(qwyc.ArtifactError, match=r"cannot write .*points.csv"):
        reproduce.write(tmp_path, {"points.csv": b"x" * 99})
    with (
        full_disk(),
        pytest.raises(qwyc.ArtifactError),
        outputs.open_output(tmp_path / "p.png") as file,
    ):
        file.write(b"x" * 99)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "command",
    [
        ["inspect", "m.qwyc"],
        ["predict", "m.qwyc", "rows.csv"],
        ["verify", "m.qwyc", "new.csv", "--json"],
    ],
    ids=lambda c: c[0],
)
def test_a_full_disk_behind_standard_output(made, command):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command_line(*command), cwd=made, stdout=full, stderr=subprocess.PIPE)
    assert one_line(done) == "qwyc: cannot write standard output: No space left on device\n"


@pytest.mark.parametrize(
    "environment", [{"LC_ALL": "C", "PYTHONUTF8": "0"}, {"TERM": "dumb"}], ids=str
)
def test_screens_that_show_ascii_only(made, environment):
    plain = os.environ | {"PYTHONCOERCECLOCALE": "0"} | environment
    for command in (["bench", "m.qwyc", "rows.csv", "--seconds", "0.001"], ["optimize", "--help"]):
        done = subprocess.run(command_line(*command), cwd=made, env=plain, capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")
