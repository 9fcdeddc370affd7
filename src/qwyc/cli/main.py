"""Runs the command line, and turns errors into one line on standard error and an exit code.

A traceback is a bug. docs/cli.md lists the exit codes."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer

from _qwyc_command import process
from qwyc.cli.app import app
from qwyc.cli.printing import as_commands, printable
from qwyc.cli.progress import ProgressLine
from qwyc.errors import QwycError, QwycWarning
from qwyc.limits import MAX_MESSAGE
from qwyc.runtime.output import reason, remove_unfinished

UsageError: Any = typer.BadParameter.__bases__[0]  # click's class, which Typer may keep a copy of


@dataclass(frozen=True)
class Outcome:
    """How a command has ended."""

    code: int
    message: str = ""
    finished: bool = False  # whether it has run to its end, so that none of its threads still reads


TRACEBACK = "QWYC_TRACEBACK"  # set to print where an unexpected error was raised
REPORT_IT = f"Please report it with the output of the same command under {TRACEBACK}=1"
INTERRUPTED = Outcome(130, "interrupted")


def main() -> None:
    """Run the command that sys.argv names, and end the process."""
    process.handle_signals([remove_unfinished, ProgressLine.erase])
    outcome = run()
    process.leave(outcome.code, finished=outcome.finished)


def run() -> Outcome:
    """Run the command that sys.argv names, and print the message of its outcome."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # LANG=C: µ is printed as ?, and is not an error
    outcome = _invoke()
    if outcome.message:
        print(f"qwyc: {_shown(outcome.message)}", file=sys.stderr)
    return outcome


def _invoke() -> Outcome:
    try:
        with _warnings_as_lines():
            code = app(prog_name="qwyc", standalone_mode=False) or 0
        sys.stdout.flush()
    except (QwycError, UsageError) as error:
        return Outcome(2, _one_line(error))
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:  # the reader of the output has stopped, as in `| head`
        return Outcome(0)
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # Typer exits where it catches one
            return Outcome(0)
        return Outcome(int(error.code or 0), finished=True)
    except OSError as error:  # errors of files are QwycErrors, so this is standard output
        return Outcome(2, f"cannot write standard output: {reason(error)}")
    except MemoryError:
        return Outcome(2, "there is not enough memory; pass smaller files, or fewer rows")
    except Exception as error:
        # Exit code 1 is a failed check, which this is not.
        if os.environ.get(TRACEBACK):
            traceback.print_exc()
        what = " ".join(f"{type(error).__name__}: {error}".split())
        return Outcome(2, f"an error that should not happen ({what}). {REPORT_IT}")
    return INTERRUPTED if code == INTERRUPTED.code else Outcome(code, finished=True)


@contextlib.contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Print each warning of qwyc as one line."""
    with warnings.catch_warnings():
        show_other = warnings.showwarning

        def show(message: Any, category: Any, *place: Any, **options: Any) -> None:
            if issubclass(category, QwycWarning):
                print(f"qwyc: warning: {_shown(as_commands(str(message)))}", file=sys.stderr)
            else:
                show_other(message, category, *place, **options)

        warnings.simplefilter("always", QwycWarning)
        warnings.showwarning = show
        yield


def _shown(message: str) -> str:
    """A message as a terminal may show it: on one line, and not at any length."""
    text = printable(message)
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE - 3]}..."


def _one_line(error: Any) -> str:
    """The message of an error on one line."""
    if isinstance(error, UsageError):
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "qwyc"
        message = " ".join(error.format_message().split()).replace(" Value error,", "")
        stop = "" if message.endswith((".", "?", "!")) else "."
        return f"{message}{stop} See: {command} --help"
    return " ".join(as_commands(str(error)).split())
