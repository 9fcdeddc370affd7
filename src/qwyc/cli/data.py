"""How commands read DATA."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import qwyc
from qwyc.cli.options import Format
from qwyc.cli.progress import ProgressLine
from qwyc.errors import InputError
from qwyc.rows.files.reader import display_name, read_table
from qwyc.rows.schema import Schema


def schema_of(classifier: qwyc.Classifier) -> Schema:
    """The columns that a classifier from a file takes."""
    assert classifier.ensemble.schema is not None  # a model in a file has one
    return classifier.ensemble.schema


def read_rows(
    data: Path, classifier: qwyc.Classifier, format: Format | None, progress: ProgressLine
) -> Any:
    """All rows of DATA, a pyarrow.Table of the columns that the classifier takes."""
    rows, _ = read_table(data, schema_of(classifier), kind=format and format.value, report=progress)
    return rows


@contextmanager
def errors_name(data: Path) -> Iterator[None]:
    """Add the name of the data file to errors about its rows."""
    try:
        yield
    except InputError as error:
        raise error.about(display_name(data)) from None
