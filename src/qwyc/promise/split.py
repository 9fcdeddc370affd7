"""Splitting a sample: rows to fit on, and rows to certify on that have no part in the fit."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from qwyc.errors import InfeasibleError
from qwyc.promise.budget import Budget
from qwyc.promise.limits import least_share
from qwyc.runtime.wording import number_of

ENOUGH_TO_FIT = 20_000  # more rows hardly help the fit; they are worth more for certifying
FEWEST_TO_FIT = 200
LARGEST_ADVISED = 0.1  # alpha that a message suggests for a small sample
SPARE = 1.2  # times the rows of a class that a limit needs: how many are held out is random
MOST_OF_A_GROUP = ENOUGH_TO_FIT // 100  # rows of one group that count towards enough

Rows = npt.NDArray[np.intp]


def split_sample(
    n_rows: int,
    budget: Budget,
    confidence: float,
    units: Rows | None,
    seed: int,
    by_class: Sequence[int] = (),
) -> tuple[Rows, Rows]:
    """Rows to fit on and rows to certify on, each ascending: half and half, but no more than 20,000 to
    fit on, and enough to certify. `by_class` are the rows of each class, of which limits on a class need
    enough.

    With `units` (N,), the group of each row as a number from 0, a group stays on one side. Groups are drawn
    to fit on one after the other until half of them, or 20,000 rows, are there. When that is depends on the
    groups that were drawn only, so the groups that are left are still as good as drawn at random."""
    certify_at_least = budget.rows_needed(confidence)
    check_enough_rows(n_rows, certify_at_least, budget, confidence)
    shuffled = np.random.default_rng(seed)
    chosen = np.zeros(n_rows, dtype=bool)
    if units is None:
        for limit in budget.limits:
            if limit.among is not None and by_class and by_class[limit.among]:
                every = n_rows / by_class[limit.among]  # rows for one of the class
                enough = math.ceil(SPARE * limit.rows_needed(confidence) * every)
                certify_at_least = max(certify_at_least, enough)
        n_fit = max(FEWEST_TO_FIT, min(ENOUGH_TO_FIT, n_rows // 2, n_rows - certify_at_least))
        chosen[shuffled.permutation(n_rows)[:n_fit]] = True
        return np.flatnonzero(chosen), np.flatnonzero(~chosen)
    size = np.bincount(units)
    n_groups = len(size)
    if n_groups <= certify_at_least:
        raise InfeasibleError(
            f"{budget.named} at confidence {confidence:g} needs at least "
            f"{number_of(certify_at_least, 'group')} to certify, and others to fit on; the sample has "
            f"{number_of(n_groups, 'group')}, and the largest has "
            f"{size.max() / n_rows:.0%} of the rows. Rows of one group count as one draw. Pass more "
            "groups, or use a larger alpha."
        )
    drawn = shuffled.permutation(n_groups)
    rows = np.cumsum(size[drawn])  # after each group
    counted = np.cumsum(np.minimum(size[drawn], MOST_OF_A_GROUP))
    half = max(min(n_groups // 2, n_groups - certify_at_least), 1)
    many = (np.arange(1, n_groups + 1) >= half) & (rows >= FEWEST_TO_FIT)
    n_fit = int(np.argmax(many | (counted >= ENOUGH_TO_FIT))) + 1
    if not many[-1] or n_groups - n_fit < certify_at_least:
        raise InfeasibleError(
            f"of {number_of(n_groups, 'group')}, {n_groups - n_fit:,} are left to certify, and "
            f"{number_of(int(rows[n_fit - 1]), 'row')} to fit on; {budget.named} at confidence "
            f"{confidence:g} needs {certify_at_least:,} and {FEWEST_TO_FIT}. Pass more groups."
        )
    fits = np.zeros(n_groups, dtype=bool)
    fits[drawn[:n_fit]] = True
    chosen = fits[units]
    return np.flatnonzero(chosen), np.flatnonzero(~chosen)


def check_enough_rows(n_rows: int, needed: int, budget: Budget, confidence: float) -> None:
    """Refuse a sample of too few rows."""
    if n_rows < needed + FEWEST_TO_FIT:
        raise InfeasibleError(
            f"{budget.named} at confidence {confidence:g} needs at least "
            f"{needed + FEWEST_TO_FIT:,} rows ({needed:,} to certify, "
            f"{FEWEST_TO_FIT} to fit on); the sample has {n_rows:,}. {with_few_rows(n_rows, confidence)}"
        )


def with_few_rows(n_rows: int, confidence: float) -> str:
    """What can be done where a sample is too small."""
    least = least_share(max(n_rows - FEWEST_TO_FIT, 0), confidence)
    if least > LARGEST_ADVISED:
        return (
            "So few rows are too few for any useful alpha: pass more, or evaluate the model in full and "
            "exactly with qwyc.read_model(model), which needs none."
        )
    return (
        "Pass more rows, evaluate the model in full and exactly with qwyc.read_model(model), which needs "
        f"none, or ask for a larger alpha: with {n_rows:,} rows at least {least:g}."
    )
