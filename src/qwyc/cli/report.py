"""`qwyc report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from qwyc.classifier import load_classifier
from qwyc.cli.data import errors_name, order_values, schema_of
from qwyc.cli.file_kinds import check_classifier
from qwyc.cli.options import FILES, ClassifierFile, DataFormat, Threads, argument, flag, option
from qwyc.cli.printing import print_text
from qwyc.cli.progress import ProgressLine
from qwyc.errors import OptionError
from qwyc.report.html import MAX_ROWS, is_report
from qwyc.rows.files.inputs import local_paths
from qwyc.rows.files.reader import TableFiles
from qwyc.runtime.output import check_target


def report(
    classifier_file: ClassifierFile,
    rows_given: Annotated[
        list[str] | None,
        argument(
            "DATA...",
            "Rows that FILE was not made from, to show times, other methods and where decisions differ. "
            f"{FILES}.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        option(
            "File to write \\[default: the name of FILE with .html, in the current folder]",
            "--output",
            "-o",
        ),
    ] = None,
    data_option: Annotated[
        list[str] | None,
        option("The same as DATA; may be given several times.", "--data", metavar="DATA"),
    ] = None,
    labels: Annotated[
        str | None,
        option("Column of DATA with the true class of each row, for accuracy.", metavar="COLUMN"),
    ] = None,
    slices: Annotated[
        list[str] | None,
        option(
            "Column of DATA to slice rows by, besides the features; may be given several times.",
            "--slice",
            metavar="COLUMN",
        ),
    ] = None,
    max_rows: Annotated[
        int,
        typer.Option(metavar="N", help="Use at most N rows of DATA, drawn at random."),
    ] = MAX_ROWS,
    no_speed: Annotated[
        bool,
        flag("Do not measure times. The same inputs then give the same file.", "--no-speed"),
    ] = False,
    format: DataFormat = None,
    threads: Threads = None,
) -> None:
    """Write a self-contained HTML page about a classifier.

    It shows what is promised, and with a slider what every other alpha would cost: base models, time,
    machines needed, and how much of each class is lost. With DATA it compares the paper's method
    and others, and shows where decisions differ.

    [dim]qwyc report fraud.qwyc october.parquet --labels is_fraud -o fraud.html[/]
    """
    data = [*(rows_given or []), *(data_option or [])]
    target = output or _default_target(classifier_file)
    kept = [*([] if labels is None else [labels]), *(slices or [])]
    named_by = "--slice" if labels is None else "--labels or --slice" if slices else "--labels"
    if kept and not data:
        raise OptionError(
            f"{named_by} names a column of DATA, but there is no DATA; name its files too"
        )
    check_target(target, regular=True, inputs=[classifier_file, *local_paths(data)])
    check_classifier(classifier_file, data, "qwyc report FILE DATA...")
    classifier = load_classifier(classifier_file)
    with ProgressLine("Reading") as progress:
        rows: Any = None
        truth: Any = None
        columns: dict[str, Any] | None = None
        about: TableFiles | Path = classifier_file
        if data:
            about = files = TableFiles(
                data,
                schema_of(classifier),
                keep=list(dict.fromkeys(kept)),
                option=named_by,
                kind=format and format.value,
                report=progress,
            )
            rows, found = files.table()
            truth = None if labels is None else found.column(labels).to_pylist()
            columns = {name: order_values(found.column(name)) for name in slices or []} or None
        with errors_name(about):
            classifier.report(
                target,
                rows,
                truth,
                slices=columns,
                speed=not no_speed,
                max_rows=max_rows,
                threads=threads,
                progress=progress,
            )
    print_text(f"Wrote {target}.")


def _default_target(classifier_file: Path) -> Path:
    """A file in the current folder. An existing file is replaced only if it is a report."""
    target = Path(classifier_file.with_suffix(".html").name)
    if target.is_file() and not is_report(target):
        raise OptionError(
            f"{target} exists and is not a report of qwyc; name the file to write with -o, or remove "
            f"{target}"
        )
    return target
