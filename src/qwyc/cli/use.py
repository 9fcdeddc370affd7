"""`qwyc predict`: files larger than memory, and pipes."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import qwyc
from qwyc.answers import COLUMNS, arrow_columns
from qwyc.batch import Batch
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
from qwyc.datafiles import KINDS, in_file, read_batches, shown
from qwyc.errors import InputError, OptionError
from qwyc.outputs import TableWriter, check_target
from qwyc.outputs import output as open_output


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
        done = _run(fast, data, reading, output, kind, names, threads)
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
    elif sys.stderr.isatty() and done.rows:
        print(
            f"{done.rows:,} rows in {done_in:.1f} s: {done.positive / done.rows:.1%} "
            f"{fast.ensemble.classes[1]}; {done.steps / done.rows:.1f} of {fast.policy.n_models} base "
            f"models per row.",
            file=sys.stderr,
        )


@dataclass
class _Count:
    rows: int = 0
    positive: int = 0
    steps: int = 0
    complete: int = 0


def _run(
    fast: qwyc.Classifier,
    data: Path,
    reading: Generator[Batch],
    output: Path,
    kind: str,
    names: list[str],
    threads: int | None,
) -> _Count:
    count = _Count()
    with contextlib.closing(reading) as batches:
        first = _decided(fast, next(batches), data, names, count, threads)  # before all is opened
        with open_output(output) as file:
            writer = TableWriter(file, kind, first.schema, pipe=str(output) == "-")
            writer.write(first)
            for batch in batches:
                writer.write(_decided(fast, batch, data, names, count, threads))
            writer.close()
    return count


def _decided(
    fast: qwyc.Classifier,
    batch: Batch,
    data: Path,
    names: list[str],
    count: _Count,
    threads: int | None,
) -> Any:
    """A batch of the output."""
    import pyarrow

    try:
        decisions = fast.decide(batch.features, threads=threads)
    except InputError as error:
        if not count.rows:
            raise in_file(data, error) from None
        raise InputError(f"{shown(data)}, in the rows from {count.rows:,} on: {error}") from None
    count.rows += len(decisions)
    count.positive += int(np.count_nonzero(decisions.label == fast.ensemble.classes[1]))
    count.steps += int(decisions.steps.sum())
    count.complete += int(np.count_nonzero(decisions.complete))
    answer = arrow_columns(decisions, fast.ensemble.classes)
    kept = batch.kept
    return pyarrow.RecordBatch.from_arrays(
        [*kept.columns, *answer], names=[*kept.schema.names, *names]
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
