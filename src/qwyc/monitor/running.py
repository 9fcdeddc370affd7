"""The state of a monitor while rows are added to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.monitor.state import Judge, Record, State
from qwyc.policy.counts import exit_bins, sum_over_rows
from qwyc.policy.policy import Policy
from qwyc.policy.rule import StoppingRule, cost_of_steps
from qwyc.promise.sequential import from_plain, to_plain
from qwyc.target.target import Decided


def running_of(judge: Judge, state: State, rule: StoppingRule | None) -> Running | ClassesRunning:
    """A state that rows are added to which this rule decided; None: no rows are."""
    if rule is None or isinstance(rule, Policy):
        return Running(judge, state, rule)
    return ClassesRunning(judge, state, rule)


class ClassesRunning:
    """A state that more rows of K classes change. The caller has a lock."""

    native: None = None

    def __init__(self, judge: Judge, state: State, rule: StoppingRule) -> None:
        self._judge, self._state, self._rule = judge, state, rule

    def set(self, state: State) -> None:
        """Go on from a state."""
        self._state = state

    def get(self) -> State:
        """The state now."""
        return self._state

    def changed(self) -> None:
        """Nobody else adds rows."""

    def add(self, decided: Decided, full: Decided, steps: npt.NDArray[np.int32]) -> None:
        """Count rows, (N,) each, one by one in their order: early decisions, full decisions and the base
        models that early decisions took."""
        judge, before, target = self._judge, self._state, self._rule.target
        sums = sum_over_rows(self._rule, decided, full, steps)
        added = Record(
            tuple(sums.by_class.tolist()),
            tuple(sums.differences[0].tolist()),
            tuple(sums.exits[0].tolist()),
            int(sums.steps[0]),
            float(sums.cost[0]),
        )
        way = np.full(len(steps), -1, dtype=np.intp)  # in which a row differs; -1: it does not
        rows, ways = target.differing(decided, full)
        way[rows] = ways
        tests, raised, so_far = [], list(before.raised), sum(before.record.by_class)
        for i, limit in enumerate(judge.subject.limits):
            at = np.arange(len(steps))
            if limit.among is not None:
                at = np.flatnonzero(full == limit.among)
            differs = np.isin(way[at], limit.differences)
            test, known = judge.tests[i], before.tests[i]
            reached: int | None = None
            if test is not None and known is not None:
                known, reached = test.after(known, differs, judge.needed)
            elif differs.any():  # no row may
                reached = int(np.argmax(differs)) + 1
            tests.append(known)
            if reached is not None and raised[i] is None:
                raised[i] = so_far + int(at[reached - 1]) + 1
        # One by one, so that the total does not depend on how rows are grouped.
        costs = cost_of_steps(self._rule.order, self._rule.costs, steps)
        total = np.cumsum(np.append(before.record.cost, costs))[-1]
        record = replace(before.record.plus(added), cost=float(total))
        self._state = State(record, tuple(tests), tuple(raised), before.failed)


class Running:
    """A state that more rows change. The native core has it, so that a group of rows costs one call; it is
    read when somebody looks. The caller has a lock."""

    def __init__(self, judge: Judge, state: State, rule: StoppingRule | None) -> None:
        self.native = None if rule is None else _native_judge(judge, rule)
        self.set(state)

    def set(self, state: State) -> None:
        """Go on from a state."""
        if self.native is not None:
            record = state.record
            tests = [None if test is None else to_plain(test) for test in state.tests]
            self.native.set(
                (
                    list(record.by_class),
                    list(record.differences),
                    list(record.exits),
                    record.steps,
                    record.cost,
                    tests,
                    list(state.raised),
                )
            )
        self._state = state  # as it was set or read; the native one may have more rows
        self._is_known = True

    def get(self) -> State:
        """The state now."""
        if not self._is_known:
            self._state = self._read()
            self._is_known = True
        return self._state

    def add(self, decided: Decided, full: Decided, steps: npt.NDArray[np.int32]) -> None:
        """Count rows, (N,) each, one by one in their order: early decisions, full decisions and the base
        models that early decisions took."""
        assert self.native is not None
        self.native.add(
            np.asarray(decided, dtype=np.uint8), np.asarray(full, dtype=np.uint8), steps
        )
        self.changed()

    def changed(self) -> None:
        """Somebody has added rows to the native state."""
        self._is_known = False

    def _read(self) -> State:
        assert self.native is not None
        by_class, differences, exits, steps, cost, tests, raised = self.native.get()
        record = Record(tuple(by_class), tuple(differences), tuple(exits), steps, cost)
        before = self._state
        states = [
            None if test is None or known is None else from_plain(test, known.parts)
            for test, known in zip(tests, before.tests, strict=True)
        ]
        return State(record, tuple(states), tuple(raised), before.failed)


def _native_judge(judge: Judge, rule: StoppingRule) -> _native.RunningJudge:
    """What counts rows that this rule decided."""
    limits: list[Any] = [
        (
            -1 if limit.among is None else limit.among,
            sum(1 << kind for kind in limit.differences),
            None if test is None else test.native,
        )
        for limit, test in zip(judge.subject.limits, judge.tests, strict=True)
    ]
    steps = np.arange(rule.n_models + 1, dtype=np.int32)
    firsts = [first for first, _ in exit_bins(rule.n_models)]
    bins = np.maximum(np.searchsorted(firsts, steps, side="right") - 1, 0)  # no row has 0 steps
    costs = cost_of_steps(rule.order, rule.costs, steps)
    return _native.RunningJudge(limits, bins.tolist(), costs.tolist(), judge.needed)
