"""Arguments and options that several commands have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from qwyc.errors import OptionError


def argument(metavar: str, help: str) -> Any:
    """A positional argument."""
    return typer.Argument(metavar=metavar, help=help, show_default=False)


def option(help: str, *names: str, metavar: str | None = None) -> Any:
    """An option whose help text states the default, if there is one."""
    return typer.Option(*names, metavar=metavar, help=help, show_default=False)


def flag(help: str, *names: str, **settings: Any) -> Any:
    """An option without a value."""
    return typer.Option(*names, help=help, **settings)


class Format(str, Enum):
    """File formats of tables."""

    csv = "csv"
    parquet = "parquet"
    arrow = "arrow"


class Repeats(str, Enum):
    """What rows that equal each other are."""

    together = "together"
    independent = "independent"


class Unseen(str, Enum):
    """What happens to values that the model refuses."""

    error = "error"
    missing = "missing"
    flag = "flag"


FILES = (
    "CSV, Parquet or Arrow: files, folders, patterns such as 'part-*.csv', or URLs such as "
    "s3://bucket/rows.parquet; - is standard input"
)
ClassifierFile = Annotated[Path, argument("FILE", "A .qwyc file.")]
ClassifierOrModel = Annotated[Path, argument("FILE", "A .qwyc file, or the file of a model.")]
DataFormat = Annotated[
    Format | None, option("Format of DATA \\[default: by its name; csv for -]", "--format")
]
Alpha = Annotated[
    str | None,
    option(
        "Share of decisions on new rows that may differ from those of the full ensemble: one share, "
        "such as 0.005, or one for each direction, such as negative=0.001,positive=0.01 (negative: decided "
        "negative instead of positive). With 0, no decision differs, and this is proven for every input "
        "\\[default: 0.005, unless --by-class is given]",
        metavar="SHARE",
    ),
]
ByClass = Annotated[
    list[str] | None,
    option(
        "How much of a class may be lost: of the rows that the full ensemble puts in it, the share that "
        "may be decided differently, such as 1=0.01, or 0=0.001,1=0.01. With or without --alpha. Use it "
        "if a class is rare.",
        metavar="LABEL=SHARE",
    ),
]
GroupsOfRows = Annotated[
    str | None,
    option(
        "Column of DATA with the group of each row. Groups are counted instead of rows, so that the rows "
        "of a group may be alike.",
        metavar="COLUMN",
    ),
]
Headroom = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="Leave room for a later verification on N other rows, so that it is likely to pass. Without "
        "this, its usual outcome is UNDECIDED.",
    ),
]
RepeatedRows = Annotated[
    Repeats,
    typer.Option(
        "--repeats",
        help="What rows of DATA that equal each other are: copies, which count together if there are many, "
        "or independent draws, such as rows of a few categorical columns.",
    ),
]
UnseenInTest = Annotated[
    Unseen,
    typer.Option(
        "--unseen",
        help="What happens to a value that the model refuses, such as an unknown category or text in a "
        "column of numbers: stop with an error, take it as missing, or leave its row out (flag); the "
        "result says how many rows these are.",
    ),
]
RepeatsOfFile = Annotated[
    Repeats | None,
    option(
        "What rows of DATA that equal each other are: copies (together) or independent draws "
        "\\[default: as FILE was made]",
        "--repeats",
    ),
]
Confidence = Annotated[
    float, typer.Option(help="How confident to be that alpha holds on new rows.")
]
AlphaOfFile = Annotated[
    str | None,
    option("Share of decisions that may differ \\[default: the alpha of FILE]", metavar="SHARE"),
]
ConfidenceOfFile = Annotated[
    float | None,
    option("How confident to be that alpha holds on new rows \\[default: the confidence of FILE]"),
]
Threads = Annotated[int | None, option("Number of threads \\[default: all cores]", metavar="N")]
Json = Annotated[bool, flag("Print one JSON object instead of text.", "--json")]


def parse_by_class(texts: list[str] | None, classes: Iterable[Any]) -> dict[Any, float] | None:
    """The values of --by-class: a share for each label that they name."""
    if not texts:
        return None
    labels = {str(label): label for label in classes}
    shares: dict[Any, float] = {}
    for part in _pairs(",".join(texts)):
        name, equals, share = (piece.strip() for piece in part.rpartition("="))
        try:
            number = float(share) if equals else None
        except ValueError:
            number = None
        if number is None:
            raise OptionError(
                f"--by-class must be a label and a share, such as 1=0.01; got {part!r}"
            )
        if name not in labels:
            raise OptionError(f"--by-class names {name!r}; the classes are {', '.join(labels)}")
        if labels[name] in shares:
            raise OptionError(f"--by-class names {name!r} twice; give one share for it")
        shares[labels[name]] = number
    return shares


def parse_only(text: str | None, classes: Iterable[Any]) -> Any:
    """The label that --only names."""
    if text is None:
        return None
    labels = {str(label): label for label in classes}
    if text not in labels:
        raise OptionError(f"--only names {text!r}; the classes are {', '.join(labels)}")
    return labels[text]


def _pairs(text: str) -> Iterator[str]:
    """Pairs of a label and a share. A piece without a share is the start of a label with a comma in it."""
    begun = ""
    for piece in text.split(","):
        begun += piece
        if "=" in piece:
            yield begun
            begun = ""
        else:
            begun += ","
    if begun:
        yield begun[:-1]


def parse_alpha(text: str) -> float | dict[str, float]:
    """The value of --alpha: one share, or a share for each direction."""
    try:
        if "=" not in text:
            return float(text)
        pairs = (part.split("=") for part in text.split(","))
        return {name.strip(): float(share) for name, share in pairs}
    except ValueError:
        raise OptionError(
            "alpha must be a number such as 0.005, which is 0.5%, or negative=0.001,positive=0.01; got "
            f"{text!r}"
        ) from None
