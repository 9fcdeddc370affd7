"""A sample in the order of time: fit on the earlier rows, certify on the later ones, in windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import InfeasibleError, InputError, OptionError
from qwyc.promise.budget import Budget
from qwyc.promise.split import ENOUGH_TO_FIT, FEWEST_TO_FIT, check_enough_rows
from qwyc.rows.values import is_null

MOST_WINDOWS = 8
ROOMY = 4  # a window has at least so many times the rows that the limits need
LONGEST = 40  # characters of a value in a certificate


@dataclass(frozen=True, eq=False)
class Order:
    """The rank of every row."""

    rank: npt.NDArray[np.intp]  # (N,) from 0; equal values have equal ranks
    values: npt.NDArray[Any]  # the value of each rank

    def text(self, rank: int) -> str:
        """The value of a rank, as certificates print it."""
        value = self.values[rank]
        if isinstance(value, np.datetime64):
            value = np.datetime_as_string(value, unit="auto")
        return str(value)[:LONGEST]


@dataclass(frozen=True, eq=False)
class OrderedSplit:
    """Rows to fit on, and later rows to certify on in windows."""

    fit: npt.NDArray[np.intp]  # ascending
    held_out: npt.NDArray[np.intp]  # ascending
    window: npt.NDArray[np.intp]  # (len(held_out),) from 0, the earliest
    first: tuple[str, ...]  # value at the start of each window
    last: tuple[str, ...]

    @property
    def latest(self) -> npt.NDArray[np.intp]:
        """The rows of the latest window, ascending."""
        rows: npt.NDArray[np.intp] = self.held_out[self.window == len(self.first) - 1]
        return rows


def order_of(values: Any, n_rows: int) -> Order:
    """Values to sort rows by, (N,): numbers, dates or text; ordered categories have their own order."""
    ranked = _ranked_categories(values)
    if ranked is not None:
        codes, names = ranked
        order = order_of(codes, n_rows)
        return Order(order.rank, np.asarray(names, dtype=object)[order.values.astype(np.intp)])
    try:
        array = as_array(values)
    except (TypeError, ValueError) as error:
        raise OptionError(f"order_by must be one value per row: {error}") from None
    if array.shape != (n_rows,):
        raise OptionError(
            f"order_by must be {n_rows} values, one per row, or the name of a column of X; got "
            + (repr(values) if array.ndim == 0 else f"an array of shape {array.shape}")
        )
    missing = _missing(array)
    if missing is not None:
        raise InputError(
            f"order_by must be known for every row; row {missing} has none: {array[missing]!r}"
        )
    if array.dtype.kind == "c":
        raise OptionError("order_by must be numbers, dates or text; complex numbers have no order")
    try:
        distinct, rank = np.unique(array, return_inverse=True)
    except TypeError as error:
        raise OptionError(f"order_by must be values that can be compared: {error}") from None
    return Order(rank.reshape(-1).astype(np.intp), distinct)


def as_array(values: Any) -> npt.NDArray[Any]:
    """Values of rows as an array. Lists stay what they are: NumPy would turn numbers among text into text,
    and so missing values into the text "nan"."""
    array = np.asarray(values)
    made_text = array.dtype.kind in "US" and isinstance(values, (list, tuple))
    if made_text and not all(isinstance(value, (str, bytes)) for value in values):
        array = np.empty(len(values), dtype=object)
        array[:] = values
    return array


def _ranked_categories(values: Any) -> tuple[npt.NDArray[Any], list[Any]] | None:
    """Codes, (N,), and names of categories that have an order of their own (of pandas and Polars); None
    where values are no such categories."""
    column = getattr(values, "cat", values)  # a pandas series, or pandas' own array of categories
    if getattr(column, "ordered", False) and hasattr(column, "codes"):
        codes = np.asarray(column.codes, dtype=np.float64)
        codes[codes < 0] = np.nan  # missing
        return codes, list(column.categories)
    if str(getattr(values, "dtype", "")).startswith("Enum(") and hasattr(values, "to_physical"):
        codes = np.asarray(values.to_physical().to_numpy(), dtype=np.float64)
        return codes, values.dtype.categories.to_list()
    return None


def _missing(array: npt.NDArray[Any]) -> int | None:
    """The first row without a value."""
    if array.dtype.kind == "O":
        null = np.fromiter((is_null(value) for value in array), dtype=bool, count=len(array))
    elif array.dtype.kind == "f":
        null = np.isnan(array)
    elif array.dtype.kind in "mM":
        null = np.isnat(array)
    else:
        return None
    return int(np.argmax(null)) if null.any() else None


def split_by_order(
    order: Order, budget: Budget, confidence: float, decided: npt.NDArray[Any]
) -> OrderedSplit:
    """Fit on rows of the earlier half, the latest of them and no more than 20,000; certify on the later
    half, in windows. Rows of equal value are not cut apart. `decided` (N,) are full decisions, of which
    those of the fitting rows tell how many rows a class limit needs."""
    n = len(order.rank)
    needed = budget.rows_needed(confidence)
    check_enough_rows(n, needed, budget, confidence)
    by_rank = np.argsort(order.rank, kind="stable")
    ranks = order.rank[by_rank]
    starts = np.flatnonzero(np.diff(ranks, prepend=-1))  # where a value begins: possible cuts
    cut = _cut(starts, max(FEWEST_TO_FIT, min(n // 2, n - needed)), n - needed)
    fit = by_rank[max(0, cut - ENOUGH_TO_FIT) : cut]
    later = n - cut
    classes = np.bincount(decided[fit], minlength=budget.target.n_classes)
    n_windows = later // (ROOMY * _rows_needed(budget, confidence, classes / len(fit)))
    n_windows = min(max(n_windows, 1), MOST_WINDOWS)
    wanted = cut + np.arange(1, n_windows) * later // n_windows
    inner = starts[np.searchsorted(starts, wanted, side="right") - 1]  # the latest begins earlier
    edges = np.unique(np.append(inner[inner > cut], [cut, n]))
    held_out = by_rank[cut:]
    window = np.searchsorted(edges, np.arange(cut, n), side="right") - 1
    ascending = np.argsort(held_out)
    return OrderedSplit(
        np.sort(fit),
        held_out[ascending],
        window[ascending],
        tuple(order.text(int(ranks[start])) for start in edges[:-1]),
        tuple(order.text(int(ranks[end - 1])) for end in edges[1:]),
    )


def _cut(starts: npt.NDArray[np.intp], wanted: int, most: int) -> int:
    """Where the later rows begin: the last possible cut up to `wanted`, or the next one up to `most`."""
    early = starts[(starts >= FEWEST_TO_FIT) & (starts <= wanted)]
    if len(early):
        return int(early[-1])
    late = starts[(starts > wanted) & (starts <= most)]
    if not len(late):
        raise InfeasibleError(
            f"order_by has {len(starts):,} different values, and rows of equal value are not cut apart: no "
            "cut leaves enough rows to fit on before it and to certify on after it. Pass a finer order."
        )
    return int(late[0])


def _rows_needed(budget: Budget, confidence: float, shares: npt.NDArray[np.float64]) -> int:
    """The fewest rows that show every limit, where the classes have these shares of the rows."""
    needed = []
    for limit in budget.limits:
        share = 1.0 if limit.among is None else float(shares[limit.among])
        needed.append(round(limit.rows_needed(confidence) / max(share, 1e-6)))
    return max(needed)
