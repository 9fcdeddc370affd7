"""`qwyc optimize`."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import qwyc
from qwyc.cli.data import errors_name, group_labels, order_values
from qwyc.cli.file_kinds import check_model, kind_of
from qwyc.cli.options import (
    FILES,
    Alpha,
    ByClass,
    Confidence,
    DataFormat,
    GroupsOfRows,
    Headroom,
    Json,
    RepeatedRows,
    Repeats,
    Threads,
    argument,
    option,
    parse_alpha,
    parse_by_class,
    parse_only,
)
from qwyc.cli.printing import save_classifier
from qwyc.cli.progress import ProgressLine
from qwyc.errors import InputError, OptionError
from qwyc.importers import SUPPORTED_FILES
from qwyc.rows.files.inputs import local_paths
from qwyc.rows.files.reader import TableFiles
from qwyc.runtime.output import check_target

COST_NAMES = ("size", "measured")  # any other value of --costs names a file


class Quit(str, Enum):
    """Which early decisions are allowed."""

    both = "both"
    negative = "negative"
    positive = "positive"


class Method(str, Enum):
    """How the order and the thresholds are found."""

    auto = "auto"
    joint = "joint"
    natural = "natural"


class Evaluation(str, Enum):
    """How it is decided whether rows quit early at all."""

    model = "model"
    measured = "measured"
    quit = "quit"
    full = "full"


def optimize(
    model: Annotated[
        Path,
        argument(
            "MODEL",
            f"The file of a trained model: {SUPPORTED_FILES}; or a .qwyc file, which holds the model "
            "that it was made from.",
        ),
    ],
    data: Annotated[
        list[str] | None,
        argument(
            "DATA...",
            "A sample of rows like future ones, without labels. Keep rows that the model was trained on "
            "out of it: they may go unnoticed, and the promise may then not hold. "
            f"{FILES}. Optional only with --alpha 0.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        option(
            "File to write \\[default: the name of MODEL with .qwyc, in the current folder]",
            "--output",
            "-o",
        ),
    ] = None,
    alpha: Alpha = None,
    by_class: ByClass = None,
    tolerance: Annotated[
        float | None,
        option(
            "Approximate the output instead of deciding: the probability of the positive class of two, or "
            "the value of a regression, may be off by this much. --alpha is then the share of rows that "
            "may be off by more.",
            metavar="AMOUNT",
        ),
    ] = None,
    confidence: Confidence = 0.95,
    quit: Annotated[
        Quit,
        typer.Option(
            help="Which rows may quit early. With negative, every row that is decided positive has its "
            "full score, as a filter needs it."
        ),
    ] = Quit.both,
    only: Annotated[
        str | None,
        option(
            "For models with more than two classes: only decide whether a row belongs to this class. Rows "
            "that surely belong to another class leave early; the others have all scores. --alpha is then "
            "the share of all rows that may be lost, --by-class LABEL=SHARE that of the rows of the class.",
            metavar="LABEL",
        ),
    ] = None,
    threshold: Annotated[
        str | None,
        option(
            "Probability (as in p=0.3) or full score (as in score=0.3) at or above which a row is "
            "positive. The positive class is the second of the model's classes "
            "\\[default: the threshold of MODEL]",
            metavar="p=NUMBER",
        ),
    ] = None,
    costs: Annotated[
        str | None,
        option(
            "Cost of each base model: size, measured, or a file with one number per base model "
            "\\[default: 1]",
            metavar="COSTS",
        ),
    ] = None,
    feature_costs: Annotated[
        Path | None,
        option(
            "JSON file with the cost of getting each feature, in the unit of --costs: an object of column "
            "names and numbers, or a list with one number per feature. The first base model that looks at "
            "a feature pays for it.",
            metavar="FILE",
        ),
    ] = None,
    method: Annotated[
        Method,
        typer.Option(
            help="auto promises alpha on new rows; joint and natural are the algorithms of the paper, "
            "without this promise."
        ),
    ] = Method.auto,
    groups: GroupsOfRows = None,
    order_by: Annotated[
        str | None,
        option(
            "Column of DATA to sort rows by, such as a date: alpha is then promised for rows like the "
            "latest ones.",
            metavar="COLUMN",
        ),
    ] = None,
    max_rows: Annotated[
        int | None,
        typer.Option(metavar="N", help="Use at most N rows of DATA, drawn at random."),
    ] = None,
    repeats: RepeatedRows = Repeats.together,
    headroom: Headroom = 0,
    evaluation: Annotated[
        Evaluation,
        typer.Option(
            help="model: evaluate in full when a cost model, the same on every machine, says that quitting "
            "would be slower; measured: time both ways on DATA instead; quit: always quit; full: never "
            "quit."
        ),
    ] = Evaluation.model,
    seed: Annotated[
        int,
        typer.Option(
            help="Seed of random draws. The same inputs and seed give the same file, unless costs or "
            "evaluation are measured."
        ),
    ] = 0,
    format: DataFormat = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Make a trained model quit early, and write the result to a .qwyc file.

    With the stated confidence, at most a share alpha of decisions on new rows differs from those of the
    full ensemble. If the sample is too small for the requested alpha, the command fails and states how
    many rows are needed.

    [dim]qwyc optimize fraud.json sample.parquet -o fraud.qwyc --alpha 0.001 --quit negative[/]
    """
    _check_columns(groups, order_by, data, method, max_rows)
    check_model(model, data or (), "qwyc optimize MODEL DATA...")
    target = output or _default_target(model)
    check_target(target, regular=True, inputs=_files_to_read(model, data, costs, feature_costs))
    options: dict[str, Any] = {
        "alpha": None if alpha is None else parse_alpha(alpha),
        "tolerance": tolerance,
        "confidence": confidence,
        "quit": quit.value,
        "threshold": _parse_threshold(threshold),
        "costs": _parse_costs(costs),
        "method": method.value,
        "max_rows": max_rows,
        "repeats": repeats.value,
        "headroom": headroom,
        "evaluation": evaluation.value,
        "seed": seed,
        "threads": threads,
    }
    with ProgressLine(f"Reading {model}") as progress:
        ensemble = _ensemble_in(model)
        options["feature_costs"] = _parse_feature_costs(feature_costs, ensemble)
        options["by_class"] = parse_by_class(by_class, ensemble.classes)
        options["only"] = parse_only(only, ensemble.classes)
        rows = None
        about: TableFiles | Path = model
        if data:
            assert ensemble.schema is not None  # a model in a file has one
            keep = [name for name in (groups, order_by) if name is not None]
            option_name = "--groups" if order_by is None else "--order-by"
            kind = format and format.value
            about = files = TableFiles(
                data, ensemble.schema, keep=keep, option=option_name, kind=kind, report=progress
            )
            rows, kept = files.table()
            if groups is not None:
                options["groups"] = group_labels(kept.column(groups))
            if order_by is not None:
                options["order_by"] = order_values(kept.column(order_by))
        with errors_name(about):
            classifier = qwyc.optimize(ensemble, rows, progress=progress, **options)
    save_classifier(classifier, target, as_json)


def _ensemble_in(model: Path) -> qwyc.Ensemble:
    """The model in a file, of another library or of qwyc."""
    if not _is_classifier(model):
        return qwyc.read_model(model)
    found = qwyc.load(model)
    return found if isinstance(found, qwyc.Predictor) else found.ensemble


def _is_classifier(path: Path) -> bool:
    kind = kind_of(path)
    return kind is not None and kind.role == "qwyc"


def _default_target(model: Path) -> Path:
    """A file in the current folder. An existing file is replaced only if it is a .qwyc file."""
    target = Path(model.with_suffix(".qwyc").name)
    if target.is_file() and not _is_classifier(target):
        raise OptionError(
            f"{target} exists and is not a qwyc file; name the file to write with -o, or remove {target}"
        )
    return target


def _files_to_read(
    model: Path, data: list[str] | None, costs: str | None, feature_costs: Path | None
) -> list[Path]:
    cost_file = Path(costs) if costs is not None and costs not in COST_NAMES else None
    named = (model, *local_paths(data or []), cost_file, feature_costs)
    return [path for path in named if path is not None]


def _parse_threshold(text: str | None) -> float | qwyc.Score | qwyc.Probability | None:
    if text is None:
        return None
    name, _, number = text.rpartition("=")
    kinds = {"": float, "p": qwyc.Probability, "score": qwyc.Score}
    try:
        return kinds[name](float(number))  # type: ignore[no-any-return]
    except (ValueError, KeyError) as error:
        if isinstance(error, qwyc.QwycError):
            raise
        raise OptionError(
            f"threshold must be a probability such as p=0.3, or a score such as score=0.5; got {text!r}"
        ) from None


def _parse_costs(text: str | None) -> Any:
    if text is None or text in COST_NAMES:
        return text
    try:
        return np.array(Path(text).read_text().replace(",", " ").split(), dtype=np.float64)
    except OSError as error:
        raise InputError(
            f"costs must be size, measured or a file: cannot read {text}: {error.strerror or error}"
        ) from None
    except ValueError:
        raise InputError(f"{text} must hold numbers only, one for each base model") from None


def _parse_feature_costs(path: Path | None, ensemble: qwyc.Ensemble) -> Any:
    """The content of a JSON file; positions are text in an object of JSON."""
    if path is None:
        return None
    try:
        found = json.loads(path.read_text())
    except OSError as error:
        raise InputError(
            f"--feature-costs must be a file: cannot read {path}: {error.strerror or error}"
        ) from None
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    if not isinstance(found, (dict, list)):
        raise InputError(
            f"{path} must hold an object of column names and numbers, or a list with one number per feature"
        )
    known = ensemble.schema is not None and ensemble.schema.names is not None
    if isinstance(found, dict) and not known:
        found = {int(key) if key.isdecimal() else key: value for key, value in found.items()}
    return found


def _check_columns(
    groups: str | None,
    order_by: str | None,
    data: list[str] | None,
    method: Method,
    max_rows: int | None,
) -> None:
    """Refuse options that name a column of DATA where they cannot be used."""
    if groups is not None and order_by is not None:
        raise OptionError("--groups and --order-by cannot be used together; leave out one of them")
    name = "--groups" if groups is not None else "--order-by"
    if groups is None and order_by is None:
        return
    if not data:
        raise OptionError(f"{name} names a column of DATA, but there is no DATA; give DATA too")
    if method is not Method.auto or max_rows is not None:
        raise OptionError(
            f"{name} can be used with --method auto only, and not with --max-rows; leave out one of them"
        )
