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
from qwyc.model.ensemble import Inputs
from qwyc.rows.files.reader import in_file, read_table


def inputs_of(classifier: qwyc.Classifier) -> Inputs:
    """The columns that a classifier from a file takes."""
    assert isinstance(classifier.ensemble, qwyc.Ensemble)  # files hold no other kind
    return classifier.ensemble.inputs


def read_rows(
    data: Path, classifier: qwyc.Classifier, format: Format | None, progress: ProgressLine
) -> Any:
    """All rows of DATA, a pyarrow.Table of the columns that the classifier takes."""
    rows, _ = read_table(data, inputs_of(classifier), kind=format and format.value, report=progress)
    return rows


@contextmanager
def errors_name(data: Path) -> Iterator[None]:
    """Add the name of the data file to errors about its rows."""
    try:
        yield
    except InputError as error:
        raise in_file(data, error) from None
