"""UCI Adult, shipped with the package (data/README.md has the attribution and licence)."""

from __future__ import annotations

import csv
import gzip
import io
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Table:
    """A data set by columns: numbers as int64, text as objects with None where missing."""

    columns: dict[str, npt.NDArray[Any]]  # 14 features, each (N,)
    label: npt.NDArray[np.int64]  # (N,) 0 or 1

    def codes(self, like: Table | None = None) -> npt.NDArray[np.float32]:
        """All features as numbers, (N, 14): text becomes its position among the sorted values of
        `like` (default: this table); missing and unseen values become NaN."""
        encoded = []
        for name, column in self.columns.items():
            if column.dtype != object:
                encoded.append(column.astype(np.float32))
                continue
            known = sorted({v for v in (like or self).columns[name] if v is not None})
            position = {value: float(code) for code, value in enumerate(known)}
            encoded.append(np.array([position.get(v, np.nan) for v in column], dtype=np.float32))
        return np.stack(encoded, axis=1)

    @property
    def feature_types(self) -> list[str]:
        """ "c" for categorical features and "q" for numbers, as XGBoost writes it."""
        return ["c" if column.dtype == object else "q" for column in self.columns.values()]


def load_adult(split: str) -> Table:
    """The "train" (32,561 rows) or "test" (16,281 rows) part of UCI Adult, as predefined."""
    if split not in ("train", "test"):
        raise ValueError(f'split must be "train" or "test"; got {split!r}')
    content = resources.files("qwyc").joinpath(f"data/adult_{split}.csv.gz").read_bytes()
    lines = io.TextIOWrapper(gzip.GzipFile(fileobj=io.BytesIO(content)), encoding="utf-8")
    names, *rows = csv.reader(lines)
    columns: dict[str, npt.NDArray[Any]] = {}
    for name, cells in zip(names, zip(*rows, strict=True), strict=True):
        if all(cell.lstrip("-").isdigit() for cell in cells):
            columns[name] = np.array(cells, dtype=np.int64)
        else:
            columns[name] = np.array([cell or None for cell in cells], dtype=object)
    label = columns.pop("label")
    return Table(columns, label)
