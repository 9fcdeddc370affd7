"""What `optimize` fits to a sample: policies for one score of two classes, or for a score of each of K
classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError
from qwyc.model.class_trees import ClassTreeModels
from qwyc.model.ensemble import Ensemble
from qwyc.policy.costs import Costs
from qwyc.policy.filter_path import ClassPath
from qwyc.policy.filter_policy import ClassPolicy
from qwyc.policy.fit.filters import fit_filter, fit_filter_path
from qwyc.policy.fit.lead_problem import LeadProblem
from qwyc.policy.fit.leads import fit_path_of_leads, search
from qwyc.policy.fit.orders import fixed_order
from qwyc.policy.fit.paper import fit_thresholds
from qwyc.policy.fit.problem import Problem
from qwyc.policy.fit.stopping import fit_path
from qwyc.policy.lead_path import LeadPath
from qwyc.policy.path import Path
from qwyc.policy.policy import Policy
from qwyc.policy.scores import ScoreMatrix
from qwyc.promise.budget import Budget
from qwyc.promise.proof import provable_filter, provable_lead_policy, provable_policy
from qwyc.runtime.progress import ProgressOption, progress_reporter
from qwyc.target.many_classes import ManyClasses
from qwyc.target.target import Decided
from qwyc.target.two_classes import TwoClasses


@dataclass(frozen=True, eq=False)
class Fitting:
    """The scores of some rows, and what policies are fitted with."""

    scores: ScoreMatrix  # of finite scores, one row at least
    threshold: float  # of two classes
    costs: Costs
    quit: str
    threads: int | None
    only: int | None = None  # index of the class of a filter, of K classes
    by_time: bool = True  # costs stand for time, so that evaluating rows anew counts
    # Whether classes may be ruled out: each has base models of its own, and time counts, not steps.
    rule_out: bool = False

    @cached_property
    def target(self) -> TwoClasses | ManyClasses:
        """What the full scores decide here; the threshold need not be the matrix's own."""
        return self.scores.target if self.scores.by_class else TwoClasses(self.threshold)

    @cached_property
    def decided(self) -> Decided:
        """Full decisions, (N,)."""
        return self.target.decide(self.scores.full)

    def take(self, rows: npt.NDArray[np.intp]) -> Fitting:
        """The same for some of the rows."""
        return replace(self, scores=self.scores.take(rows))

    def path(self, budget: Budget, progress: ProgressOption) -> Path | ClassPath:
        """Policies from "never quit" to bold, by optimal stopping. What the budget allows less often is
        avoided more."""
        by_class = self.target.count_classes(self.decided)
        weights = budget.penalty_weights(by_class.tolist())
        if not self.scores.by_class:
            return _path(self._problem(self.scores), weights, progress)
        leads = LeadProblem.of(self.scores, self.costs, self.threads)
        if self.only is not None:
            return fit_filter_path(
                leads, self.only, order="auto", seed=0, progress=progress, anew=self.by_time
            )
        if self.target.n_classes == TwoClasses.n_classes:
            between = _path(self._problem(_difference(self.scores)), weights[::-1], progress)
            return _on_leads(between, self.scores)
        return fit_path_of_leads(
            leads,
            order="auto",
            seed=0,
            progress=progress,
            weights=weights,
            rule_out=self.rule_out,
        )

    def published(
        self, method: str, budget: Budget, progress: ProgressOption
    ) -> Policy | ClassPolicy:
        """Algorithm 1 ("joint"), or Algorithm 2 along the model's own order ("natural"): the budget holds
        on these rows."""
        allowed = budget.rows_allowed(len(self.scores.full))
        if self.scores.by_class:
            leads = LeadProblem.of(self.scores, self.costs, self.threads)
            if self.only is not None:
                if method == "joint":
                    raise OptionError(
                        "method='joint' is not for a filter for one class: its thresholds need an order "
                        "first; use method='natural' or 'auto'"
                    )
                return fit_filter(
                    leads,
                    self.only,
                    allowed,
                    order=method,
                    rule="threshold",
                    seed=0,
                    progress=progress,
                )
            along = None if method == "joint" else np.arange(leads.n_models, dtype=np.int32)
            return search(leads, along, allowed, progress=progress)
        problem = self._problem(self.scores)
        order = None if method == "joint" else fixed_order(problem, method)
        return fit_thresholds(problem, order, allowed, progress=progress)

    def _problem(self, scores: ScoreMatrix) -> Problem:
        beta = scores.threshold if self.scores.by_class else self.threshold
        return Problem(scores, beta, self.costs, self.quit, self.threads)


def has_trees_by_class(ensemble: Ensemble) -> bool:
    """Whether base models have a tree for each class, of which some can be left out."""
    models = ensemble.base_models
    return isinstance(models, ClassTreeModels) and not models.has_vectors


def proven_policy(
    ensemble: Ensemble, *, threshold: float, costs: Costs, quit: str, only: int | None = None
) -> Policy | ClassPolicy:
    """The policy that bounds on what base models can add allow: quits that no input can prove wrong."""
    models = ensemble.base_models
    bounds = models.bounds()
    if bounds is None:
        raise OptionError(
            f"alpha=0 rests on bounds on what base models can add, and {models.description} have none: "
            "use a small alpha instead"
        )
    if not ensemble.by_class:
        return provable_policy(bounds, threshold=threshold, costs=costs, quit=quit)
    if models.ties.kind not in ("scores", "softmax") and not np.isfinite(bounds.margin):
        raise OptionError(
            "alpha=0 cannot be proven for this model: it compares probabilities, which may be equal for "
            "scores that differ by any amount. Use a small alpha instead"
        )
    if only is not None:
        return provable_filter(bounds, only=only, costs=costs, ties=models.ties)
    return provable_lead_policy(bounds, costs=costs, ties=models.ties)


def _path(problem: Problem, weights: tuple[float, ...], progress: ProgressOption) -> Path:
    with progress_reporter(progress, "Finding the order", 0):
        order = fixed_order(problem, "correlation")
    return fit_path(problem, order, weights=weights, progress=progress)


def _difference(scores: ScoreMatrix) -> ScoreMatrix:
    """Scores of two classes as one score, second class less first: the method of two classes on it chooses
    both thresholds of a step together. Ties are decided as the scores decide them."""
    least = float(
        np.finfo(np.float64).tiny
    )  # the threshold: the first class wins where both are equal
    full = scores.full[:, 1] - scores.full[:, 0]
    second = scores.target.decide(scores.full) == 1
    full = np.where(second, np.maximum(full, least), np.minimum(full, 0.0))
    values = (scores.by_model[:, :, 1] - scores.by_model[:, :, 0]).T  # (N, T)
    return ScoreMatrix(values, float(scores.base[1] - scores.base[0]), least, full, scores.average)


def _on_leads(path: Path, scores: ScoreMatrix) -> LeadPath:
    """The same thresholds on the lead of either class. A class quits only where it leads, so thresholds
    beyond 0 become 0."""
    lead = np.stack(
        [np.maximum(-path.lower, 0.0), np.maximum(path.upper, 0.0)], axis=2
    )  # (M, T, 2)
    lead[:, -1] = np.inf  # complete: the full scores decide
    return LeadPath(path.order, lead, path.penalty, path.costs, scores.ties)
