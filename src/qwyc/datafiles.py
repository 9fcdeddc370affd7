"""Tables in files, read with whichever library is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qwyc.errors import InputError, MissingDependencyError


def read_table(path: Path) -> Any:
    """A CSV, Parquet or Arrow IPC file as an Arrow table or a Polars or pandas frame."""
    if not path.is_file():
        raise InputError(f"cannot read {path}: no such file")
    kind = path.suffix.lower()
    if kind not in (".csv", ".parquet", ".arrow", ".feather", ".ipc"):
        raise InputError(f"{path} must be a .csv, .parquet, .arrow, .feather or .ipc file")
    for reader in (_with_pyarrow, _with_polars, _with_pandas):
        try:
            read = reader(kind)
        except ImportError:
            continue
        try:
            return read(path)
        except Exception as error:  # each library has its own kinds
            raise InputError(f"cannot read {path} as {kind[1:]}: {error}") from None
    raise MissingDependencyError(
        "reading tables needs pyarrow, polars or pandas; install one of them"
    )


def _with_pyarrow(kind: str) -> Any:
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    if kind == ".csv":
        strings = pyarrow.csv.ConvertOptions(strings_can_be_null=True)
        return lambda path: pyarrow.csv.read_csv(path, convert_options=strings)
    return pyarrow.parquet.read_table if kind == ".parquet" else pyarrow.feather.read_table


def _with_polars(kind: str) -> Any:
    import polars

    if kind == ".csv":
        return lambda path: polars.read_csv(path, infer_schema_length=None)
    return polars.read_parquet if kind == ".parquet" else polars.read_ipc


def _with_pandas(kind: str) -> Any:
    import pandas

    if kind == ".csv":
        return pandas.read_csv
    return pandas.read_parquet if kind == ".parquet" else pandas.read_feather
