"""What a monitor has seen: counts of the checked rows, and the evidence against each limit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from qwyc.monitor.subject import Subject
from qwyc.policy.counts import Counts
from qwyc.promise.limits import Limit
from qwyc.promise.sequential import RateTest, TestState, rate_interval


@dataclass(frozen=True)
class Record:
    """Checked rows, counted. Records of different rows add up."""

    by_class: tuple[int, ...]  # rows by their full decision
    differences: tuple[int, ...]  # rows decided differently, by `Target.differences`
    exits: tuple[int, ...]  # rows by where they stopped, in `exit_bins`
    steps: int  # base models evaluated
    cost: float  # what they cost

    def plus(self, other: Record) -> Record:
        """The rows of both."""
        return Record(
            _added(self.by_class, other.by_class),
            _added(self.differences, other.differences),
            _added(self.exits, other.exits),
            self.steps + other.steps,
            self.cost + other.cost,
        )

    @property
    def counts(self) -> Counts:
        """Per row where that is what matters; means of no rows are NaN."""
        n = sum(self.by_class)
        means = (self.steps / n, self.cost / n) if n else (math.nan, math.nan)
        return Counts(self.by_class, self.differences, *means, self.exits)


@dataclass(frozen=True, eq=False)
class State:
    """A monitor's memory. It never changes; more rows give another one."""

    record: Record
    tests: tuple[TestState | None, ...]  # by limit; None where nothing may differ
    raised: tuple[
        int | None, ...
    ]  # checked rows when the limit's alarm was raised; None: it was not
    failed: int = 0  # rows whose full evaluation failed

    @classmethod
    def empty(cls, subject: Subject) -> State:
        """Before the first row."""
        seen, limits = subject.certified, subject.limits
        by_class, differences = (0,) * len(seen.by_class), (0,) * len(seen.differences)
        record = Record(by_class, differences, (0,) * subject.n_bins, 0, 0.0)
        tests = tuple(None if test is None else test.start for test in tests_of(subject))
        return cls(record, tests, (None,) * len(limits))


def tests_of(subject: Subject) -> tuple[RateTest | None, ...]:
    """The test of each limit; None where nothing may differ."""
    return tuple(RateTest(limit.share) if limit.share > 0 else None for limit in subject.limits)


@dataclass(frozen=True)
class Judge:
    """Turns states into evidence against the limits of a subject, and evidence into alarms."""

    subject: Subject
    confidence: float

    @cached_property
    def tests(self) -> tuple[RateTest | None, ...]:
        """By limit."""
        return tests_of(self.subject)

    @property
    def needed(self) -> float:
        """The evidence that raises an alarm. The limits share what may go wrong equally."""
        return len(self.subject.limits) / (1 - self.confidence)

    def merged(self, one: State, other: State) -> State:
        """The state of both. An alarm of either stays raised."""
        record = one.record.plus(other.record)
        tests = [
            None if test is None or a is None or b is None else test.merge(a, b)
            for test, a, b in zip(self.tests, one.tests, other.tests, strict=True)
        ]
        raised = [b if a is None else a for a, b in zip(one.raised, other.raised, strict=True)]
        state = State(record, tuple(tests), tuple(raised), one.failed + other.failed)
        for i, evidence in enumerate(self.evidence(state)):
            if raised[i] is None and evidence >= self.needed:
                raised[i] = sum(record.by_class)
        return replace(state, raised=tuple(raised))

    def evidence(self, state: State) -> tuple[float, ...]:
        """Evidence against each limit now."""
        counts = state.record.counts
        return tuple(
            self._evidence(i, state.tests[i], limit.counted(counts)[0])
            for i, limit in enumerate(self.subject.limits)
        )

    def _evidence(self, i: int, known: TestState | None, count: int) -> float:
        """Evidence against limit i. A row that differs where none may is proof."""
        test = self.tests[i]
        if test is None or known is None:
            return math.inf if count else 0.0
        return test.evidence(known)

    def interval(self, state: State, limit: Limit) -> tuple[float, float]:
        """An interval on the average share of rows that differ as this limit counts them."""
        count, rows = limit.counted(state.record.counts)
        return rate_interval(count, rows, self.confidence)


def _added(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))
