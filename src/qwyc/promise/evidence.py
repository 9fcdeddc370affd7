"""Choosing a policy from a path by evidence.

The path is fitted on some rows of the sample. On the other rows, which had no part in fitting it, its
policies are tested from the cautious end by an exact test, stopping at the first failure; the boldest
that passed is taken. Then P(disagreement on new rows <= alpha) >= confidence, whatever the path, as long
as new rows are drawn like the certifying ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qwyc.errors import InfeasibleError, OptionError
from qwyc.policy.counts import Counts, PathCounts
from qwyc.policy.filter_path import ClassPath, FilterPath
from qwyc.policy.filter_policy import ClassPolicy, FilterPolicy
from qwyc.policy.lead_path import LeadPath
from qwyc.policy.lead_policy import LeadPolicy
from qwyc.policy.path import Path
from qwyc.policy.policy import Policy
from qwyc.policy.rule import StoppingRule
from qwyc.promise.budget import Budget, Differing, TotalBudget
from qwyc.promise.certificate import Certificate
from qwyc.promise.windows import PathWindows
from qwyc.target.many_classes import ManyClasses
from qwyc.target.two_classes import TwoClasses


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a path's policies did on rows that had no part in fitting them."""

    counts: PathCounts
    fit_rows: int
    fit_differences: npt.NDArray[
        np.int64
    ]  # (K, n_differences) on the fitting rows, which are optimistic
    seed: int
    sample: str  # digest of the sample, of which the fitting rows are a part
    groups: int = 0  # held out, where `groups` were given
    doubts: tuple[str, ...] = ()  # why nothing is promised, as clauses
    windows: PathWindows | None = None  # where rows have an order; `counts` are of the latest then
    left_out: int = 0  # rows that are not counted, since the model refuses a value of theirs
    recertified: str | None = None  # as in a certificate

    def passes(self, k: int, budget: Budget, confidence: float) -> bool:
        """Whether the k-th policy passes: by the counts, and by what was observed in every window."""
        if self.windows is not None and not self.windows.within(budget, k):
            return False
        return budget.passes(self.counts[k], confidence)

    def boldest(self, budget: Budget, confidence: float) -> int:
        """Fixed-sequence testing from the cautious end: the policy before the first that fails."""
        n = len(self.counts)
        failed = next((k for k in range(n) if not self.passes(k, budget, confidence)), n)
        if failed == 0:
            raise too_little_evidence(budget, self.counts[0], confidence)
        return failed - 1

    def boldest_at_each(
        self, shares: Iterable[float], confidence: float, target: Differing | None = None
    ) -> Iterator[tuple[float, int]]:
        """Each share that can be certified, and the policy that is then taken. `target` says what
        differs, where it is not decisions between the classes that were counted."""
        classes = len(self.counts.by_class)
        if target is None:
            target = TwoClasses if classes == TwoClasses.n_classes else ManyClasses(classes)
        for share in shares:
            with suppress(InfeasibleError):
                yield share, self.boldest(TotalBudget(share, target), confidence)


def too_little_evidence(
    budget: Budget, counts: Counts, confidence: float, way: str = ""
) -> InfeasibleError:
    """The error for counts that cannot show a budget even where nothing differs. `way` is the way out."""
    what = "rows" if counts.groups is None else "groups"
    needs = budget.shortfall(counts, confidence, budget.target.differences)
    again = "Pass more {} to optimize, or certify a classifier again on more {} with recertify"
    if budget.tolerance is not None:  # recertify takes classifiers only
        again = "Optimise the model again, on more {}"
    way = way or again.format(what, what)
    return InfeasibleError(
        f"{budget.named} at confidence {confidence:g} needs {needs or f'more certifying {what}'}. "
        f"{way}, or use a larger share."
    )


@dataclass(frozen=True, eq=False)
class Choices:
    """A path and the evidence about it: what the policy for a budget is chosen from."""

    path: Path | ClassPath
    evidence: Evidence

    @property
    def policies(self) -> int:
        """How many policies there are to choose from; the first never quits, so it needs no evidence."""
        return max(len(self.path) - 1, 1)

    def index_of(self, policy: StoppingRule) -> int:
        """Which member of the path a policy is; OptionError if it is not on it."""
        path = self.path
        if isinstance(path, LeadPath) and isinstance(policy, LeadPolicy):
            return path.index_of(policy)
        if isinstance(path, FilterPath) and isinstance(policy, FilterPolicy):
            return path.index_of(policy)
        if isinstance(path, Path) and isinstance(policy, Policy):
            return path.index_of(policy)
        raise OptionError("the policy is not on this path")

    def choose(
        self, budget: Budget, confidence: float, headroom: int = 0
    ) -> tuple[Policy | ClassPolicy, Certificate]:
        """The boldest policy that passes, and its certificate. With `headroom`, the boldest that is also
        expected to pass a later verification on that many rows."""
        tested = budget
        if headroom:
            tested = budget.with_room(headroom, confidence, self.evidence.counts[0])
        try:
            k = self.evidence.boldest(tested, confidence)
        except InfeasibleError as error:
            if not headroom:
                raise
            raise InfeasibleError(
                f"with headroom for a verification on {headroom:,} rows, {error} A larger headroom needs "
                "less room."
            ) from None
        return self.member(k, budget, confidence, headroom)

    def member(
        self, k: int, budget: Budget, confidence: float, headroom: int = 0
    ) -> tuple[Policy | ClassPolicy, Certificate]:
        """The k-th policy and its certificate, for a budget at which it passes."""
        seen = self.evidence
        return self.path[k], Certificate(
            budget=budget,
            confidence=confidence,
            counts=seen.counts[k],
            full_cost=float(self.path.costs.sum()),
            how="held-out",
            fit_rows=seen.fit_rows,
            seed=seen.seed,
            sample=seen.sample,
            groups=seen.groups,
            policies=self.policies,
            quit=self.path[k].quit,
            headroom=headroom,
            doubts=seen.doubts,
            windows=() if seen.windows is None else seen.windows[k],
            left_out=seen.left_out,
            recertified=seen.recertified,
        )
