"""Formats whose nodes each have a comparison of their own: turned into one rule for all nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.importers.flatten import NodeTable
from qwyc.model.trees import NodeFlag

LESS, LESS_EQUAL, GREATER, GREATER_EQUAL = "<", "<=", ">", ">="


def with_one_rule(table: NodeTable, operator: npt.NDArray[np.str_]) -> tuple[NodeTable, bool]:
    """The same splits, all `x <= threshold` (True) or all `x < threshold` (False).

    `operator` (n,) says when a row goes left; it counts at nodes that compare numbers only."""
    numeric = (table.left >= 0) & ((table.flags & NodeFlag.CATEGORICAL) == 0)
    used = set(np.unique(operator[numeric]).tolist())
    unknown = used - {LESS, LESS_EQUAL, GREATER, GREATER_EQUAL}
    if unknown:
        raise ModelError(f"a split compares by {min(unknown)!r}, which is not supported")
    # x > t is the other side of x <= t, and x >= t of x < t; NaN keeps its child.
    swapped = numeric & np.isin(operator, (GREATER, GREATER_EQUAL))
    strict = numeric & np.isin(operator, (LESS, GREATER_EQUAL))
    table = replace(
        table,
        left=np.where(swapped, table.right, table.left),
        right=np.where(swapped, table.left, table.right),
        flags=np.where(swapped, table.flags ^ NodeFlag.DEFAULT_LEFT, table.flags).astype(np.uint8),
    )
    if not strict.any() or strict[numeric].all():
        return table, not strict.any()
    if np.any(table.threshold[strict] == -np.inf):
        raise ModelError("a split is below minus infinity, where no value is")
    below = np.nextafter(table.threshold, table.threshold.dtype.type(-np.inf))
    return replace(table, threshold=np.where(strict, below, table.threshold)), True
