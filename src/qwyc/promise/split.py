"""Splitting a sample: rows to fit on, and rows to certify on that have no part in the fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import InfeasibleError, InputError, OptionError
from qwyc.promise.budget import Budget
from qwyc.rows.values import is_null

ENOUGH_TO_FIT = 20_000  # more rows hardly help the fit; they are worth more for certifying
FEWEST_TO_FIT = 200


def split_sample(
    n_rows: int, budget: Budget, confidence: float, groups: Any, seed: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Rows to fit on and rows to certify on, each ascending: half and half, but no more than 20,000 to
    fit on, and enough to certify. A group stays on one side."""
    certify_at_least = budget.rows_needed(confidence)
    if n_rows < certify_at_least + FEWEST_TO_FIT:
        raise InfeasibleError(
            f"alpha = {budget} at confidence {confidence:g} needs at least "
            f"{certify_at_least + FEWEST_TO_FIT:,} rows ({certify_at_least:,} to certify, "
            f"{FEWEST_TO_FIT} to fit on); the sample has {n_rows:,}. Pass more rows, or ask for a larger "
            "alpha."
        )
    n_fit = max(FEWEST_TO_FIT, min(ENOUGH_TO_FIT, n_rows // 2, n_rows - certify_at_least))
    shuffled = np.random.default_rng(seed)
    if groups is None:
        chosen = np.zeros(n_rows, dtype=bool)
        chosen[shuffled.permutation(n_rows)[:n_fit]] = True
        return np.flatnonzero(chosen), np.flatnonzero(~chosen)
    group = group_numbers(groups, n_rows)
    n_groups = int(group.max()) + 1
    size = np.bincount(group)
    fits = np.zeros(n_groups, dtype=bool)
    taken = 0
    for g in shuffled.permutation(n_groups):  # each that still fits
        if taken + size[g] <= n_fit:
            fits[g] = True
            taken += int(size[g])
    chosen = fits[group]
    n_certify = int(np.count_nonzero(~chosen))
    if n_certify < certify_at_least or np.count_nonzero(chosen) < FEWEST_TO_FIT:
        raise InfeasibleError(
            f"with these {n_groups:,} groups, {n_certify:,} rows are left to certify and "
            f"{np.count_nonzero(chosen):,} to fit on; alpha = {budget} at confidence "
            f"{confidence:g} needs {certify_at_least:,} and {FEWEST_TO_FIT}. Pass more or smaller groups."
        )
    return np.flatnonzero(chosen), np.flatnonzero(~chosen)


def group_numbers(groups: Any, n_rows: int) -> npt.NDArray[np.intp]:
    """Each row's group as a number from 0, in the order in which groups appear."""
    try:
        labels = list(
            groups.to_list() if hasattr(groups, "to_list") else np.asarray(groups).tolist()
        )
        known: dict[Any, int] = {}
        numbers = [known.setdefault(label, len(known)) for label in labels]
    except (TypeError, ValueError) as error:
        raise OptionError(f"groups must be one plain label per row: {error}") from None
    if len(labels) != n_rows:
        raise OptionError(f"groups must be {n_rows} values, one per row; got {len(labels)}")
    for i, label in enumerate(labels):
        if is_null(label):
            raise InputError(f"groups must be known for every row; row {i} has none: {label!r}")
    return np.array(numbers, dtype=np.intp)
