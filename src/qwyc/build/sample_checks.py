"""What `optimize` checks of its sample before it promises anything: copies, and training rows."""

from __future__ import annotations

import warnings
from typing import Any

from qwyc.check.training_rows import WAY_OUT, WHY, Closeness, closeness
from qwyc.errors import QwycWarning, TrainingRowsWarning
from qwyc.model.ensemble import Sample
from qwyc.policy.scores import ScoreMatrix
from qwyc.promise.repeats import TOGETHER, units
from qwyc.promise.split import group_numbers
from qwyc.rows.identity import row_hashes


def groups_with_copies(
    sample: Sample, scores: ScoreMatrix, groups: Any, repeats: str
) -> tuple[Any, bool]:
    """The groups, (N,), or None where rows are independent, such that copies of a row are in one group;
    and whether there are such copies. Warns of them, at the caller of `optimize`."""
    if repeats != TOGETHER:
        return groups, False
    found = units(sample.hashes, row_hashes(scores.values))
    if found.group is None:
        return groups, False
    warnings.warn(found.warning, QwycWarning, stacklevel=3)
    given = None if groups is None else group_numbers(groups, found.rows)
    return found.joined_with(given), True


def doubts_about(
    sample: Sample, scores: ScoreMatrix, threads: int | None = None
) -> tuple[str, ...]:
    """Why a promise from this sample would not hold on new rows, as clauses; none if nothing is found.
    Warns of it, at the caller of `optimize`."""
    return doubts_of(closeness(sample, scores, threads=threads))


def doubts_of(found: Closeness | None) -> tuple[str, ...]:
    """Doubts from how close rows are to the training rows. Warns at the caller of the function that calls
    the one that calls this."""
    if found is None or not found.is_training:
        return ()
    warnings.warn(
        f"no promise for new rows: {WHY}. A model is surer of its training rows than of new ones, "
        f"so new rows are decided differently more often than these: {WAY_OUT}",
        TrainingRowsWarning,
        stacklevel=4,
    )
    return (WHY,)
