"""Exact binomial bounds on a share, from counts. Nothing is assumed but that rows are drawn alike."""

from __future__ import annotations

import math


def tail(count: int, rows: int, share: float) -> float:
    """The probability of at most `count` out of `rows` where each happens with probability `share`."""
    if count >= rows or share <= 0:
        return 1.0
    if share >= 1:
        return 0.0
    log_share, log_rest = math.log(share), math.log1p(-share)
    log_all = math.lgamma(rows + 1)
    terms = [
        math.exp(
            log_all
            - math.lgamma(k + 1)
            - math.lgamma(rows - k + 1)
            + k * log_share
            + (rows - k) * log_rest
        )
        for k in range(count + 1)
    ]
    return min(1.0, math.fsum(terms))


def upper_bound(count: int, rows: int, confidence: float) -> float:
    """The Clopper-Pearson upper bound: the share at which so few would have probability
    1 - confidence."""
    if count >= rows:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(count, rows, middle) > 1 - confidence else (low, middle)
    return high


def lower_bound(count: int, rows: int, confidence: float) -> float:
    """The Clopper-Pearson lower bound."""
    return 1.0 - upper_bound(rows - count, rows, confidence)


def rows_needed(alpha: float, confidence: float) -> int:
    """How many rows without a single disagreement show at most a share `alpha`."""
    n = max(1, math.ceil(math.log(1 - confidence) / math.log1p(-alpha)) - 1)
    while tail(0, n, alpha) > 1 - confidence:
        n += 1
    return n
