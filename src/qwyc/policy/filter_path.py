"""FilterPath: filters for one class along one order, from cautious to bold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError
from qwyc.policy.filter_policy import FilterPolicy
from qwyc.policy.lead_path import LeadPath
from qwyc.policy.path import AnyPath
from qwyc.target.many_classes import ManyClasses
from qwyc.target.ties import BY_SCORES, Ties


@dataclass(frozen=True, eq=False)
class FilterPath(AnyPath):
    """M filters for one of K classes, from the most cautious, which no row leaves, to the boldest."""

    order: npt.NDArray[np.int32]  # (T,)
    gap: npt.NDArray[np.float64]  # (M, T)
    penalty: npt.NDArray[np.float64]  # (M,) of a disagreement, in mean costs of a base model
    costs: npt.NDArray[np.float64]  # (T,) along the order
    only: int  # index of the class
    n_classes: int  # K
    ties: Ties = BY_SCORES  # which of classes wins whose full scores are equal

    def __post_init__(self) -> None:
        for array in (self.gap, self.penalty):
            array.setflags(write=False)  # like its members', which are copies

    def __getitem__(self, k: int) -> FilterPolicy:
        """The k-th policy."""
        return FilterPolicy(
            self.order, self.gap[k], self.costs, self.only, self.n_classes, self.ties
        )

    def index_of(self, policy: FilterPolicy) -> int:
        """Which member a policy is."""
        for k in range(len(self)):
            if self.only == policy.only and np.array_equal(self.gap[k], policy.gap):
                return k
        raise OptionError("the policy is not on this path")

    @property
    def target(self) -> ManyClasses:
        """What decides a row that never leaves, and which decisions count as different."""
        return ManyClasses(self.n_classes, self.ties, only=self.only)


ClassPath = LeadPath | FilterPath  # for K classes with a score each
