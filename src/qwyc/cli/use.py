"""`qwyc predict`: files larger than memory, and pipes."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import qwyc
from qwyc.cli.shared import (
    ClassifierFile,
    DataFormat,
    Format,
    Json,
    Screen,
    Threads,
    argument,
    inputs_of,
    option,
    print_json,
)
from qwyc.errors import InputError, OptionError
from qwyc.policy.columns import COLUMNS, arrow_columns
from qwyc.rows.files.batch import Batch
from qwyc.rows.files.reader import KINDS, in_file, read_batches, shown
from qwyc.rows.files.writer import TableWriter
from qwyc.runtime.output import check_target, open_output


def predict(
    classifier: ClassifierFile,
    data: Annotated[
        Path, argument("DATA", "Rows: CSV, Parquet or Arrow, of any size; - is standard input.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write; - is standard output.")
    ] = Path("-"),
    keep: Annotated[
        list[str] | None,
        option(
            "Copy this column of DATA to the output too, such as an identifier. May be repeated.",
            metavar="COLUMN",
        ),
    ] = None,
    prefix: Annotated[
        str, option("Goes before the names of the output's own columns.", metavar="TEXT")
    ] = "",
    format: DataFormat = None,
    to: Annotated[
        Format | None, option("What to write \\[default: by the output's name; - is csv]", "--to")
    ] = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Decide rows: a label each, and how many base models it took.

    The output has the columns that are kept, then label, steps (base models evaluated), score (the
    full score where complete, otherwise the running sum at the quit) and complete. Rows are read,
    decided and written batch by batch, so memory does not grow with the file.

    [dim]qwyc predict fraud.qwyc today.csv -o labels.parquet --keep id[/]

    [dim]zcat today.csv.gz | qwyc predict fraud.qwyc - | head[/]
    """
    kept = keep or []
    names = [prefix + column for column in COLUMNS]
    taken = [name for name in kept if name in names]
    if taken:
        raise OptionError(
            f"--keep {taken[0]}: the output has a column of that name already; give others with --prefix, "
            f"such as --prefix {prefix}qwyc_"
        )
    kind = _kind_to_write(output, to)
    check_target(output, inputs=[classifier, data])
    fast = qwyc.load(classifier)
    started = time.perf_counter()
    rows_are_shown = str(output) == "-" and sys.stdout.isatty()  # then they are the progress
    with Screen(f"Reading {shown(data)}", quiet=rows_are_shown) as screen:
        reading = read_batches(
            data, inputs_of(fast), keep=kept, kind=format and format.value, report=screen
        )
        done = _Answers(fast, data, names, threads)
        with contextlib.closing(reading) as batches:
            done.write(batches, output, kind)
    done_in = time.perf_counter() - started
    if as_json:
        stream = sys.stderr if str(output) == "-" else sys.stdout
        print_json(
            {
                "rows": done.rows,
                "positive": done.positive,
                "mean_models": done.steps / done.rows if done.rows else None,
                "base_models": fast.policy.n_models,
                "complete": done.complete,
                "seconds": done_in,
                "output": str(output),
            },
            stream,
        )
    elif sys.stderr.isatty():
        told = f": {done}" if done.rows else "."
        wrote = "" if str(output) == "-" else f" Wrote {output}."
        print(f"{done.rows:,} rows in {done_in:.1f} s{told}{wrote}", file=sys.stderr)


@dataclass
class _Answers:
    """What comes out for batches of rows, and counts of it."""

    fast: qwyc.Classifier
    data: Path
    names: list[str]  # of the columns of the answer
    threads: int | None
    rows: int = 0
    positive: int = 0
    steps: int = 0
    complete: int = 0

    def write(self, batches: Iterator[Batch], output: Path, kind: str) -> None:
        """Decide all rows, and write what comes out."""
        first = self.of(next(batches))  # before anything is opened
        with open_output(output) as file:
            writer = TableWriter(file, kind, first.schema, pipe=str(output) == "-")
            writer.write(first)
            for batch in batches:
                writer.write(self.of(batch))
            writer.close()

    def of(self, batch: Batch) -> Any:
        """A batch of the output, a pyarrow.RecordBatch."""
        import pyarrow

        try:
            decisions = self.fast.decide(batch.features, threads=self.threads)
        except InputError as error:
            raise in_file(self.data, error, before=self.rows) from None
        classes, kept = self.fast.ensemble.classes, batch.kept
        self.rows += len(decisions)
        self.positive += int(np.count_nonzero(decisions.label == classes[1]))
        self.steps += int(decisions.steps.sum())
        self.complete += int(np.count_nonzero(decisions.complete))
        return pyarrow.RecordBatch.from_arrays(
            [*kept.columns, *arrow_columns(decisions, classes)],
            names=[*kept.schema.names, *self.names],
        )

    def __str__(self) -> str:
        n_models, positive = self.fast.policy.n_models, self.fast.ensemble.classes[1]
        return (
            f"{self.positive / self.rows:.1%} are {positive}; {self.steps / self.rows:.1f} of {n_models} "
            "base models per row."
        )


def _kind_to_write(output: Path, to: Format | None) -> str:
    if to is not None:
        return to.value
    if str(output) == "-" or not output.suffix:
        return "csv"
    if output.suffix.lower() not in KINDS or output.suffix.lower() == ".tsv":
        raise OptionError(
            f"{output} must be a .csv, .parquet, .arrow, .feather or .ipc file; otherwise say which "
            "it is with --to"
        )
    return KINDS[output.suffix.lower()]
