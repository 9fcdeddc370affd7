"""Commands of `qwyc` inside this process, which starts no other and is quick."""

import contextlib
import io
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

from qwyc.cli import main


def run(*arguments, cwd=None, stdin=b""):
    """What a command prints, as bytes, and its exit code."""
    before = (
        sys.argv,
        sys.stdin,
        sys.stdout,
        sys.stderr,
        Path.cwd(),
        [(s, signal.getsignal(s)) for s in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)],
    )
    leave = os._exit

    def left(code):  # what ends the process at once would end the tests
        raise SystemExit(code)

    os._exit = left
    out, err = io.BytesIO(), io.BytesIO()
    sys.argv = ["qwyc", *map(str, arguments)]
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin))
    sys.stdout, sys.stderr = io.TextIOWrapper(out), io.TextIOWrapper(err)
    code = 0
    try:
        with contextlib.suppress(FileNotFoundError):
            os.chdir(cwd or before[4])
        main()
    except SystemExit as done:
        code = done.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        said = out.getvalue(), err.getvalue()
        sys.argv, sys.stdin, sys.stdout, sys.stderr = before[:4]
        os.chdir(before[4])
        os._exit = leave
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before[5]:
            signal.signal(number, handler)
    return SimpleNamespace(returncode=code or 0, stdout=said[0], stderr=said[1])


def one_line(done, code=2):
    """What a command that failed says: one line, and nothing where answers go."""
    text = done.stderr.decode()
    assert done.returncode == code, text
    assert text.startswith("qwyc: ")
    assert text.count("\n") == 1
    assert not done.stdout
    return text
