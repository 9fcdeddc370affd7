"""Early decisions against the full ensemble's on the same rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import RowsError
from qwyc.policy.counts import Sums, sum_over_rows
from qwyc.policy.grouped import GroupCounter, in_random_order
from qwyc.promise.certified import Certified
from qwyc.promise.split import group_numbers
from qwyc.rows.selection import row_count, take
from qwyc.runtime.progress import ProgressOption, progress_reporter
from qwyc.target.target import Decided, Target

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
    certified: Certified,
    X: Any,
    *,
    threads: int | None = None,
    progress: ProgressOption = False,
    counter: GroupCounter | None = None,
) -> Sums:
    """What a classifier's policy does on rows. `counter` gets the same, to count groups."""
    seen = compare(certified, X, threads=threads, progress=progress)
    if counter is not None:
        counter.add(0, seen.decided, seen.full)
    return sum_over_rows(certified.policy, seen.decided, seen.full, seen.steps)


def sums_of_path(
    certified: Certified,
    X: Any,
    *,
    threads: int | None = None,
    progress: ProgressOption = False,
    counter: GroupCounter | None = None,
    look: Callable[[Any, npt.NDArray[Any]], None] | None = None,
) -> tuple[Sums, str]:
    """What every policy of a classifier's path does on rows, and the rows' digest. `counter` gets the same,
    to count groups. `look` is called with each block of rows, as the base models take them, and what each
    base model says."""
    path = certified.needed_choices().path
    digest, sums = hashlib.sha256(), []
    stops = np.zeros(path.lower.shape, dtype=np.int64)  # (K, T)
    for part, block in _blocks(X, row_count(X), progress):
        sample = certified.ensemble.sample(block)
        scores = certified.ensemble.scores(sample, threads=threads)
        if look is not None:
            look(sample.rows, scores.values)
        digest.update(scores.full_bytes)

        def watch(k: int, decided: Any, full: Decided, start: int = part.start) -> None:
            if counter is not None:
                counter.add(k, decided, full, start)

        part_sums = path.sums(scores, threads=threads, watch=watch)
        sums.append(part_sums.vector())
        assert part_sums.stops is not None  # it is the path's own
        stops += part_sums.stops
    total = Sums.from_vector(np.sum(sums, axis=0), path.target, len(path.order))
    return replace(total, stops=stops), digest.hexdigest()


def group_counter(
    groups: Any, n_rows: int, target: Target, n_policies: int = 1
) -> GroupCounter | None:
    """What counts groups, which come in a random order; None where there are none."""
    if groups is None:
        return None
    units = in_random_order(group_numbers(groups, n_rows), seed=0)
    return GroupCounter(units, target, n_policies)


def _blocks(X: Any, n: int, progress: ProgressOption) -> Iterator[tuple[slice, Any]]:
    """Some rows at a time, and where they are in X."""
    if not n:
        raise RowsError("{rows} has no rows; rows like those to come are needed")
    with progress_reporter(progress, "Comparing with the full ensemble", n) as report:
        for i in range(0, n, BLOCK):
            part = slice(i, min(i + BLOCK, n))
            yield part, X if n <= BLOCK else take(X, np.arange(part.start, part.stop))
            report(part.stop)
