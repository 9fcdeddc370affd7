"""Other ways to evaluate fewer base models, to compare with: the paper's, Fan's, and smaller ensembles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.policy.fan_policy import FanPolicy
from qwyc.policy.filter_policy import FilterPolicy
from qwyc.policy.fit.api import fit_fan_path, fit_policy
from qwyc.policy.lead_policy import LeadPolicy
from qwyc.policy.policy import Policy
from qwyc.policy.scores import ScoreMatrix
from qwyc.promise.certified import Certified
from qwyc.runtime.progress import ProgressOption, progress_reporter

ALPHAS = (0.002, 0.005, 0.01, 0.02, 0.05)
GAMMAS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)  # of Fan's rule; the larger, the more cautious
SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75)  # of the base models, in smaller ensembles
FIT_ROWS = 4000  # that the others are fitted on, at most
FEWEST_ROWS = 200  # to fit on
# Rows x base models^2 x scores of Algorithm 1: a second or two, for one score and for several.
MOST_WORK = (2e9, 4e8)

AnyPolicy = Policy | FanPolicy | LeadPolicy | FilterPolicy


@dataclass(frozen=True)
class Rival:
    """One way at several operating points."""

    name: str
    policies: list[AnyPolicy]
    labels: list[str]  # of the policies, such as "alpha 0.5%"


def rows_to_fit(n: int) -> int:
    """On how many of n rows the others are fitted: at most half, and 0 where there are too few."""
    rows = min(n // 2, FIT_ROWS)
    return rows if rows >= FEWEST_ROWS else 0


def rows_for_algorithm_1(certified: Certified, n: int) -> int:
    """On how many of n rows Algorithm 1, whose work grows fastest, is fitted; 0: it would take too long."""
    models = certified.ensemble.base_models
    work = MOST_WORK[models.n_scores > 1] / (models.n_models**2 * models.n_scores)
    rows = min(n, int(work))
    return rows if rows >= FEWEST_ROWS else 0


def fit_rivals(
    certified: Certified,
    scores: ScoreMatrix,
    labels: npt.NDArray[np.int64] | None,
    *,
    threads: int | None,
    progress: ProgressOption,
) -> list[Rival]:
    """The others, fitted on these scores. Fan's rule takes base models in the order of their own errors,
    as its authors do, where there are labels (N,); otherwise in the model's order."""
    policy = certified.policy
    if isinstance(policy, FilterPolicy):  # the others have no filter of one class
        return []
    options: dict[str, Any] = {"costs": policy.costs, "threads": threads, "progress": False}
    if isinstance(policy, Policy):
        quit = certified.choices.path[-1].quit if certified.choices else policy.quit
        options |= {"threshold": policy.threshold, "quit": "both" if quit == "never" else quit}
    found: list[Rival] = []
    with progress_reporter(progress, "Fitting others", 2 * len(ALPHAS) + 1) as report:
        few = rows_for_algorithm_1(certified, len(scores.full))
        ways = [("natural order", "natural", scores)]
        if few:
            some = scores if few == len(scores.full) else scores.take(np.arange(few))
            ways.insert(0, ("QWYC* (the paper)", "joint", some))
        for name, order, rows in ways:
            policies: list[AnyPolicy] = []
            for alpha in ALPHAS:
                policies.append(fit_policy(rows, alpha=alpha, order=order, **options))
                report(len(ALPHAS) * len(found) + len(policies))
            found.append(Rival(name, policies, [f"alpha {100 * a:g}%" for a in ALPHAS]))
        if isinstance(policy, Policy):
            order = "natural" if labels is None else "individual-mse"
            fan = fit_fan_path(scores, GAMMAS, order=order, labels=labels, **options)
            found.append(Rival("Fan", list(fan), [f"gamma {gamma:g}" for gamma in GAMMAS]))
        report(2 * len(ALPHAS) + 1)
    return [*found, smaller_ensembles(certified, scores)]


def smaller_ensembles(certified: Certified, scores: ScoreMatrix) -> Rival:
    """The first n base models, which decide every row: as policies whose thresholds at step n leave no row
    undecided."""
    policy, T = certified.policy, certified.policy.n_models
    assert not isinstance(policy, FilterPolicy)
    sizes = sorted({min(max(1, round(share * T)), T - 1) for share in SHARES} - {0})
    order = np.arange(T, dtype=np.int32)
    made: list[AnyPolicy] = []
    for n in sizes:
        if isinstance(policy, LeadPolicy):
            lead = np.full(policy.lead.shape, np.inf)
            lead[n - 1] = 0.0
            made.append(LeadPolicy(order, lead, policy.costs, policy.ties))
            continue
        limit = policy.threshold
        if scores.average:  # a mean of n votes, and not of T
            limit = float(scores.base + (limit - scores.base) * n / T)
        lower = np.full(T, -np.inf)
        upper = np.full(T, np.inf)
        lower[n - 1] = upper[n - 1] = np.nextafter(limit, -np.inf)
        made.append(Policy(order, lower, upper, policy.threshold, policy.costs))
    return Rival("smaller ensembles", made, [f"the first {n:,}" for n in sizes])
