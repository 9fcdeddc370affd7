"""Runs commands of `qwyc`: inside this process, which is fast, or in a process of their own."""

import contextlib
import io
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from qwyc.cli.main import run as run_command

TIMEOUT = 120  # seconds after which a test that waits for an event fails


def run(*arguments, cwd=None, stdin=b""):
    """Run a command inside this process: its exit code, and what it prints, as bytes."""
    before = sys.argv, sys.stdin, sys.stdout, sys.stderr
    folder = Path.cwd()
    out, err = io.BytesIO(), io.BytesIO()
    sys.argv = ["qwyc", *map(str, arguments)]
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin))
    sys.stdout, sys.stderr = io.TextIOWrapper(out), io.TextIOWrapper(err)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.chdir(cwd or folder)
        outcome = run_command()
        sys.stdout.flush()
        sys.stderr.flush()
        return SimpleNamespace(
            returncode=outcome.code, stdout=out.getvalue(), stderr=err.getvalue()
        )
    finally:
        sys.argv, sys.stdin, sys.stdout, sys.stderr = before
        os.chdir(folder)


def command_line(*arguments):
    """The arguments of a process that runs a command."""
    return [sys.executable, "-c", "from qwyc.cli import main; main()", *map(str, arguments)]


@contextlib.contextmanager
def started(*arguments, **options):
    """A process that runs a command, and is ended at the latest with the block."""
    with subprocess.Popen(command_line(*arguments), **options) as process:
        try:
            yield process
        finally:
            process.kill()
            if process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.close()


def one_line(done, code=2):
    """The message of a command that has failed: one line, and nothing on standard output."""
    text = done.stderr.decode()
    assert done.returncode == code, text
    assert text.startswith("qwyc: ")
    assert text.count("\n") == 1
    assert not done.stdout
    return text


def wait_until(condition):
    """Wait until an event has happened; fail if it does not."""
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline, "the event did not happen"
        time.sleep(0.02)
