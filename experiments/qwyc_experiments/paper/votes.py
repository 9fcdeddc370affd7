"""Stopping rules for majority votes: Kalman & Moscovich (2026) and Hernández-Lobato et al. (2009).

Both rules see a row as T votes of 0 or 1 of which K are 1. Given K, every order of the votes is taken to
be equally likely, so what is known after t votes is the number k of ones among them. After t votes a row
quits negative up to one count and positive from another count on, which is a `qwyc.Policy` in natural
order.

**Kalman & Moscovich, "Optimal Sequential Testing for Binary Ensemble Classifiers" (arXiv 2606.15237)**
choose the probability to stop in every state (t, k). A row that stops gets the majority of its votes so
far; a tie is negative. Each of their three notions of optimality is a linear program:

- "mean" (minimean): the least expected number of votes, with expected disagreement at most alpha. Both
  expectations are over an estimated distribution of K: relative frequencies on calibration rows.
- "worst" (minimax): the least expected number of votes for the worst K, with disagreement at most alpha
  for every K. It needs no rows.
- "mixed" (minimixed): the least expected number of votes over the distribution of K, with disagreement at
  most alpha for every K.

The linear program of T = 501 votes has 126,000 states, so it is solved through its Lagrangian. For a given
penalty of a disagreement, in votes, the best rule follows by backward induction over the states, and it is
deterministic. The linear program's solution at alpha mixes the two such rules on either side of alpha. The
policies here are not mixed: of the two, the one that keeps alpha is returned. A limit for every K binds at
the two K next to T / 2 alone, so "worst" is "mean" with half of the rows at each of the two, and "mixed"
has one penalty for each. The tests compare all three with the linear program. One difference remains: the
authors' rule may stop before the first vote, and a policy may not.

**Hernández-Lobato, Martínez-Muñoz & Suárez, "Statistical instance-based pruning in ensembles of
independent classifiers" (IEEE TPAMI 2009)** stop when the posterior probability that the majority of all T
votes is the majority so far reaches a confidence. The prior of the probability of a vote is uniform, which
makes K uniform on 0..T. Soto, Suárez & Martínez-Muñoz (NIPS 2016) use the same rule with another
distribution of K.

All sums are kept as logarithms of the weight of a single order of votes: a state's weight is the sum of its
two successors' weights. Nothing is subtracted, so nothing cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import lgamma
from typing import Literal

import numpy as np
import numpy.typing as npt

import qwyc

Notion = Literal["mean", "worst", "mixed"]
Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
PRECISION = 1e-6  # of the logarithm of a penalty


@dataclass(frozen=True, eq=False)
class Votes:
    """Rows as numbers of votes."""

    counts: Counts  # (N,) votes of 1, K
    T: int
    unit: float  # what a vote of 1 adds to the running sum
    threshold: float

    @property
    def distribution(self) -> Floats:
        """Relative frequencies of K, (T + 1,)."""
        return np.bincount(self.counts, minlength=self.T + 1) / len(self.counts)

    @classmethod
    def of(cls, scores: qwyc.ScoreMatrix) -> Votes:
        """The scores of an ensemble that decides by majority, ties negative."""
        values = np.asarray(scores.values)
        T = values.shape[1]
        unit = float(values.max(initial=0.0)) or 1.0 / T
        if scores.base != 0.0 or not np.isin(values, (0.0, unit)).all():
            raise qwyc.InputError(
                "expected votes: scores of 0 or one other positive number, and a base of 0. "
                "Train with forests.train."
            )
        counts = np.count_nonzero(values, axis=1)
        if not np.array_equal(scores.positive, counts >= majority(T)):
            raise qwyc.InputError(
                f"expected positive decisions from {majority(T)} of {T} votes on; "
                f"the threshold {scores.threshold} decides otherwise"
            )
        return cls(counts, T, unit, scores.threshold)


def majority(T: int) -> int:
    """The least number of votes for a positive decision; a tie is negative, as in scikit-learn."""
    return T // 2 + 1


@dataclass(frozen=True, eq=False)
class Limits:
    """The counts at which rows quit; entry t is after t votes, and entries 0 and T never quit."""

    negative: Counts  # (T + 1,) quits negative up to this count; -1 for never
    positive: Counts  # (T + 1,) quits positive from this count on; T + 1 for never

    def policy(self, unit: float, threshold: float) -> qwyc.Policy:
        """Thresholds halfway between two possible running sums, where rounding cannot matter."""
        negative, positive = self.negative[1:], self.positive[1:]
        T = len(negative)
        lower = np.where(negative < 0, -np.inf, (negative + 0.5) * unit)
        upper = np.where(positive > T, np.inf, (positive - 0.5) * unit)
        return qwyc.Policy(np.arange(T, dtype=np.int32), lower, upper, threshold, np.ones(T))

    def expected(self, weight: Weights) -> tuple[float, float]:
        """Mean number of votes and share of disagreements."""
        running = np.zeros(1)  # log of the number of orders that reach (t, k) without stopping
        votes = disagreement = 0.0
        for t in range(len(self.negative) - 1):
            k = np.arange(t + 1)
            negative, positive = k <= self.negative[t], k >= self.positive[t]
            for stopped, wrong in ((negative, weight.positive), (positive, weight.negative)):
                disagreement += np.exp(running + wrong[t, : t + 1])[stopped].sum()
            running = np.where(negative | positive, -np.inf, running)
            votes += np.exp(running + weight.all[t, : t + 1]).sum()
            running = np.logaddexp(np.append(running, -np.inf), np.append(-np.inf, running))
        return float(votes), float(disagreement)


@dataclass(frozen=True, eq=False)
class Weights:
    """Log probability of one order of the first t votes with k ones, at [t, k]; (T + 1, T + 1) each."""

    all: Floats
    negative: Floats  # and the majority of all votes is negative
    positive: Floats  # and it is positive

    @classmethod
    def of(cls, distribution: Floats) -> Weights:
        """From the distribution of K, (T + 1,)."""
        T = len(distribution) - 1
        K = np.arange(T + 1)
        factorial = np.array([lgamma(n + 1) for n in range(T + 1)])  # log n!
        orders = factorial[T] - factorial - factorial[::-1]  # log binomial(T, K)
        with np.errstate(divide="ignore"):
            last = np.log(distribution) - orders
        negative = _backwards(np.where(majority(T) > K, last, -np.inf))
        positive = _backwards(np.where(majority(T) <= K, last, -np.inf))
        return cls(np.logaddexp(negative, positive), negative, positive)


def _backwards(last: Floats) -> Floats:
    """Every state's weight is the sum of its successors' weights; (T + 1, T + 1) from (T + 1,)."""
    T = len(last) - 1
    weight = np.full((T + 1, T + 1), -np.inf)
    weight[T] = last
    for t in range(T - 1, -1, -1):
        weight[t, : t + 1] = np.logaddexp(weight[t + 1, : t + 1], weight[t + 1, 1 : t + 2])
    return weight


# ---- Kalman & Moscovich ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Problem:
    """What a vote and a disagreement weigh in each state, as log weights of one order."""

    vote: Floats  # (T + 1, T + 1) at [t, k]
    false_negative: Floats
    false_positive: Floats
    limited: tuple[Weights, Weights]  # where alpha limits false positives and false negatives

    @classmethod
    def of(cls, distribution: Floats, notion: Notion) -> Problem:
        """Of a distribution of K, (T + 1,)."""
        T = len(distribution) - 1
        below, above = np.eye(T + 1)[majority(T) - 1], np.eye(T + 1)[majority(T)]
        if notion == "mean":
            votes = errors = distribution
        elif notion == "mixed":
            votes, errors = distribution, below + above
        elif notion == "worst":
            if T % 2 == 0:
                raise qwyc.OptionError('notion "worst" needs an odd number of votes')
            votes = errors = (below + above) / 2
        else:
            raise qwyc.OptionError(f'notion must be "mean", "worst" or "mixed"; got {notion!r}')
        weight = Weights.of(errors)
        limited = (Weights.of(below), Weights.of(above)) if notion == "mixed" else (weight, weight)
        return cls(Weights.of(votes).all, weight.positive, weight.negative, limited)

    def solve(self, false_positive: float, false_negative: float) -> Limits:
        """The best rule for these penalties, given as logarithms, of a disagreement of each kind."""
        T = len(self.vote) - 1
        stops = np.zeros((T + 1, T + 1), dtype=bool)
        # what is still to come in the best case: votes and penalties; nothing after the last vote
        ahead = np.full(T + 1, -np.inf)
        for t in range(T - 1, 0, -1):
            here = slice(0, t + 1)
            go_on = np.logaddexp(self.vote[t, here], np.logaddexp(ahead[: t + 1], ahead[1 : t + 2]))
            stop = np.where(
                2 * np.arange(t + 1) > t,
                _times(self.false_positive[t, here], false_positive),
                _times(self.false_negative[t, here], false_negative),
            )
            stops[t, here] = stop <= go_on
            ahead = np.minimum(stop, go_on)
        return as_limits(stops, self.possible)

    @property
    def possible(self) -> npt.NDArray[np.bool_]:
        """States that the distribution allows, (T + 1, T + 1)."""
        wrong = np.maximum(self.false_negative, self.false_positive)
        return np.asarray(np.maximum(self.vote, wrong) > -np.inf)

    def penalties(self, alpha: float) -> tuple[float, float]:
        """The least penalties, as logarithms, that keep alpha."""
        if alpha <= 0.0:
            return np.inf, np.inf
        first, second = self.limited

        def keeps(weight: Weights, false_positive: float, false_negative: float) -> bool:
            return self.solve(false_positive, false_negative).expected(weight)[1] <= alpha

        # Votes and penalties add up to at most T votes, what never stopping takes.
        most = float(np.log((len(self.vote) - 1) / alpha))
        if first is second:
            both = least(lambda log: keeps(first, log, log), most)
            return both, both
        found = most, most
        for _ in range(2):  # each penalty has little effect on the other kind of disagreement
            found = least(partial(keeps, first, false_negative=found[1]), most), found[1]
            found = found[0], least(partial(keeps, second, found[0]), most)
        return found


def _times(weight: Floats, factor: float) -> Floats:
    """Log weights times a log factor that may be infinite; nothing stays nothing."""
    return np.add(weight, factor, out=np.full_like(weight, -np.inf), where=weight > -np.inf)


def least(holds: Callable[[float], bool], high: float) -> float:
    """The least number from -high on at which something holds that holds from there up to high."""
    low = -high
    while high - low > PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def as_limits(stops: npt.NDArray[np.bool_], possible: npt.NDArray[np.bool_]) -> Limits:
    """Limits from the states that stop, both (T + 1, T + 1) at [t, k].

    A state that stops counts only if all possible states that are further from a tie stop as well. For
    "mean" and "worst" this leaves nothing out; for "mixed" with small penalties it leaves out states that
    no row reaches. States that are not possible follow their neighbours. A row whose majority is certain
    always stops."""
    T = len(stops) - 1
    negative, positive = np.full(T + 1, -1), np.full(T + 1, T + 1)
    for t in range(1, T):
        k = np.flatnonzero(possible[t, : t + 1])
        low, high = stops[t, k] & (2 * k <= t), stops[t, k] & (2 * k > t)
        n_low = int(np.cumprod(low).sum())
        n_high = int(np.cumprod(high[::-1]).sum())
        certain = t - (T - majority(T)) - 1  # even with all of the remaining votes
        negative[t] = max(k[n_low - 1] if n_low else -1, certain, -1)
        positive[t] = min(k[-n_high] if n_high else T + 1, majority(T))
        if positive[t] > t:
            positive[t] = T + 1
    return Limits(negative, positive)


def optimal_vote_policies(
    fit: qwyc.ScoreMatrix, penalties: Sequence[float], *, notion: Notion = "mean"
) -> list[tuple[float, qwyc.Policy]]:
    """Kalman & Moscovich's rule for penalties of a disagreement, in votes; from cautious to bold.

    "mixed" has the same penalty for both kinds of disagreement here. For "worst", the least number of
    votes falls almost linearly with alpha, so all but the extreme rules have penalties close to 2 (T - 1);
    `optimal_vote_policy` finds them by alpha."""
    votes = Votes.of(fit)
    problem = Problem.of(votes.distribution, notion)
    policies = []
    for penalty in sorted(penalties, reverse=True):
        log = float(np.log(penalty))
        limits = problem.solve(log, log)
        policies.append((float(penalty), limits.policy(votes.unit, votes.threshold)))
    return policies


def optimal_vote_policy(
    fit: qwyc.ScoreMatrix, alpha: float, *, notion: Notion = "mean"
) -> qwyc.Policy:
    """Kalman & Moscovich's rule: the boldest that keeps alpha in expectation over orders of the votes."""
    votes = Votes.of(fit)
    problem = Problem.of(votes.distribution, notion)
    return problem.solve(*problem.penalties(alpha)).policy(votes.unit, votes.threshold)


# ---- Hernández-Lobato, Martínez-Muñoz & Suárez -----------------------------------------------


def bayes_limits(T: int, confidence: float, distribution: Floats | None = None) -> Limits:
    """Quit where the majority so far is the final one with this posterior probability; K is uniform
    unless its distribution, (T + 1,), is given."""
    if not 0.5 < confidence <= 1.0:
        raise qwyc.OptionError(f"confidence must be above 0.5 and at most 1; got {confidence}")
    weight = Weights.of(np.full(T + 1, 1.0 / (T + 1)) if distribution is None else distribution)
    t, k = np.arange(T + 1)[:, np.newaxis], np.arange(T + 1)
    wrong = np.where(2 * k > t, weight.negative, weight.positive)
    # a probability that equals the confidence up to rounding is enough
    allowed = np.log1p(-confidence) + 1e-9 if confidence < 1.0 else -np.inf
    return as_limits(wrong <= weight.all + allowed, weight.all > -np.inf)


def bayes_vote_policies(
    T: int,
    confidences: Sequence[float],
    *,
    unit: float | None = None,
    threshold: float = float(np.nextafter(0.5, 1.0)),
    distribution: Floats | None = None,
) -> list[tuple[float, qwyc.Policy]]:
    """Hernández-Lobato et al.'s rule for confidences, from cautious to bold.

    `unit` is what a vote adds to the running sum, 1 / T as qwyc reads forests unless given."""
    step = float(np.float32(1.0 / T)) if unit is None else unit
    ordered = sorted(confidences, reverse=True)
    return [(float(c), bayes_limits(T, c, distribution).policy(step, threshold)) for c in ordered]
