"""Every command when something is wrong: one line, the documented exit code, nothing half-written."""

import contextlib
import fcntl
import os
import re
import resource
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import command_line, one_line, run, wait_until
from qwyc.experiments import reproduce
from trained import named_model

import qwyc
from qwyc.cli import demo
from qwyc.runtime import output as outputs


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    model, X = named_model(rows=5000, trees=40)
    model.save_model(folder / "model.json")
    X[1000:].to_csv(folder / "rows.csv", index=False)
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
        "folder.csv": "Is a directory",
        "wrong.csv": "'c', which the model was trained on",
        "text.csv": "row 0 of column 'c' holds 'text', and the model takes numbers there",
        "late.csv": "row 3,999 of column 'c' holds 'text', and the model takes numbers there",
    }
    assert expected.get(data, f"cannot read {data} as {data.split('.')[1]}") in message
    assert not list(tmp_path.iterdir())
    assert done.stdout == b""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["optimize", "missing.json", "rows.csv"], "missing.json: No such file"),
        (["optimize", "folder.csv", "rows.csv"], "folder.csv: Is a directory"),
        (["optimize", "rows.csv", "rows.csv"], "not a model file that qwyc knows"),
        (["optimize", "m.qwyc", "rows.csv"], "not a model; give the model that it was"),
        (["optimize", "sub/own.json", "rows.csv"], "own.qwyc exists and is not a qwyc file; name"),
        (["optimize", "model.pkl", "rows.csv"], "looks like a pickle"),
        (["optimize", "model.json"], "a sample is needed"),
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
            "threshold must be a score",
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
        (["predict", "model.json", "rows.csv"], "model.json: not a qwyc file"),
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
            "cannot write m.qwyc: the command reads this file; name another file",
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
        (["inspect", "rows.csv"], "not a qwyc file"),
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
        ["verify", "m.qwyc", "rows.csv", "--json"],
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


@pytest.mark.parametrize(
    "command",
    [
        ["predict", "MODEL", "-", "-o", "out.csv"],
        ["optimize", "SOURCE", "-", "-o", "out.qwyc"],
        ["verify", "MODEL", "-"],
        ["bench", "MODEL", "-"],
    ],
    ids=lambda c: c[0],
)
def test_ctrl_c_while_a_pipe_is_waited_for(made, tmp_path, command):
    names = {"MODEL": str(made / "m.qwyc"), "SOURCE": str(made / "model.json")}
    process = subprocess.Popen(
        command_line(*[names.get(part, part) for part in command]),
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    header, rows = (made / "rows.csv").read_bytes().split(b"\n", 1)
    process.stdin.write(header + b"\n" + rows * 80)  # more than a pipe holds: it is being read
    process.stdin.flush()
    if command[0] == "predict":
        wait_until(lambda: list(tmp_path.iterdir()))  # it has begun to write
    process.send_signal(signal.SIGINT)
    error = process.stderr.read()
    assert process.wait(60) == 130, error
    assert error == b"qwyc: interrupted\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", [["demo"], ["reproduce", "adult"]], ids=lambda c: c[0])
def test_ctrl_c_while_libraries_are_loaded(tmp_path, command):
    process = subprocess.Popen(
        command_line(*command), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    wait_until(lambda: "libxgboost" in Path(f"/proc/{process.pid}/maps").read_text())
    process.send_signal(signal.SIGINT)
    error = process.stderr.read()
    assert process.wait(60) == 130, error
    assert error == b"qwyc: interrupted\n"
    assert not list(tmp_path.iterdir())


def test_ctrl_c_while_a_trainer_calls_back(tmp_path):
    """The progress line shows that XGBoost trains, and calls Python after each tree."""
    terminal, stderr = os.openpty()
    process = subprocess.Popen(
        command_line("demo"),
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(stderr)
    shown = b""
    while not re.search(rb"Training XGBoost[^\r\n]* [1-9]\d?%", shown):
        shown += os.read(terminal, 4096)  # fails if the process ends
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):  # the end of the terminal's output
        while part := os.read(terminal, 4096):
            shown += part
    os.close(terminal)
    assert process.wait(60) == 130, shown
    assert shown.endswith(b"\r\x1b[2K\x1b[?25hqwyc: interrupted\r\n"), shown[-300:]
    assert not list(tmp_path.iterdir())


def test_ctrl_c_while_nobody_reads_the_output(made, tmp_path):
    header, rows = (made / "rows.csv").read_bytes().split(b"\n", 1)
    (tmp_path / "many.csv").write_bytes(header + b"\n" + rows * 20)
    process = subprocess.Popen(
        command_line("predict", made / "m.qwyc", tmp_path / "many.csv"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    size = fcntl.fcntl(process.stdout, fcntl.F_GETPIPE_SZ)

    def is_full():
        waiting = fcntl.ioctl(process.stdout, termios.FIONREAD, struct.pack("i", 0))
        return struct.unpack("i", waiting)[0] > size - 4096  # a pipe is filled in pages

    def is_over():
        process.send_signal(signal.SIGINT)  # pressed again, as people do
        return process.poll() is not None

    wait_until(is_full)
    wait_until(is_over)
    assert process.returncode == 130
    assert set(process.stderr.read().splitlines()) == {b"qwyc: interrupted"}
    process.stdout.close()


def test_ctrl_c_in_a_command_that_is_over_at_once(made, monkeypatch):
    def interrupted(path):
        raise KeyboardInterrupt

    monkeypatch.setattr(qwyc, "load", interrupted)
    assert one_line(run("inspect", made / "m.qwyc"), 130) == "qwyc: interrupted\n"


INTERRUPTED_IMPORT = """
import os, signal, sys
from _qwyc_command import main
class Finder:
    def find_spec(self, name, *_):
        if name == "numpy":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
main()
"""
CAUGHT_INTERRUPT = """
import os, signal
import qwyc, qwyc.cli
def load(path):
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:  # some libraries catch it
        pass
    print("the interrupt was lost")
    raise SystemExit(0)
qwyc.load = load
qwyc.cli.main()
"""
INTERRUPT_MADE_INTO_ANOTHER_ERROR = """
import os, signal
import qwyc, qwyc.cli
def load(path):
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:  # as in an import inside another import
        pass
    raise AttributeError("partially initialized module 'pandas' has no attribute 'DataFrame'")
qwyc.load = load
qwyc.cli.main()
"""
INTERRUPTS = {
    "import": INTERRUPTED_IMPORT,
    "caught": CAUGHT_INTERRUPT,
    "another": INTERRUPT_MADE_INTO_ANOTHER_ERROR,
}


@pytest.mark.parametrize("name", INTERRUPTS)
def test_ctrl_c_during_imports_and_where_libraries_catch_exceptions(made, name):
    command = [sys.executable, "-c", INTERRUPTS[name], "inspect", "m.qwyc"]
    done = subprocess.run(command, cwd=made, capture_output=True)
    assert one_line(done, 130) == "qwyc: interrupted\n"


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("inspect m.qwyc >&-", 2, "qwyc: cannot write standard output: it is closed\n"),
        ("predict m.qwyc rows.csv >&-", 2, "qwyc: cannot write standard output: it is closed\n"),
        ("--help >&-", 2, "qwyc: cannot write standard output: it is closed\n"),
        ("predict m.qwyc rows.csv -o OUT >&-", 0, ""),
        ("predict m.qwyc rows.csv -o OUT <&- >&- 2>&-", 0, ""),
        ("inspect missing.qwyc 2>&-", 2, ""),
        ("predict m.qwyc - -o OUT <&-", 2, "qwyc: cannot read standard input as csv: it is empty"),
    ],
)
def test_streams_that_are_closed(made, tmp_path, command, code, said):
    """As the shell starts it: nothing of one stream comes out of another, or ends up in a file."""
    out = tmp_path / "out.csv"
    script = f"{Path(sys.executable).parent / 'qwyc'} {command.replace('OUT', str(out))}"
    done = subprocess.run(["bash", "-c", script], cwd=made, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == bool(said)
    if code == 0:
        assert out.read_text().startswith("label,steps,score,complete\n")
    assert out.exists() == (code == 0)


def test_an_error_does_not_wait_for_the_rest_of_a_pipe(made, tmp_path):
    process = subprocess.Popen(
        command_line("predict", made / "m.qwyc", "-", "-o", "out.csv"),
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    header, rows = (made / "rows.csv").read_bytes().split(b"\n", 1)
    wrong = b",".join([b"text"] * (header.count(b",") + 1)) + b"\n"
    with contextlib.suppress(BrokenPipeError):  # it ends before it has read everything
        process.stdin.write(header + b"\n" + rows * 40 + wrong + rows * 80)
        process.stdin.flush()
    error = process.stderr.read()  # the pipe is still open, and a thread waits for it
    assert process.wait(60) == 2, error
    assert b"holds 'text', and the model takes numbers there" in error
    assert error.count(b"\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_polite_kill_cleans_up_too(made, tmp_path):
    process = subprocess.Popen(
        command_line("predict", made / "m.qwyc", "-", "-o", "out.csv"),
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    header, rows = (made / "rows.csv").read_bytes().split(b"\n", 1)
    process.stdin.write(header + b"\n" + rows * 80)
    process.stdin.flush()
    wait_until(lambda: list(tmp_path.iterdir()))
    os.kill(process.pid, signal.SIGTERM)
    process.stderr.read()
    assert process.wait(60) == 128 + signal.SIGTERM
    assert not list(tmp_path.iterdir())
