"""`qwyc verify`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import qwyc
from qwyc.check.diagnose import diagnosis_of
from qwyc.check.verify import verify_rows
from qwyc.classifier import load_certified
from qwyc.cli.data import errors_name, open_rows
from qwyc.cli.file_kinds import check_classifier, check_model
from qwyc.cli.options import (
    FILES,
    AlphaOfFile,
    ByClass,
    ClassifierFile,
    ConfidenceOfFile,
    DataFormat,
    GroupsOfRows,
    Json,
    RepeatsOfFile,
    Threads,
    Unseen,
    UnseenInTest,
    argument,
    parse_alpha,
    parse_by_class,
)
from qwyc.cli.printing import print_json, print_text
from qwyc.cli.progress import ProgressLine

EXIT_CODES = {"pass": 0, "fail": 1, "undecided": 3}


def verify(
    classifier_file: ClassifierFile,
    data: Annotated[
        list[str],
        argument("DATA...", f"Fresh rows that FILE was not made from. {FILES}."),
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
    unseen: UnseenInTest = Unseen.error,
    format: DataFormat = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Test on fresh rows whether a classifier keeps its promise.

    Prints PASS (the rows show that it does), FAIL (they show that it does not) or UNDECIDED (they show
    neither, and about how many more rows would), and where decisions differ. UNDECIDED is usual at the
    same alpha, unless FILE was made with --headroom.
    """
    check_classifier(classifier_file, data, "qwyc verify FILE DATA...")
    if model is not None:
        check_model(model)
    classifier = load_certified(classifier_file)
    requested = None if alpha is None else parse_alpha(alpha)
    limits = parse_by_class(by_class, classifier.ensemble.classes)
    with ProgressLine("Reading") as progress:
        rows, labels = open_rows(data, classifier, format, progress, groups, unseen)
        with errors_name(rows):
            try:
                verification, seen = verify_rows(
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
                    unseen=unseen.value,
                )
            except qwyc.ParityError as error:
                print_text(f"FAIL: {error}")
                raise typer.Exit(1) from None
    assert seen is not None  # the rows are not those of an engine
    if isinstance(classifier, qwyc.Approximation):
        if as_json:
            print_json(verification.as_dict())
        else:
            print_text(verification)
        raise typer.Exit(EXIT_CODES[verification.outcome])
    diagnosis = diagnosis_of(classifier, seen)
    if as_json:
        print_json(verification.as_dict() | {"diagnosis": asdict(diagnosis)})
    else:
        print_text(verification)
        print_text(diagnosis)
    raise typer.Exit(EXIT_CODES[verification.outcome])
