"""`qwyc optimize`, `qwyc recertify`, `qwyc demo` and `qwyc reproduce`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

import qwyc
from qwyc.cli.shared import (
    Alpha,
    ClassifierFile,
    Confidence,
    DataFormat,
    Json,
    SameAlpha,
    SameConfidence,
    Screen,
    Threads,
    about,
    argument,
    console,
    flag,
    inputs_of,
    option,
    parse_alpha,
    print_json,
)
from qwyc.errors import InputError, MissingDependencyError, ModelError, OptionError
from qwyc.importers import SUPPORTED_FILES
from qwyc.report import inspection
from qwyc.rows.files.reader import read_table
from qwyc.runtime.output import check_target

COSTS = ("size", "measured")  # or a file


class Quit(str, Enum):
    """Which early decisions are allowed."""

    both = "both"
    negative = "negative"
    positive = "positive"


class Method(str, Enum):
    """How order and thresholds are found."""

    auto = "auto"
    joint = "joint"
    natural = "natural"


def optimize(
    model: Annotated[
        Path,
        argument("MODEL", f"A trained model's file: {SUPPORTED_FILES}."),
    ],
    data: Annotated[
        Path | None,
        argument(
            "DATA",
            "Rows like those to come, without labels, which the model was not trained on: CSV, "
            "Parquet or Arrow; - is standard input. Only --alpha 0 does without.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        option(
            "Where to write \\[default: MODEL's name with .qwyc, in this folder]", "--output", "-o"
        ),
    ] = None,
    alpha: Alpha = "0.005",
    confidence: Confidence = 0.95,
    quit: Annotated[
        Quit,
        typer.Option(
            help="Which rows may quit early. negative is a filter: what it accepts has its full score."
        ),
    ] = Quit.both,
    threshold: Annotated[
        str | None,
        option(
            "Positive from this score on, or from a probability: p=0.3 \\[default: the model's own]",
            metavar="SCORE",
        ),
    ] = None,
    costs: Annotated[
        str | None,
        option(
            "What each base model costs: size, measured, or a file with a number for each "
            "\\[default: 1]",
            metavar="COSTS",
        ),
    ] = None,
    method: Annotated[
        Method,
        typer.Option(help="auto promises alpha on new rows; joint and natural are the paper's."),
    ] = Method.auto,
    groups: Annotated[
        str | None,
        option(
            "Rows that are alike in this column stay on one side of the split.", metavar="COLUMN"
        ),
    ] = None,
    max_rows: Annotated[
        int | None,
        typer.Option(metavar="N", help="Draw so many rows at random where there are more."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same inputs and seed give the same file.")] = 0,
    format: DataFormat = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Make a trained model quit early, and write the result to a .qwyc file.

    With the stated confidence, at most a share alpha of decisions on new rows differs from the full
    ensemble's. Too few rows for that is an error that says how many it takes.

    [dim]qwyc optimize fraud.json sample.parquet -o fraud.qwyc --alpha 0.001 --quit negative[/]
    """
    if _is_classifier(model):
        raise ModelError(
            f"{model} is a qwyc classifier, not a model; give the model that it was made from, or use "
            "qwyc recertify"
        )
    _check_groups(groups, data, method, max_rows)
    target = output or _default_target(model)
    check_target(target, regular=True, inputs=_files(model, data, costs))
    options: dict[str, Any] = {
        "alpha": parse_alpha(alpha),
        "confidence": confidence,
        "quit": quit.value,
        "threshold": _threshold(threshold),
        "costs": _costs(costs),
        "method": method.value,
        "max_rows": max_rows,
        "seed": seed,
        "threads": threads,
    }
    with Screen(f"Reading {model}") as screen:
        ensemble = qwyc.read_model(model)
        rows = None
        if data is not None:
            assert ensemble.schema is not None  # a model file has one
            keep = [] if groups is None else [groups]
            kind = format and format.value
            rows, kept = read_table(
                data, ensemble.schema, keep=keep, option="--groups", kind=kind, report=screen
            )
            if groups is not None:
                options["groups"] = _labels(kept.column(groups))
        with about(data or model):
            fast = qwyc.optimize(ensemble, rows, progress=screen, **options)
    _write(fast, target, as_json)


def recertify(
    classifier: ClassifierFile,
    data: Annotated[
        Path,
        argument(
            "DATA",
            "Rows as they come now, which FILE was not made from: CSV, Parquet or Arrow; - is standard "
            "input.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write; may be FILE.")],
    alpha: SameAlpha = None,
    confidence: SameConfidence = None,
    format: DataFormat = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Choose the operating point of a classifier anew, on other rows, and write the result.

    Nothing is fitted: of the policies in FILE, the boldest that keeps alpha on these rows is taken. For
    rows that have changed since, or for more of them, which certify a smaller alpha.

    [dim]qwyc recertify fraud.qwyc october.parquet -o fraud-october.qwyc[/]
    """
    check_target(output, regular=True, inputs=[data])  # FILE may be made anew
    fast = qwyc.load(classifier)
    budget = None if alpha is None else parse_alpha(alpha)
    with Screen(f"Reading {data}") as screen:
        rows, _ = read_table(data, inputs_of(fast), kind=format and format.value, report=screen)
        with about(data):
            again = qwyc.recertify(
                fast, rows, alpha=budget, confidence=confidence, threads=threads, progress=screen
            )
    _write(again, output, as_json)


def _is_classifier(path: Path) -> bool:
    """Whether a file is made as .qwyc files are: the length of a header, and the header."""
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError:  # to be said where it is read
        return False
    return head[7:9] == b"\0{" and b'"qwyc"' in head


def _default_target(model: Path) -> Path:
    """In this folder, and nothing is replaced there that qwyc has not made."""
    target = Path(model.with_suffix(".qwyc").name)
    if target.is_file() and not _is_classifier(target):
        raise OptionError(
            f"{target} is there and is not a qwyc file; say where to write with -o, or remove it"
        )
    return target


def _files(model: Path, data: Path | None, costs: str | None) -> list[Path]:
    """What `optimize` reads."""
    named = data, Path(costs) if costs is not None and costs not in COSTS else None
    return [model, *(path for path in named if path is not None)]


def _write(fast: qwyc.Classifier, target: Path, as_json: bool) -> None:
    fast.save(target)
    if as_json:
        print_json({"file": str(target)} | inspection.inspect(fast))
    else:
        print(fast)
        print(f"Wrote {target}.")


def _threshold(text: str | None) -> float | qwyc.Probability | None:
    if text is None:
        return None
    try:
        return qwyc.Probability(float(text[2:])) if text.startswith("p=") else float(text)
    except ValueError as error:
        if isinstance(error, qwyc.QwycError):
            raise
        raise OptionError(
            f"threshold must be a score, or a probability p=0.3; got {text!r}"
        ) from None


def _costs(text: str | None) -> Any:
    if text is None or text in COSTS:
        return text
    try:
        return np.array(Path(text).read_text().replace(",", " ").split(), dtype=np.float64)
    except OSError as error:
        raise InputError(
            f"costs must be size, measured or a file: cannot read {text}: {error.strerror or error}"
        ) from None
    except ValueError:
        raise InputError(f"{text} must hold numbers only, one for each base model") from None


def _check_groups(
    groups: str | None, data: Path | None, method: Method, max_rows: int | None
) -> None:
    if groups is None:
        return
    if data is None:
        raise OptionError("--groups names a column of DATA, which is missing; give DATA too")
    if method is not Method.auto or max_rows is not None:
        raise OptionError("--groups goes with --method auto only, and not with --max-rows")


def _labels(column: Any) -> Any:
    import pyarrow

    return np.array(column.cast(pyarrow.string()).to_pylist(), dtype=object)  # None where missing


def demo(
    alpha: Annotated[
        float, typer.Option(help="Share of decisions on new rows that may differ.")
    ] = 0.005,
    confidence: Confidence = 0.95,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write the classifier.")
    ] = Path("demo.qwyc"),
    picture: Annotated[Path, typer.Option(help="Where to write the picture.")] = Path("demo.png"),
    as_json: Json = False,
) -> None:
    """Train XGBoost on UCI Adult, make it quit early, and compare the two on the test rows.

    Needs no data of yours, and ten or twenty seconds; but XGBoost, scikit-learn and matplotlib.

    [dim]pip install xgboost-cpu scikit-learn matplotlib[/]
    """
    from qwyc.cli import demonstration

    shown = Console(quiet=True) if as_json else console()
    with Screen("Loading UCI Adult") as screen:
        facts = demonstration.run(shown, alpha, confidence, output, picture, progress=screen)
    if as_json:
        print_json(facts)


class Experiment(str, Enum):
    """The paper's experiments on public data."""

    adult = "adult"
    nomao = "nomao"


def reproduce(
    experiment: Annotated[Experiment, argument("EXPERIMENT", "Experiment 1 (adult) or 2 (nomao).")],
    folder: Annotated[
        Path | None, option("Folder to write to \\[default: reproduce-NAME]", "--output", "-o")
    ] = None,
    reduced: Annotated[
        bool, flag("A small version, to see that it runs: its figures mean nothing.", "--reduced")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run one of the paper's experiments again: every method, every figure, every claim.

    Nomao is read from the folder that QWYC_DATA names, or fetched from OpenML.
    """
    try:
        from qwyc_experiments import reproduce as reproduction
    except ModuleNotFoundError as error:
        if error.name != "qwyc_experiments":
            raise
        raise MissingDependencyError(
            "qwyc reproduce needs the package qwyc_experiments, which is part of qwyc's wheel and was "
            "not found; install qwyc again: pip install --force-reinstall --no-deps qwyc"
        ) from None

    target = folder or Path(f"reproduce-{experiment.value}")
    shown = Console(quiet=True) if as_json else console()
    with Screen(f"Loading {experiment.value}") as screen:
        reproduction.run(experiment.value, target, reduced=reduced, console=shown, progress=screen)
    if as_json:
        files = sorted(str(path) for path in target.iterdir())
        print_json({"experiment": experiment.value, "reduced": reduced, "files": files})
