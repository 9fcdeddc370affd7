"""The command line. Errors are one line on standard error: exit code 2 for wrong input, 130 for
Ctrl-C; a traceback is a bug."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import qwyc
from qwyc.errors import QwycError

app = typer.Typer(
    name="qwyc",
    help="Quit When You Can: the same decisions as your tree ensemble, from a fraction of its trees.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"qwyc {qwyc.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    alpha: Annotated[
        float, typer.Option(help="Share of decisions that may differ, in the sample.")
    ] = 0.005,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write the classifier.")
    ] = Path("demo.qwyc"),
    picture: Annotated[Path, typer.Option(help="Where to write the picture.")] = Path("demo.png"),
) -> None:
    """Train XGBoost on UCI Adult, make it quit early, and compare the two on the test rows."""
    from qwyc import demo as demonstration

    demonstration.run(Console(), alpha, output, picture)


def main() -> None:
    """Entry point of the `qwyc` command."""
    try:
        app(standalone_mode=True)
    except QwycError as error:
        print(f"qwyc: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("qwyc: interrupted", file=sys.stderr)
        sys.exit(130)
