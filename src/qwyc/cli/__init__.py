"""The command line. Errors are one line on standard error; a traceback is a bug (docs/cli.md)."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

import qwyc
from qwyc.cli import look, make, use
from qwyc.cli.shared import flag
from qwyc.errors import QwycError, QwycWarning
from qwyc.runtime.output import reason

EXIT_CODES = (
    "[bold]Exit codes[/]  0 done · 1 a check failed (verify) · 2 wrong input, or a file that cannot be "
    "read or written · 130 Ctrl-C. Whatever the code, no file is left half-written."
)
TRAINERS = ("xgboost", "lightgbm")
_pressed = threading.Event()  # Ctrl-C, in this run
AGAIN = 2.0  # seconds after which an interrupt that has got lost is raised again
UsageError: Any = typer.BadParameter.__bases__[0]  # click's own, wherever Typer keeps it


class _PlainFlags:
    """A command on whose page a flag takes no value: `--help`, not `--help <bool>`."""

    def get_params(self, context: Any) -> Any:
        params = super().get_params(context)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class _Command(_PlainFlags, TyperCommand):
    pass


class _Commands(_PlainFlags, TyperGroup):
    pass


app = typer.Typer(
    name="qwyc",
    cls=_Commands,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog=EXIT_CODES,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"qwyc {qwyc.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, flag("Print the version.", "--version", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Quit When You Can: the same decisions as your tree ensemble, from a fraction of its trees.

    [bold]Start here[/]

    qwyc optimize model.json sample.csv -o fast.qwyc [dim]# rows new to the model[/]

    qwyc predict fast.qwyc new.csv -o labels.csv [dim]# of any size, - for pipes[/]

    qwyc verify fast.qwyc fresh.csv [dim]# does the promise hold?[/]
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


def _add(command: Callable[..., None], panel: str) -> None:
    """Add a command, its docstring as running text: a line in the source is no line on the screen."""
    pages = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    text = "\n\n".join(" ".join(page.split()) for page in pages)
    app.command(cls=_Command, rich_help_panel=panel, help=text, epilog=EXIT_CODES)(command)


_add(make.optimize, "Make a classifier")
_add(make.recertify, "Make a classifier")
_add(use.predict, "Use it")
_add(look.inspect, "Use it")
_add(look.verify, "Use it")
_add(look.bench, "Use it")
_add(make.demo, "See it work")
_add(make.reproduce, "See it work")


def main() -> None:
    """The `qwyc` command."""
    signal.signal(signal.SIGTERM, _terminated)
    signal.signal(signal.SIGALRM, _interrupted)
    signal.signal(signal.SIGINT, _interrupted)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # LANG=C: a µ that cannot be written is no error
    _pressed.clear()
    try:
        code, message = _run()
    except BaseException:
        if not _pressed.is_set():
            raise
        code = 130  # what a library makes of Ctrl-C, as where it is importing another
    if _pressed.is_set() and code:
        signal.setitimer(signal.ITIMER_REAL, 0)  # it has arrived
        code, message = 130, "interrupted"
    if message:
        print(f"qwyc: {message}", file=sys.stderr)
    _leave(code)


def _run() -> tuple[int, str]:
    """The exit code, and what is to be said."""
    try:
        with _notes():
            code = app(prog_name="qwyc", standalone_mode=False) or 0
        sys.stdout.flush()
    except (QwycError, UsageError) as error:
        return 2, _sentence(error)
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except (BrokenPipeError, SystemExit) as error:
        code = error.code if isinstance(error, SystemExit) else 0
        if BrokenPipeError in (type(error), type(error.__context__)):
            code = 0  # the reader has had enough: `| head`
    except OSError as error:  # files have errors of their own, so this is standard output
        return 2, f"cannot write standard output: {reason(error)}"
    return code, "interrupted" if code == 130 else ""


@contextlib.contextmanager
def _notes() -> Iterator[None]:
    """Warnings of ours as one line each, like errors."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def note(message: Any, category: Any, *place: Any, **more: Any) -> None:
            if issubclass(category, QwycWarning):
                print(f"qwyc: note: {message}", file=sys.stderr)
            else:
                show(message, category, *place, **more)

        warnings.simplefilter("always", QwycWarning)
        warnings.showwarning = note
        yield


def _sentence(error: Any) -> str:
    """One line, whatever the error has to say."""
    if isinstance(error, UsageError):
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "qwyc"
        said = " ".join(error.format_message().split()).replace(" Value error,", "")
        return f"{said} See: {command} --help"
    return " ".join(str(error).split())


def _leave(code: int) -> NoReturn:
    """End the process at once: all that has to be cleaned up has been. Python's own way out waits for
    threads, and aborts where one of them holds the lock of standard input, as a reader of a pipe does."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # a full disk, a reader that has gone
            stream.flush()
    os._exit(code)


def _terminated(signum: int, frame: object) -> NoReturn:
    sys.exit(128 + signum)  # by way of what cleans up


def _interrupted(signum: int, frame: FrameType | None) -> None:
    """Ctrl-C is an exception; but not inside a trainer, whose callbacks from native code lose
    exceptions and then crash. Nothing of ours is being written there, so leave at once."""
    at = frame
    while at is not None:
        if at.f_globals.get("__name__", "").split(".")[0] in TRAINERS:
            cursor = "\x1b[?25h\n" if sys.stderr.isatty() else ""  # the progress bar hides it
            os.write(2, f"{cursor}qwyc: interrupted\n".encode())
            os._exit(130)
        at = at.f_back
    _pressed.set()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # pressed twice, it must not stop the cleaning up
    signal.setitimer(signal.ITIMER_REAL, AGAIN)  # some library may have caught what is raised here
    raise KeyboardInterrupt
