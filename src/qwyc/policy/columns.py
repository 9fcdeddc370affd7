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

    label = pyarrow.array(decisions.label, arrow_type(classes))
    numbers = [decisions.steps, *score_columns(decisions.score), decisions.complete]
    if decisions.reason is None:
        return [label, *map(pyarrow.array, numbers)]
    null = None if not decisions.not_decided else ~decisions.decided
    reason = pyarrow.array(decisions.reason, pyarrow.string())
    return [label, *(pyarrow.array(values, mask=null) for values in numbers), reason]


def score_columns(score: npt.NDArray[np.float64]) -> list[npt.NDArray[np.float64]]:
    """Scores (N,), or (N, K) where each class has one, as columns, each (N,)."""
    return [score] if score.ndim == 1 else list(score.T.copy())


def arrow_type(classes: npt.NDArray[Any]) -> Any:
    """The Arrow type of a label; unsigned numbers get a signed type, which every engine has."""
    import pyarrow

    if classes.dtype.kind == "u":
        return pyarrow.int32() if classes.dtype.itemsize < 4 else pyarrow.int64()
    return pyarrow.array(classes).type
