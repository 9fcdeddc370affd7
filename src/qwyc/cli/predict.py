"""`qwyc predict`: decides the rows of files that may be larger than memory, and of pipes."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from qwyc.approximation import Approximation
from qwyc.classifier import Classifier, load_any
from qwyc.cli.data import schema_of
from qwyc.cli.file_kinds import check_model
from qwyc.cli.options import (
    FILES,
    ClassifierOrModel,
    DataFormat,
    Format,
    Json,
    Threads,
    Unseen,
    argument,
    option,
)
from qwyc.cli.predict_model import FullPredictions, write_batches
from qwyc.cli.predict_outputs import OutputPredictions
from qwyc.cli.printing import print_json
from qwyc.cli.progress import ProgressLine
from qwyc.errors import InputError, OptionError
from qwyc.policy.columns import arrow_columns, column_names
from qwyc.predictor import Predictor
from qwyc.rows.files.batch import Batch
from qwyc.rows.files.inputs import KINDS, local_paths
from qwyc.rows.files.reader import TableFiles
from qwyc.runtime.output import check_target
from qwyc.runtime.wording import number_of


def predict(
    classifier_file: ClassifierOrModel,
    data: Annotated[list[str], argument("DATA...", f"Rows, of any number. {FILES}.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write; - is standard output.")
    ] = Path("-"),
    keep: Annotated[
        list[str] | None,
        option(
            "Copy this column of DATA to the output, such as an identifier. May be repeated.",
            metavar="COLUMN",
        ),
    ] = None,
    prefix: Annotated[
        str, option("Prefix for the names of the columns that predict adds.", metavar="TEXT")
    ] = "",
    unseen: Annotated[
        Unseen,
        typer.Option(
            help="What happens to a value that the model refuses, such as an unknown category or text in a "
            "column of numbers: stop with an error, take it as missing, or do not decide its row (flag): "
            "the column reason says why, and the others are empty.",
        ),
    ] = Unseen.error,
    format: DataFormat = None,
    to: Annotated[
        Format | None,
        option("Format of the output \\[default: by its name; csv for -]", "--to"),
    ] = None,
    proba: Annotated[
        bool,
        option("Add the probability of every class. All base models are evaluated on every row."),
    ] = False,
    raw: Annotated[
        bool, option("Add the full score. All base models are evaluated on every row.")
    ] = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Decide rows: for each row a label, and the number of base models that were evaluated.

    The output has the columns of --keep, then label, steps (base models evaluated), score (the full
    score if complete, otherwise the partial sum where the row quit) and complete. A model of more than two
    classes has a score for each class, in a column named by its label, such as score_setosa. With a filter
    for one class (--only), the label of a row that left early, which is not complete, is the best other
    class so far. Rows are read, decided and written batch by batch, so memory does not grow with the file.

    FILE may also be a model: a file of XGBoost, LightGBM, CatBoost, ONNX or Treelite, or a .qwyc file of
    a model that never quits. It is evaluated in full. The output then has label, or value where
    the model gives values, such as a regression.

    A file that was made with --tolerance gives value, or label and the probability of the positive class,
    in a column such as proba_1; then steps and complete. Of rows that are not complete, the value or
    probability is an estimate.

    [dim]qwyc predict fraud.qwyc today.csv -o labels.parquet --keep id[/]

    [dim]zcat today.csv.gz | qwyc predict fraud.qwyc - | head[/]
    """
    kept = keep or []
    kind = _output_format(output, to)
    check_target(output, inputs=[classifier_file, *local_paths(data)])
    check_model(classifier_file, data, "qwyc predict FILE DATA...")
    classifier = load_any(classifier_file)
    if proba or raw or isinstance(classifier, Predictor):
        if unseen != Unseen.error:
            raise OptionError(
                "--unseen can only be used with a classifier that quits early, and not with --proba "
                "or --raw"
            )
        model = (
            classifier if isinstance(classifier, Predictor) else Predictor.of(classifier.ensemble)
        )
        in_full = partial(
            FullPredictions, model, prefix=prefix, threads=threads, proba=proba, raw=raw
        )
        _predict_outputs(model, in_full, data, output, kind, kept, prefix, format, as_json)
        return
    if isinstance(classifier, Approximation):
        if unseen != Unseen.error:
            raise OptionError(
                "--unseen can only be used with a classifier, but FILE was made with --tolerance"
            )
        within = partial(OutputPredictions, classifier, prefix=prefix, threads=threads)
        _predict_outputs(classifier, within, data, output, kind, kept, prefix, format, as_json)
        return
    by_class = classifier.ensemble.classes if classifier.ensemble.by_class else None
    columns = column_names(reason=unseen == Unseen.flag, classes=by_class)
    names = [prefix + column for column in columns]
    _check_names(kept, names, prefix)
    to_stdout = str(output) == "-"
    started = time.perf_counter()
    # Rows that scroll over the terminal show the progress themselves.
    with ProgressLine("Reading", quiet=to_stdout and sys.stdout.isatty()) as progress:
        files = TableFiles(
            data,
            schema_of(classifier),
            keep=kept,
            kind=format and format.value,
            report=progress,
            odd=unseen != Unseen.error,
        )
        predictor = _BatchPredictor(classifier, files, names, threads, unseen.value)
        with contextlib.closing(files.batches()) as batches:
            predictor.write_all(batches, output, kind)
    _report(predictor, time.perf_counter() - started, output, as_json)


def _check_names(kept: list[str], names: list[str], prefix: str) -> None:
    duplicates = [name for name in kept if name in names]
    if duplicates:
        raise OptionError(
            f"--keep {duplicates[0]}: predict adds a column of the same name; rename the added columns "
            f"with --prefix, such as --prefix {prefix}qwyc_"
        )


def _predict_outputs(
    model: Predictor | Approximation,
    make: Callable[[TableFiles], FullPredictions | OutputPredictions],
    data: list[str],
    output: Path,
    kind: str,
    kept: list[str],
    prefix: str,
    format: Format | None,
    as_json: bool,
) -> None:
    """Write what a model gives, in full or within a tolerance: `make` says which columns."""
    to_stdout, started = str(output) == "-", time.perf_counter()
    with ProgressLine("Reading", quiet=to_stdout and sys.stdout.isatty()) as progress:
        files = TableFiles(
            data, schema_of(model), keep=kept, kind=format and format.value, report=progress
        )
        predictions = make(files)
        _check_names(kept, predictions.names, prefix)
        with contextlib.closing(files.batches()) as batches:
            predictions.write_all(batches, output, kind)
    _report(predictions, time.perf_counter() - started, output, as_json)


def _report(
    predictions: FullPredictions | OutputPredictions | _BatchPredictor,
    seconds: float,
    output: Path,
    as_json: bool,
) -> None:
    """Say what was done, where nobody reads the rows themselves."""
    to_stdout = str(output) == "-"
    if as_json:
        facts = predictions.facts() | {"seconds": seconds, "output": str(output)}
        print_json(facts, sys.stderr if to_stdout else sys.stdout)
    elif sys.stderr.isatty():
        summary = f": {predictions.summary()}" if predictions.rows else "."
        written = "" if to_stdout else f" Wrote {output}."
        print(
            f"{number_of(predictions.rows, 'row')} in {seconds:.1f} s{summary}{written}",
            file=sys.stderr,
        )


@dataclass
class _BatchPredictor:
    """Decides rows batch by batch, and counts them."""

    classifier: Classifier
    files: TableFiles
    names: list[str]  # of the columns that are added
    threads: int | None
    unseen: str
    rows: int = 0
    not_decided: int = 0
    positive: int = 0
    classes: Counter[Any] = field(
        default_factory=Counter
    )  # rows by label, of more than two classes
    steps: int = 0
    complete: int = 0

    def write_all(self, batches: Iterator[Batch], output: Path, kind: str) -> None:
        """Decide all rows and write them."""
        write_batches(self.predict, batches, output, kind)

    def predict(self, batch: Batch) -> Any:
        """A batch of the output, a pyarrow.RecordBatch."""
        import pyarrow

        try:
            decisions = self.classifier.decide(batch.rows, threads=self.threads, unseen=self.unseen)
        except InputError as error:
            raise self.files.named(error, self.rows) from None
        classes, kept = self.classifier.ensemble.classes, batch.kept
        self.rows += len(decisions)
        self.not_decided += decisions.not_decided
        if self.classifier.ensemble.by_class:
            self.classes.update(decisions.label[decisions.decided].tolist())
        else:
            self.positive += int(np.count_nonzero(decisions.label == classes[1]))
        self.steps += int(decisions.steps.sum())
        self.complete += int(np.count_nonzero(decisions.complete))
        return pyarrow.RecordBatch.from_arrays(
            [*kept.columns, *arrow_columns(decisions, classes)],
            names=[*kept.schema.names, *self.names],
        )

    def facts(self) -> dict[str, Any]:
        """The counts, for --json."""
        by_class: dict[str, Any] = {"positive": self.positive}
        if self.only is not None:  # labels of rows that left are not decisions between the others
            by_class = {"only": self.only, "called": self.classes[self.only]}
        elif self.classifier.ensemble.by_class:
            by_class = {"classes": {str(label): n for label, n in self.classes.items()}}
        return {
            "rows": self.rows,
            "not_decided": self.not_decided,
            **by_class,
            "mean_models": self.steps / self.decided if self.decided else None,
            "base_models": self.classifier.policy.n_models,
            "complete": self.complete,
        }

    @property
    def only(self) -> Any:
        """The label that the classifier is a filter for; None where it decides between all classes."""
        index = self.classifier.only
        return None if index is None else self.classifier.ensemble.classes.tolist()[index]

    @property
    def decided(self) -> int:
        """Rows that were decided."""
        return self.rows - self.not_decided

    def summary(self) -> str:
        """The counts as a sentence, if there are rows."""
        if not self.decided:
            return "none was decided; the column reason says why."
        n_models, ensemble = self.classifier.policy.n_models, self.classifier.ensemble
        common = f"{self.positive / self.decided:.1%} are {ensemble.classes[1]}"
        if self.only is not None:
            common = f"{self.classes[self.only] / self.decided:.1%} are {self.only}"
        elif ensemble.by_class:
            label, n = self.classes.most_common(1)[0]
            common = f"{n / self.decided:.1%} are {label}, the most frequent class"
        left_out = f"{self.not_decided:,} were not decided; " if self.not_decided else ""
        return (
            f"{left_out}{common}; "
            f"{self.steps / self.decided:.1f} of {n_models} base models per row."
        )


def _output_format(output: Path, to: Format | None) -> str:
    if to is not None:
        return to.value
    if str(output) == "-" or not output.suffix:
        return "csv"
    suffix = output.suffix.lower()
    if suffix not in KINDS or suffix == ".tsv":
        raise OptionError(
            f"{output} must be a .csv, .parquet, .arrow, .feather or .ipc file; for another name, give "
            "the format with --to"
        )
    return KINDS[suffix]
