"""How commands read DATA."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import qwyc
from qwyc.cli.options import Format, Unseen
from qwyc.cli.progress import ProgressLine
from qwyc.errors import InputError
from qwyc.promise.group_labels import GroupLabels
from qwyc.rows.files.reader import TableFiles
from qwyc.rows.schema import Schema


def schema_of(found: qwyc.Classifier | qwyc.Approximation | qwyc.Predictor) -> Schema:
    """The columns that a classifier or model from a file takes."""
    schema = found.schema if isinstance(found, qwyc.Predictor) else found.ensemble.schema
    assert schema is not None  # a model in a file has one
    return schema


def open_rows(
    data: list[str],
    classifier: qwyc.Classifier | qwyc.Predictor | qwyc.Approximation,
    format: Format | None,
    progress: ProgressLine,
    groups: str | None = None,
    unseen: Unseen = Unseen.error,
) -> tuple[TableFiles, GroupLabels | None]:
    """The rows of DATA, still to be read, and the labels of their groups, if a column of DATA has them.
    The labels come with the rows."""
    labels = None if groups is None else GroupLabels()

    def see_kept(kept: Any) -> None:
        if labels is not None:
            labels.add(*distinct_labels(kept.column(groups)))

    rows = TableFiles(
        data,
        schema_of(classifier),
        keep=[] if groups is None else [groups],
        option="--groups",
        kind=format and format.value,
        report=progress,
        see_kept=see_kept,
        odd=unseen != Unseen.error,
    )
    return rows, labels


def distinct_labels(column: Any) -> tuple[Any, list[Any]]:
    """The labels of a column of a batch as text: the positions of all rows, (N,), among the distinct
    labels, and these in the order in which they appear; None for a missing one."""
    import pyarrow

    encoded = column.cast(pyarrow.string()).dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(), encoded.dictionary.to_pylist()


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
def errors_name(files: TableFiles | Path) -> Iterator[None]:
    """Add the name of the file to errors about its rows, or its model, that do not name it already."""
    try:
        yield
    except InputError as error:
        if error.is_named:
            raise
        named = error.about(str(files)) if isinstance(files, Path) else files.named(error, 0)
        raise named from None
