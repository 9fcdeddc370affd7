"""`qwyc recertify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import qwyc
from qwyc.classifier import load_classifier
from qwyc.cli.data import errors_name, open_rows
from qwyc.cli.file_kinds import check_classifier
from qwyc.cli.options import (
    FILES,
    AlphaOfFile,
    ByClass,
    ClassifierFile,
    ConfidenceOfFile,
    DataFormat,
    GroupsOfRows,
    Headroom,
    Json,
    RepeatsOfFile,
    Threads,
    Unseen,
    UnseenInTest,
    argument,
    parse_alpha,
    parse_by_class,
)
from qwyc.cli.printing import save_classifier
from qwyc.cli.progress import ProgressLine
from qwyc.rows.files.inputs import local_paths
from qwyc.runtime.output import check_target


def recertify(
    classifier_file: ClassifierFile,
    data: Annotated[
        list[str],
        argument("DATA...", f"Current rows that FILE was not made from. {FILES}."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write; may be FILE.")],
    alpha: AlphaOfFile = None,
    by_class: ByClass = None,
    confidence: ConfidenceOfFile = None,
    groups: GroupsOfRows = None,
    headroom: Headroom = 0,
    repeats: RepeatsOfFile = None,
    unseen: UnseenInTest = Unseen.error,
    format: DataFormat = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Choose a classifier's policy again, using other rows, and write the result.

    Nothing is fitted. FILE holds several policies, and the command takes the one that quits earliest
    among those that keep alpha on these rows. Use it when the rows have changed, or when there are more
    rows, which can certify a smaller alpha.

    [dim]qwyc recertify fraud.qwyc october.parquet -o fraud-october.qwyc[/]
    """
    check_target(output, regular=True, inputs=local_paths(data))  # FILE may be replaced
    check_classifier(classifier_file, data, "qwyc recertify FILE DATA... -o OUT")
    classifier = load_classifier(classifier_file)
    requested = None if alpha is None else parse_alpha(alpha)
    with ProgressLine("Reading") as progress:
        rows, labels = open_rows(data, classifier, format, progress, groups, unseen)
        with errors_name(rows):
            recertified = qwyc.recertify(
                classifier,
                rows,
                alpha=requested,
                by_class=parse_by_class(by_class, classifier.ensemble.classes),
                headroom=headroom,
                confidence=confidence,
                groups=labels,
                repeats=None if repeats is None else repeats.value,
                threads=threads,
                progress=progress,
                unseen=unseen.value,
            )
    save_classifier(recertified, output, as_json)
