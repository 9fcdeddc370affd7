"""alpha = 0: quits that no input whatsoever can prove wrong.

After r base models a row's full score is its running sum plus what the other base models still add, and
each of them adds at least and at most what its bounds say. A row quits once even the extreme cannot
carry it across the threshold. Every rounding between the running sum and the source library's own sum
is bounded and added to the margin, so the statement is about the numbers that are computed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError
from qwyc.model.base_models import Bounds
from qwyc.policy.costs import Costs, MarginalCosts
from qwyc.policy.policy import Policy


def provable_policy(bounds: Bounds, *, threshold: float, costs: Costs, quit: str) -> Policy:
    """The policy that bounds allow, widest ranges first (per cost). It needs no sample."""
    least, most, margin = bounds.least, bounds.most, bounds.margin
    if not (np.isfinite(least).all() and np.isfinite(most).all() and np.isfinite(margin)):
        raise OptionError(
            "alpha=0 rests on bounds on sums of base models, but sums of this model's base models may "
            "overflow, which no bound covers: pass rows and a small alpha above 0"
        )
    order = widest_first(most - least, costs)
    # What the base models after step r add at least and at most, (T,); nothing after the last.
    still_least = np.append(np.cumsum(least[order][::-1])[::-1][1:], 0.0)
    still_most = np.append(np.cumsum(most[order][::-1])[::-1][1:], 0.0)
    lower, upper = threshold - still_most - margin, threshold - still_least + margin
    lower[-1], upper[-1] = -np.inf, np.inf  # complete: the full score decides
    if quit == "negative":
        upper[:] = np.inf
    elif quit == "positive":
        lower[:] = -np.inf
    return Policy(order, lower, upper, threshold, costs.along(order))


def widest_first(width: npt.NDArray[np.float64], costs: Costs) -> npt.NDArray[np.int32]:
    """Each time the base model whose range is widest per cost that it adds to those before it; lowest
    index first on ties."""
    if not len(costs.parts):
        return np.argsort(-width / costs.own, kind="stable").astype(np.int32)
    marginal, unused = MarginalCosts(costs), np.ones(len(width), dtype=bool)
    order = np.empty(len(width), dtype=np.int32)
    for r in range(len(width)):
        order[r] = np.argmax(np.where(unused, width / marginal.now, -np.inf))
        unused[order[r]] = False
        marginal.choose(order[r])
    return order
