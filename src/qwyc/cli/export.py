"""`qwyc export`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from qwyc.classifier import load_classifier
from qwyc.cli.file_kinds import check_classifier
from qwyc.cli.options import ClassifierFile, Json, argument, flag
from qwyc.cli.printing import print_json, print_text


class Language(str, Enum):
    """What a classifier can be exported to."""

    c = "c"


def export(
    language: Annotated[Language, argument("LANGUAGE", "c, which is C99.")],
    classifier_file: ClassifierFile,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="Files to write: PATH.c and PATH.h.",
            show_default=False,
        ),
    ],
    prefix: Annotated[
        str, typer.Option(metavar="NAME", help="What the names in the header begin with.")
    ] = "qwyc",
    small: Annotated[
        bool,
        flag(
            "For small devices: trees of two classes in integers, without floating-point arithmetic. A "
            "model that integers might decide differently is refused.",
            "--small",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Write a classifier as one C99 source and its header, which need nothing else.

    The function NAME_predict_one takes a row of numbers and returns the index of its class. Decisions,
    steps and scores equal those of qwyc bit for bit. The header says what a row holds.

    [dim]qwyc export c fraud.qwyc -o fraud --prefix fraud[/]
    """
    check_classifier(classifier_file)
    classifier = load_classifier(classifier_file)
    source, header = classifier.export_c(output, prefix=prefix, small=small)
    if as_json:
        print_json({"source": source, "header": header, "language": language.value})
    else:
        print_text(f"Wrote {source} and {header}.")
