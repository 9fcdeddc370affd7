"""Decisions as columns of a table: their names, their types, and how they come out in Arrow."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from qwyc.policy.decisions import Decisions

COLUMNS = ("label", "steps", "score", "complete")


def arrow_columns(decisions: Decisions, classes: npt.NDArray[Any]) -> list[Any]:
    """Arrow arrays, each (N,), in the order of COLUMNS; a label has the type of the classes."""
    import pyarrow

    label = pyarrow.array(decisions.label, arrow_type(classes))
    return [label, *map(pyarrow.array, (decisions.steps, decisions.score, decisions.complete))]


def arrow_type(classes: npt.NDArray[Any]) -> Any:
    """The Arrow type of a label; unsigned numbers get a signed type, which every engine has."""
    import pyarrow

    if classes.dtype.kind == "u":
        return pyarrow.int32() if classes.dtype.itemsize < 4 else pyarrow.int64()
    return pyarrow.array(classes).type
