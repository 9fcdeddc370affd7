"""Slices: rows by the values of a column, for the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError
from qwyc.promise.certified import Certified
from qwyc.rows.column_names import feature_name

MOST_COLUMNS = 20  # features that are sliced, those that rows need first
MOST_VALUES = 8  # of a column with a slice for each value; others are put together
PARTS = 4  # of a column of many numbers


@dataclass(frozen=True, eq=False)
class Column:
    """A column, and the slice of every row."""

    name: str
    slices: list[str]
    where: npt.NDArray[np.intp]  # (N,) index into `slices`


def feature_columns(certified: Certified, rows: Any) -> Iterator[Column]:
    """The columns of a matrix of rows, as the base models take it, in the order in which rows need them.
    Categories that are known as hashes only are left out."""
    schema, use = certified.ensemble.schema, certified.feature_use
    if schema is None:
        return
    order = list(range(schema.n_features))
    if use is not None:
        order = [int(j) for j in np.argsort(use.first, kind="stable") if use.used[j]]
    for j in order[:MOST_COLUMNS]:
        known = schema.categories.get(j)
        if known is not None and schema.hashed:
            continue
        name = str(feature_name(j, schema))
        name = f"feature {name}" if schema.names is None else name
        values = np.asarray(rows[:, j], dtype=np.float64)
        column = _numbers(name, values) if known is None else _codes(name, values, known)
        if len(column.slices) > 1:
            yield column


def given_columns(slices: Mapping[str, Any], n: int) -> Iterator[Column]:
    """Columns that the user gives: a name, and a value for each of n rows."""
    for name, of_rows in slices.items():
        values = np.asarray(of_rows)
        if values.shape != (n,):
            raise OptionError(f"slice {name!r} must have {n} values; got shape {values.shape}")
        if values.dtype.kind in "iuf":
            yield _numbers(str(name), values.astype(np.float64))
        else:
            found, where = np.unique(values.astype(str), return_inverse=True)
            yield _most_frequent(str(name), found.tolist(), where)


def _numbers(name: str, values: npt.NDArray[np.float64]) -> Column:
    """Each value of a few, or some ranges with about as many rows each; missing values apart."""
    missing = np.isnan(values)
    known = values[~missing]
    distinct = np.unique(known)
    if len(distinct) <= MOST_VALUES:
        slices = [f"{value:g}" for value in distinct]
        where = np.searchsorted(distinct, values)
    else:
        cuts = np.unique(np.quantile(known, np.arange(1, PARTS) / PARTS, method="nearest"))
        where = np.searchsorted(cuts, values, side="left")  # up to a cut, and the cut itself
        ends = [f"{cut:.4g}" for cut in cuts]
        slices = [f"up to {ends[0]}"]
        slices += [f"{a} to {b}" for a, b in pairwise(ends)]
        slices.append(f"above {ends[-1]}")
    if missing.any():
        where = np.where(missing, len(slices), where)
        slices.append("missing")
    return Column(name, slices, np.asarray(where, dtype=np.intp))


def _codes(name: str, values: npt.NDArray[np.float64], known: tuple[Any, ...]) -> Column:
    """Categories by their values; a code that is none is missing or unknown."""
    inside = (values >= 0) & (values < len(known))
    where = np.where(inside, values, len(known)).astype(np.intp)
    return _most_frequent(name, [*map(str, known), "missing or unknown"], where)


def _most_frequent(name: str, slices: list[str], where: npt.NDArray[np.intp]) -> Column:
    """The slices with the most rows, most first; the others together."""
    rows = np.bincount(where, minlength=len(slices))
    order = [int(i) for i in np.argsort(-rows, kind="stable") if rows[i]]
    kept = order if len(order) <= MOST_VALUES + 1 else order[:MOST_VALUES]
    names = [slices[i] for i in kept]
    place = np.full(len(slices), len(kept), dtype=np.intp)
    place[kept] = np.arange(len(kept))
    if len(order) > len(kept):
        names.append(f"{len(order) - len(kept):,} others")
    return Column(name, names, place[where])
