"""Early decisions against the full ensemble's on the same rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.classifier import Classifier
from qwyc.errors import InputError
from qwyc.policy.counts import PathTally, Tally, count_flips
from qwyc.rows.selection import row_count, take
from qwyc.runtime.progress import ProgressOption, progress_reporter

BLOCK = 1 << 16  # rows between two reports of progress


@dataclass(frozen=True, eq=False)
class Comparison:
    """What a classifier and its full ensemble say of the same N rows."""

    decided: npt.NDArray[np.bool_]  # (N,) early decisions
    full: npt.NDArray[np.bool_]  # (N,) full decisions
    steps: npt.NDArray[np.int32]  # (N,) base models evaluated

    @property
    def tally(self) -> Tally:
        """The same, counted."""
        negative, positive = count_flips(self.decided, self.full)
        steps = int(self.steps.sum(dtype=np.int64))
        return Tally(len(self.steps), int(self.full.sum()), negative, positive, steps)


def compare(
    classifier: Classifier, X: Any, *, threads: int | None = None, progress: ProgressOption = False
) -> Comparison:
    """Decide rows early and in full."""
    n = row_count(X)
    decided, full = np.empty(n, dtype=bool), np.empty(n, dtype=bool)
    steps = np.empty(n, dtype=np.int32)
    for part, block in _blocks(X, n, progress):
        decisions = classifier.decide(block, threads=threads)
        decided[part] = decisions.label == classifier.ensemble.classes[1]
        steps[part] = decisions.steps
        full[part] = classifier.score_full(block, threads=threads) >= classifier.policy.threshold
    return Comparison(decided, full, steps)


def tally_path(
    classifier: Classifier, X: Any, *, threads: int | None = None, progress: ProgressOption = False
) -> tuple[PathTally, str]:
    """What every member of a classifier's path does on rows, and the rows' digest."""
    path = classifier.needed_choices().path
    digest, counts = hashlib.sha256(), []
    for _, block in _blocks(X, row_count(X), progress):
        scores = classifier.ensemble.scores(block, threads=threads)
        digest.update(scores.full_bytes)
        counts.append(path.tally(scores, threads=threads).numbers())
    return PathTally.of(np.sum(counts, axis=0)), digest.hexdigest()


def _blocks(X: Any, n: int, progress: ProgressOption) -> Iterator[tuple[slice, Any]]:
    """Rows X, some at a time, and where they stand."""
    if not n:
        raise InputError("X has no rows; rows like those to come are needed")
    with progress_reporter(progress, "Comparing with the full ensemble", n) as report:
        for i in range(0, n, BLOCK):
            part = slice(i, min(i + BLOCK, n))
            yield part, X if n <= BLOCK else take(X, np.arange(part.start, part.stop))
            report(part.stop)
