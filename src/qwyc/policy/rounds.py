"""Rounds: in which groups the features of undecided rows are fetched.

A round is made before a step, for the rows that reach it, and fetches the features that this step and the
steps up to the next round are the first to need. Many rounds fetch fewer values, because rows quit in
between; few rounds make fewer calls. The best division is found by dynamic programming."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qwyc.policy.counts import Counts, exit_bins
from qwyc.policy.features import FeatureUse, reaching

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Round:
    """Features to fetch for the rows that reach a step."""

    begin: int  # step, from 0, before which they are fetched
    end: int  # step before which the next round is made; the number of base models after the last
    features: Ints  # ascending; none only where the first steps need none


def plan_rounds(use: FeatureUse, survival: Floats, round_cost: float) -> list[Round]:
    """The rounds that cost a row least on average: each costs a row that takes part `round_cost` and what
    the features cost. `survival` (T,) is the share of rows that reach each step. Features that cost nothing
    are fetched in the first round."""
    T, costs = use.n_models, use.costs
    needed = np.flatnonzero(use.used)
    first = use.first.copy()
    if len(needed):
        first[needed[costs[needed] == 0]] = first[needed].min()
    starts = np.unique(first[needed])  # (m,) steps that are the first to need a feature
    m = len(starts)
    at = np.searchsorted(starts, first[needed])
    before = np.concatenate([[0.0], np.cumsum(np.bincount(at, weights=costs[needed], minlength=m))])
    best, next_start = np.zeros(m + 1), np.full(m, m)  # of the rounds from a start on
    for i in range(m - 1, -1, -1):
        # A round before starts[i] that fetches up to each later start.
        cost = survival[starts[i]] * (round_cost + before[i + 1 :] - before[i]) + best[i + 1 :]
        equal = cost <= cost.min() * (1 + 1e-12)
        last = int(np.flatnonzero(equal)[-1])  # of equal costs, the fewest rounds
        best[i], next_start[i] = cost[last], i + 1 + last
    rounds, i = [], 0
    if not m or starts[0] > 0:
        rounds.append(Round(0, int(starts[0]) if m else T, np.empty(0, dtype=np.int64)))
    while i < m:
        j = int(next_start[i])
        stop = int(starts[j]) if j < m else T
        inside = needed[(at >= i) & (at < j)]
        rounds.append(Round(int(starts[i]), stop, inside))
        i = j
    return rounds


def survival(counts: Counts, n_models: int) -> Floats:
    """The share of rows that reach each step, (T,): by what was counted, or, where only bins or a mean are
    known, by a curve through them."""
    if any(counts.stops):
        reached = reaching(counts.stops)
        return np.asarray(reached[:-1] / reached[0], dtype=np.float64)
    steps = np.arange(n_models)
    if any(counts.exits):
        firsts = [first - 1 for first, _ in exit_bins(n_models)]
        left = reaching(counts.exits)[:-1]
        return np.asarray(np.interp(steps, firsts, left / left[0]), dtype=np.float64)
    mean = min(max(counts.mean_models, 1.0), float(n_models))
    return np.asarray((1 - 1 / mean) ** steps, dtype=np.float64)
