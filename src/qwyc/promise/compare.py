"""Early decisions against the full ensemble's on the same rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import RowsError
from qwyc.policy.counts import Sums, sum_over_rows
from qwyc.promise.certified import Certified
from qwyc.rows.selection import row_count, take
from qwyc.runtime.progress import ProgressOption, progress_reporter
from qwyc.target.target import Decided

BLOCK = 1 << 16  # rows between two reports of progress


@dataclass(frozen=True, eq=False)
class Comparison:
    """What a classifier and its full ensemble decide about the same N rows."""

    decided: Decided  # (N,) early decisions
    full: Decided  # (N,) full decisions
    steps: npt.NDArray[np.int32]  # (N,) base models evaluated


def compare(
    certified: Certified, X: Any, *, threads: int | None = None, progress: ProgressOption = False
) -> Comparison:
    """Decide rows early and in full."""
    ensemble, target, n = certified.ensemble, certified.policy.target, row_count(X)
    decided, full = np.empty(n, dtype=np.intp), np.empty(n, dtype=np.intp)
    steps = np.empty(n, dtype=np.int32)
    for part, block in _blocks(X, n, progress):
        rows = ensemble.sample(block)
        decided[part], steps[part], _ = certified.runner.decide(rows.rows, threads=threads)
        full[part] = target.decide(ensemble.score_full(rows, threads=threads))
    return Comparison(decided, full, steps)


def sums_of_policy(
    certified: Certified, X: Any, *, threads: int | None = None, progress: ProgressOption = False
) -> Sums:
    """What a classifier's policy does on rows."""
    seen = compare(certified, X, threads=threads, progress=progress)
    return sum_over_rows(certified.policy, seen.decided, seen.full, seen.steps)


def sums_of_path(
    certified: Certified, X: Any, *, threads: int | None = None, progress: ProgressOption = False
) -> tuple[Sums, str]:
    """What every policy of a classifier's path does on rows, and the rows' digest."""
    path = certified.needed_choices().path
    digest, sums = hashlib.sha256(), []
    for _, block in _blocks(X, row_count(X), progress):
        scores = certified.ensemble.scores(block, threads=threads)
        digest.update(scores.full_bytes)
        sums.append(path.sums(scores, threads=threads).vector())
    return Sums.from_vector(np.sum(sums, axis=0), path.target, len(path.order)), digest.hexdigest()


def _blocks(X: Any, n: int, progress: ProgressOption) -> Iterator[tuple[slice, Any]]:
    """Some rows at a time, and where they are in X."""
    if not n:
        raise RowsError("{rows} has no rows; rows like those to come are needed")
    with progress_reporter(progress, "Comparing with the full ensemble", n) as report:
        for i in range(0, n, BLOCK):
            part = slice(i, min(i + BLOCK, n))
            yield part, X if n <= BLOCK else take(X, np.arange(part.start, part.stop))
            report(part.stop)
