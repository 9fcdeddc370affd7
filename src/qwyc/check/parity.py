"""Parity: the full decisions and scores of an ensemble as it was read, against those of the model it was
read from, row by row."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import importers
from qwyc.check.synthetic import synthetic_samples
from qwyc.errors import (
    InputError,
    MissingDependencyError,
    ModelError,
    ParityError,
    QwycWarning,
)
from qwyc.model.ensemble import Ensemble, Sample
from qwyc.policy.scores import ScoreMatrix
from qwyc.target.two_classes import TwoClasses

NAMED_ROWS = 5  # rows that a warning names
SHOWN_VALUES = 12  # of a row, in an error
REASON_ROWS = 20  # rows that a reason is looked for in
ROUNDING = 1e-5  # relative: what a sum may be off by in float32

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def prove_parity(source: importers.OpenModel, sample: Sample, scores: ScoreMatrix) -> bool:
    """Compare full decisions and scores with a live model's own; raise, naming a row, where one differs.
    False where there is nothing to compare with: a file, or plain callables."""
    if source.predict_live is None:
        return False
    answer = source.predict_live(sample)
    _refuse_differences(sample, scores.full, scores.target, answer)
    return True


def prove_parity_without_rows(
    source: importers.OpenModel, seed: int, threads: int | None = None
) -> bool:
    """The same on rows made from the model's own thresholds. False where rows cannot be made; a warning
    where the model itself takes none of them."""
    if source.predict_live is None:
        return False
    refused: Exception | None = None
    for sample in synthetic_samples(source.ensemble, seed):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", QwycWarning
                )  # rounding decides some, as of any rows
                answer = source.predict_live(sample)
                full = source.ensemble.score_full(sample, threads=threads)
                _refuse_differences(sample, full, source.ensemble.target, answer, made=True)
        except (InputError, MissingDependencyError) as error:
            refused = refused or error
            continue
        return True
    if refused is not None:
        warnings.warn(
            "nothing was compared with the model itself, because it takes no rows made from its own "
            f"thresholds ({refused}); pass X to compare its decisions on those rows",
            QwycWarning,
            stacklevel=3,
        )
    return False


def compare_with_model(
    model: Any, X: Any, ensemble: Ensemble, *, threads: int | None = None
) -> str:
    """Compare a classifier's ensemble with a model, live or in a file, on the rows X; raise where they
    differ. Returns what was compared, in words."""
    source = importers.open_model(model)
    if source.for_probability(0.5).ensemble.digest == ensemble.digest:
        source = source.for_probability(0.5)
    if source.ensemble.source is None:
        raise ModelError(
            f"{source.ensemble.description} cannot be compared with: pass the model that the classifier "
            "was made from"
        )
    library = source.ensemble.source.library
    is_path = isinstance(model, (str, os.PathLike))
    name = f"{os.fspath(model)}" if is_path else type(model).__name__
    sample, theirs = ensemble.sample(X), source.ensemble.sample(X)
    full = ensemble.score_full(sample, threads=threads)
    answer, by = None, f"as {library} itself gives them"
    try:
        if is_path:
            loaded = importers.load_live(model)
            answer = loaded.predict_live(theirs)
            answer = replace(answer, tolerance=max(answer.tolerance, loaded.error))
        elif source.predict_live is not None:
            answer = source.predict_live(theirs)
    except MissingDependencyError:
        by = f"as read again, since {library} is not installed"
    if answer is None:
        score = source.ensemble.score_full(theirs, threads=threads)
        decided = source.ensemble.target.decide(score)
        answer = importers.Predictions(source.ensemble.classes[decided], score)
    same = source.ensemble.digest == ensemble.digest
    reason = "" if same else f"the classifier was not made from {name}"
    ties = _refuse_differences(sample, full, ensemble.target, answer, reason)
    text = f"All {len(full):,} full decisions and scores equal those of {name}, {by}"
    return f"{text}." if not ties else f"{text}, but for {ties:,} decisions by rounding."


def _refuse_differences(
    sample: Sample,
    full: Floats,
    target: TwoClasses,
    answer: importers.Predictions,
    reason: str = "",
    *,
    made: bool = False,
) -> int:
    """Raise where a row differs. Returns the number of rows that only rounding decides differently. `made`
    rows are not the caller's, so that the error shows their values."""
    classes, ours, threshold = sample.ensemble.classes, target.decide(full), target.threshold
    theirs = np.argmax([answer.labels == label for label in classes], axis=0)  # (N,)
    other_class = ours != theirs
    ties = np.zeros(len(full), dtype=bool)
    if answer.scores is not None and answer.ties:
        ties = other_class & _ties(full, answer.scores, threshold, answer)
        other_class = other_class & ~ties
    differs = other_class
    if answer.scores is not None:
        gap = np.abs(full - answer.scores)
        near = gap <= _reach(answer, answer.scores)
        differs = differs | ~(near | (full == answer.scores))
    rows = np.flatnonzero(differs)
    if not len(rows):
        _warn_of_ties(ties, threshold)
        return int(np.count_nonzero(ties))
    wrong = rows[other_class[rows]]
    i = int(wrong[0] if len(wrong) else rows[0])  # a decision counts more than a score
    own = "" if answer.scores is None else f" (score {float(answer.scores[i])!r})"
    if not reason:
        reason = (
            f"{_likely_reason(sample, full, answer.scores, rows)}. The model was not read exactly, "
            "so it is refused; please report it with the library's version"
        )
    names = classes.tolist()
    where = (
        f"row {i} of X"
        if not made
        else f"a row made from the model's thresholds, {_shown(sample, i)}"
    )
    raise ParityError(
        f"{where}: the model's own predict says {names[theirs[i]]!r}{own}, the "
        f"base models as read say {names[ours[i]]!r} (score {float(full[i])!r}); "
        f"{len(rows):,} of {len(full):,} rows differ, {len(wrong):,} of them in their decision. "
        f"Likely reason: {reason}."
    )


def _shown(sample: Sample, i: int) -> str:
    """The values of row i, as the base models take them."""
    values = [f"{value:g}" for value in sample.rows[i, :SHOWN_VALUES]]
    more = ", ..." if sample.rows.shape[1] > SHOWN_VALUES else ""
    return f"[{', '.join(values)}{more}]"


def _reach(answer: importers.Predictions, scores: Any) -> Any:
    """How far the library's rounding may put scores from ours."""
    return np.maximum(answer.absolute, answer.tolerance * np.maximum(1.0, np.abs(scores)))


def _ties(full: Floats, theirs: Floats, threshold: float, answer: importers.Predictions) -> Mask:
    """Rows whose own and live scores are both so close to the threshold that the library's rounding
    decides them, (N,)."""
    reach = _reach(answer, threshold)
    tied: Mask = (np.abs(full - threshold) <= reach) & (np.abs(theirs - threshold) <= reach)
    return tied


def _warn_of_ties(ties: Mask, threshold: float) -> None:
    rows = np.flatnonzero(ties)
    if not len(rows):
        return
    listed = ", ".join(str(i) for i in rows[:NAMED_ROWS]) + (
        ", ..." if len(rows) > NAMED_ROWS else ""
    )
    what = "rows has a score" if len(rows) == 1 else "rows have scores"
    warnings.warn(
        f"{len(rows):,} of {len(ties):,} {what} so close to the threshold, {threshold!r}, that rounding "
        f"decides; qwyc and the model itself decide differently there (row {listed} of X)",
        QwycWarning,
        stacklevel=2,
    )


def _likely_reason(
    sample: Sample, full: Floats, theirs: Floats | None, rows: npt.NDArray[np.intp]
) -> str:
    """What the rows that differ have in common, in words."""
    ensemble, schema = sample.ensemble, sample.ensemble.schema
    if schema is None:
        return "the base models do not add up the way the model adds them"
    matrix, some = sample.rows, rows[:REASON_ROWS]
    if theirs is not None:
        gap, size = theirs[some] - full[some], np.maximum(1.0, np.abs(theirs[some]))
        if not gap.any():
            return "the scores are equal, so the model's predict decides by a rule of its own"
        if (np.abs(gap) <= ROUNDING * size).all():
            return "the library adds up in another order or precision"
        used = _models_in_use(ensemble, matrix[some], theirs[some])
        if used:
            return f"the model uses only its first {used} of {ensemble.base_models.description}"
        if len(rows) == len(full) and np.ptp(gap) <= ROUNDING * size.max():
            return (
                f"the model adds {gap[0]:g} to every score, such as a base margin or initial score"
            )
    names = schema.names
    for what, special in (("missing values", np.isnan(matrix)), ("infinities", np.isinf(matrix))):
        if special[rows].any(axis=1).all() and not special.any(axis=1).all():
            columns = np.flatnonzero(special[rows].any(axis=0))[:5]
            listed = ", ".join(repr(names[j]) if names else str(j) for j in columns)
            return f"all these rows have {what} (columns {listed})"
    if schema.categories:
        listed = ", ".join(repr(names[j]) if names else str(j) for j in list(schema.categories)[:5])
        return f"category codes (columns {listed})"
    return "not known"


def _models_in_use(ensemble: Ensemble, rows: npt.NDArray[Any], theirs: Floats) -> int:
    """The number of first base models whose sum is the model's own score; 0 where there is none."""
    values, _ = ensemble.base_models.scores(np.ascontiguousarray(rows), threads=1)  # (n, T)
    sums = np.cumsum(values, axis=1, dtype=np.float64) + ensemble.base_models.base
    close = np.abs(sums - theirs[:, None]) <= ROUNDING * np.maximum(1.0, np.abs(theirs[:, None]))
    found = np.flatnonzero(close[:, :-1].all(axis=0))
    return int(found[0]) + 1 if len(found) else 0
