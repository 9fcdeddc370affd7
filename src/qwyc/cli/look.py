"""`qwyc inspect`, `qwyc verify` and `qwyc bench`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import qwyc
from qwyc.cli.shared import (
    ClassifierFile,
    DataFormat,
    Json,
    SameAlpha,
    SameConfidence,
    Screen,
    Threads,
    about,
    argument,
    console,
    inputs_of,
    parse_alpha,
    print_json,
)
from qwyc.report import inspection
from qwyc.rows.files.reader import read_table


def inspect(classifier: ClassifierFile, as_json: Json = False) -> None:
    """Say what a classifier is, what it promises, and what other alphas would cost."""
    fast = qwyc.load(classifier)
    if as_json:
        print_json(inspection.inspect(fast))
    else:
        print(inspection.describe(fast))


def verify(
    classifier: ClassifierFile,
    data: Annotated[
        Path,
        argument(
            "DATA",
            "Fresh rows, which it has never seen: CSV, Parquet or Arrow; - is standard input.",
        ),
    ],
    alpha: SameAlpha = None,
    confidence: SameConfidence = None,
    model: Annotated[
        Path | None,
        typer.Option(help="The model's file: all full decisions and scores must equal its own."),
    ] = None,
    format: DataFormat = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Test what a classifier promises, on rows that it has never seen.

    Prints PASS or FAIL, and where decisions differ. Exit code 0: pass; 1: fail; 2: wrong input.
    """
    fast = qwyc.load(classifier)
    budget = None if alpha is None else parse_alpha(alpha)
    with Screen(f"Reading {data}") as screen:
        rows, _ = read_table(data, inputs_of(fast), kind=format and format.value, report=screen)
        if model is not None:
            screen(f"Comparing with {model}", 0, 0)
        with about(data):
            try:
                verification = qwyc.verify(
                    fast,
                    rows,
                    alpha=budget,
                    confidence=confidence,
                    model=model,
                    threads=threads,
                    progress=screen,
                )
            except qwyc.ParityError as error:
                print(f"FAIL: {error}")
                raise typer.Exit(1) from None
            diagnosis = qwyc.diagnose(fast, rows, threads=threads, progress=screen)
    if as_json:
        print_json(verification.as_dict() | {"diagnosis": asdict(diagnosis)})
    else:
        print(verification)
        print(diagnosis)
    raise typer.Exit(0 if verification.passed else 1)


def bench(
    classifier: ClassifierFile,
    data: Annotated[Path, argument("DATA", "Rows: CSV, Parquet or Arrow; - is standard input.")],
    model: Annotated[
        Path | None,
        typer.Option(help="The model it was made from, to time the library that trained it."),
    ] = None,
    threads: Annotated[int, typer.Option(metavar="N", help="Threads for everyone.")] = 1,
    seconds: Annotated[float, typer.Option(help="For each contestant and batch size.")] = 1.0,
    format: DataFormat = None,
    as_json: Json = False,
) -> None:
    """Time a classifier: quitting, in full, and the library that trained it."""
    from qwyc.check import benchmark

    fast = qwyc.load(classifier)
    with Screen(f"Reading {data}") as screen:
        rows, _ = read_table(data, inputs_of(fast), kind=format and format.value, report=screen)
        with about(data):
            found = benchmark.bench(
                fast, rows, source=model, threads=threads, seconds=seconds, progress=screen
            )
    if as_json:
        print_json(found.as_dict())
        return
    print(f"{found.model}; {found.threads} thread(s)")
    print(", ".join(f"{k} {v}" for k, v in found.machine.items()))
    console().print(found.table())
    print(found.summary())
