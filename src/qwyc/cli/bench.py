"""`qwyc bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qwyc.classifier import load_any
from qwyc.cli.data import errors_name, open_rows
from qwyc.cli.file_kinds import check_model
from qwyc.cli.options import FILES, ClassifierOrModel, DataFormat, Json, argument
from qwyc.cli.printing import make_console, print_json, print_text
from qwyc.cli.progress import ProgressLine
from qwyc.importers import is_model_file
from qwyc.runtime.wording import number_of


def bench(
    classifier_file: ClassifierOrModel,
    data: Annotated[list[str], argument("DATA...", f"Rows. {FILES}.")],
    model: Annotated[
        Path | None,
        typer.Option(
            help="The model that FILE was made from. Without it, the library that trained the model is "
            "not timed, unless FILE is itself a model of XGBoost, LightGBM or CatBoost."
        ),
    ] = None,
    threads: Annotated[
        int, typer.Option(metavar="N", help="Number of threads, the same for all.")
    ] = 1,
    seconds: Annotated[
        float, typer.Option(help="Time for each implementation and batch size.")
    ] = 1.0,
    format: DataFormat = None,
    as_json: Json = False,
) -> None:
    """Time a classifier: with early quitting, in full and, if --model is given, in the library that
    trained the model.

    FILE may also be a model: a file of XGBoost, LightGBM, CatBoost, ONNX or Treelite, or a .qwyc file of
    a model that never quits. It is timed in full, and its values, or its decisions, are
    compared with those of the library.
    """
    from qwyc.check import benchmark

    check_model(classifier_file, data, "qwyc bench FILE DATA...")
    classifier = load_any(classifier_file)
    if model is None and is_model_file(classifier_file) and benchmark.is_installed(classifier):
        model = classifier_file
    with ProgressLine("Reading") as progress:
        files, _ = open_rows(data, classifier, format, progress)
        rows, _ = files.table()
        with errors_name(files):
            timings = benchmark.bench(
                classifier,
                rows,
                source=model,
                threads=threads,
                seconds=seconds,
                progress=progress,
            )
    if as_json:
        print_json(timings.as_dict())
        return
    print_text(f"{timings.model}; {number_of(timings.threads, 'thread')}")
    print(", ".join(f"{name} {value}" for name, value in timings.machine.items()))
    make_console().print(timings.table())
    print_text(timings.summary())
