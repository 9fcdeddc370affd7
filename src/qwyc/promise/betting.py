"""Tests of a share where rows come in groups: groups are counted, not rows.

Group g has a weight w, its rows over those of the largest group that was seen (the cap), and y, its rows
that differ over the cap, so that 0 <= y <= w <= 1. The share of rows that differ in new groups is
E[y] / E[w]. It exceeds a where z = y - a w has a positive mean.

**Betting.** A gambler starts with 1 and bets a fixed part on z being negative, group by group. If the mean
of z is not negative, the wealth, prod(1 - bet * z), is a nonnegative supermartingale. Then the chance that
it ever reaches 1 / risk is at most the risk, however the rows inside a group depend on each other (Ville's
inequality). The bet must not depend on the groups that are counted. It comes from a prior: from the groups
that were fitted on. A part of the stake goes on a cautious bet, in case the prior is wrong.

**Counting.** Where the rows of a group decide alike and groups are equally large, an exact binomial test is
better: a group with a difference counts as a group that differs whole. Where the prior expects that, this
test gets most of the risk and betting the rest. Where each group counts as one row, it gets all of it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from qwyc.policy.grouped import Weighed
from qwyc.promise.binomial import rows_needed, tail

Floats = npt.NDArray[np.float64]

# Bets as parts of the largest bet that cannot make the wealth negative.
PARTS = np.append(np.geomspace(1e-3, 0.99, 64), 1.0)
BISECTIONS = 30
CHECKED = 12  # shares beyond a bound at which the test must agree with it
ALIKE = 0.95  # of the groups and of what differs: from here on groups count as whole
COUNTING = (
    0.8  # of the risk goes to the test that counts groups, where that is expected to be better
)
EXPECTED = 0.9  # of the stake goes on the bet that the prior suggests


def passes(groups: Weighed, share: float, risk: float) -> bool:
    """Whether the groups show, but for the risk, that at most the share differs."""
    n = len(groups)
    if n == 0:
        return False
    if share >= 1:
        return True
    if groups.cap == 1:
        return _count_below(groups, share, risk)
    _, allowed = _bet_below(groups, groups.likely_clump, share, risk)
    if _allowed_whole(n * groups.likely_full, share, COUNTING * risk) > allowed * n:
        if _count_below(groups, share, COUNTING * risk):
            return True
        risk *= 1 - COUNTING
    z = groups.differ - share * groups.weight
    stakes = [
        (-_bet_below(groups, clump, share, risk)[0] / (1 - share), stake)
        for clump, stake in _clumps(groups)
    ]
    return _reaches(stakes, z, risk)


def fails(groups: Weighed, share: float, risk: float) -> bool:
    """Whether the groups show, but for the risk, that more than the share differs."""
    if len(groups) == 0 or share <= 0:
        return bool(groups.differ.any())
    if groups.cap == 1:
        return _count_above(groups, share, risk)
    if min(groups.likely_full, groups.likely_clump) >= ALIKE:
        if _count_above(groups, share, COUNTING * risk):
            return True
        risk *= 1 - COUNTING
    z = groups.differ - share * groups.weight
    stakes = [
        (_bet_above(groups, clump, share, risk) / share, stake) for clump, stake in _clumps(groups)
    ]
    return _reaches(stakes, z, risk)


def _count_below(groups: Weighed, share: float, risk: float) -> bool:
    """The binomial test for at most the share. A group with a difference counts as one that differs whole,
    and a smaller group without one does not count: both can only make the mean of z larger."""
    some = int(np.count_nonzero(groups.differ))
    none = int(np.count_nonzero((groups.weight == 1) & (groups.differ == 0)))
    return tail(some, some + none, share) <= risk


def _count_above(groups: Weighed, share: float, risk: float) -> bool:
    """The binomial test for more than the share. Only a group that differs whole counts as one that does:
    this can only make the mean of z smaller."""
    whole = int(np.count_nonzero((groups.differ == 1) & (groups.weight == 1)))
    known = int(np.count_nonzero(groups.weight))
    return whole > 0 and 1 - tail(whole - 1, known, share) <= risk


def upper_bound(groups: Weighed, risk: float) -> float:
    """With probability 1 - risk, no larger share than this differs: the test passes for all larger ones."""
    return _last(lambda share: not passes(groups, share, risk), 0.0, 1.0)


def lower_bound(groups: Weighed, risk: float) -> float:
    """With probability 1 - risk, no smaller share than this differs: the test fails all smaller ones."""
    if not groups.differ.any():
        return 0.0
    return 1 - _last(lambda rest: not fails(groups, 1 - rest, risk), 0.0, 1.0)


def groups_needed(groups: Weighed, share: float, risk: float) -> int:
    """About how many groups like these, none of them with a difference, show at most the share."""
    if groups.cap == 1:
        return rows_needed(share, 1 - risk)
    growth = float(np.log1p(share / (1 - share) * groups.weight).mean())
    risk *= max(stake for _, stake in _clumps(groups))
    return math.ceil(math.log(1 / risk) / growth) if growth > 0 else 10**9


def groups_at(groups: Weighed, share: float, risk: float) -> int | None:
    """About how many groups show it where groups stay what they are; None where no number does."""
    z = groups.differ - share * groups.weight
    if z.mean() >= 0:
        return None
    with np.errstate(divide="ignore"):
        bets = PARTS / (1 - share)
        growth = [float(np.log1p(np.maximum(-bet * z, -1.0)).mean()) for bet in bets]
    # Where the mean is next to 0, even the smallest bet loses.
    return math.ceil(math.log(1 / risk) / max(growth)) if max(growth) > 0 else None


def _reaches(stakes: list[tuple[float, float]], z: Floats, risk: float) -> bool:
    """Whether the wealth of some fixed bets, each with its stake, ever reaches 1 / risk."""
    with np.errstate(divide="ignore"):  # a bet of everything that is lost
        logs = np.array(
            [
                math.log(stake) + np.cumsum(np.log1p(np.maximum(bet * z, -1.0)))
                for bet, stake in stakes
            ]
        )
    # The sum over the bets is at least the largest, and at most that by their number: mostly there is
    # nothing to add up.
    enough = math.log(1 / risk)
    largest = logs.max(axis=0)
    if largest.max() >= enough:
        return True
    near = logs[:, largest >= enough - math.log(len(stakes)) - 1e-6]
    return bool((np.logaddexp.reduce(near, axis=0) >= enough).any())


def _bet_below(groups: Weighed, clump: float, share: float, risk: float) -> tuple[float, float]:
    """The part to bet with which the most groups may differ, each by a clump, and how many of all may."""
    weight = groups.likely_weight or 1.0
    bet, heavy = PARTS / (1 - share), max(clump, weight)
    gain = np.log1p(bet * share * weight) - math.log(1 / risk) / len(groups)
    with np.errstate(divide="ignore"):
        lost = np.log1p(np.maximum(-bet * (clump - share * heavy), -1.0))
    stake = np.log1p(bet * share * heavy) - lost
    allowed = np.where(gain > 0, gain, 0.0) / np.maximum(stake, 1e-12)
    best = int(np.argmax(allowed))
    if (
        allowed[best] <= 0
    ):  # no difference may be seen, so the bet is the one that needs fewest groups
        return 1.0, 0.0
    return float(PARTS[best]), float(allowed[best])


def _bet_above(groups: Weighed, clump: float, share: float, risk: float) -> float:
    """The part to bet with which the fewest differing groups show that more than the share differs."""
    weight = groups.likely_weight or 1.0
    bet, heavy = PARTS[:-1] / share, max(clump, weight)
    lost = -np.log1p(-bet * share * weight) + math.log(1 / risk) / len(groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        won = np.log1p(bet * (clump - share * heavy)) - np.log1p(-bet * share * heavy)
    needed = np.where(won > 0, lost / np.maximum(won, 1e-12), np.inf)
    return float(PARTS[int(np.argmin(needed))])


def _allowed_whole(n: float, share: float, risk: float) -> int:
    """How many of n groups may differ in the exact test that counts groups; -1 where it cannot pass."""
    most, over = -1, round(n)  # `most` may differ, `over` may not
    while over - most > 1:
        middle = (most + over) // 2
        most, over = (middle, over) if tail(middle, round(n), share) <= risk else (most, middle)
    return most


def _clumps(groups: Weighed) -> list[tuple[float, float]]:
    """What may differ together, and the stake on it: mostly what the prior says and a little on whole
    groups; without a prior, equal stakes from a single row to the whole group."""
    if groups.likely_weight is not None:
        if groups.likely_clump == 1:
            return [(1.0, 1.0)]
        return [(groups.likely_clump, EXPECTED), (1.0, 1 - EXPECTED)]
    sizes = sorted({min(4**i, groups.cap) for i in range(32) if 4**i < 4 * groups.cap})
    return [(size / groups.cap, 1 / len(sizes)) for size in sizes]


def _last(undecided: Callable[[float], bool], low: float, high: float) -> float:
    """The end of the values, from `low` on, at which a test leaves it undecided. The test is nearly
    monotone; where it is not, the largest such value of a grid counts."""
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if undecided(middle) else (low, middle)
    beyond = high + (1 - high) * np.geomspace(1e-4, 0.5, CHECKED)
    late = [value for value in beyond if undecided(float(value))]
    return float(late[-1]) if late else high
