"""Thresholds for outputs within a tolerance. Twin of native/fit/losses.hpp with native/fit/stopping.cpp,
and of native/core/estimates.hpp.

Shapes: F is (N, T) scores, `full` (N,) full scores, `order` (T,), thresholds (T,). `low` and `high`
(entries,) are tabulated over estimated scores start, start + width, ...: between them, a full score's
output is close enough to the estimated score's."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.stopping import Array, ScoreForecast, best_cuts, fit_forecast, normal_below


def tolerance_sweep(
    F: Array,
    base: float,
    full: Array,
    table: tuple[float, float, Array, Array],
    order: Array,
    costs: Array,
    penalty: float,
    lower: Array,
    upper: Array,
    forecasts: dict[int, ScoreForecast],
    settings: Any,
    *,
    frozen: bool = False,
) -> None:
    """One sweep backward from the last step but one. It updates `lower`, `upper` and, unless `frozen`, the
    forecast of each step in place."""
    N, T = F.shape
    G = np.cumsum(np.concatenate([np.full((N, 1), base), F[:, order]], axis=1), axis=1)[:, 1:]
    quits = (lower > G) | (upper < G)
    quits[:, -1] = True
    ends = quits.argmax(axis=1)
    V = np.zeros(N)  # the cost of going on, for each row
    for r in range(T - 2, -1, -1):
        g = G[:, r]
        V += costs[order[r + 1]]
        R = np.flatnonzero(ends >= r)
        if len(R) >= settings.fewest_rows:
            R = R[np.lexsort((R, -ends[R], g[R]))]
            if not frozen:
                forecasts[r] = fit_forecast(g[R], full[R], settings)
            if r in forecasts:
                gain = V[R] - penalty * chance(forecasts[r], g[R], full[R], table, settings)
                lower[r], upper[r] = best_cuts(g[R], gain, gain, "both")
        if r in forecasts:
            lost = penalty * chance(forecasts[r], g, full, table, settings)
            V = np.where((g < lower[r]) | (g > upper[r]), lost, V)


def chance(
    forecast: ScoreForecast,
    g: Array,
    full: Array,
    table: tuple[float, float, Array, Array],
    settings: Any,
) -> Array:
    """The chance that a row with running sum g that quits is off: half by the forecast, half by its own
    full score."""
    start, width, low, high = table
    m, s = forecast.mean_and_deviation(g)
    at = np.clip((m - start) / width, 0, len(low) - 1)
    entries = np.arange(len(low))
    below, above = np.interp(at, entries, low), np.interp(at, entries, high)
    outside = 1 - (normal_below((above - m) / s) - normal_below((below - m) / s))
    happens = (full < below) | (full > above)
    share = settings.forecast_share
    found: Array = share * outside + (1 - share) * happens
    return found


def estimate(
    slope: Array, begin: Array, knots: Array, offsets: Array, step: int, g: float
) -> float:
    """The expected full score of a row that quits after `step` steps with the running sum g."""
    own = slice(begin[step - 1], begin[step])
    return float(slope[step - 1] * g + np.interp(g, knots[own], offsets[own]))
