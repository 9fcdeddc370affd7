"""What `optimize` checks of its sample before it promises anything: copies, and training rows."""

from __future__ import annotations

import warnings

from qwyc.check.training_rows import WAY_OUT, WHY, Closeness, closeness
from qwyc.errors import InputError, QwycWarning, TrainingRowsWarning
from qwyc.model.ensemble import Sample
from qwyc.policy.scores import ScoreMatrix
from qwyc.promise.ordered import Order
from qwyc.promise.repeats import TOGETHER, Numbers, units
from qwyc.rows.identity import row_hashes


def groups_with_copies(
    sample: Sample, scores: ScoreMatrix, groups: Numbers | None, order: Order | None, repeats: str
) -> tuple[Numbers | None, bool]:
    """The groups, (N,) from 0, or None where rows are independent, such that copies of a row are in one
    group; and whether there are such copies. Warns of them, at the caller of `optimize`."""
    if repeats != TOGETHER:
        return groups, False
    found = units(sample.hashes, row_hashes(scores.values))
    if found.group is None:
        return groups, False
    if order is not None:
        raise InputError(
            f"{found.repeated:,} of {found.rows:,} rows of X are copies of another row, and rows in the "
            "order of time cannot be counted in groups: drop the copies, or pass repeats='independent' "
            "where they are independent draws that happen to be equal"
        )
    warnings.warn(found.warning, QwycWarning, stacklevel=3)
    return found.joined_with(groups), True


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
