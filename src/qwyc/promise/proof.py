"""alpha = 0: quits that no input whatsoever can prove wrong.

After r base models a row's full score is its running sum plus what the other trees still add, and
each adds at least its smallest and at most its largest leaf. A row quits once even the extreme cannot
carry it across the threshold. Every rounding between the running sum and the source library's own
sum is bounded and added to the margin, so the statement is about the numbers that are computed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qwyc.model.ensemble import Ensemble, Summation
from qwyc.policy.policy import Policy

HALF_ULP_32, HALF_ULP_64 = 2.0**-24, 2.0**-53  # relative error of one rounding
SMALLEST_32 = 2.0**-149  # absolute error of one rounding near zero


def provable_policy(
    ensemble: Ensemble, *, threshold: float, costs: npt.NDArray[np.float64], quit: str
) -> Policy:
    """The policy that bounds allow, widest ranges first (per cost). It needs no sample."""
    trees = ensemble.trees
    step = (trees.leaf_value / ensemble.divisor).astype(np.float32).astype(np.float64)
    least = np.minimum.reduceat(step, trees.leaf_begin[:-1])  # (T,) of what a tree adds
    most = np.maximum.reduceat(step, trees.leaf_begin[:-1])
    order = np.argsort(-(most - least) / costs, kind="stable").astype(np.int32)
    margin = rounding_margin(ensemble)
    # What the trees after step r add at least and at most, (T,); nothing after the last.
    still_least = np.append(np.cumsum(least[order][::-1])[::-1][1:], 0.0)
    still_most = np.append(np.cumsum(most[order][::-1])[::-1][1:], 0.0)
    lower, upper = threshold - still_most - margin, threshold - still_least + margin
    lower[-1], upper[-1] = -np.inf, np.inf  # complete: the full score decides
    if quit == "negative":
        upper[:] = np.inf
    elif quit == "positive":
        lower[:] = -np.inf
    return Policy(order, lower, upper, threshold, costs)


def rounding_margin(ensemble: Ensemble) -> float:
    """More than running sum + exact remainder and the source's full score can differ by, for any row."""
    trees, T = ensemble.trees, ensemble.n_models
    size = np.maximum.reduceat(np.abs(trees.leaf_value), trees.leaf_begin[:-1])  # (T,)
    total = (abs(ensemble.base) + float(size.sum())) / ensemble.divisor  # no partial sum is larger
    narrow = ensemble.summation in (Summation.FLOAT32, Summation.FLOAT32_LATE)
    # The library's own additions.
    source = (T + 2) * (HALF_ULP_32 if narrow else HALF_ULP_64) * total
    ours = (T + 2) * HALF_ULP_64 * total  # running sums, and the sums of bounds
    steps = HALF_ULP_32 * total + T * SMALLEST_32  # scores rounded to float32
    shares = 0.0
    # Shares are compared with each other, and add up to about 1.
    if ensemble.summation == Summation.SHARES:
        off = np.abs(trees.leaf_value + trees.leaf_other - 1.0)
        shares = float(np.maximum.reduceat(off, trees.leaf_begin[:-1]).sum()) / ensemble.divisor
        shares += 4 * (T + 2) * HALF_ULP_64
    return 2.0 * (source + 2 * ours + steps + shares)
