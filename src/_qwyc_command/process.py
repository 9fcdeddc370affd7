"""How the process of the `qwyc` command starts and ends. Imports nothing that takes time."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn


def replace_closed_streams() -> None:
    """Open the null device in place of each standard stream that is closed (`>&-`).

    Python sets such a stream to None, and the next file that is opened would get its number. With the
    replacement, standard input is empty, standard output fails when it is written to, and messages to
    standard error are lost."""
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # gets the lowest free number, which is this one
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")


def handle_signals(cleanups: Sequence[Callable[[], None]] = ()) -> None:
    """End the process on SIGINT (Ctrl-C) and SIGTERM, after calling `cleanups`.

    The handler itself ends the process. It does not raise an exception, because an exception is lost
    where a library catches it, becomes another error where one import runs inside another, and crashes
    a trainer whose native code has called back into Python. Cleanups must therefore not rely on
    `finally` clauses, and may be called twice if the signal comes twice."""

    def end(number: int, frame: object) -> NoReturn:
        for cleanup in cleanups:
            with contextlib.suppress(Exception):
                cleanup()
        if number == signal.SIGINT:
            with contextlib.suppress(OSError):
                os.write(2, b"qwyc: interrupted\n")  # sys.stderr may be in the middle of a write
        leave(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)


def leave(code: int, *, finished: bool = False) -> NoReturn:
    """End the process with an exit code. Every end of a command goes through this function.

    `finished` says that the command has run to its end, so that Python may exit as usual."""
    if finished:
        sys.exit(code)
    for stream in (sys.stdout, sys.stderr):
        # A full disk, a reader that has gone, or a write that the signal has interrupted.
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            stream.flush()
    # After an error or a signal, threads of ours and of Arrow may still be reading, perhaps from a pipe
    # that nobody writes to. Python's usual exit waits for such threads, and aborts the process if one of
    # them holds the lock of standard input. All files have been cleaned up, so the process ends at once.
    os._exit(code)
