"""One ensemble with one interpolation: everyone's answers checked, then everyone timed in turn."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qwyc.check.benchmark import Line, line
from qwyc.runtime.timing import Contestant, batches, interleave

from ..contest import CHECKED_SINGLY, Result, WrongAnswer, enlarged
from .contestants import Evaluator
from .shapes import Shape, Sizes

SCORE_TOLERANCE = 1e-5  # of max(1, |score|)
NEAR = 1e-6  # rows whose score is this close to the threshold may be decided either way
SINGLE_ROWS = 1000  # different ones


@dataclass
class Found(Result):
    """What one ensemble with one interpolation showed; more than decisions is compared."""

    shape: Shape | None = None
    interpolation: str = ""
    threshold: float = 0.0  # of scores
    positives: int = 0  # test rows that the full ensemble calls positive
    missed: int = 0  # of those, the ones that quitting calls negative
    warned: list[str] = field(default_factory=list)  # by qwyc, when it optimised the ensemble
    score_error: dict[str, float] = field(default_factory=dict)  # largest, by contestant
    near: dict[str, int] = field(default_factory=dict)  # decided unlike, but close to the threshold


def contest(
    found: Found,
    evaluators: Sequence[Evaluator],
    test: Any,
    reference: Any,
    sizes: Sizes,
) -> Found:
    """Compare everyone with the `reference` scores of the test rows, (N,); then time everyone."""
    found.test_rows = len(test)
    found.positives = int((reference >= found.threshold).sum())
    for each in evaluators:
        found.versions[each.name] = each.version
        found.notes[each.name] = ""
        check(found, each, test, reference)
    rows = enlarged(test, sizes.rows)
    found.lines[1] = [
        each for size in sizes.batches for each in timed(found, evaluators, rows, size, sizes)
    ]
    return found


def check(found: Found, evaluator: Evaluator, test: Any, reference: Any) -> None:
    """Scores must be the reference's, and so must decisions that do not quit; a row must get by
    itself what it gets in a batch."""
    name, threshold = evaluator.name, found.threshold
    output = evaluator.evaluate(test)
    wanted = reference >= threshold
    if evaluator.gives_scores:
        error = np.abs(output - reference) / np.maximum(1, np.abs(reference))
        found.score_error[name] = float(error.max())
        if not error.max() <= SCORE_TOLERANCE:
            raise WrongAnswer(
                f"{found.title}: {name}: a score is off by {error.max():.2g}; at most "
                f"{SCORE_TOLERANCE:g} of max(1, |score|) was expected"
            )
        decisions = output >= threshold
        near = np.abs(reference - threshold) <= NEAR
        found.near[name] = int((near & (decisions != wanted)).sum())
        decisions = np.where(near, wanted, decisions)
    else:
        decisions = output.astype(bool)
        found.missed = int((wanted & ~decisions).sum())
    found.differ[name] = int((decisions != wanted).sum())
    if found.differ[name] and evaluator.gives_scores:
        raise WrongAnswer(
            f"{found.title}: {name} decides {found.differ[name]} test rows unlike the model"
        )
    if not evaluator.takes_part(1):
        return
    few = test[:CHECKED_SINGLY]
    single = [evaluator.single(evaluator.single_form(row)) for row in few]
    alone = np.array([np.reshape(each, -1)[0] for each in single])
    if evaluator.single_gives_score:
        same = np.abs(alone - output[: len(few)]) <= SCORE_TOLERANCE * np.maximum(1, np.abs(alone))
    else:
        same = alone.astype(bool) == decisions[: len(few)]
    if not same.all():
        raise WrongAnswer(
            f"{found.title}: {name} evaluates {int((~same).sum())} of {len(few)} rows one by one "
            "unlike in a batch"
        )


def timed(
    found: Found, evaluators: Sequence[Evaluator], rows: Any, size: int, sizes: Sizes
) -> list[Line]:
    """Everyone in turn with batches of one size; who does not take so many rows gets smaller calls."""
    contestants = {}
    for each in evaluators:
        if not each.takes_part(size):
            continue
        if size == 1:
            inputs = [each.single_form(row) for row in rows[:SINGLE_ROWS]]
            contestants[each.name] = Contestant(each.single, inputs)
            continue
        call_rows = min(size, each.most_rows or size)
        if call_rows < size:
            found.notes[each.name] = f"{call_rows:,} rows in a call for {size:,}"
        parts = batches(rows, call_rows)
        contestants[each.name] = Contestant(
            each.batch, [each.form(part) for part in parts], call_rows
        )
    seconds = sizes.seconds if size == max(sizes.batches) else sizes.small_seconds
    clock = time.process_time if sizes.cpu_time and size > 1 else time.perf_counter
    timings = interleave(contestants, seconds=seconds, clock=clock)
    return [line(name, size, timing) for name, timing in timings.items()]


def fastest(found: Found, prefix: str, batches: Sequence[int] | None = None) -> Line | None:
    """The fastest per row of the contestants whose names begin so, at any of the batch sizes."""
    lines = [
        each
        for each in found.lines.get(1, [])
        if each.contestant.startswith(prefix) and (batches is None or each.batch in batches)
    ]
    return min(lines, key=lambda each: each.microseconds, default=None)
