"""Monitor: a classifier that checks a random share of its own decisions while it runs."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.classifier import Classifier, as_table, check_classifier
from qwyc.errors import OptionError, QwycWarning
from qwyc.model.native import counted_one_row
from qwyc.monitor import document, metrics, text
from qwyc.monitor.sampling import Sampler
from qwyc.monitor.state import Judge, State
from qwyc.monitor.subject import Label, Subject
from qwyc.policy.counts import Counts, exit_bins, sum_over_rows
from qwyc.policy.decisions import Decisions
from qwyc.promise.certificate import check_confidence
from qwyc.promise.compare import Comparison
from qwyc.rows.selection import row_count, take
from qwyc.runtime.arguments import check_count, check_number

LEAST_RATE = 1e-9
CHECKED_AT_ONCE = 256  # rows that wait until they are evaluated in full together

Interval = tuple[float, float]


class Monitor:
    """A classifier that evaluates a random share of its rows in full and compares the decisions.

    Decisions are those of the classifier. The alarm is raised when the checked rows show that a limit of
    the certificate's budget is broken. While no limit is broken, it is ever raised with a probability of
    at most 1 - confidence, however often it is looked at. All methods may be called from many threads.

    Parameters
    ----------
    classifier : as `qwyc.optimize` or `qwyc.load` gives it.
    rate : the share of the rows that is checked.
    confidence : of the alarm and of each interval.
    seed : of the choice of rows.
    """

    def __init__(
        self, classifier: Classifier, rate: float = 0.01, confidence: float = 0.95, seed: int = 0
    ) -> None:
        check_classifier(classifier)
        subject = Subject.of(classifier)
        judge = Judge(subject, check_confidence(confidence))
        self._begin(classifier, judge, State.empty(subject), check_rate(rate), seed, 0)

    def _begin(
        self,
        classifier: Classifier | None,
        judge: Judge,
        state: State,
        rate: float,
        seed: int,
        rows_before: int,
    ) -> None:
        self._classifier = classifier
        self._judge = judge
        self._state = state  # as of the last check; replaced as a whole
        self._rate = rate
        self._seed = check_count("seed", seed, least=0)
        self._rows_before = rows_before  # seen by monitors that this one continues or has merged
        # A monitor that goes on after a load draws other gaps; since gaps have no memory, every row
        # is still checked with the same probability.
        self._sampler = Sampler(rate, [self._seed, rows_before])
        self._waiting: list[
            npt.NDArray[Any]
        ] = []  # rows to check: (n_features,) or (k, n_features)
        self._n_waiting = 0
        self._lock = threading.Lock()  # of the waiting rows
        self._checking = threading.RLock()  # of the state; base models in Python may look at it

    # ---- decisions ----------------------------------------------------------------------------

    @property
    def classifier(self) -> Classifier:
        """What is monitored."""
        if self._classifier is None:
            raise OptionError(
                "this monitor was loaded without its classifier, so it cannot decide rows; pass one: "
                "qwyc.Monitor.load(path, classifier)"
            )
        return self._classifier

    def predict(self, X: Any, *, threads: int | None = None) -> npt.NDArray[Any]:
        """The class of every row, (N,), as the classifier gives it."""
        label: npt.NDArray[Any] = self.decide(X, threads=threads).label
        return label

    def decide(self, X: Any, *, threads: int | None = None) -> Decisions:
        """The classifier's decisions: class, base models taken, score and whether it is complete."""
        classifier = self._classifier or self.classifier
        rows = classifier.ensemble.rows(X)
        decisions = classifier.ensemble.decide_rows(rows, classifier.runner, threads=threads)
        n = len(decisions.steps)
        before = self._sampler.counter.take(n)
        if before >= 0:
            chosen = self._sampler.claim(before, n)
            if len(chosen):
                self._check_later(take(rows, chosen), threads)
        return decisions

    @cached_property
    def predict_one(self) -> Callable[[Any], Any]:
        """`predict_one(row)`: the class of one row, as the classifier's own `predict_one` gives it."""
        return counted_one_row(self.classifier.predict_one, self._sampler.counter, self._row_due)

    def _row_due(self, row: Any, position: int) -> None:
        """A single row that was decided, and that may have been chosen."""
        if not len(self._sampler.claim(position, 1)):
            return
        plain = type(row) is np.ndarray and row.ndim == 1 and row.dtype.kind == "f"
        ensemble = self.classifier.ensemble
        if plain and ensemble.takes_matrix and ensemble.transform is None:
            self._check_later(row.copy(), 1)  # the caller may use the array for the next row
        else:
            self._check_later(ensemble.rows(as_table(row)), 1)

    # ---- checks -------------------------------------------------------------------------------

    def _check_later(self, rows: Any, threads: int | None) -> None:
        """Check rows when enough are waiting, or when somebody looks. Rows of callables are checked at
        once."""
        if not self.classifier.ensemble.takes_matrix:
            with self._checking:
                self._check(rows, threads)
            return
        with self._lock:
            self._waiting.append(rows)
            self._n_waiting += 1 if rows.ndim == 1 else len(rows)
            enough = self._n_waiting >= CHECKED_AT_ONCE
        if enough:
            self._check_waiting(threads)

    def _check_waiting(self, threads: int | None = 1) -> None:
        with self._checking:  # for all of it, so that whoever looks sees every row so far
            with self._lock:
                waiting, self._waiting, self._n_waiting = self._waiting, [], 0
            if waiting:
                self._check(self._matrix(waiting), threads)

    def _matrix(self, waiting: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """Waiting rows as the base models take them, (N, n_features), in their order."""
        matrix = self.classifier.ensemble.matrix
        parts, single = [], []
        for i, rows in enumerate(waiting):
            if rows.ndim == 2:
                parts.append(rows)
                continue
            single.append(rows)
            following = waiting[i + 1] if i + 1 < len(waiting) else None
            if following is None or following.ndim == 2 or following.dtype != rows.dtype:
                parts.append(matrix(np.stack(single)))
                single = []
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _check(self, rows: Any, threads: int | None) -> None:
        """Decide rows early and in full, and count what differs. A failure must not take away decisions
        that were made, so it is counted and reported as a warning."""
        classifier = self.classifier
        policy, models = classifier.policy, classifier.ensemble.base_models
        try:
            decided, steps, _ = classifier.runner.decide(rows, threads=threads)
            full = policy.target.decide(models.score_full(rows, threads=threads))
        except Exception as error:
            n = row_count(rows)
            self._state = replace(self._state, failed=self._state.failed + n)
            warnings.warn(
                f"the monitor could not evaluate {n:,} rows in full, so they are not checked: {error}",
                QwycWarning,
                stacklevel=4,
            )
            return
        sums = sum_over_rows(policy, decided, full, steps)
        seen = Comparison(np.asarray(decided), full, steps)
        self._state = self._judge.after(self._state, seen, sums, policy.target)

    def _now(self) -> State:
        """The state after all rows so far."""
        if self._waiting:
            self._check_waiting()
        with self._checking:
            return self._state

    # ---- what is known ------------------------------------------------------------------------

    @property
    def rate(self) -> float:
        """The share of the rows that is checked."""
        return self._rate

    @property
    def confidence(self) -> float:
        """Of the alarm and of each interval."""
        return self._judge.confidence

    @property
    def alarm(self) -> bool:
        """Whether the promise was shown to be broken. It stays True."""
        return any(rows is not None for rows in self._now().raised)

    @property
    def alarms(self) -> tuple[str, ...]:
        """Which limits were shown to be broken, in words."""
        return text.alarms(self._judge, self._now())

    @property
    def rows_seen(self) -> int:
        """Rows decided."""
        return self._rows_before + self._sampler.counter.taken

    @property
    def rows_checked(self) -> int:
        """Rows evaluated in full as well."""
        return self.counts.rows

    @property
    def rows_failed(self) -> int:
        """Rows that were chosen, and whose full evaluation raised an error."""
        return self._now().failed

    @property
    def disagreements(self) -> int:
        """Checked rows that were decided differently."""
        return self.counts.disagreements

    @property
    def counts(self) -> Counts:
        """What was counted on the checked rows: classes, differences, base models and exits."""
        return self._now().record.counts

    @property
    def interval(self) -> Interval:
        """Low and high: with the confidence, the average share of rows that are decided differently lies
        between them, after every row so far and to come."""
        return self._judge.interval(self._now(), self._judge.subject.whole)

    @property
    def by_class(self) -> dict[Label, Interval]:
        """The same for the rows of each class, by the full decision. Each interval has the confidence by
        itself."""
        state, subject = self._now(), self._judge.subject
        return {
            label: self._judge.interval(state, subject.class_limit(index))
            for index, label in enumerate(subject.labels)
        }

    @property
    def mean_models(self) -> float:
        """Base models per checked row before it quit; NaN for no rows."""
        return self.counts.mean_models

    @property
    def exits(self) -> dict[tuple[int, int], int]:
        """Checked rows by where they stopped: first and last step of a bin to rows. The last bin has the
        rows that completed."""
        bins = exit_bins(self._judge.subject.n_models)
        return dict(zip(bins, self.counts.exits, strict=True))

    # ---- state --------------------------------------------------------------------------------

    def merge(self, other: Monitor) -> Monitor:
        """Add what another monitor of the same classifier has seen, and return this one. The rows of the
        two must be different. The other one stays as it is."""
        if not isinstance(other, Monitor):
            raise OptionError(f"a qwyc.Monitor was expected; got {type(other).__name__}")
        if other is self:
            raise OptionError("a monitor cannot be merged with itself: its rows would count twice")
        self._judge.subject.check_same(other._judge.subject, "merge this monitor")
        if other.confidence != self.confidence:
            raise OptionError(
                f"cannot merge monitors of different confidence: {self.confidence:g} and "
                f"{other.confidence:g}"
            )
        theirs, rows = other._now(), other.rows_seen
        self._now()
        with self._checking:
            self._state = self._judge.merged(self._state, theirs)
            self._rows_before += rows
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was seen to a JSON file; an existing file is replaced in one step or not at all. The
        classifier is not in it."""
        document.write(path, self._saved())

    @classmethod
    def load(cls, path: str | os.PathLike[str], classifier: Classifier | None = None) -> Monitor:
        """Read what `save` wrote. With the classifier, the monitor goes on; without it, the monitor can be
        looked at and merged."""
        return cls._of(document.read(path), classifier)

    @classmethod
    def _of(cls, saved: document.Saved, classifier: Classifier | None) -> Monitor:
        if classifier is not None:
            subject = Subject.of(check_classifier(classifier))
            saved.judge.subject.check_same(subject, "go on with this classifier")
        monitor = cls.__new__(cls)
        monitor._begin(
            classifier, saved.judge, saved.state, saved.rate, saved.seed, saved.rows_seen
        )
        return monitor

    def _saved(self) -> document.Saved:
        state = self._now()
        return document.Saved(self._judge, state, self._rate, self._seed, self.rows_seen)

    def __reduce__(self) -> tuple[Any, ...]:
        return Monitor._of, (self._saved(), self._classifier)

    # ---- for people and for other programs ----------------------------------------------------

    def metrics(self, prefix: str = "qwyc") -> str:
        """Everything in the text format of Prometheus."""
        return metrics.prometheus(metrics.families(self._saved(), prefix))

    def instrument(self, meter: Any, prefix: str = "qwyc") -> None:
        """Register observable instruments with a meter of OpenTelemetry, which asks for the values."""
        metrics.instrument(meter, lambda: metrics.families(self._saved(), prefix))

    def __repr__(self) -> str:
        return text.summary(self._saved())


def check_rate(rate: Any) -> float:
    """`rate` as a share of the rows."""
    share = check_number("rate", rate)
    if not LEAST_RATE <= share <= 1:
        raise OptionError(
            f"rate is the share of rows to check, at least {LEAST_RATE:g} and at most 1 (0.01 is 1%); "
            f"got {rate!r}"
        )
    return share
