"""`qwyc verify`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import qwyc
from qwyc.cli.data import errors_name, read_rows
from qwyc.cli.options import (
    AlphaOfFile,
    ByClass,
    ClassifierFile,
    ConfidenceOfFile,
    DataFormat,
    GroupsOfRows,
    Json,
    RepeatsOfFile,
    Threads,
    argument,
    parse_alpha,
    parse_by_class,
)
from qwyc.cli.printing import print_json
from qwyc.cli.progress import ProgressLine

EXIT_CODES = {"pass": 0, "fail": 1, "undecided": 3}


def verify(
    classifier_file: ClassifierFile,
    data: Annotated[
        Path,
        argument(
            "DATA",
            "Fresh rows that FILE was not made from: CSV, Parquet or Arrow; - is standard input.",
        ),
    ],
    alpha: AlphaOfFile = None,
    by_class: ByClass = None,
    confidence: ConfidenceOfFile = None,
    groups: GroupsOfRows = None,
    model: Annotated[
        Path | None,
        typer.Option(
            help="The file of the model. The full decisions and scores must equal those of the model."
        ),
    ] = None,
    repeats: RepeatsOfFile = None,
    format: DataFormat = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Test on fresh rows whether a classifier keeps its guarantee.

    Prints PASS (the rows show that it does), FAIL (they show that it does not) or UNDECIDED (they show
    neither, and about how many more rows would), and where decisions differ.

    Exit code 0: pass; 1: fail; 2: wrong input; 3: undecided.
    """
    classifier = qwyc.load(classifier_file)
    requested = None if alpha is None else parse_alpha(alpha)
    limits = parse_by_class(by_class, classifier.ensemble.classes)
    with ProgressLine(f"Reading {data}") as progress:
        rows, labels = read_rows(data, classifier, format, progress, groups)
        if model is not None:
            progress(f"Comparing with {model}", 0, 0)
        with errors_name(data):
            try:
                verification = qwyc.verify(
                    classifier,
                    rows,
                    alpha=requested,
                    by_class=limits,
                    confidence=confidence,
                    groups=labels,
                    model=model,
                    repeats=None if repeats is None else repeats.value,
                    threads=threads,
                    progress=progress,
                )
            except qwyc.ParityError as error:
                print(f"FAIL: {error}")
                raise typer.Exit(1) from None
            diagnosis = qwyc.diagnose(classifier, rows, threads=threads, progress=progress)
    if as_json:
        print_json(verification.as_dict() | {"diagnosis": asdict(diagnosis)})
    else:
        print(verification)
        print(diagnosis)
    raise typer.Exit(EXIT_CODES[verification.outcome])
