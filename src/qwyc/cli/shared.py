"""What the commands share: options, progress on the terminal, JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, TextIO

import typer
from rich.console import Console

import qwyc
from qwyc.errors import InputError, OptionError
from qwyc.rows.files.reader import in_file
from qwyc.rows.schema import Schema
from qwyc.runtime.progress import make_bar


def argument(metavar: str, help: str) -> Any:
    """An argument."""
    return typer.Argument(metavar=metavar, help=help, show_default=False)


def option(help: str, *names: str, metavar: str | None = None) -> Any:
    """An option whose help says what it is by default, if anything."""
    return typer.Option(*names, metavar=metavar, help=help, show_default=False)


def flag(help: str, name: str, **more: Any) -> Any:
    """An option without a value."""
    return typer.Option(name, help=help, **more)


ClassifierFile = Annotated[Path, argument("FILE", "A .qwyc file.")]
Alpha = Annotated[
    str,
    typer.Option(
        metavar="SHARE",
        help="Share of decisions on new rows that may differ from the full ensemble's, such as 0.005; "
        "or by kind: negative=0.001,positive=0.01. 0 is proven, for every input.",
    ),
]
Json = Annotated[bool, flag("Print one JSON object instead of text, for machines.", "--json")]
Threads = Annotated[int | None, option("Threads \\[default: every core]", metavar="N")]
Confidence = Annotated[float, typer.Option(help="Probability that alpha holds on new rows.")]


SameAlpha = Annotated[
    str | None, option("Share that may differ \\[default: what FILE promises]", metavar="SHARE")
]
SameConfidence = Annotated[
    float | None, option("With which it must be shown \\[default: what FILE promises]")
]


class Format(str, Enum):
    """What a table is written in."""

    csv = "csv"
    parquet = "parquet"
    arrow = "arrow"


DataFormat = Annotated[
    Format | None, option("What DATA is \\[default: by its name; - is csv]", "--format")
]


def parse_alpha(text: str) -> float | dict[str, float]:
    """A share, or shares by kind."""
    try:
        if "=" not in text:
            return float(text)
        pairs = (part.split("=") for part in text.split(","))
        return {kind.strip(): float(share) for kind, share in pairs}
    except ValueError:
        raise OptionError(
            f"alpha must be a number such as 0.005, or negative=0.001,positive=0.01; got {text!r}"
        ) from None


def inputs_of(fast: qwyc.Classifier) -> Schema:
    """What rows must look like for a classifier out of a file."""
    assert fast.ensemble.schema is not None  # a file's model has one
    return fast.ensemble.schema


@contextmanager
def about(data: Path) -> Iterator[None]:
    """Name the data in what is said about its rows."""
    try:
        yield
    except InputError as error:
        raise in_file(data, error) from None


def console() -> Console:
    """Standard output, for tables and colours; wide enough for them where it is no terminal."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 100)


def print_json(facts: Any, stream: TextIO | None = None) -> None:
    """One object, readable by people too."""
    print(json.dumps(facts, indent=2, default=_plain), file=stream or sys.stdout)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


class Screen:
    """One line of progress on standard error where that is a terminal, and nothing elsewhere.

    Called with what is being done, how much of it is done, and the total: 0 where nobody knows."""

    def __init__(self, what: str, *, quiet: bool = False) -> None:
        self._bar: Any = None
        self._what = what
        if sys.stderr.isatty() and not quiet:
            self._bar = make_bar(transient=True)
            self._task = self._bar.add_task(what, total=None)

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show that so much of it is done."""
        if self._bar is None:
            return
        if what != self._what:
            self._bar.remove_task(self._task)
            self._task, self._what = self._bar.add_task(what, total=total or None), what
        self._bar.update(self._task, completed=done, total=total or None)

    def __enter__(self) -> Screen:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
