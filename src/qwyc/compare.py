"""Early decisions against the full ensemble's, row by row and counted.

Counts are plain sums over rows, so those of parts of a data set add up to those of the whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.classifier import Classifier
from qwyc.errors import InputError, OptionError
from qwyc.progress import ProgressOption, progress_reporter
from qwyc.rows import row_count, take
from qwyc.stopping import Path

BLOCK = 1 << 16  # rows between two reports of progress

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Comparison:
    """What a classifier and its full ensemble say of the same N rows."""

    decided: npt.NDArray[np.bool_]  # (N,) early decisions
    full: npt.NDArray[np.bool_]  # (N,) full decisions
    steps: npt.NDArray[np.int32]  # (N,) base models evaluated

    @property
    def tally(self) -> Tally:
        """The same, counted."""
        return Tally(
            rows=len(self.steps),
            negative=int(np.count_nonzero(~self.decided & self.full)),
            positive=int(np.count_nonzero(self.decided & ~self.full)),
            steps=int(self.steps.sum(dtype=np.int64)),
        )


@dataclass(frozen=True)
class Tally:
    """How a classifier did on some rows, in counts."""

    rows: int
    negative: int  # full-positive rows called negative
    positive: int  # full-negative rows called positive
    steps: int  # base models evaluated in all

    def numbers(self) -> Floats:
        """As numbers that can be added up, exact up to 2**53."""
        return np.array([self.rows, self.negative, self.positive, self.steps], dtype=np.float64)

    @classmethod
    def of(cls, numbers: Floats) -> Tally:
        """From such numbers."""
        return cls(*(int(value) for value in numbers))


@dataclass(frozen=True, eq=False)
class PathTally:
    """How all K members of a path did on some rows, in sums."""

    rows: int
    flips: npt.NDArray[np.int64]  # (K, 2) full-positive called negative, and the reverse
    steps: Floats  # (K,) base models evaluated in all
    cost: Floats  # (K,) what they cost in all

    def numbers(self) -> Floats:
        """As numbers that can be added up, (1 + 4 K,)."""
        return np.concatenate([[self.rows], self.flips.ravel(), self.steps, self.cost])

    @classmethod
    def of(cls, numbers: Floats) -> PathTally:
        """From such numbers."""
        K = len(numbers) // 4
        flips = numbers[1 : 1 + 2 * K].astype(np.int64).reshape(K, 2)
        return cls(int(numbers[0]), flips, numbers[1 + 2 * K : 1 + 3 * K], numbers[1 + 3 * K :])


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
) -> PathTally:
    """What every member of a classifier's path does on rows."""
    path = path_of(classifier)
    numbers = np.zeros(1 + 4 * len(path))
    for _, block in _blocks(X, row_count(X), progress):
        scores = classifier.ensemble.scores(block, threads=threads)
        n = len(scores.full)
        seen = path.flips(scores, threads=threads)
        numbers += PathTally(n, seen.counts, seen.mean_models * n, seen.mean_cost * n).numbers()
    return PathTally.of(numbers)


def path_of(classifier: Classifier) -> Path:
    """The family that a classifier's policy was taken from."""
    if classifier.path is None:
        raise OptionError(
            "this classifier has one policy only; optimise with method='auto' for a family of them"
        )
    return classifier.path


def _blocks(X: Any, n: int, progress: ProgressOption) -> Iterator[tuple[slice, Any]]:
    """Rows X, some at a time, and where they stand."""
    if not n:
        raise InputError("X has no rows; verifying needs rows like those to come")
    with progress_reporter(progress, "Comparing with the full ensemble", n) as report:
        for i in range(0, n, BLOCK):
            part = slice(i, min(i + BLOCK, n))
            yield part, X if n <= BLOCK else take(X, np.arange(part.start, part.stop))
            report(part.stop)
