"""Early decisions against the full ensemble's on the same rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import InputError
from qwyc.model.ensemble import Ensemble, Sample
from qwyc.policy.counts import Sums, sum_over_rows, sums_of_stops
from qwyc.policy.estimate_policy import EstimatePolicy
from qwyc.policy.grouped import Differing, GroupCounter, in_random_order
from qwyc.policy.scores import ScoreMatrix
from qwyc.promise.certified import Certified
from qwyc.promise.group_labels import group_numbers
from qwyc.rows.blocks import error_in_block, row_blocks
from qwyc.rows.odd_values import ERROR, FLAG
from qwyc.rows.sparse import is_sparse
from qwyc.runtime.progress import ProgressOption
from qwyc.target.target import Decided

BLOCK = 1 << 16  # rows that are evaluated together, and between two reports of progress
SCORES = 1 << 21  # scores of base models that are kept at once: larger matrices leave the cache

Look = Callable[[Sample], None]
LookAtScores = Callable[[Sample, ScoreMatrix], None]


@dataclass(frozen=True, eq=False)
class Comparison:
    """What a classifier and its full ensemble decide about the same N rows."""

    decided: Decided  # (N,) early decisions
    full: Decided  # (N,) full decisions
    steps: npt.NDArray[np.int32]  # (N,) base models evaluated
    left_out: int = 0  # more rows, that were not decided


def compare(
    certified: Certified,
    X: Any,
    *,
    threads: int | None = None,
    progress: ProgressOption = False,
    look: Look | None = None,
    look_at_scores: LookAtScores | None = None,
    unseen: str = ERROR,
) -> Comparison:
    """Decide rows early and in full, each once. `look` is called with each block of rows, and
    `look_at_scores` with each block and what each base model says about it. With `unseen` FLAG of
    `qwyc.rows.odd_values`, rows with a value that the model refuses are left out."""
    ensemble, target = certified.ensemble, certified.policy.target
    small = np.min_scalar_type(max(target.n_classes - 1, 1))  # a byte for two classes
    decided, full = [np.empty(0, small)], [np.empty(0, small)]
    steps, left_out = [np.empty(0, np.int32)], 0
    for sample in _samples(ensemble, X, progress, look, unseen, BLOCK):
        left_out += sample.left_out
        if sample.is_empty:
            continue
        early, taken, sums = certified.runner.decide(sample.rows, threads=threads)
        if look_at_scores is None:
            score = ensemble.score_full(sample, threads=threads)
        else:
            scores = ensemble.scores(sample, threads=threads)
            look_at_scores(sample, scores)
            score = scores.full
        if isinstance(certified.policy, EstimatePolicy):  # outputs are compared, not decisions
            early = certified.policy.off(taken, sums, score, threads=threads).astype(small)
        # Decisions fit into few bytes; a long stream has many rows.
        decided.append(np.asarray(early).astype(small))
        full.append(target.decide(score).astype(small))
        steps.append(taken)
    return Comparison(
        np.concatenate(decided), np.concatenate(full), np.concatenate(steps), left_out
    )


def sums_of_policy(
    certified: Certified,
    X: Any,
    *,
    threads: int | None = None,
    progress: ProgressOption = False,
    unseen: str = ERROR,
) -> Sums:
    """What a classifier's policy does on rows; `unseen` is as in `compare`."""
    seen = compare(certified, X, threads=threads, progress=progress, unseen=unseen)
    return sum_over_rows(certified.policy, seen.decided, seen.full, seen.steps, seen.left_out)


def sums_of_path(
    certified: Certified,
    X: Any,
    *,
    threads: int | None = None,
    progress: ProgressOption = False,
    differing: Differing | None = None,
    look: Look | None = None,
    look_at_scores: LookAtScores | None = None,
    unseen: str = ERROR,
) -> tuple[Sums, str]:
    """What every policy of a classifier's path does on rows, and the rows' digest. `differing` collects
    which rows are decided differently, to count groups. `look` is called with each block of rows, and
    `look_at_scores` with each block and what each base model says about it. `unseen` is as in
    `compare`."""
    ensemble, path = certified.ensemble, certified.needed_choices().path
    digest, done, left_out = hashlib.sha256(), 0, 0
    sums = [np.zeros(Sums.size(path.target, len(path.order), len(path)))]
    stops = np.zeros((len(path), len(path.order)), dtype=np.int64)  # (K, T)
    count = None if look_at_scores else ensemble.base_models.path_counter(path)
    rows = BLOCK
    if not ensemble.has_code and (count is None or is_sparse(X)):
        n_scores = len(path.order) * ensemble.base_models.n_scores  # of a row
        rows = min(BLOCK, max(1024, SCORES // n_scores))
    for sample in _samples(ensemble, X, progress, look, unseen, rows):
        left_out += sample.left_out
        if sample.is_empty:
            continue
        seen = None
        if count is not None:
            seen = count(sample.rows, with_wrong=differing is not None, threads=threads)
        if seen is not None:
            full_scores, full = seen.full, path.target.decide(seen.full)
            part_sums = sums_of_stops(path, full, seen.stops, seen.differences)
            if differing is not None:
                differing.add_sets(done, seen.wrong, full)
        else:
            scores = ensemble.scores(sample, threads=threads)
            if look_at_scores is not None:
                look_at_scores(sample, scores)
            full_scores = scores.full
            watch = None if differing is None else partial(differing.add, done)
            part_sums = path.sums(scores, threads=threads, watch=watch)
        digest.update(np.ascontiguousarray(full_scores).reshape(-1).data)
        done += len(full_scores)
        sums.append(part_sums.vector())
        assert part_sums.stops is not None  # it is the path's own
        stops += part_sums.stops
    total = Sums.from_vector(np.sum(sums, axis=0), path.target, len(path.order))
    return replace(total, stops=stops, left_out=left_out), digest.hexdigest()


def count_taken(ensemble: Ensemble, X: Any) -> int:
    """The number of rows of X, a container in memory, of which the model refuses no value."""
    samples = _samples(ensemble, X, False, None, FLAG, BLOCK)
    return sum(len(sample.rows) for sample in samples)


def _samples(
    ensemble: Ensemble,
    X: Any,
    progress: ProgressOption,
    look: Look | None,
    unseen: str,
    rows: int,
) -> Iterator[Sample]:
    """Blocks of rows, converted for the base models. An error about a row counts from the first of X."""
    what = "Comparing with the full ensemble"
    for place, block in row_blocks(X, rows, progress, what):
        try:
            sample = ensemble.sample(block, unseen)
            sample.rows  # noqa: B018  (it is converted here and kept)
        except InputError as error:
            raise error_in_block(X, error, place.start) from None
        if look is not None:
            look(sample)
        yield sample


def group_counter(groups: Any, n_rows: int, differing: Differing) -> GroupCounter | None:
    """What counts groups, which come in a random order; None where there are none."""
    if groups is None:
        return None
    return differing.by_group(in_random_order(group_numbers(groups, n_rows), seed=0))
