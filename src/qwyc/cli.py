"""The command line. Errors are one line on standard error: exit code 2 for wrong input, 130 for
Ctrl-C; a traceback is a bug."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import qwyc
from qwyc.datafiles import read_table
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
        float, typer.Option(help="Share of decisions on new rows that may differ.")
    ] = 0.005,
    confidence: Annotated[float, typer.Option(help="With which alpha holds on new rows.")] = 0.95,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write the classifier.")
    ] = Path("demo.qwyc"),
    picture: Annotated[Path, typer.Option(help="Where to write the picture.")] = Path("demo.png"),
) -> None:
    """Train XGBoost on UCI Adult, make it quit early, and compare the two on the test rows."""
    from qwyc import demo as demonstration

    demonstration.run(Console(), alpha, confidence, output, picture)


@app.command()
def verify(
    classifier: Annotated[Path, typer.Argument(help="A .qwyc file.", show_default=False)],
    data: Annotated[
        Path, typer.Argument(help="Fresh rows: CSV, Parquet or Arrow IPC.", show_default=False)
    ],
    alpha: Annotated[
        float | None, typer.Option(help="Share that may differ [what the file promises].")
    ] = None,
    confidence: Annotated[
        float | None, typer.Option(help="With which it must be shown [what the file promises].")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(help="The model's file: all full decisions and scores must equal its own."),
    ] = None,
) -> None:
    """Certify a saved classifier again on rows that it has never seen.

    Prints PASS or FAIL and where decisions differ. Exit code 0: pass; 1: fail; 2: wrong input.
    """
    fast = qwyc.load(classifier)
    rows = read_table(data)
    try:
        verification = qwyc.verify(fast, rows, alpha=alpha, confidence=confidence, model=model)
    except qwyc.ParityError as error:
        print(f"FAIL: {error}")
        raise typer.Exit(1) from None
    print(verification)
    print(qwyc.diagnose(fast, rows))
    raise typer.Exit(0 if verification.passed else 1)


@app.command()
def inspect(
    classifier: Annotated[Path, typer.Argument(help="A .qwyc file.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a saved classifier is, what it promises, what other alphas would cost, and how it is
    evaluated and why."""
    import json

    from qwyc import inspection

    fast = qwyc.load(classifier)
    if as_json:
        print(json.dumps(inspection.inspect(fast), indent=2))
    else:
        print(inspection.describe(fast))


@app.command()
def bench(
    classifier: Annotated[Path, typer.Argument(help="A .qwyc file.", show_default=False)],
    data: Annotated[
        Path, typer.Argument(help="Rows: CSV, Parquet or Arrow IPC.", show_default=False)
    ],
    model: Annotated[
        Path | None,
        typer.Option(help="The model it was made from, to time the library that trained it."),
    ] = None,
    threads: Annotated[int, typer.Option(help="Threads for everyone.")] = 1,
    seconds: Annotated[float, typer.Option(help="For each contestant and batch size.")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Time a saved classifier on rows of yours: quitting, in full, and the library that trained it."""
    import json

    from qwyc import bench as benchmark

    fast, rows = qwyc.load(classifier), read_table(data)
    found = benchmark.bench(fast, rows, source=model, threads=threads, seconds=seconds)
    if as_json:
        print(json.dumps(found.as_dict(), indent=2))
        return
    console = Console()
    print(f"{found.model}; {found.threads} thread(s)")
    print(", ".join(f"{k} {v}" for k, v in found.machine.items()))
    console.print(found.table())
    print(found.summary())


class Experiment(str, Enum):
    """The paper's experiments on public data."""

    adult = "adult"
    nomao = "nomao"


@app.command()
def reproduce(
    experiment: Annotated[Experiment, typer.Argument(help="Experiment 1 (adult) or 2 (nomao).")],
    folder: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write to [reproduce-NAME].")
    ] = None,
    reduced: Annotated[
        bool, typer.Option(help="A small version, to see that it runs: its figures mean nothing.")
    ] = False,
) -> None:
    """Run one of the paper's experiments again: every method, every figure, every claim.

    Nomao is read from the folder that QWYC_DATA names, or fetched from OpenML.
    """
    from qwyc.experiments import reproduce as reproduction

    target = folder or Path(f"reproduce-{experiment.value}")
    reproduction.run(experiment.value, target, reduced=reduced, console=Console())


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
