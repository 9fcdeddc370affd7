"""Reading the data files of the experiments, and the libraries that only some experiments use."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import InputError, MissingDependencyError

Columns = dict[str, npt.NDArray[Any]]


def need(module: str, package: str) -> Any:
    """A library that only some experiments use."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingDependencyError(
            f"the experiments need {package}; install it with: pip install {package}"
        ) from None


def read_columns(path: Path) -> Columns:
    """Columns of a Parquet file by name: numbers with NaN where missing, text as objects with None."""
    parquet = need("pyarrow.parquet", "pyarrow")
    try:
        table = parquet.read_table(path)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    return {
        name: column.to_numpy() if "string" not in str(column.type) else _objects(column)
        for name, column in zip(table.column_names, table.columns, strict=True)
    }


def labels(columns: Columns, path: Path) -> npt.NDArray[np.int64]:
    """The column `label`, (N,), checked: 0 or 1, and both."""
    found = columns["label"]
    values = set(found.tolist())
    if values != {0, 1}:
        some = ", ".join(sorted(map(repr, values))[:3]) + (", ..." if len(values) > 3 else "")
        raise InputError(
            f"`label` in {path} must be 0 or 1, with rows of both; found {some or 'no rows'}"
        )
    return found.astype(np.int64)


def _objects(column: Any) -> npt.NDArray[np.object_]:
    return np.array(column.to_pylist(), dtype=object)


def text_values(columns: Columns) -> dict[str, list[str]]:
    """The values of every text column, sorted: their positions are their codes."""
    return {
        name: sorted({value for value in column if value is not None})
        for name, column in columns.items()
        if column.dtype == object
    }


def as_matrix(
    columns: Columns, names: list[str], known: dict[str, list[str]]
) -> npt.NDArray[np.float32]:
    """Some columns as numbers, (N, D): text as codes, NaN where it is missing or not known."""
    encoded = []
    for name in names:
        column = columns[name]
        if name in known:
            position = {value: float(code) for code, value in enumerate(known[name])}
            column = np.array([position.get(v, np.nan) for v in column])
        encoded.append(column.astype(np.float32))
    return np.stack(encoded, axis=1)
