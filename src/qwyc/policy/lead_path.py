"""LeadPath: policies on the lead of many classes along one order, from cautious to bold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError
from qwyc.policy.lead_policy import LeadPolicy
from qwyc.policy.path import AnyPath
from qwyc.target.many_classes import ManyClasses


@dataclass(frozen=True, eq=False)
class LeadPath(AnyPath):
    """M policies for K classes, from the most cautious, which never quits, to the boldest."""

    order: npt.NDArray[np.int32]  # (T,)
    lead: npt.NDArray[np.float64]  # (M, T, K)
    penalty: npt.NDArray[np.float64]  # (M,) of a disagreement, in mean costs of a base model
    costs: npt.NDArray[np.float64]  # (T,) along the order

    def __post_init__(self) -> None:
        for array in (self.lead, self.penalty):
            array.setflags(write=False)  # like its members', which are copies

    def __getitem__(self, k: int) -> LeadPolicy:
        """The k-th policy."""
        return LeadPolicy(self.order, self.lead[k], self.costs)

    def index_of(self, policy: LeadPolicy) -> int:
        """Which member a policy is."""
        for k in range(len(self)):
            if np.array_equal(self.lead[k], policy.lead):
                return k
        raise OptionError("the policy is not on this path")

    @property
    def target(self) -> ManyClasses:
        """What decides a row that never quits."""
        return ManyClasses(self.lead.shape[2])
