"""How fast a classifier or a model is on this machine: quitting, in full, and the library that trained
it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from qwyc import importers
from qwyc.check.parity import compare_with_model
from qwyc.classifier import Classifier, check_classifier
from qwyc.errors import InputError, ModelError, OptionError, ParityError
from qwyc.model.ensemble import Ensemble
from qwyc.predictor import Predictor
from qwyc.runtime.arguments import check_count, check_number
from qwyc.runtime.machine import machine
from qwyc.runtime.progress import ProgressOption, Report, progress_reporter
from qwyc.runtime.threads import thread_count
from qwyc.runtime.timing import Contestant, Timing, batches, clock_microseconds, interleave

if TYPE_CHECKING:
    from rich.table import Table

BATCHES = (1, 16, 256, 100_000)
QUITTING, FULL = "qwyc, quitting", "qwyc, full"
# Libraries whose fastest call is known.
SOURCES = {"xgboost": "XGBoost", "lightgbm": "LightGBM", "catboost": "CatBoost"}


@dataclass(frozen=True)
class Line:
    """The times of one contestant (a way to evaluate the model) at one batch size."""

    contestant: str
    batch: int  # rows in a call
    microseconds: float  # per row, at the median
    rows_per_second: float
    p50: float  # microseconds of a call
    p95: float | None
    p99: float | None
    calls: int


@dataclass(frozen=True)
class Bench:
    """The result of `bench`: times by contestant and batch size, and what they depend on."""

    model: str
    machine: dict[str, str]
    threads: int
    rows: int
    base_models: int
    mean_models: (
        float | None
    )  # base models per row when quitting; None for a model without a policy
    disagreements: (
        int | None
    )  # rows on which quitting decides unlike the full ensemble; None likewise
    source: str | None  # the library compared with; its decisions or values are those of `full`
    conversion: float  # microseconds per row to make a matrix of the data as given
    clock: float  # microseconds that timing itself adds to a call
    lines: list[Line]

    def as_dict(self) -> dict[str, Any]:
        """All fields as plain values, for JSON."""
        return asdict(self)

    def summary(self) -> str:
        """The figures that are not times."""
        quitting = f"Every row is evaluated in full: {self.base_models} base models."
        if self.disagreements is not None:
            share = self.disagreements / self.rows
            quitting = (
                f"Quitting: {self.mean_models:.1f} of {self.base_models} base models per row; "
                f"{self.disagreements:,} of {self.rows:,} decisions ({share:.3%}) differ from the full "
                "ensemble's."
            )
        words = [
            quitting,
            f"All rows were converted beforehand, which took {self.conversion:.2f} µs per row. "
            f"The clock adds {self.clock:.2f} µs to a call.",
        ]
        if self.source:
            same = f"{self.source} decides all of them as the full ensemble does."
            if self.disagreements is None:
                same = f"{self.source} gives all {self.rows:,} rows the same."
            words.insert(1, same)
        return "\n".join(words)

    def table(self) -> Table:
        """Contestants by batch size, and how many times as fast as the source library each is (or as
        the full ensemble, without a source)."""
        from rich import box
        from rich.table import Table

        baseline = self.source or FULL
        table = Table(box=box.SIMPLE_HEAD)
        table.add_column("batch", justify="right", no_wrap=True)
        table.add_column("", no_wrap=True)
        for name in ("µs per row", "rows per s", f"times\n{baseline}", "p95, µs", "p99, µs"):
            table.add_column(name, justify="right", no_wrap=True)
        base = {line.batch: line for line in self.lines if line.contestant == baseline}
        seen = 0
        for line in self.lines:
            table.add_row(
                f"{line.batch:,}" if line.batch != seen else "",
                line.contestant,
                _microseconds(line.microseconds),
                f"{line.rows_per_second:,.0f}",
                f"{base[line.batch].microseconds / line.microseconds:.1f}",
                *[_microseconds(p) if p and line.batch == 1 else "" for p in (line.p95, line.p99)],
            )
            seen = line.batch
        return table


def _microseconds(value: float) -> str:
    """Three digits, or all digits before the decimal point."""
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def bench(
    classifier: Classifier | Predictor,
    X: Any,
    *,
    source: str | os.PathLike[str] | None = None,
    threads: int | None = 1,
    seconds: float = 1.0,
    sizes: Sequence[int] = BATCHES,
    progress: ProgressOption = False,
) -> Bench:
    """Time a classifier on rows X in batches of several sizes, each contestant for `seconds`; or a model
    that is evaluated in full.

    `source` is the file of the model that the classifier was made from: the library that trained it
    is timed too, where it is installed. Its decisions must be those of the full ensemble; the values of
    a model of values must be equal, bit for bit."""
    if not isinstance(classifier, Predictor):
        check_classifier(classifier)
    in_full = isinstance(classifier, Predictor)
    ensemble = classifier if isinstance(classifier, Predictor) else classifier.ensemble
    if ensemble.schema is None:
        raise OptionError(
            f"{ensemble.description} are not timed, because their time is that of your own code"
        )
    seconds = check_number("seconds", seconds, above=0)
    sizes = sorted({check_count("a batch size", size) for size in sizes})
    workers = thread_count(threads)
    sample = ensemble.sample(X)
    rows = sample.rows
    if not len(rows):
        raise InputError("the data has no rows")
    contestants: dict[str, Callable[[Any], object]] = {}
    library = None
    with progress_reporter(progress, "Comparing decisions", 0):
        mean_models, disagreements = None, None
        if isinstance(classifier, Classifier):
            mean_models, disagreements = _compare_early(classifier, sample, workers)
        if source is not None:
            library, model = open_source(Path(source), ensemble)
            contestants[library] = source_call(library, model, workers)
            if ensemble.has_classes:
                compare_with_model(Path(source), X, ensemble)
            else:
                _compare_values(contestants[library], Path(source), sample, workers)
    coded: Any = _taking_codes(classifier)
    if in_full:
        contestants[FULL] = lambda part: coded.predict(part, threads=workers)
    else:
        contestants[FULL] = lambda part: coded.score_full(part, threads=workers)
        contestants[QUITTING] = lambda part: coded.predict(part, threads=workers)
    alone = FULL if in_full else QUITTING  # by `predict_one`, where batches have one row
    lines: list[Line] = []
    sizes = sorted({min(size, len(rows)) for size in sizes})
    with progress_reporter(progress, "Timing", 100 * len(sizes)) as report:
        for done, size in enumerate(sizes):
            calls = dict(contestants)
            if size == 1:
                calls[alone] = coded.predict_one
            timings = interleave(
                {
                    name: Contestant(call, _inputs(rows, size, name == alone), size)
                    for name, call in calls.items()
                },
                seconds=seconds,
                pause=0.005 if workers > 1 else 0,
                report=partial(_part_of, report, done),
            )
            lines += [line(name, size, timing) for name, timing in timings.items()]
    conversion = interleave(
        {"": Contestant(ensemble.rows, [X], len(rows))}, seconds=min(0.2, seconds)
    )
    return Bench(
        model=ensemble.description,
        machine=machine(),
        threads=workers,
        rows=len(rows),
        base_models=ensemble.n_models,
        mean_models=mean_models,
        disagreements=disagreements,
        source=library,
        conversion=conversion[""].microseconds,
        clock=clock_microseconds(),
        lines=lines,
    )


def _compare_early(classifier: Classifier, sample: Any, threads: int) -> tuple[float, int]:
    """Base models per row when quitting, and rows that are decided unlike in full."""
    full = classifier.score_full(sample, threads=threads)
    early, steps, _ = classifier.runner.decide(sample.rows, threads=threads)
    target = classifier.policy.target
    differences = target.count_differences(early, target.decide(full))
    return float(steps.mean()), int(differences.sum())


def _compare_values(source: Callable[[Any], object], path: Path, sample: Any, threads: int) -> None:
    """ParityError unless a library gives the same values for all rows, bit for bit."""
    ours = Predictor.of(sample.ensemble).predict(sample, threads=threads)
    theirs = np.asarray(source(sample.rows))
    if theirs.shape != ours.shape:
        raise ParityError(f"{path} gives values of shape {theirs.shape}; expected {ours.shape}")
    unlike = np.flatnonzero(~((ours == theirs) | (np.isnan(ours) & np.isnan(theirs))))
    if len(unlike):
        i = int(unlike[0]) // max(1, ours.size // len(ours))
        raise ParityError(
            f"the values of {path} are not the model's: row {i} has {theirs[i]!r} there and {ours[i]!r} "
            "here; the model was not made from it"
        )


def _part_of(report: Report, before: int, share: float) -> None:
    """Report a share of one batch size as percent of all of them."""
    report(round(100 * (before + share)))


def line(contestant: str, batch: int, timing: Timing) -> Line:
    """The `Line` of one contestant: seconds of `timing` become microseconds per row and per call."""
    return Line(
        contestant=contestant,
        batch=batch,
        microseconds=timing.microseconds,
        rows_per_second=timing.rows_per_second,
        p50=timing.median * 1e6,
        p95=timing.percentile(95),
        p99=timing.percentile(99),
        calls=timing.calls,
    )


def open_source(path: Path, ensemble: Ensemble) -> tuple[str, Any]:
    """The library's name and its live model from a file; the file must be one that qwyc reads."""
    theirs, ours = importers.read_model(path).source, ensemble.source
    assert theirs is not None  # it was read
    library = theirs.library
    if ours is None:
        raise ModelError(
            f"the classifier was not made from a model file, so it cannot be compared with {path}; leave "
            "the model out"
        )
    if library != ours.library:
        raise ModelError(
            f"{path} is a model of {library}; the classifier was made from one of {ours.library}"
        )
    if not can_be_timed(ensemble):
        raise ModelError(f"{path}: models of {library} cannot be compared with from a file")
    model = importers.load_live(path).model
    return SOURCES[library], getattr(model, "get_booster", lambda: model)()


def can_be_timed(ensemble: Ensemble) -> bool:
    """Whether the library that trained a model can be timed on rows as they are converted: CatBoost does
    not take the codes of its categories."""
    library = None if ensemble.source is None else ensemble.source.library
    if library == "catboost":
        return ensemble.schema is not None and not (
            ensemble.schema.hashed or ensemble.schema.categories
        )
    return library in SOURCES


def is_installed(ensemble: Ensemble) -> bool:
    """Whether the library that trained a model can be timed, and is there."""
    source = ensemble.source
    return source is not None and can_be_timed(ensemble) and find_spec(source.library) is not None


def source_call(library: str, model: Any, threads: int) -> Callable[[Any], object]:
    """The library's own evaluation of a matrix, by its fastest way."""
    if library == "XGBoost":
        model.set_param({"nthread": threads})
        return lambda rows: model.inplace_predict(rows, validate_features=False)
    if library == "CatBoost":
        return lambda rows: model.predict(rows, thread_count=threads)
    return lambda rows: model.predict(rows, num_threads=threads, validate_features=False)


def _inputs(rows: npt.NDArray[Any], size: int, alone: bool) -> Sequence[npt.NDArray[Any]]:
    """The inputs of the calls: consecutive parts of the rows or, for `predict_one`, single rows."""
    if size == 1 and alone:
        return list(rows[:1000])
    return batches(rows, size)


def _taking_codes(classifier: Classifier | Predictor) -> Classifier | Predictor:
    """The same classifier for rows that are converted already: converting is timed apart."""
    ensemble = classifier if isinstance(classifier, Predictor) else classifier.ensemble
    assert ensemble.schema is not None
    schema = replace(
        ensemble.schema,
        categories={},
        arrays_hold_values=False,
        hashed=False,
        missing=float("nan"),
        by_name=False,
    )
    if isinstance(classifier, Predictor):
        return replace(classifier, schema=schema, transform=None)
    return replace(classifier, ensemble=replace(ensemble, schema=schema, transform=None))
