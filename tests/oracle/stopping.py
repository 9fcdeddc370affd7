"""Thresholds by optimal stopping. Twin of native/fit/stopping.cpp and native/fit/score_forecast.cpp.

Shapes: F is (N, T) scores, `full` (N,) full scores, `order` (T,), thresholds (T,). A running sum g is the
base and the scores of the base models so far.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from oracle.between import between

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class ScoreForecast:
    """The distribution of the full score given the running sum: normal, with a mean on a line that is
    corrected in bins, and with a deviation per bin."""

    slope: float
    centre: Array  # (bins,) mean running sum
    offset: Array  # (bins,) mean distance of the full score from slope * g
    deviation: Array  # (bins,)

    def below(self, g: Array, threshold: float) -> Array:
        """The probability that a row with running sum g has a full score below the threshold."""
        m, s = self.mean_and_deviation(g)
        return normal_below((threshold - m) / s)

    def mean_and_deviation(self, g: Array) -> tuple[Array, Array]:
        """The mean and deviation of full scores at running sums g."""
        m = self.slope * g + np.interp(g, self.centre, self.offset)
        nearest = np.searchsorted((self.centre[1:] + self.centre[:-1]) / 2, g, side="right")
        return m, np.maximum(self.deviation[nearest], 1e-300)


def normal_below(z: Array) -> Array:
    """The cumulative normal distribution, linear between the points of a grid."""
    grid = np.linspace(-8, 8, 1025)
    phi = np.array([0.5 * (1 + math.erf(x / math.sqrt(2))) for x in grid])
    probability: Array = np.interp(z, grid, phi, left=0.0, right=1.0)
    return probability


def sweep(
    F: Array,
    base: float,
    full: Array,
    threshold: float,
    order: Array,
    costs: Array,
    quit: str,
    penalties: tuple[float, float],
    lower: Array,
    upper: Array,
    forecasts: dict[int, ScoreForecast],
    settings: Any,
) -> None:
    """One sweep backward from the last step but one. It updates `lower` and `upper` (T,) and the forecast
    of each step in place. `penalties` are those of a wrong negative and of a wrong positive decision.
    `settings` has the constants of the method, as in src/qwyc/policy/fit/stopping.py."""
    N, T = F.shape
    G = np.cumsum(np.concatenate([np.full((N, 1), base), F[:, order]], axis=1), axis=1)[:, 1:]
    quits = (lower > G) | (upper < G)
    quits[:, -1] = True
    ends = quits.argmax(axis=1)  # the step at which each row ends under the present thresholds
    negative = full < threshold
    V = np.zeros(N)  # the cost of going on, for each row
    share = settings.forecast_share  # of the forecast; the rest is the row's own full decision
    for r in range(T - 2, -1, -1):
        g = G[:, r]
        V += costs[order[r + 1]]
        R = np.flatnonzero(ends >= r)
        if len(R) >= settings.fewest_rows:
            R = R[np.lexsort((R, -ends[R], g[R]))]  # by running sum, then those that end last first
            forecasts[r] = fit_forecast(g[R], full[R], settings)
            p = share * forecasts[r].below(g[R], threshold) + (1 - share) * negative[R]
            lower[r], upper[r] = best_cuts(
                g[R], V[R] - penalties[0] * (1 - p), V[R] - penalties[1] * p, quit
            )
        if r in forecasts:
            p = share * forecasts[r].below(g, threshold) + (1 - share) * negative
            V = np.where(
                g < lower[r], penalties[0] * (1 - p), np.where(g > upper[r], penalties[1] * p, V)
            )


def fit_forecast(g: Array, f: Array, settings: Any) -> ScoreForecast:
    """The forecast from the running sums g (n,), sorted, and the full scores f (n,): a least-squares line
    through all rows, and bins of equal count. In a bin, the offset is drawn to the line as if by
    `trend_rows` rows on it, and the variance to that of all rows as if by `pseudo_rows` rows."""
    n, trend, pooled = len(g), settings.trend_rows, settings.pseudo_rows
    bins = max(1, min(settings.most_bins, n // settings.rows_per_bin))
    new = np.append(np.flatnonzero(differs(g)), n)  # an edge moves up to the next sum that differs
    edges = np.unique([new[np.searchsorted(new, b * n // bins)] for b in range(bins + 1)])
    parts = [slice(a, b) for a, b in itertools.pairwise(edges)]
    spread = ((g - g.mean()) ** 2).sum()
    slope = float(((g - g.mean()) * (f - f.mean())).sum() / spread) if spread > 0 else 0.0
    off = f - slope * g
    count = np.diff(edges)
    centre = np.array([g[part].mean() for part in parts])
    mean = np.array([off[part].sum() + trend * (f.mean() - slope * g.mean()) for part in parts])
    mean /= count + trend
    square = np.array([((off[part] - m) ** 2).sum() for part, m in zip(parts, mean, strict=True)])
    deviation = np.sqrt((square + pooled * square.sum() / n) / (count + pooled))
    return ScoreForecast(slope, centre, mean, deviation)


def differs(g: Array) -> Array:
    """Which of the sums g (n,), sorted, differ from the one before by more than rounding: (n,)."""
    return np.append(True, np.diff(g) > 1e-9 * (g[-1] - g[0]))


def best_cuts(g: Array, low_gain: Array, high_gain: Array, quit: str) -> tuple[float, float]:
    """Thresholds (lower, upper) from the gain of each row, (n,), if it quits negative or positive. A
    prefix of the sorted sums quits negative and a suffix positive; the two are chosen together."""
    n = len(g)
    prefix = np.concatenate([[0.0], np.cumsum(low_gain)])
    suffix = np.concatenate([np.cumsum(high_gain[::-1])[::-1], [0.0]])
    inside = ~np.append(differs(g), True)  # no cut between equal sums
    prefix[inside] = suffix[inside] = -np.inf
    if quit == "positive":
        prefix[1:] = -np.inf
    if quit == "negative":
        suffix[:n] = -np.inf
    best_from = np.maximum.accumulate(suffix[::-1])[::-1]  # (n + 1,) the best suffix from there on
    low_end = int(np.argmax(prefix + best_from))
    high_begin = int(np.flatnonzero(suffix == best_from[low_end])[-1])
    lower, upper = -np.inf, np.inf
    if low_end:
        lower = (
            np.nextafter(g[-1], np.inf)
            if low_end == n
            else between(g[low_end - 1], g[low_end], g[low_end])
        )
    if high_begin < n:
        upper = (
            np.nextafter(g[0], -np.inf)
            if high_begin == 0
            else between(g[high_begin - 1], g[high_begin], g[high_begin - 1])
        )
    return lower, max(lower, upper)
