"""Parity: the full decisions and scores of an ensemble as it was read, against those of the model it was
read from, row by row."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
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
from qwyc.policy.lead_policy import leaders
from qwyc.policy.scores import ScoreMatrix
from qwyc.promise.requested import listed
from qwyc.rows.sparse import dense_rows
from qwyc.target.target import Target
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
    compared = ComparedModel(model, ensemble)
    compared.add(ensemble.sample(X), threads=threads)
    return compared.result()


class ComparedModel:
    """A model, live or in a file, beside a classifier's ensemble, on rows that come block by block."""

    def __init__(self, model: Any, ensemble: Ensemble) -> None:
        source = importers.open_model(model)
        if source.for_probability(0.5).ensemble.digest == ensemble.digest:
            source = source.for_probability(0.5)
        if source.ensemble.source is None:
            raise ModelError(
                f"{source.ensemble.description} cannot be compared with: pass the model that the "
                "classifier was made from"
            )
        self._source, self._ensemble = source, ensemble
        self._is_path = isinstance(model, (str, os.PathLike))
        self._name = os.fspath(model) if self._is_path else type(model).__name__
        self._library = source.ensemble.source.library
        _check_classes(self._name, source.ensemble.classes, ensemble.classes)
        self._by = f"as {self._library} itself gives them"
        self._predict = source.predict_live  # None: the source as read stands for it
        self._tolerance = 0.0  # of a model that was loaded
        if self._is_path:
            try:
                loaded = importers.load_live(model)
                self._predict, self._tolerance = loaded.predict_live, loaded.error
            except MissingDependencyError:
                self._use_source()
        self._differences = _Differences(ensemble, ensemble.target)

    def _use_source(self) -> None:
        self._by, self._predict = f"as read again, since {self._library} is not installed", None

    def add(self, sample: Sample, *, threads: int | None = None) -> None:
        """Compare the next rows."""
        theirs = self._source.ensemble.sample(sample.given)
        full = self._ensemble.score_full(sample, threads=threads)
        answer = None
        if self._predict is not None:
            try:
                answer = self._predict(theirs)
            except MissingDependencyError:
                self._use_source()
        if answer is None:
            score = self._source.ensemble.score_full(theirs, threads=threads)
            decided = self._source.ensemble.target.decide(score)
            answer = importers.Predictions(self._source.ensemble.classes[decided], score)
        elif self._is_path:
            answer = replace(answer, tolerance=max(answer.tolerance, self._tolerance))
        self._differences.add(sample, full, answer)

    def result(self) -> str:
        """What was compared, in words; ParityError where a row differs."""
        same = self._source.ensemble.digest == self._ensemble.digest
        reason = "" if same else f"the classifier was not made from {self._name}"
        ties = self._differences.refuse(reason)
        rows = self._differences.rows
        text = f"All {rows:,} full decisions and scores equal those of {self._name}, {self._by}"
        return f"{text}." if not ties else f"{text}, but for {ties:,} decisions by rounding."


def _check_classes(name: str, theirs: npt.NDArray[Any], ours: npt.NDArray[Any]) -> None:
    """Refuse a model of other classes: its labels are none of the classifier's."""
    if theirs.tolist() != ours.tolist():
        raise ParityError(
            f"the classes of {name} are {listed(theirs.tolist())}, and those of the classifier are "
            f"{listed(ours.tolist())}. The classifier was not made from {name}, or from an estimator that "
            "has names for the classes, which a file or a Booster does not keep: pass that estimator"
        )


def _refuse_differences(
    sample: Sample,
    full: Floats,
    target: Target,
    answer: importers.Predictions,
    *,
    made: bool = False,
) -> None:
    """Raise where a row differs. `made` rows are not the caller's, so that the error shows their values."""
    differences = _Differences(sample.ensemble, target, made)
    differences.add(sample, full, answer)
    differences.refuse()


class _Differences:
    """Where full decisions and scores differ from those of a model, on rows that come block by block."""

    def __init__(self, ensemble: Ensemble, target: Target, made: bool = False) -> None:
        self._ensemble, self._target, self._made = ensemble, target, made
        self.rows = 0
        self._ties: list[int] = []  # the first rows that only rounding decides differently
        self._n_ties = self._n_differ = self._n_wrong = 0
        self._named = ""  # the row that an error is about
        self._names_wrong = (
            False  # whether its decision differs; a decision counts more than a score
        )
        self._some = _Some(ensemble)

    def add(self, sample: Sample, full: Floats, answer: importers.Predictions) -> None:
        """The next rows: their full scores and what the model says."""
        ours = self._target.decide(full)
        labels = self._ensemble.classes
        theirs = np.argmax([answer.labels == label for label in labels], axis=0)  # (N,)
        other_class = ours != theirs
        if answer.scores is not None and answer.ties:
            ties = other_class & _ties(full, answer.scores, self._target, answer)
            other_class = other_class & ~ties
            tied = np.flatnonzero(ties)
            self._n_ties += len(tied)
            self._ties += (self.rows + tied[: NAMED_ROWS + 1]).tolist()
        differs = other_class
        if answer.scores is not None:
            gap = np.abs(full - answer.scores)
            alike = (gap <= _reach(answer, answer.scores)) | (full == answer.scores)
            differs = differs | ~(alike if alike.ndim == 1 else alike.all(axis=1))
        rows = np.flatnonzero(differs)
        wrong = rows[other_class[rows]]
        if len(rows) and (not self._named or (len(wrong) and not self._names_wrong)):
            i = int(wrong[0] if len(wrong) else rows[0])
            self._names_wrong = len(wrong) > 0
            self._named = self._description(sample, i, full, int(ours[i]), int(theirs[i]), answer)
        self._n_differ += len(rows)
        self._n_wrong += len(wrong)
        self._some.add(sample, full, answer.scores, rows)
        self.rows += len(full)

    def _description(
        self,
        sample: Sample,
        i: int,
        full: Floats,
        ours: int,
        theirs: int,
        answer: importers.Predictions,
    ) -> str:
        names = self._ensemble.classes.tolist()
        shown, own = sorted({ours, theirs}), ""
        if answer.scores is not None:
            if full.ndim == 2 and ours == theirs:  # the score that is furthest off
                with np.errstate(invalid="ignore"):  # equal infinities are no difference
                    gap = np.abs(full[i] - answer.scores[i])
                shown = [int(np.argmax(np.nan_to_num(gap, nan=0.0, posinf=np.inf)))]
            own = f" ({_score(answer.scores[i], shown, names)})"
        where = f"row {self.rows + i} of X"
        if self._made:
            where = f"a row made from the model's thresholds, {_shown(sample, i)}"
        return (
            f"{where}: the model's own predict says {names[theirs]!r}{own}, the base models as read say "
            f"{names[ours]!r} ({_score(full[i], shown, names)})"
        )

    def refuse(self, reason: str = "") -> int:
        """Raise where a row differs. Returns the number of rows that only rounding decides differently."""
        if not self._n_differ:
            _warn_of_ties(self._ties, self._n_ties, self.rows, self._target)
            return self._n_ties
        if not reason:
            reason = (
                f"{self._some.likely_reason(self._n_differ == self.rows)}. The model was not read exactly, "
                "so it is refused; please report it with the library's version"
            )
        raise ParityError(
            f"{self._named}; {self._n_differ:,} of {self.rows:,} rows differ, {self._n_wrong:,} of them in "
            f"their decision. Likely reason: {reason}."
        )


def _shown(sample: Sample, i: int) -> str:
    """The values of row i, as the base models take them."""
    values = [f"{value:g}" for value in sample.rows[i, :SHOWN_VALUES]]
    more = ", ..." if sample.rows.shape[1] > SHOWN_VALUES else ""
    return f"[{', '.join(values)}{more}]"


def _reach(answer: importers.Predictions, scores: Any) -> Any:
    """How far the library's rounding may put scores from ours."""
    return np.maximum(answer.absolute, answer.tolerance * np.maximum(1.0, np.abs(scores)))


def _score(score: Any, classes: list[int], names: list[Any]) -> str:
    """The score of a row in words; of K scores, those of the classes in question."""
    if np.ndim(score) == 0:
        return f"score {float(score)!r}"
    return ", ".join(f"score {float(score[k])!r} of {names[k]!r}" for k in classes)


def _ties(full: Floats, theirs: Floats, target: Target, answer: importers.Predictions) -> Mask:
    """Rows whose own and live scores are both so close to the threshold, or whose two best scores are so
    close to each other, that the library's rounding decides them, (N,)."""
    if isinstance(target, TwoClasses):
        threshold = target.threshold
        reach = _reach(answer, threshold)
        tied: Mask = (np.abs(full - threshold) <= reach) & (np.abs(theirs - threshold) <= reach)
        return tied
    reach = 2 * _reach(answer, theirs).max(axis=1)
    return np.asarray((leaders(full)[1] <= reach) & (leaders(theirs)[1] <= reach))


def _warn_of_ties(first: list[int], ties: int, rows: int, target: Target) -> None:
    if not ties:
        return
    listed = ", ".join(str(i) for i in first[:NAMED_ROWS]) + (", ..." if ties > NAMED_ROWS else "")
    if isinstance(target, TwoClasses):
        what = "rows has a score" if ties == 1 else "rows have scores"
        what += f" so close to the threshold, {target.threshold!r},"
    else:
        what = "rows has two scores" if ties == 1 else "rows have two scores"
        what += " so close to each other"
    warnings.warn(
        f"{ties:,} of {rows:,} {what} that rounding decides; qwyc and the model itself decide "
        f"differently there (row {listed} of X)",
        QwycWarning,
        stacklevel=2,
    )


class _Some:
    """The first rows that differ, and what all of them have in common."""

    def __init__(self, ensemble: Ensemble) -> None:
        self._ensemble = ensemble
        self._rows: list[npt.NDArray[Any]] = []  # as the base models take them
        self._full: list[Any] = []
        self._theirs: list[Any] = []  # the scores of the model, if it has some
        self._missing, self._infinite = _Special(np.isnan), _Special(np.isinf)

    def add(
        self, sample: Sample, full: Floats, theirs: Floats | None, rows: npt.NDArray[np.intp]
    ) -> None:
        """The next rows; `rows` are those that differ."""
        if self._ensemble.schema is None:
            return
        matrix, some = sample.rows, rows[: REASON_ROWS - len(self._full)]
        is_sparse = not isinstance(matrix, np.ndarray)
        dtype = self._ensemble.schema.dtype
        self._rows += list(dense_rows(matrix[some], dtype) if is_sparse else matrix[some])
        self._full += full[some].tolist()
        if theirs is not None:
            self._theirs += theirs[some].tolist()
        if not is_sparse:
            self._missing.add(matrix, rows)
            self._infinite.add(matrix, rows)

    def likely_reason(self, all_differ: bool) -> str:
        """What the rows that differ have in common, in words."""
        schema = self._ensemble.schema
        if schema is None:
            return "the base models do not add up the way the model adds them"
        if self._theirs:
            theirs = np.array(self._theirs)
            gap, size = theirs - np.array(self._full), np.maximum(1.0, np.abs(theirs))
            if not gap.any():
                return "the scores are equal, so the model's predict decides by a rule of its own"
            if (np.abs(gap) <= ROUNDING * size).all():
                return "the library adds up in another order or precision"
            used = _models_in_use(self._ensemble, np.array(self._rows), theirs)
            if used:
                return (
                    f"the model uses only its first {used} of "
                    f"{self._ensemble.base_models.description}"
                )
            if all_differ and (np.ptp(gap, axis=0) <= ROUNDING * size.max()).all():
                added = ", ".join(f"{number:g}" for number in np.atleast_1d(gap[0]))
                return (
                    f"the model adds {added} to every score, such as a base margin or initial score"
                )
        names = schema.names
        for what, special in (("missing values", self._missing), ("infinities", self._infinite)):
            if special.explains:
                columns = np.flatnonzero(special.columns)[:5]
                listed = ", ".join(repr(names[j]) if names else str(j) for j in columns)
                return f"all these rows have {what} (columns {listed})"
        if schema.categories:
            coded = list(schema.categories)[:5]
            listed = ", ".join(repr(names[j]) if names else str(j) for j in coded)
            return f"category codes (columns {listed})"
        return "not known"


class _Special:
    """Which rows have values of a special kind: whether those that differ do, and not all rows do."""

    def __init__(self, is_special: Callable[[Any], Mask]) -> None:
        self._is_special = is_special
        self._in_all = self._in_all_that_differ = True
        self.columns: Any = False  # (n_features,) where rows that differ have them

    def add(self, matrix: npt.NDArray[Any], differing: npt.NDArray[np.intp]) -> None:
        """The next rows, (N, n_features), and those of them that differ."""
        if self._in_all:  # the first row shows mostly that it is not so
            first = self._is_special(matrix[:1]).any()
            self._in_all = bool(first and self._is_special(matrix).any(axis=1).all())
        special = self._is_special(matrix[differing])
        self._in_all_that_differ &= bool(special.any(axis=1).all())
        self.columns = self.columns | special.any(axis=0)

    @property
    def explains(self) -> bool:
        """Whether it may be the reason that rows differ."""
        return self._in_all_that_differ and not self._in_all


def _models_in_use(ensemble: Ensemble, rows: npt.NDArray[Any], theirs: Floats) -> int:
    """The number of first base models whose sum is the model's own score; 0 where there is none."""
    values, _ = ensemble.base_models.scores(np.ascontiguousarray(rows), threads=1)  # (n, T, ...)
    sums = np.cumsum(values, axis=1, dtype=np.float64) + ensemble.base_models.base
    close = np.abs(sums - theirs[:, None]) <= ROUNDING * np.maximum(1.0, np.abs(theirs[:, None]))
    others = tuple(axis for axis in range(close.ndim) if axis != 1)
    found = np.flatnonzero(close[:, :-1].all(axis=others))
    return int(found[0]) + 1 if len(found) else 0
