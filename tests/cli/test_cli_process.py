"""How the process of a command ends: Ctrl-C, SIGTERM, closed streams, pipes that stay open."""

import contextlib
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path
from subprocess import DEVNULL, PIPE

import pytest

import qwyc
from commands import TIMEOUT, one_line, run, started, wait_until
from trained import named_model


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a model, its classifier, and 4,000 rows."""
    folder = tmp_path_factory.mktemp("made")
    model, X = named_model(rows=5000, trees=40)
    model.save_model(folder / "model.json")
    X[1000:].to_csv(folder / "rows.csv", index=False)
    qwyc.optimize(model, X[1000:], alpha=0.01, progress=False).save(folder / "m.qwyc")
    return folder


def repeated_rows(folder, times):
    """The rows of the folder as CSV, each of them several times."""
    header, rows = (folder / "rows.csv").read_bytes().split(b"\n", 1)
    return header + b"\n" + rows * times


def writes_in(process, folder):
    """Whether a process has a file of a folder open, which may be without a name yet."""
    links = Path(f"/proc/{process.pid}/fd").iterdir()
    with contextlib.suppress(FileNotFoundError):  # one that was closed meanwhile
        return any(os.readlink(link).startswith(f"{folder}/") for link in links)
    return False


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
    names = {"MODEL": made / "m.qwyc", "SOURCE": made / "model.json"}
    arguments = [names.get(part, part) for part in command]
    with started(*arguments, cwd=tmp_path, stdin=PIPE, stderr=PIPE) as process:
        process.stdin.write(repeated_rows(made, 80))  # more than a pipe holds: it is being read
        process.stdin.flush()
        if command[0] == "predict":
            wait_until(lambda: writes_in(process, tmp_path))  # it has begun to write
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT) == 130
        assert process.stderr.read() == b"qwyc: interrupted\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", [["demo"], ["reproduce", "adult"]], ids=lambda c: c[0])
def test_ctrl_c_while_libraries_are_loaded(tmp_path, command):
    with started(*command, cwd=tmp_path, stdout=DEVNULL, stderr=PIPE) as process:
        wait_until(lambda: "libxgboost" in Path(f"/proc/{process.pid}/maps").read_text())
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT) == 130
        assert process.stderr.read() == b"qwyc: interrupted\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("command", "training"),
    [
        (["demo"], rb"Training XGBoost[^\r\n]* [1-9]\d?%"),  # XGBoost calls Python after each tree
        (["reproduce", "adult"], rb"Choosing settings"),
    ],
    ids=["demo", "reproduce"],
)
def test_ctrl_c_while_a_model_is_trained(tmp_path, command, training):
    """The progress line on the terminal shows when training has begun; Ctrl-C erases it."""
    terminal, stderr = os.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    with started(*command, cwd=tmp_path, stdout=DEVNULL, stderr=stderr, env=environment) as process:
        os.close(stderr)
        output = b""
        while not re.search(training, output):
            output += read_terminal(terminal)
            assert process.poll() is None, output
        process.send_signal(signal.SIGINT)
        while part := read_terminal(terminal):
            output += part
        assert process.wait(TIMEOUT) == 130, output
    os.close(terminal)
    assert output.endswith(b"\r\x1b[2K\x1b[?25hqwyc: interrupted\r\n"), output[-300:]
    assert not list(tmp_path.iterdir())


def read_terminal(terminal):
    """What a process has written to a terminal since the last call; empty if it has ended."""
    ready, _, _ = select.select([terminal], [], [], TIMEOUT)
    assert ready, "nothing was written"
    try:
        return os.read(terminal, 4096)
    except OSError:  # the process has closed its side
        return b""


def test_ctrl_c_while_nobody_reads_the_output(made, tmp_path):
    (tmp_path / "many.csv").write_bytes(repeated_rows(made, 20))
    arguments = ["predict", made / "m.qwyc", tmp_path / "many.csv"]
    with started(*arguments, stdout=PIPE, stderr=PIPE) as process:
        size = fcntl.fcntl(process.stdout, fcntl.F_GETPIPE_SZ)

        def is_full():
            waiting = fcntl.ioctl(process.stdout, termios.FIONREAD, struct.pack("i", 0))
            return struct.unpack("i", waiting)[0] > size - 4096  # a pipe is filled in pages

        def is_over():
            process.send_signal(signal.SIGINT)  # again and again, as people press it
            return process.poll() is not None

        wait_until(is_full)
        wait_until(is_over)
        assert process.returncode == 130
        assert set(process.stderr.read().splitlines()) == {b"qwyc: interrupted"}


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
    ("command", "code", "message"),
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
def test_streams_that_are_closed(made, tmp_path, command, code, message):
    """As the shell starts it. The text of one stream must not appear in another stream or in a file."""
    out = tmp_path / "out.csv"
    script = f"{Path(sys.executable).parent / 'qwyc'} {command.replace('OUT', str(out))}"
    done = subprocess.run(["bash", "-c", script], cwd=made, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == bool(message)
    if code == 0:
        assert out.read_text().startswith("label,steps,score,complete\n")
    assert out.exists() == (code == 0)


def test_an_error_does_not_wait_for_the_rest_of_a_pipe(made, tmp_path):
    rows = repeated_rows(made, 40)
    columns = rows.split(b"\n", 1)[0].count(b",") + 1
    wrong = b",".join([b"text"] * columns) + b"\n"
    arguments = ["predict", made / "m.qwyc", "-", "-o", "out.csv"]
    with started(*arguments, cwd=tmp_path, stdin=PIPE, stderr=PIPE) as process:
        with contextlib.suppress(BrokenPipeError):  # it may end before it has read everything
            process.stdin.write(
                rows + wrong + rows * 2
            )  # Arrow parses a block after it has the next
            process.stdin.flush()
        # The pipe stays open, and a thread waits for it.
        assert process.wait(TIMEOUT) == 2
        error = process.stderr.read()
    assert b"holds 'text', but the model takes numbers there" in error
    assert error.count(b"\n") == 1
    assert not list(tmp_path.iterdir())


def test_sigterm_cleans_up_too(made, tmp_path):
    arguments = ["predict", made / "m.qwyc", "-", "-o", "out.csv"]
    with started(*arguments, cwd=tmp_path, stdin=PIPE, stderr=PIPE) as process:
        process.stdin.write(repeated_rows(made, 80))
        process.stdin.flush()
        wait_until(lambda: writes_in(process, tmp_path))  # it has begun to write
        process.terminate()
        assert process.wait(TIMEOUT) == 128 + signal.SIGTERM
        assert process.stderr.read() == b""
    assert not list(tmp_path.iterdir())
