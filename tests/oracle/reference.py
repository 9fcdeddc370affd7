"""The oracle: every algorithm in plain NumPy, as the paper writes it. Slow, imports nothing native,
never used as a fallback; the tests hold the native core equal to it, to the last bit. One long file,
so that it can be read from top to bottom beside the paper.

Shapes: F is (N, T) scores, `positive` (N,) full decisions, `order` (T,), thresholds (T,).
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from qwyc.model.ensemble import Ensemble
    from qwyc.policy.fit.stopping import Rule

Array = npt.NDArray[Any]


def optimize_order(
    F: Array,
    base: float,
    positive: Array,
    costs: Array,
    budget: int,
    quit: str,
    split: bool = False,
) -> tuple[Array, Array, Array]:
    """Algorithm 1: greedily take the base model with the smallest evaluation time ratio J_r."""
    T = F.shape[1]
    order: list[int] = []
    lower, upper = np.full(T, -np.inf), np.full(T, np.inf)
    undecided = np.arange(len(F))  # C_{r-1}
    sums = np.full(len(F), base, dtype=np.float64)
    for r in range(T - 1):  # at the last step the full score decides
        if not len(undecided):
            break
        best = (np.inf, -1)
        unused = [k for k in range(T) if k not in order]
        for k in unused:
            s = sums[undecided] + F[undecided, k]
            low, high = optimize_thresholds(s, positive[undecided], budget, quit, split)
            quits = np.sum((s < low) | (s > high))
            J = costs[k] * len(s) / quits if quits else np.inf
            if best[0] > J:
                best = (J, k)
        k = best[1] if best[1] >= 0 else unused[0]  # nobody can quit: keep the natural order
        order.append(k)
        sums[undecided] += F[undecided, k]
        lower[r], upper[r], stays, spent = fit_step(
            sums[undecided], positive[undecided], budget, quit, split
        )
        undecided, budget = undecided[stays], budget - spent
    order += [k for k in range(T) if k not in order]
    return np.array(order, dtype=np.int32), lower, upper


def optimize_thresholds(
    s: Array, y: Array, budget: int, quit: str, split: bool = False
) -> tuple[float, float]:
    """Algorithm 2 for one step: cuts (low, high) that let the most rows quit, low first, with at
    most `budget` of them decided differently. Rows with s < low quit negative, with s > high
    positive; both are order statistics, so no binary search is needed. With `split`, negative quits
    may spend half of the budget only."""
    low, high = -np.inf, np.inf
    if quit in ("both", "negative"):
        low_budget = budget // 2 if split and quit == "both" else budget
        full_positive = np.sort(s[y])
        if len(full_positive) <= low_budget:
            return np.inf, np.inf
        low = full_positive[low_budget]
        budget -= int(np.sum(full_positive < low))
    if quit in ("both", "positive"):
        full_negative = np.sort(s[~y & (s >= low)])[::-1]
        high = full_negative[budget] if len(full_negative) > budget else -np.inf
    return low, high


def fit_step(
    s: Array, y: Array, budget: int, quit: str, split: bool
) -> tuple[float, float, Array, int]:
    """Thresholds of one step, which rows stay undecided, and how much of the budget is spent."""
    lower, upper = place_thresholds(*optimize_thresholds(s, y, budget, quit, split), s)
    quits_negative, quits_positive = s < lower, s > upper
    spent = int(np.sum(quits_negative & y) + np.sum(quits_positive & ~y))
    return lower, upper, ~(quits_negative | quits_positive), spent


def place_thresholds(low: float, high: float, s: Array) -> tuple[float, float]:
    """Thresholds that separate the same rows as the cuts do, halfway to the next sum seen."""
    lower, upper = -np.inf, np.inf
    if low == np.inf:
        lower = np.nextafter(s.max(), np.inf)
    elif (s < low).any():
        lower = _between(s[s < low].max(), low, low)
    if high == -np.inf:
        upper = lower if lower > -np.inf else np.nextafter(s.min(), -np.inf)
    elif (s > high).any():
        upper = _between(high, s[s > high].min(), high)
    return lower, upper


def _between(a: float, b: float, fallback: float) -> float:
    middle = 0.5 * a + 0.5 * b
    return middle if a < middle < b else fallback


def thresholds_along(
    F: Array,
    base: float,
    positive: Array,
    order: Array,
    budget: int,
    quit: str,
    split: bool = False,
) -> tuple[Array, Array]:
    """Algorithm 2 at every step of a given order."""
    T = F.shape[1]
    lower, upper = np.full(T, -np.inf), np.full(T, np.inf)
    undecided = np.arange(len(F))
    sums = np.full(len(F), base, dtype=np.float64)
    for r in range(T - 1):
        if not len(undecided):
            break
        sums[undecided] += F[undecided, order[r]]
        lower[r], upper[r], stays, spent = fit_step(
            sums[undecided], positive[undecided], budget, quit, split
        )
        undecided, budget = undecided[stays], budget - spent
    return lower, upper


def apply_policy(
    F: Array, base: float, full: Array, order: Array, lower: Array, upper: Array, threshold: float
) -> tuple[Array, Array, Array]:
    """Decide every row: (positive, steps, score), each (N,)."""
    N, T = F.shape
    positive, score = full >= threshold, np.array(full, dtype=np.float64)
    steps = np.full(N, T, dtype=np.int32)
    undecided, sums = np.arange(N), np.full(N, base, dtype=np.float64)
    for r in range(T - 1):
        sums[undecided] += F[undecided, order[r]]
        s = sums[undecided]
        quits = (s < lower[r]) | (s > upper[r])
        positive[undecided[quits]] = s[quits] > upper[r]
        steps[undecided[quits]] = r + 1
        score[undecided[quits]] = s[quits]
        undecided = undecided[~quits]
    return positive, steps, score


def correlation_order(
    F: Array, full: Array, threshold: float, costs: Array, width: float, ridge: float
) -> Array:
    """Greedy weighted correlation with the full score, from its definition: each time the base model
    whose addition lets cov(sum, full)^2 / var(sum) grow most per cost."""
    T = F.shape[1]
    w = np.exp(-np.abs(full - threshold) / (width * np.std(full)))
    w /= w.sum()
    D = np.sqrt(w)[:, None] * (F - w @ F)  # weighted and centred
    total = D.sum(axis=1)
    own = ridge * (D**2).sum(axis=0)
    order: list[int] = []

    def score(chosen: list[int]) -> float:
        part = D[:, chosen].sum(axis=1)
        covariance = part @ total
        return float(covariance**2 / (part @ part + own[chosen].sum())) if covariance > 0 else -1

    for _ in range(T):
        now = score(order) if order else 0.0
        unused = [k for k in range(T) if k not in order]
        gains = {
            k: score([*order, k]) - now for k in unused if D[:, [*order, k]].sum(axis=1) @ total > 0
        }
        worth = {k: g / costs[k] if g > 0 else g * costs[k] for k, g in gains.items()}
        order.append(max(worth, key=lambda k: worth[k]) if worth else unused[0])
    return np.array(order)


def sweep(
    F: Array,
    base: float,
    full: Array,
    threshold: float,
    order: Array,
    costs: Array,
    quit: str,
    prices: tuple[float, float],
    lower: Array,
    upper: Array,
    outlooks: dict[int, tuple[float, Array, Array, Array]],
    rule: Rule,
) -> None:
    """One sweep of optimal stopping, backward from the last step but one; lower, upper (T,) and the
    outlook at each step are updated in place. Prices: of a negative and of a positive flip."""
    N, T = F.shape
    G = np.cumsum(np.concatenate([np.full((N, 1), base), F[:, order]], axis=1), axis=1)[:, 1:]
    quits = (lower > G) | (upper < G)
    quits[:, -1] = True
    ends = quits.argmax(axis=1)  # the step at which each row ends under the present thresholds
    negative = full < threshold
    V = np.zeros(N)  # what going on costs a row
    share = rule.outlook_share
    for r in range(T - 2, -1, -1):
        g = G[:, r]
        V += costs[order[r + 1]]
        R = np.flatnonzero(ends >= r)
        if len(R) >= rule.fewest_rows:
            R = R[np.lexsort((R, -ends[R], g[R]))]  # by running sum; equal ones last to end first
            outlooks[r] = _outlook(g[R], full[R], rule)
            p = share * _below(outlooks[r], g[R], threshold) + (1 - share) * negative[R]
            lower[r], upper[r] = _best_cuts(
                g[R], V[R] - prices[0] * (1 - p), V[R] - prices[1] * p, quit
            )
        if r in outlooks:
            p = share * _below(outlooks[r], g, threshold) + (1 - share) * negative
            V = np.where(
                g < lower[r], prices[0] * (1 - p), np.where(g > upper[r], prices[1] * p, V)
            )


def _outlook(g: Array, f: Array, rule: Rule) -> tuple[float, Array, Array, Array]:
    """The full score f given the running sum g (sorted): a line's slope, and in equal-count bins how far
    they are off a line through all rows (drawn to it as if by some rows) and the deviation."""
    n, trend, pooled = len(g), rule.trend_rows, rule.pseudo_rows
    bins = max(1, min(rule.most_bins, n // rule.rows_per_bin))
    new = np.append(np.flatnonzero(_differs(g)), n)  # an edge moves up to the next sum that differs
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
    return slope, centre, mean, np.sqrt((square + pooled * square.sum() / n) / (count + pooled))


def _differs(g: Array) -> Array:
    """Which sums (sorted) are not the one before, but for rounding."""
    return np.append(True, np.diff(g) > 1e-9 * (g[-1] - g[0]))


def _below(outlook: tuple[float, Array, Array, Array], g: Array, threshold: float) -> Array:
    """The probability that a row with running sum g ends below the threshold."""
    slope, centre, mean, deviation = outlook
    m = slope * g + np.interp(g, centre, mean)
    nearest = np.searchsorted((centre[1:] + centre[:-1]) / 2, g, side="right")
    z = (threshold - m) / np.maximum(deviation[nearest], 1e-300)
    grid = np.linspace(-8, 8, 1025)
    phi = np.array([0.5 * (1 + math.erf(x / math.sqrt(2))) for x in grid])
    below: Array = np.interp(z, grid, phi, left=0.0, right=1.0)
    return below


def _best_cuts(g: Array, low_gain: Array, high_gain: Array, quit: str) -> tuple[float, float]:
    """The prefix that quits negative and the suffix that quits positive, chosen together."""
    n = len(g)
    prefix = np.concatenate([[0.0], np.cumsum(low_gain)])
    suffix = np.concatenate([np.cumsum(high_gain[::-1])[::-1], [0.0]])
    inside = ~np.append(_differs(g), True)  # no cut inside ties
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
            else _between(g[low_end - 1], g[low_end], g[low_end])
        )
    if high_begin < n:
        upper = (
            np.nextafter(g[0], -np.inf)
            if high_begin == 0
            else _between(g[high_begin - 1], g[high_begin], g[high_begin - 1])
        )
    return lower, max(lower, upper)


def greedy_mse(F: Array, target: Array, average: bool) -> Array:
    """Each time the base model with the smallest squared error of the partial sum (or average)."""
    T = F.shape[1]
    order: list[int] = []
    total = np.zeros(len(F))
    for r in range(T):
        scale = T / (r + 1) if average else 1.0
        errors = {
            k: np.mean((scale * (total + F[:, k]) - target) ** 2)
            for k in range(T)
            if k not in order
        }
        k = min(errors, key=lambda k: errors[k])
        order.append(k)
        total += F[:, k]
    return np.array(order)


def fan(
    F: Array,
    base: float,
    full: Array,
    new_F: Array,
    new_full: Array,
    order: Array,
    threshold: float,
    gamma: float,
    bin_width: float,
) -> tuple[Array, Array]:
    """Fan's rule fitted on F (N, T) and applied to new_F (M, T): (positive, steps), each (M,)."""
    T = F.shape[1]
    positive, steps = new_full >= threshold, np.full(len(new_F), T, dtype=np.int32)
    g, new_g = np.full(len(F), base), np.full(len(new_F), base)
    open_rows = np.ones(len(new_F), dtype=bool)
    for r in range(T - 1):
        g, new_g = g + F[:, order[r]], new_g + new_F[:, order[r]]
        table: dict[float, tuple[float, float]] = {}
        bins = np.floor(g / bin_width)
        for b in np.unique(bins):
            gap = (g - full)[bins == b]
            table[b] = (float(gap.mean()), float(np.sqrt(np.mean((gap - gap.mean()) ** 2))))
        for i in np.flatnonzero(open_rows):
            b = np.floor(new_g[i] / bin_width)
            if b not in table:
                open_rows[i] = False  # never seen: evaluate in full
                continue
            mu, sigma = table[b]
            if new_g[i] > threshold + mu + gamma * sigma:
                positive[i], steps[i], open_rows[i] = True, r + 1, False
            elif new_g[i] < threshold + mu - gamma * sigma:
                positive[i], steps[i], open_rows[i] = False, r + 1, False
    return positive, steps


def tree_leaves(ensemble: Ensemble, rows: Array) -> Array:
    """The leaf, counted over all trees, that every row reaches in every tree: (N, T)."""
    trees = ensemble.trees
    leaves = np.empty((len(rows), trees.n_trees), dtype=np.int64)
    for t in range(trees.n_trees):
        first, first_leaf = trees.node_begin[t], trees.leaf_begin[t]
        single_leaf = trees.node_begin[t + 1] == first
        at = np.full(len(rows), -1 if single_leaf else 0, dtype=np.int64)  # < 0: at leaf ~at
        while (at >= 0).any():
            for node in np.unique(at[at >= 0]):
                here = at == node
                left = _goes_left(ensemble, first + node, rows[here, trees.feature[first + node]])
                at[here] = np.where(left, trees.left[first + node], trees.right[first + node])
        leaves[:, t] = first_leaf + ~at
    return leaves


def _goes_left(ensemble: Ensemble, node: int, x: Array) -> Array:
    trees, flags = ensemble.trees, int(ensemble.trees.flags[node])
    default_left, categorical, in_set_left, zero_is_missing = (
        bool(flags & b) for b in (1, 2, 4, 8)
    )
    missing = np.isnan(x)
    if zero_is_missing:
        missing |= np.abs(x) <= np.float32(1e-35)
    if categorical:
        words = trees.category_words[trees.category_begin[node] : trees.category_begin[node + 1]]
        members = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
        code = np.trunc(np.where(missing, -1, x))
        known = np.isin(code, members) & (code < 2**24) & (ensemble.truncates | (x >= 0))
        left = known == in_set_left
    else:
        threshold = trees.threshold[node]
        left = x <= threshold if ensemble.less_equal else x < threshold
    return np.where(missing, default_left, left)


def full_score(ensemble: Ensemble, leaves: Array) -> Array:
    """The source library's own sum, (N,), from the leaves (N, T)."""
    values = ensemble.trees.leaf_value[leaves]
    N, T = leaves.shape
    late = ensemble.summation in (3, 4)  # the base comes last
    if ensemble.summation in (0, 4):  # float32, one after the other
        total32 = np.full(N, 0 if late else ensemble.base, dtype=np.float32)
        for t in range(T):
            total32 += values[:, t].astype(np.float32)
        if late:
            total32 = (total32 + np.float64(ensemble.base)).astype(np.float32)
        return total32.astype(np.float64)
    total = np.full(N, 0 if late else ensemble.base, dtype=np.float64)
    other = np.zeros(N)
    for t in range(T):
        total += values[:, t]
        if ensemble.summation == 2:
            other += ensemble.trees.leaf_other[leaves[:, t]]
    total = total + ensemble.base if late else total / ensemble.divisor
    if ensemble.summation == 2:  # two shares: on a tie in the last bits the comparison decides
        other /= ensemble.divisor
        above_half = np.nextafter(0.5, 1.0)
        total = np.where(total > other, np.maximum(total, above_half), np.minimum(total, 0.5))
    return total


def score_matrix(ensemble: Ensemble, leaves: Array) -> Array:
    """What every base model adds to the running sum, (N, T) float32, from the leaves (N, T)."""
    values: Array = (ensemble.trees.leaf_value / ensemble.divisor).astype(np.float32)[leaves]
    return values
