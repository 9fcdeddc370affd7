"""alpha = 0: quits that no input whatsoever can prove wrong.

After r base models a row's full score is its running sum plus what the other base models still add, and
each of them adds at least and at most what its bounds say. A row quits once even the extreme cannot
carry it across the threshold. Every rounding between the running sum and the source library's own sum
is bounded and added to the margin, so the statement is about the numbers that are computed.

Where each of K classes has a score, a row quits for the class that leads once no other class can catch up:
its lead exceeds what the others may still gain on it. A filter for one class lets a row leave once some
other class is so far ahead that this class cannot catch up."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError
from qwyc.model.base_models import Bounds
from qwyc.policy.costs import Costs, MarginalCosts
from qwyc.policy.filter_policy import FilterPolicy
from qwyc.policy.lead_policy import LeadPolicy
from qwyc.policy.policy import Policy
from qwyc.target.ties import BY_SCORES, Ties

Floats = npt.NDArray[np.float64]


def provable_policy(bounds: Bounds, *, threshold: float, costs: Costs, quit: str) -> Policy:
    """The policy that bounds allow, widest ranges first (per cost). It needs no sample."""
    least, most, margin = _finite(bounds)
    order = widest_first(most - least, costs)
    still_least, still_most = _still_added(least, order), _still_added(most, order)
    lower, upper = threshold - still_most - margin, threshold - still_least + margin
    lower[-1], upper[-1] = -np.inf, np.inf  # complete: the full score decides
    if quit == "negative":
        upper[:] = np.inf
    elif quit == "positive":
        lower[:] = -np.inf
    return Policy(order, lower, upper, threshold, costs.along(order))


def provable_lead_policy(bounds: Bounds, *, costs: Costs, ties: Ties = BY_SCORES) -> LeadPolicy:
    """The policy for K classes that bounds (T, K) allow, those base models first by which a class can gain
    most on another (per cost). It needs no sample. The margin of the bounds is that of one class."""
    least, most, margin = _of_classes(bounds)
    order = widest_first((_largest_other(most) - least).max(axis=1), costs)
    # What any other class still gains on class k after step r at most, (T, K).
    gain = _largest_other(_still_added(most, order)) - _still_added(least, order)
    lead = np.maximum(_beyond(gain, least, most, margin), 0.0)
    lead[-1] = np.inf  # complete: the full scores decide
    return LeadPolicy(order, lead, costs.along(order), ties)


def provable_filter(
    bounds: Bounds, *, only: int, costs: Costs, ties: Ties = BY_SCORES
) -> FilterPolicy:
    """The filter for one class that bounds (T, K) allow, those base models first by which the class can
    gain most on another (per cost). It needs no sample."""
    least, most, margin = _of_classes(bounds)
    others = np.arange(least.shape[1]) != only
    order = widest_first(most[:, only] - least[:, others].min(axis=1), costs)
    # What the class still gains on any other one after step r at most, (T,).
    slowest = _still_added(least, order)[:, others].min(axis=1)
    gap = _beyond(_still_added(most, order)[:, only] - slowest, least, most, margin)
    gap[-1] = np.inf  # complete: the full scores decide
    return FilterPolicy(order, gap, costs.along(order), only, least.shape[1], ties)


def _of_classes(bounds: Bounds) -> tuple[Floats, Floats, float]:
    """Bounds (T, K) and their margin, checked."""
    least, most, margin = _finite(bounds)
    if least.ndim != 2 or least.shape != most.shape or least.shape[1] < 2:
        raise OptionError(
            "bounds must be base models by classes, least and most alike, for two classes or more; got "
            f"shapes {least.shape} and {most.shape}"
        )
    if not (least <= most).all():
        raise OptionError("a base model adds at least `least` and at most `most`, so least <= most")
    return least, most, margin


def _beyond(gain: Floats, least: Floats, most: Floats, margin: float) -> Floats:
    """How far a class must be ahead so that another, which may gain as much, cannot catch up. Both have the
    margin. The rest covers the rounding of their distance and of these sums."""
    unit = float(np.finfo(np.float64).eps)
    slack = unit * 2 * (len(gain) + 2) * float(np.sum(np.abs(least) + np.abs(most)))
    far: Floats = gain + 2 * margin + slack
    return far + 4 * unit * np.abs(far)


def _finite(bounds: Bounds) -> tuple[Floats, Floats, float]:
    """The bounds and their margin, if sums within them are numbers."""
    least, most, margin = bounds.least, bounds.most, bounds.margin
    if not (np.isfinite(least).all() and np.isfinite(most).all() and np.isfinite(margin)):
        raise OptionError(
            "alpha=0 rests on bounds on sums of base models, but sums of this model's base models may "
            "overflow, which no bound covers: pass rows and a small alpha above 0"
        )
    return least, most, margin


def _still_added(bound: Floats, order: npt.NDArray[np.int32]) -> Floats:
    """What the base models after each step add at least, or at most; nothing after the last."""
    after = np.cumsum(bound[order][::-1], axis=0)[::-1][1:]
    return np.concatenate([after, np.zeros((1, *bound.shape[1:]))])


def _largest_other(values: Floats) -> Floats:
    """For each entry of a row of (T, K) the largest of the other entries."""
    first = np.argmax(values, axis=1)
    second, best = np.sort(values, axis=1)[:, -2:].T
    is_first = first[:, np.newaxis] == np.arange(values.shape[1])
    return np.asarray(np.where(is_first, second[:, np.newaxis], best[:, np.newaxis]))


def widest_first(width: Floats, costs: Costs) -> npt.NDArray[np.int32]:
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
