"""How commands print their results: text, tables and JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console

import qwyc
from qwyc.report import inspection

WIDTH = 100  # columns of a table that does not go to a terminal


def make_console(*, quiet: bool = False) -> Console:
    """Standard output, for tables and colours."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH, quiet=quiet)


def print_json(facts: Any, stream: TextIO | None = None) -> None:
    """Print one JSON object, indented."""
    print(json.dumps(facts, indent=2, default=_to_json), file=stream or sys.stdout)


def _to_json(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)  # NumPy's numbers; paths


def save_classifier(classifier: qwyc.Classifier, target: Path, as_json: bool) -> None:
    """Write a classifier to a file, and print what it is."""
    classifier.save(target)
    if as_json:
        print_json({"file": str(target)} | inspection.inspect(classifier))
    else:
        print(classifier)
        print(f"Wrote {target}.")
