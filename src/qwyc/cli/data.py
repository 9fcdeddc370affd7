"""How commands read DATA."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

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
    data: Path,
    classifier: qwyc.Classifier,
    format: Format | None,
    progress: ProgressLine,
    groups: str | None = None,
) -> tuple[Any, Any]:
    """All rows of DATA, a pyarrow.Table of the columns that the classifier takes, and the labels (N,) of
    the groups, if a column of DATA has them."""
    rows, kept = read_table(
        data,
        schema_of(classifier),
        keep=[] if groups is None else [groups],
        option="--groups",
        kind=format and format.value,
        report=progress,
    )
    return rows, None if groups is None else group_labels(kept.column(groups))


def group_labels(column: Any) -> Any:
    """The labels of a column of a table as text, (N,); None where one is missing."""
    import pyarrow

    return np.array(column.cast(pyarrow.string()).to_pylist(), dtype=object)


def order_values(column: Any) -> Any:
    """The values of a column of a table to sort by, (N,). CSV files hold text: numbers are read from it,
    and other text is sorted as text, as dates such as 2024-05-31 are."""
    import pyarrow

    if not (pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type)):
        return column.to_numpy()
    try:
        return column.cast(pyarrow.float64()).to_numpy()
    except pyarrow.ArrowInvalid:
        return np.array([text or None for text in column.to_pylist()], dtype=object)


@contextmanager
def errors_name(data: Path) -> Iterator[None]:
    """Add the name of the data file to errors about its rows."""
    try:
        yield
    except InputError as error:
        raise error.about(display_name(data)) from None
