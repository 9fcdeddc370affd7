"""What `optimize` checks of its sample before it promises anything: copies, and training rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qwyc.check.training_rows import closeness, doubts_of
from qwyc.errors import InfeasibleError, QwycWarning
from qwyc.model.ensemble import Sample
from qwyc.policy.scores import ScoreMatrix
from qwyc.promise.repeats import TOGETHER, Repeats, units
from qwyc.rows.identity import row_hashes

Numbers = npt.NDArray[np.intp]
NO_PROMISE = "no promise for new rows"


@dataclass(frozen=True, eq=False)
class Seen:
    """What was found in a sample."""

    units: (
        Numbers | None
    )  # (N,) groups, with the copies of a row in one; None: rows are independent
    doubts: tuple[str, ...]  # why a promise would not hold on new rows, as clauses
    copies: bool  # whether copies were found

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Say in an error about too few groups that copies are why rows are counted in groups."""
        try:
            yield
        except InfeasibleError as error:
            if not self.copies:
                raise
            raise InfeasibleError(
                f"{error} Rows that equal each other are one group here; repeats='independent' counts them "
                "as independent draws."
            ) from None


def look_at_sample(
    sample: Sample,
    scores: ScoreMatrix,
    groups: Numbers | None,
    repeats: str,
    ordered: bool,
    threads: int | None,
) -> Seen:
    """Look for copies and training rows. `groups` (N,) are numbers of groups. Warnings point at the caller
    of the function that calls this."""
    found = None
    if repeats == TOGETHER and groups is None:  # groups that are given are the units
        found = units(sample.hashes, row_hashes(scores.values))
    doubts: tuple[str, ...] = ()
    if found is not None and found.group is not None:
        warnings.warn(_uncounted(found) if ordered else found.warning, QwycWarning, stacklevel=3)
        if ordered:
            doubts = (
                f"{found.repeated:,} of {found.rows:,} rows are copies of each other, and rows in the "
                "order of time are counted as independent draws",
            )
    doubts += doubts_of(closeness(sample, scores, threads=threads), NO_PROMISE, stacklevel=4)
    if found is None or found.group is None:
        return Seen(groups, doubts, False)
    return Seen(found.group, doubts, True)


def _uncounted(found: Repeats) -> str:
    return (
        f"{NO_PROMISE}: {found.facts}. Copies are not independent draws, but rows in the order "
        "of time are counted so: leave the copies out, or pass repeats='independent' if they are "
        "independent draws that happen to be equal"
    )
