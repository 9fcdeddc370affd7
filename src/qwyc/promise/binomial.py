"""Exact binomial bounds on a share, from counts. Nothing is assumed but that rows are drawn alike."""

from __future__ import annotations

import math


def tail(count: int, rows: int, share: float) -> float:
    """The probability of at most `count` out of `rows` where each happens with probability `share`."""
    if count >= rows or share <= 0:
        return 1.0
    if share >= 1:
        return 0.0
    # From `count` outwards on its shorter side, where terms only fall: about sqrt(rows) of them matter.
    below = count < rows * share
    k = count if below else count + 1
    term, total = _probability_of(k, rows, share), 0.0
    while 0 <= k <= rows and term > 1e-18 * total:
        total += term
        if below:
            term *= k / (rows - k + 1) * (1 - share) / share
        else:
            term *= (rows - k) / (k + 1) * share / (1 - share)
        k += -1 if below else 1
    return min(1.0, total) if below else max(0.0, 1.0 - total)


def _probability_of(k: int, rows: int, share: float) -> float:
    """Exactly k out of `rows`."""
    ways = math.lgamma(rows + 1) - math.lgamma(k + 1) - math.lgamma(rows - k + 1)
    log = ways + k * math.log(share) + (rows - k) * math.log1p(-share)
    return math.exp(min(log, 0.0))  # beyond 2**53 rows, rounding may put it above 0


def upper_bound(count: int, rows: int, confidence: float) -> float:
    """The Clopper-Pearson upper bound: the share at which so few would have probability
    1 - confidence."""
    return 1.0 if count >= rows else _share_around(count, rows, 1 - confidence)[1]


def lower_bound(count: int, rows: int, confidence: float) -> float:
    """The Clopper-Pearson lower bound: the share at which so many would have probability
    1 - confidence."""
    return 0.0 if count <= 0 else _share_around(count - 1, rows, confidence)[0]


def _share_around(count: int, rows: int, probability: float) -> tuple[float, float]:
    """The share at which at most `count` of `rows` has that probability, from below and from above."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(count, rows, middle) > probability else (low, middle)
    return low, high


def rows_needed(alpha: float, confidence: float, *, statements: int = 1) -> int:
    """How many rows without a single disagreement show at most a share `alpha`, as one of so many
    statements that hold together with the confidence."""
    risk = (1 - confidence) / statements
    n = max(1, math.ceil(math.log(risk) / math.log1p(-alpha)) - 1)
    while tail(0, n, alpha) > risk:
        n += 1
    return n
