"""Tests and intervals for a rate that may be looked at after every row (docs/decisions/0018-monitor.md).

Rows are checked one after the other, and each differs or does not. The bounds on errors hold for all
moments together, so nobody has to decide in advance when to look."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from qwyc import _native

Floats = npt.NDArray[np.float64]

# Odds of the alternatives, relative to those of the share that is allowed. Further powers of 10 follow
# where the share is small.
MULTIPLES = (1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0)
START_EVERY = 16  # rows between two moments at which a change may be assumed to begin
TAIL = 0.25  # of a change that is not assumed among the first j moments, j**-TAIL is still unspent
FROM_FIRST_ROW, APART, JOINT = 0.5, 0.25, 0.25  # prior weights of the parts of the evidence
LARGEST = 1e150  # values stop growing here; a product of two of them is still a float

# For intervals: logarithms of multiples, from 4 down to 4 / 2**8. The smallest suit ten thousands of
# differences.
SLOPES = 4 * 2.0 ** (-np.arange(17) / 2)  # (17,)


@dataclass(frozen=True, eq=False)
class Starts:
    """Likelihood ratios of changes that began at different moments, added up with their prior weights."""

    value: Floats  # (G,) of changes that may have begun, by multiple
    unspent: float  # prior weight of changes that begin later

    @property
    def total(self) -> Floats:
        """The evidence, (G,): later changes count as their prior weight."""
        return self.value + self.unspent


@dataclass(frozen=True, eq=False)
class TestState:
    """What a test has seen so far."""

    rows: int
    count: int  # rows that differ
    parts: int  # states of separate monitors that were merged into this one
    apart: Starts  # the average of the parts
    joint: Starts  # the product of the parts; the same where there is one part


Plain = tuple[int, int, Sequence[float], float, Sequence[float], float, bool]


def to_plain(state: TestState) -> Plain:
    """A state as the native core takes it."""
    apart, joint = state.apart, state.joint
    return (
        state.rows,
        state.count,
        apart.value.tolist(),
        apart.unspent,
        joint.value.tolist(),
        joint.unspent,
        state.parts == 1,
    )


def from_plain(plain: Plain, parts: int) -> TestState:
    """A state of so many parts as the native core gives it."""
    rows, count, apart_value, apart_unspent, joint_value, joint_unspent, _ = plain
    apart = Starts(np.array(apart_value), apart_unspent)
    joint = apart if parts == 1 else Starts(np.array(joint_value), joint_unspent)
    return TestState(rows, count, parts, apart, joint)


@dataclass(frozen=True)
class RateTest:
    """Tests whether rows differ at a rate of at most `share`, which must be above 0 and below 1."""

    share: float

    def __getstate__(self) -> dict[str, float]:
        return {"share": self.share}  # native objects cannot be pickled

    @cached_property
    def multiples(self) -> Floats:
        """(G,)"""
        multiples, odds = list(MULTIPLES), self.share / (1 - self.share)
        while multiples[-1] * odds < 1:
            multiples.append(10 * multiples[-1])
        return np.array(multiples)

    @cached_property
    def native(self) -> _native.RateTest:
        """The same test in the native core."""
        return _native.RateTest(
            self.share,
            self.multiples.tolist(),
            START_EVERY,
            TAIL,
            FROM_FIRST_ROW,
            APART,
            JOINT,
            LARGEST,
        )

    @property
    def start(self) -> TestState:
        """Before the first row."""
        nothing = Starts(np.zeros(len(self.multiples)), 1.0)
        return TestState(0, 0, 1, nothing, nothing)

    def after(
        self, state: TestState, differs: npt.NDArray[np.bool_], needed: float = math.inf
    ) -> tuple[TestState, int | None]:
        """The state after more rows, (N,), one by one, and after how many of them the evidence first was
        at least `needed`, if it was."""
        flags = np.ascontiguousarray(differs, dtype=np.uint8)
        after, reached = self.native.advance(to_plain(state), flags, needed)
        return from_plain(after, state.parts), None if reached < 0 else reached

    def evidence(self, state: TestState) -> float:
        """If the rate never exceeds the share, this ever reaches x with a probability of at most 1 / x."""
        return self.native.evidence(to_plain(state))

    def merge(self, one: TestState, other: TestState) -> TestState:
        """The state of two monitors together, whose rows are different."""
        parts = one.parts + other.parts
        share = one.parts / parts
        apart = Starts(
            share * one.apart.value + (1 - share) * other.apart.value,
            share * one.apart.unspent + (1 - share) * other.apart.unspent,
        )
        a, b = one.joint, other.joint
        both = a.value * b.total + a.unspent * b.value
        joint = Starts(np.minimum(both, LARGEST), a.unspent * b.unspent)
        return TestState(one.rows + other.rows, one.count + other.count, parts, apart, joint)


def rate_interval(count: int, rows: int, confidence: float) -> tuple[float, float]:
    """An interval on the average rate of the rows so far, of which `count` differ. With the confidence, it
    contains that average after every row. The rate may change from row to row."""
    needed = math.log(2 / (1 - confidence))  # half of what may go wrong on either side
    return _lower(count, rows, needed), 1 - _lower(rows - count, rows, needed)


def _lower(count: int, rows: int, needed: float) -> float:
    """The largest rate at which the evidence for a higher rate is at least exp(needed); 0 where there is
    none."""

    def log_evidence(rate: float) -> float:
        logs = SLOPES * count - rows * np.log1p(rate * np.expm1(SLOPES))
        most = float(logs.max())
        return most + math.log(float(np.exp(logs - most).mean()))

    low, high = 0.0, 1.0
    if not rows or log_evidence(low) < needed:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if log_evidence(middle) >= needed else (low, middle)
    return low
