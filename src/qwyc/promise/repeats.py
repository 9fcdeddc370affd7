"""Repeated rows: rows of a sample that are copies of each other, and so are not independent draws.

Rows with equal values are one unit: they stay on one side of the split and are counted together, like the
rows of a group. This is done where the design effect, the mean size of the unit that a row is in, exceeds
`MOST_EFFECT`. The variance of a count grows at most by that factor: at 1.05, a test of 5% has a level of at
most 5.5%, and one of 1% of at most 1.2%.

Rows of different values may have equal scores from every base model. Small models give many rows the same
scores, so such rows are one unit only where the number of repetitions cannot come from independent draws.
Among independent draws the number of times that a value occurs is Poisson distributed, with a mean of its
own for each value. Let n_j be the number of values that occur j times. Then E[j! n_j] is the j-th moment of
a measure, and by the inequality of Cauchy and Schwarz

    (j! E[n_j])^2 <= (j-1)! E[n_(j-1)] * (j+1)! E[n_(j+1)].

If every row is there five times, n_5 is large while n_4 and n_6 are 0."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qwyc.rows.identity import Hashes

MOST_EFFECT = 1.05  # the largest design effect that is neglected
DOUBT = 1e-5  # how often one of the bounds on E[n_j] may fail
PART = 1 << 16  # values that are counted at once
FEWEST_VALUES = 20  # distinct values that a common divisor is looked for in

Numbers = npt.NDArray[np.intp]

TOGETHER, INDEPENDENT = "together", "independent"
REPEATS = (TOGETHER, INDEPENDENT)  # what users may ask for


@dataclass(frozen=True, eq=False)
class Repeats:
    """Which rows of a sample count together."""

    rows: int
    distinct: int  # different rows
    repeated: int  # rows that equal another row
    largest: int  # how often the most frequent row occurs
    reason: str  # "values", "scores", or "" where rows count as independent
    group: Numbers | None = None  # (rows,) from 0; None where rows count as independent

    @property
    def facts(self) -> str:
        """How many rows repeat, as a clause."""
        equal = (
            "are the same as another row to every base model"
            if self.reason == "scores"
            else "equal another row"
        )
        return (
            f"{self.repeated:,} of {self.rows:,} rows {equal}; there are {self.distinct:,} distinct rows, "
            f"and the most frequent occurs {self.largest:,} times"
        )

    @property
    def warning(self) -> str:
        """What was found and done about it, and how to change that; "" where nothing was done."""
        if self.group is None:
            return ""
        return (
            f"{self.facts}. Copies are not independent draws, so equal rows are one group: groups are "
            "counted instead of rows, and a group is never on both sides of a split. If they are "
            "independent draws that happen to be equal, as rows of a few categorical columns are, pass "
            "repeats='independent'"
        )


def units(rows_hash: Hashes | None, score_hash: Hashes | None) -> Repeats:
    """The rows that count together, by hashes of their values and of their scores, (N,) each. Values are
    not known where base models take rows that are no matrix."""
    by_value = None if rows_hash is None else _Times.of(rows_hash)
    found = Repeats(0, 0, 0, 0, "") if by_value is None else by_value.repeats()
    values: _Values | None = None
    if by_value is not None and rows_hash is not None and by_value.effect > MOST_EFFECT:
        values = _Values.of(rows_hash)
        found = by_value.repeats("values", values.number)
    if score_hash is None:
        return found
    by_score = by_value if score_hash is rows_hash and by_value else _Times.of(score_hash)
    if by_score.effect > MOST_EFFECT:
        if values is None and rows_hash is not None:
            values = _Values.of(rows_hash)
        same = values is not None and score_hash is rows_hash
        number = values.number if values is not None and same else _Values.of(score_hash).number
        # Copies in values have been found already: each distinct row is asked about once.
        once = number if values is None else number[values.first]
        if beyond_chance(np.bincount(once)):
            return by_score.repeats("scores", number)
    return found if by_value is not None else by_score.repeats()


def beyond_chance(times: Numbers) -> bool:
    """Whether independent draws cannot be the reason that values occur so many times, (values,)."""
    n = np.bincount(times, minlength=3).astype(float)  # (most + 1,) values that occur j times
    n = np.append(n, 0.0)
    j = np.flatnonzero(n[:-1] > 0)
    j = j[j >= 2]  # how many values occur 0 times is not known
    least = _lower(n[j]) ** 2 * j / (j + 1)
    if bool((least > _upper(n[j - 1]) * _upper(n[j + 1])).any()):
        return True
    return len(times) >= FEWEST_VALUES and int(np.gcd.reduce(times)) > 1


def _upper(n: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """A bound on E[n] by Chernoff, which holds with probability 1 - DOUBT."""
    log = -math.log(DOUBT)
    return n + log + np.sqrt(log * log + 2 * n * log)


def _lower(n: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.maximum(n - np.sqrt(-2 * n * math.log(DOUBT)), 0.0)


@dataclass(frozen=True)
class _Times:
    """How often values occur among rows. It takes less memory than `_Values`, for many rows."""

    rows: int
    distinct: int
    repeated: int  # rows whose value occurs more than once
    largest: int  # how often the most frequent value occurs
    effect: float  # the design effect: the mean, over rows, of how often the row's value occurs

    @classmethod
    def of(cls, hashes: Hashes) -> _Times:
        ordered = np.sort(hashes)
        begins = np.ones(len(ordered), dtype=bool)  # whether a row is the first of its value
        np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
        del ordered
        times = np.flatnonzero(
            begins
        )  # (distinct,) where each value begins, and then how often it is
        for i in range(0, len(times), PART):
            end = times[i + PART : i + PART + 1] if i + PART < len(times) else [len(begins)]
            times[i : i + PART] = np.diff(times[i : i + PART], append=end)
        return cls(
            rows=len(begins),
            distinct=len(times),
            repeated=int(times[times > 1].sum()),
            largest=int(times.max(initial=0)),
            effect=float(np.dot(times, times) / max(1, len(begins))),
        )

    def repeats(self, reason: str = "", number: Numbers | None = None) -> Repeats:
        """What is said about rows that count together for a reason; `number` (N,) is the value of each."""
        return Repeats(self.rows, self.distinct, self.repeated, self.largest, reason, number)


@dataclass(frozen=True, eq=False)
class _Values:
    """Rows by their value."""

    number: Numbers  # (N,) which value a row has, from 0
    first: Numbers  # (distinct,) a row of each value

    @classmethod
    def of(cls, hashes: Hashes) -> _Values:
        # As np.unique does it, but equal hashes may be in any order, which is sorted faster.
        order = np.argsort(hashes)
        ordered = hashes[order]
        begins = np.ones(len(ordered), dtype=bool)
        np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
        number = np.empty(len(order), dtype=np.intp)
        number[order] = np.cumsum(begins) - 1
        return cls(number, order[begins])
