"""Proof at the door: the full decisions and scores of an ensemble as it was read, against those of the
model it was read from, row by row."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import importers
from qwyc.errors import MissingDependencyError, ParityError
from qwyc.model.callables import BaseModels
from qwyc.model.ensemble import Ensemble

REASON_ROWS = 20  # rows that a reason is looked for in
ROUNDING = 1e-5  # relative: what a sum may be off by in float32

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def prove_parity(
    model: Any, X: Any, ensemble: Ensemble | BaseModels, full: Floats, threshold: float
) -> bool:
    """Compare full decisions and scores (N,) with a live model's own; raise, naming a row, where one
    differs. False where there is nothing to compare with: a file, or plain callables."""
    answer = importers.live_answer(model, X, ensemble)
    if answer is None:
        return False
    theirs = np.asarray(answer.labels == ensemble.classes[1])
    _refuse_differences(X, ensemble, full, full >= threshold, theirs, answer)
    return True


def compare_with_model(
    model: Any, X: Any, ensemble: Ensemble, *, threads: int | None = None
) -> str:
    """Compare a classifier's ensemble with a model, live or in a file, on the rows X; raise where they
    differ. What was compared, in words."""
    source = importers.read_model(model)
    is_path = isinstance(model, (str, os.PathLike))
    name = f"{os.fspath(model)}" if is_path else type(model).__name__
    full = ensemble.score_full(X, threads=threads)
    answer, by = None, ""
    try:
        alive, error = importers.load_live(model) if is_path else (model, 0.0)
        answer = importers.live_answer(alive, X, source)
        if answer is not None:
            answer = replace(answer, tolerance=max(answer.tolerance, error))
        by = f"as {source.source.library} itself gives them"
    except MissingDependencyError:
        by = f"as read again, since {source.source.library} is not installed"
    if answer is None:
        score = source.score_full(X, threads=threads)
        labels = source.classes[(score >= source.threshold).astype(np.intp)]
        answer = importers.Answer(labels, score)
    positive = np.asarray(answer.labels == source.classes[1])
    other = "" if source.digest == ensemble.digest else f"the classifier was not made from {name}"
    _refuse_differences(X, ensemble, full, full >= ensemble.threshold, positive, answer, other)
    return f"All {len(full):,} full decisions and scores equal those of {name}, {by}."


def _refuse_differences(
    X: Any,
    ensemble: Ensemble | BaseModels,
    full: Floats,
    ours: Mask,
    theirs: Mask,
    answer: importers.Answer,
    reason: str = "",
) -> None:
    differs = ours != theirs
    if answer.scores is not None:
        gap = np.abs(full - answer.scores)
        near = gap <= answer.tolerance * np.maximum(1.0, np.abs(answer.scores))
        differs = differs | ~(near | (full == answer.scores))
    rows = np.flatnonzero(differs)
    if not len(rows):
        return
    wrong = rows[(ours != theirs)[rows]]
    i = int(wrong[0] if len(wrong) else rows[0])  # a decision counts more than a score
    own = "" if answer.scores is None else f" (score {float(answer.scores[i])!r})"
    classes = ensemble.classes.tolist()
    if not reason:
        reason = (
            f"{_likely_reason(X, ensemble, full, answer.scores, rows)}. The model was not read exactly, "
            "so it is refused; please report it with the library's version"
        )
    raise ParityError(
        f"row {i} of X: the model's own predict says {classes[int(theirs[i])]!r}{own}, the "
        f"base models as read say {classes[int(ours[i])]!r} (score {float(full[i])!r}); "
        f"{len(rows):,} of {len(full):,} rows differ, {len(wrong):,} of them in their decision. "
        f"Likely reason: {reason}."
    )


def _likely_reason(
    X: Any,
    ensemble: Ensemble | BaseModels,
    full: Floats,
    theirs: Floats | None,
    rows: npt.NDArray[np.intp],
) -> str:
    """What the rows that differ have in common, in words."""
    if isinstance(ensemble, BaseModels):
        return "the base models do not add up the way the model adds them"
    some = rows[:REASON_ROWS]
    if theirs is not None:
        gap, size = theirs[some] - full[some], np.maximum(1.0, np.abs(theirs[some]))
        if not gap.any():
            return "the scores are equal, so the model's predict decides by a rule of its own"
        if (np.abs(gap) <= ROUNDING * size).all():
            return "the library adds up in another order or precision"
        trees = _trees_in_use(ensemble, ensemble.matrix(X)[some], theirs[some])
        if trees:
            return f"the model uses only its first {trees} of {ensemble.n_models} trees"
        if len(rows) == len(full) and np.ptp(gap) <= ROUNDING * size.max():
            return (
                f"the model adds {gap[0]:g} to every score, such as a base margin or initial score"
            )
    matrix = ensemble.matrix(X)
    names = ensemble.inputs.names
    for what, special in (("missing values", np.isnan(matrix)), ("infinities", np.isinf(matrix))):
        if special[rows].any(axis=1).all() and not special.any(axis=1).all():
            columns = np.flatnonzero(special[rows].any(axis=0))[:5]
            listed = ", ".join(repr(names[j]) if names else str(j) for j in columns)
            return f"all these rows have {what} (columns {listed})"
    if ensemble.inputs.categories:
        some_columns = list(ensemble.inputs.categories)[:5]
        listed = ", ".join(repr(names[j]) if names else str(j) for j in some_columns)
        return f"category codes (columns {listed})"
    return "not known"


def _trees_in_use(ensemble: Ensemble, rows: npt.NDArray[Any], theirs: Floats) -> int:
    """The number of first trees whose sum is the model's own score; 0 where there is none."""
    values, _ = ensemble.native.score_matrix(np.ascontiguousarray(rows), 1)  # (T, n)
    sums = np.cumsum(values, axis=0, dtype=np.float64).T + ensemble.base / ensemble.divisor
    close = np.abs(sums - theirs[:, None]) <= ROUNDING * np.maximum(1.0, np.abs(theirs[:, None]))
    found = np.flatnonzero(close[:, :-1].all(axis=0))
    return int(found[0]) + 1 if len(found) else 0
