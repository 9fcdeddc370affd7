"""Policies on the lead of many classes, and how they are fitted. Twin of native/core/apply_leads.cpp,
native/fit/lead_stopping.cpp and native/fit/lead_search.cpp, and of src/qwyc/policy/fit/lead_orders.py.

Shapes: F is (N, T, K) scores, `base` (K,), `full` (N, K) full scores, `order` (T,). After a step, each row
has a leader, the class with the largest running sum, and its lead over the runner-up."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from oracle.between import between
from oracle.costs import Shared, marginal_cost
from oracle.stopping import ScoreForecast, differs, fit_forecast

Array = npt.NDArray[Any]


def leaders(sums: Array) -> tuple[Array, Array]:
    """The leader of each row and its lead, each (N,), from running sums (N, K)."""
    second, best = np.sort(sums, axis=1)[:, -2:].T
    return np.argmax(sums, axis=1), best - second


def running_sums(F: Array, base: Array, order: Array) -> Array:
    """(N, T, K), added one after the other."""
    start = np.broadcast_to(np.asarray(base, float), (len(F), 1, F.shape[2]))
    return np.cumsum(np.concatenate([start, F[:, order]], axis=1), axis=1)[:, 1:]


def apply_leads(
    F: Array, base: Array, full: Array, order: Array, lead: Array, drop: Array | None = None
) -> tuple[Array, Array, Array]:
    """Decide every row by thresholds `lead` (T, K): labels (N,), steps (N,) and scores (N, K). If a row
    goes on, classes that are more than `drop` (T,) behind are ruled out."""
    N, T = F.shape[:2]
    label, score = full.argmax(axis=1), np.array(full, dtype=np.float64)
    steps, open_ = np.full(N, T), np.ones(N, dtype=bool)
    sums = np.array(np.broadcast_to(np.asarray(base, float), full.shape))
    for r in range(T - 1):
        sums += F[:, order[r]]
        leader, ahead = leaders(sums)
        quits = open_ & (ahead > lead[r, leader])
        label[quits], steps[quits], score[quits] = leader[quits], r + 1, sums[quits]
        open_ &= ~quits
        if drop is not None:
            sums[sums.max(axis=1, keepdims=True) - sums > drop[r]] = -np.inf
    return label, steps, score


def lead_sweep(
    F: Array,
    base: Array,
    full: Array,
    order: Array,
    costs: Array,
    pool: Array,
    weight: Array,
    penalty: float,
    thresholds: Array,
    forecasts: dict[tuple[int, int], ScoreForecast],
    settings: Any,
) -> None:
    """One sweep backward from the last step but one. It updates `thresholds` (T, pools) and the forecast of
    each step and pool in place. Leaders of one `pool` (K,) share thresholds; a disagreement weighs
    weight[k] (K,) where the full decision is k. `settings` as in oracle.sweep."""
    N, T = F.shape[:2]
    sums, rows = running_sums(F, base, order), np.arange(N)
    states = [leaders(sums[:, r]) for r in range(T - 1)]
    quits = np.array([ahead > thresholds[r, pool[k]] for r, (k, ahead) in enumerate(states)])
    ends = np.vstack([quits.reshape(T - 1, N), np.ones(N, dtype=bool)]).argmax(axis=0)
    winner, share = full.argmax(axis=1), settings.forecast_share
    V = np.zeros(N)  # the cost of going on, for each row
    for r in range(T - 2, -1, -1):
        V += costs[order[r + 1]]
        leader, ahead = states[r]
        others = np.array(full)
        others[rows, leader] = -np.inf
        full_lead = full[rows, leader] - others.max(axis=1)
        lost = np.where(leader != winner, weight[winner], 0.0)
        for g in range(thresholds.shape[1]):
            mine = pool[leader] == g
            R = np.flatnonzero(mine & (ends >= r))
            R = R[np.lexsort((R, ahead[R]))]
            if len(R) >= settings.fewest_rows:
                forecasts[r, g] = fit_forecast(ahead[R], full_lead[R], settings)
            if (r, g) not in forecasts:
                continue
            # What a wrong decision loses here on average, with one more loss of mean weight.
            wrong = R[leader[R] != winner[R]]
            mean_lost = (np.mean(weight[winner]) + weight[winner[wrong]].sum()) / (1 + len(wrong))
            p = share * (mean_lost * forecasts[r, g].below(ahead, 0.0)) + (1 - share) * lost
            if len(R) >= settings.fewest_rows:
                thresholds[r, g] = best_threshold(ahead[R], V[R] - penalty * p[R])
            V = np.where(mine & (ahead > thresholds[r, g]), penalty * p, V)


def best_threshold(ahead: Array, gain: Array) -> float:
    """The threshold from the sorted leads (n,) and the gain of each row, (n,), if it quits: a suffix
    does."""
    n = len(ahead)
    suffix = np.append(np.cumsum(gain[::-1])[::-1], 0.0)
    suffix[np.flatnonzero(~differs(ahead))] = -np.inf  # no cut between equal leads
    begin = int(np.flatnonzero(suffix == suffix.max())[-1])  # of equal gains, the fewest rows
    if begin == n:
        return np.inf
    if begin == 0:
        return max(float(np.nextafter(ahead[0], -np.inf)), 0.0)
    return between(ahead[begin - 1], ahead[begin], ahead[begin - 1])


def search_leads(
    F: Array,
    base: Array,
    winner: Array,
    costs: Array,
    budget: int,
    order: Array | None = None,
    shared: Shared | None = None,
) -> tuple[Array, Array]:
    """Algorithm 1 on leads, or Algorithm 2 at every step of a given order: (order, thresholds), each
    (T,)."""
    T = F.shape[1]
    given, chosen = order, list[int]()
    thresholds = np.full(T, np.inf)
    undecided = np.arange(len(F))
    sums = np.broadcast_to(np.asarray(base, float), (len(F), F.shape[2]))
    for r in range(T - 1):
        if not len(undecided):
            break
        unused = [t for t in range(T) if t not in chosen]
        best = (np.inf, unused[0])  # where no row can quit: the natural order
        for t in unused if given is None else []:
            leader, ahead = leaders(sums[undecided] + F[undecided, t])
            quits = np.sum(ahead > lead_cut(ahead[leader != winner[undecided]], budget))
            J = marginal_cost(costs, shared, chosen, t) * len(ahead) / quits if quits else np.inf
            best = min(best, (J, t))
        t = best[1] if given is None else int(given[r])
        chosen.append(t)
        sums = sums + F[:, t]
        leader, ahead = leaders(sums[undecided])
        wrong = leader != winner[undecided]
        cut = lead_cut(ahead[wrong], budget)
        above = ahead[ahead > cut]
        if len(above):
            thresholds[r] = (
                0.0 if np.sum(wrong) <= budget else between(cut, above.min(), fallback=cut)
            )
        quits = ahead > thresholds[r]
        budget -= int(np.sum(wrong & quits))
        undecided = undecided[~quits]
    rest = range(T) if given is None else given
    chosen += [int(t) for t in rest if t not in chosen]
    return np.array(chosen, dtype=np.int32), thresholds


def lead_cut(wrong: Array, budget: int) -> float:
    """Algorithm 2: rows with a lead above it may quit; `wrong` are the leads of those decided
    differently."""
    return float(np.sort(wrong)[::-1][budget]) if len(wrong) > budget else 0.0


def pairs(F: Array, base: Array, full: Array) -> tuple[Array, Array]:
    """Scores (2N, T) of the full decision less those of the runner-up, and their full scores (2N,): each
    row once with either sign, so that neither class of a pair comes first."""
    ranked = np.argsort(-full, axis=1, kind="stable")
    rows, first, second = np.arange(len(F)), ranked[:, 0], ranked[:, 1]
    Z = F[rows, :, first].astype(float) - F[rows, :, second]
    distance = full[rows, first] - full[rows, second]
    return np.concatenate([Z, -Z]), np.concatenate([distance, -distance])
