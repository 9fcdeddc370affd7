"""How commands print their results: text, tables and JSON."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console

import qwyc
from qwyc.report import inspection

WIDTH = 100  # columns of a table that does not go to a terminal

# Arguments of Python's functions that are options of commands.
_OPTIONS = (
    *(
        "alpha",
        "by_class",
        "confidence",
        "costs",
        "evaluation",
        "feature_costs",
        "groups",
        "headroom",
    ),
    *(
        "max_rows",
        "method",
        "model",
        "only",
        "order_by",
        "quit",
        "repeats",
        "seed",
        "threads",
        "threshold",
        "tolerance",
    ),
    "unseen",
)
_WITH_VALUE = re.compile(
    rf"(?<![\w./'\"-])({'|'.join(_OPTIONS)})=('[^']*'|\"[^\"]*\"|{{[^}}]*}}|[\w.]+(?<!\.))?"
)
# Names that are no word of a sentence, unless they are part of another name.
_NAMES = re.compile(
    rf"(?<![\w./'\"=-])({'|'.join(name for name in _OPTIONS if '_' in name)})(?![\w/'\"=-]|\.\w)"
)
# Calls and names of Python for which there is a command or a plain word.
_PHRASES = {
    "decide(X, unseen='flag')": "qwyc predict --unseen flag",
    "leave model out": "leave out --model",
    "by_class={label: share}": "--by-class LABEL=SHARE",
    "qwyc.read_model(model).predict(X)": "qwyc predict",
    "qwyc.read_model(model)": "qwyc predict",
    "with qwyc.read_model": "with qwyc predict on the model",
    "qwyc.optimize(model, X, alpha=...)": "qwyc optimize",
    "a qwyc.Classifier was expected; got a qwyc.Approximation, made with tolerance=": (
        "this command takes files that decide, and FILE was made with --tolerance"
    ),
}
_KINDS = {"Score": "score", "Probability": "p"}
_THRESHOLDS = re.compile(r"threshold=qwyc\.(Score|Probability)\(([^)]*)\)")
# C0 and C1 controls but tab and newline, marks that turn the direction of text, and halves of characters.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_BY_CLASS = re.compile(r"by_class=\{'?([^'{}:]*)'?: ([0-9.]+)\}")
_ROWS = re.compile(r"\b(pass|of|but) X\b(?![\w./'\"(=-])")


def make_console(*, quiet: bool = False) -> Console:
    """Standard output, for tables and colours."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH, quiet=quiet)


def print_json(facts: Any, stream: TextIO | None = None) -> None:
    """Print one JSON object, indented."""
    print(json.dumps(facts, indent=2, default=_to_json), file=stream or sys.stdout)


def _to_json(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)  # NumPy's numbers; paths


def printable(text: str) -> str:
    """Text for a terminal: line breaks and tabs stay, and every other character that a terminal could
    obey, or that turns the direction of text, is written as its code. Names in files are anybody's."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def print_text(text: object) -> None:
    """Print text in which names may come from a file."""
    print(printable(str(text)))


def save_classifier(
    classifier: qwyc.Classifier | qwyc.Approximation, target: Path, as_json: bool
) -> None:
    """Write a classifier to a file, and print what it is."""
    classifier.save(target)
    if as_json:
        print_json({"file": str(target)} | inspection.inspect(classifier))
    else:
        print_text(classifier)
        print_text(f"Wrote {target}.")


def as_commands(message: str) -> str:
    """A message that names arguments of Python's functions, with the options of commands instead."""
    for python, command in _PHRASES.items():
        message = message.replace(python, command)
    message = _BY_CLASS.sub(r"--by-class \1=\2", message)
    message = _THRESHOLDS.sub(lambda found: f"--threshold {_KINDS[found[1]]}={found[2]}", message)
    message = _WITH_VALUE.sub(_as_option, message)
    message = _NAMES.sub(lambda found: _flag(found[1]), message)
    return _ROWS.sub(r"\1 DATA", message)


def _as_option(found: re.Match[str]) -> str:
    value = (found[2] or "").strip("'\"")
    return f"{_flag(found[1])} {value}" if value else _flag(found[1])


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
