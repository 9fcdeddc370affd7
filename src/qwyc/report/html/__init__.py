"""The report of a classifier as one HTML file that needs no network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from qwyc.errors import ArtifactError
from qwyc.promise.certified import Certified
from qwyc.report.html.collect import MAX_ROWS, Settings, report_facts
from qwyc.report.html.page import page
from qwyc.rows.slices import Slices
from qwyc.runtime.output import check_target, replacing

__all__ = ["MAX_ROWS", "Settings", "is_report", "page", "report_facts", "write_report"]


def write_report(
    certified: Certified,
    path: str | os.PathLike[str],
    X: Any = None,
    y: Any = None,
    *,
    slices: Slices | None = None,
    settings: Settings | None = None,
) -> None:
    """Write the report; an existing file is replaced in one step or not at all."""
    try:
        target = Path(path)
        if not str(path):
            raise ValueError
        target.exists()
    except (TypeError, ValueError):
        raise ArtifactError(f"a path was expected, such as 'report.html'; got {path!r}") from None
    check_target(target, regular=True)  # before minutes of work are spent on it
    written = page(report_facts(certified, X, y, slices=slices, settings=settings))
    with replacing(target) as file:
        file.write(written)


def is_report(path: Path) -> bool:
    """Whether a file starts like a report."""
    try:
        with path.open("rb") as file:
            return b'<meta name="generator" content="qwyc ' in file.read(2048)
    except OSError:
        return False
