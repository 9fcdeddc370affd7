"""Decisions as columns of a table: their names, their types, and how they come out in Arrow."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.policy.decisions import Decisions

COLUMNS = ("label", "steps", "score", "complete")
REASON = "reason"  # why a row was not decided, one more column with unseen="flag"


def column_names(*, reason: bool, classes: npt.NDArray[Any] | None = None) -> tuple[str, ...]:
    """The names of the columns; with `reason`, those of decisions with unseen="flag". Where each of the
    `classes` has a score, there is a column for each, such as "score_setosa"."""
    columns: tuple[str, ...] = COLUMNS
    if classes is not None:
        scores = tuple(f"score_{label}" for label in classes.tolist())
        columns = (*COLUMNS[:2], *scores, *COLUMNS[3:])
    return (*columns, REASON) if reason else columns


def arrow_columns(decisions: Decisions, classes: npt.NDArray[Any]) -> list[Any]:
    """Arrow arrays, each (N,), in the order of `column_names`; a label has the type of the classes.
    Decisions that have reasons get one more column, of text; rows that were not decided are null in the
    others."""
    import pyarrow

    numbers: list[npt.NDArray[Any]]
    numbers = [decisions.steps, *score_columns(decisions.score), decisions.complete]
    if decisions.reason is None:
        label = label_column(decisions.label, classes)
        return [label, *(number_column(values) for values in numbers)]
    label = pyarrow.array(decisions.label, arrow_type(classes))
    null = None if not decisions.not_decided else ~decisions.decided
    reason = pyarrow.array(decisions.reason, pyarrow.string())
    return [label, *(pyarrow.array(values, mask=null) for values in numbers), reason]


def label_column(labels: npt.NDArray[Any], classes: npt.NDArray[Any]) -> Any:
    """Labels (N,), none of them missing, as an Arrow array of the type of the classes."""
    import pyarrow

    kind = arrow_type(classes)
    if labels.dtype.kind not in "biuf":
        return pyarrow.array(labels, kind)
    if pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind):
        return number_column(labels.astype(kind.to_pandas_dtype(), copy=False))
    return number_column(labels) if pyarrow.types.is_boolean(kind) else pyarrow.array(labels, kind)


def number_column(values: npt.NDArray[Any]) -> Any:
    """Numbers (N,) of a type that Arrow has too, as an Arrow array that shares their memory where it can.
    `pyarrow.array` would import pandas, which takes longer than deciding a million rows."""
    import pyarrow

    bits = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else values
    kind = pyarrow.from_numpy_dtype(values.dtype)
    memory = pyarrow.py_buffer(np.ascontiguousarray(bits))
    return pyarrow.Array.from_buffers(kind, len(values), [None, memory])


def score_columns(score: npt.NDArray[np.float64]) -> list[npt.NDArray[np.float64]]:
    """Scores (N,), or (N, K) where each class has one, as columns, each (N,)."""
    return [score] if score.ndim == 1 else list(score.T.copy())


def arrow_type(classes: npt.NDArray[Any]) -> Any:
    """The Arrow type of a label; unsigned numbers get a signed type, which every engine has."""
    import pyarrow

    if classes.dtype.kind == "u":
        return pyarrow.int32() if classes.dtype.itemsize < 4 else pyarrow.int64()
    if classes.dtype.kind in "bif" and classes.dtype.isnative:
        return pyarrow.from_numpy_dtype(classes.dtype)
    return pyarrow.array(classes).type
