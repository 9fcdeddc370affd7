"""Monitor: a classifier that checks a random share of its own decisions while it runs."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy.typing as npt

from qwyc import _native
from qwyc.classifier import Classifier, check_classifier
from qwyc.errors import OptionError, QwycWarning
from qwyc.monitor import document, metrics, text
from qwyc.monitor.checks import Checks, Early, PlainPredict
from qwyc.monitor.running import running_of
from qwyc.monitor.state import Judge, State
from qwyc.monitor.subject import Label, Subject
from qwyc.policy.counts import Counts, exit_bins
from qwyc.policy.decisions import Decisions
from qwyc.promise.certificate import check_confidence
from qwyc.runtime.arguments import check_count, check_number
from qwyc.runtime.threads import thread_count

LEAST_RATE = 1e-9

Interval = tuple[float, float]


class Monitor:
    """A classifier that evaluates a random share of its rows in full and compares the decisions.

    Decisions are those of the classifier. The alarm is raised when the checked rows show that a limit of
    the certificate's budget is broken. As long as no limit is broken, the probability that it is ever
    raised is at most 1 - confidence, however often you look at it. All methods may be called from many
    threads.

    Parameters
    ----------
    classifier : as `qwyc.optimize` or `qwyc.load` gives it.
    rate : the share of the rows that is checked.
    confidence : confidence of the alarm and of each interval.
    seed : seed of the choice of rows to check.
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
        self._judge = judge
        policy = None if classifier is None else classifier.policy
        self._running = running_of(judge, state, policy)  # as of the last check
        self._rate = rate
        self._seed = check_count("seed", seed, least=0)
        self._rows_before = rows_before  # seen by monitors that this one continues or has merged
        self._lock = threading.RLock()  # of the state; base models in Python may look at it
        self._checks: Checks | None = None
        self._checker: _native.Checker | None = None
        self._plain_predict: PlainPredict = lambda X, threads: None
        if classifier is not None:
            # A monitor that goes on after a load draws other gaps. Gaps have no memory, so every row is
            # still checked with the same probability.
            seeds = [self._seed, rows_before]
            self._checks = Checks(classifier, rate, seeds, self._check, self._check_groups)
            self._plain_predict = self._checks.plain_predict
            if self._running.native is not None:
                self._checker = self._checks.checker(self._running.native)

    # ---- decisions ----------------------------------------------------------------------------

    @property
    def classifier(self) -> Classifier:
        """What is monitored."""
        return self._needed.classifier

    @property
    def _needed(self) -> Checks:
        if self._checks is None:
            raise OptionError(
                "this monitor was loaded without its classifier, so it cannot decide rows; pass one: "
                "qwyc.Monitor.load(path, classifier)"
            )
        return self._checks

    def predict(self, X: Any, *, threads: int | None = None) -> npt.NDArray[Any]:
        """The class of every row, (N,), as the classifier gives it."""
        label: npt.NDArray[Any] | None = self._plain_predict(X, threads)
        if label is None:
            label = self._needed.decider.predict(X, threads=threads)
        return label

    def decide(self, X: Any, *, threads: int | None = None) -> Decisions:
        """The classifier's decisions: class, base models taken, score and whether it is complete."""
        return self._needed.decider.decide(X, threads=threads)

    @cached_property
    def predict_one(self) -> Callable[[Any], Any]:
        """`predict_one(row)`: the class of one row, as the classifier's own `predict_one` gives it."""
        return self._needed.predict_one()

    # ---- checks -------------------------------------------------------------------------------

    def _check_groups(self, threads: int | None) -> None:
        """Evaluate rows in full that wait. Those that would be evaluated in a small group wait on."""
        self._check_waiting(threads, all_rows=False)

    def _check_waiting(self, threads: int | None, *, all_rows: bool) -> None:
        """Evaluate the rows in full that wait. Whatever looks at the numbers of this monitor does so
        with all of them first."""
        if self._checks is None:
            return
        with self._lock:  # for all of it, so that whoever looks sees every row so far
            if self._checker is not None:
                try:
                    self._checker.check(threads or thread_count(None), all_rows)
                except Exception as error:
                    self._failed(self._checker.left, error)
                if self._checker.rows:
                    self._running.changed()
                return
            waiting = self._checks.waiting()
            if waiting is not None:
                self._check(waiting, threads)

    def _check(self, early: Early, threads: int | None) -> None:
        """Evaluate rows in full and count what differs."""
        policy, models = self.classifier.policy, self.classifier.ensemble.base_models
        with self._lock:
            try:
                full = policy.target.decide(models.score_full(early.rows, threads=threads))
            except Exception as error:
                self._failed(len(early.steps), error)
                return
            self._running.add(early.decided, full, early.steps)

    def _failed(self, rows: int, error: Exception) -> None:
        """A failure must not take away decisions that were made, so it is counted and reported as a
        warning."""
        state = self._running.get()
        self._running.set(replace(state, failed=state.failed + rows))
        warnings.warn(
            f"the monitor could not evaluate {rows:,} rows in full, so they are not checked: {error}",
            QwycWarning,
            stacklevel=5,
        )

    def _now(self) -> State:
        """The state after all rows so far."""
        with self._lock:
            self._check_waiting(1, all_rows=True)
            return self._running.get()

    @property
    def _state(self) -> State:
        """The state as of the last check."""
        with self._lock:
            return self._running.get()

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
        return self._rows_before + (0 if self._checks is None else self._checks.taken)

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
        """The low and the high end of an interval. With the stated confidence, the average share of rows
        that are decided differently lies in it after every row, past and future."""
        return self._judge.interval(self._now(), self._judge.subject.whole)

    @property
    def by_class(self) -> dict[Label, Interval]:
        """The same for the rows of each class, by the full decision. The confidence holds for each
        interval by itself."""
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
        """Checked rows by where they stopped: maps (first step, last step) of each bin to its number of
        rows. The last bin has the rows that are complete."""
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
        with self._lock:
            self._running.set(self._judge.merged(self._running.get(), theirs))
            self._rows_before += rows
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was seen to a JSON file; an existing file is replaced in one step or not at all. The
        classifier is not in it."""
        document.write(path, self._saved())

    @classmethod
    def load(cls, path: str | os.PathLike[str], classifier: Classifier | None = None) -> Monitor:
        """Read a file that `save` wrote. With the classifier, the monitor can continue; without it, it can
        be read and merged."""
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
        return Monitor._of, (
            self._saved(),
            None if self._checks is None else self._checks.classifier,
        )

    # ---- for people and for other programs ----------------------------------------------------

    def metrics(self, prefix: str = "qwyc") -> str:
        """Everything in the text format of Prometheus."""
        return metrics.prometheus(metrics.families(self._saved(), prefix))

    def instrument(self, meter: Any, prefix: str = "qwyc") -> None:
        """Register observable instruments with an OpenTelemetry meter, which reads the values when it
        exports."""
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
