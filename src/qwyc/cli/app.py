"""The Typer application: all commands, and the pages of `--help`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import qwyc
from qwyc.cli.bench import bench
from qwyc.cli.demo import demo
from qwyc.cli.export import export
from qwyc.cli.inspect import inspect as inspect_command
from qwyc.cli.optimize import optimize
from qwyc.cli.options import flag
from qwyc.cli.predict import predict
from qwyc.cli.recertify import recertify
from qwyc.cli.report import report
from qwyc.cli.reproduce import reproduce
from qwyc.cli.verify import verify

EXIT_CODES = (
    "[bold]Exit codes[/]  0 success · 1 a check failed (verify) · 2 wrong input, or a file that cannot "
    "be read or written · 3 a check is undecided (verify) · 130 Ctrl-C. A file is never left partly "
    "written."
)


class _FlagsWithoutValue:
    """A command whose help page shows `--json` and not `--json <bool>`."""

    def get_params(self, context: Any) -> Any:
        params = super().get_params(context)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class _Command(_FlagsWithoutValue, TyperCommand):
    pass


class _Group(_FlagsWithoutValue, TyperGroup):
    pass


app = typer.Typer(
    name="qwyc",
    cls=_Group,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog=EXIT_CODES,
)


def _print_version(requested: bool) -> None:
    if requested:
        print(f"qwyc {qwyc.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, flag("Print the version.", "--version", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Quit When You Can: the same decisions as your tree ensemble, from a fraction of its trees.

    [bold]Start here[/]

    qwyc optimize model.json sample.csv -o fast.qwyc [dim]# rows that are new to the model[/]

    qwyc predict fast.qwyc new.csv -o labels.csv [dim]# files of any size; - is a pipe[/]

    qwyc verify fast.qwyc fresh.csv [dim]# test the promise on fresh rows[/]
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


def _add(command: Callable[..., None], panel: str) -> None:
    """Add a command. Its docstring becomes the help text, without the line breaks of the source."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    app.command(cls=_Command, rich_help_panel=panel, help=text, epilog=EXIT_CODES)(command)


_add(optimize, "Make a classifier")
_add(recertify, "Make a classifier")
_add(predict, "Use a classifier")
_add(inspect_command, "Use a classifier")
_add(verify, "Use a classifier")
_add(bench, "Use a classifier")
_add(report, "Use a classifier")
_add(export, "Use a classifier")
_add(demo, "Examples")
_add(reproduce, "Examples")
