"""LeadPath: policies on the lead of many classes along one order, from cautious to bold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError
from qwyc.policy.lead_policy import LeadPolicy
from qwyc.policy.path import AnyPath
from qwyc.target.many_classes import ManyClasses
from qwyc.target.ties import BY_SCORES, Ties


@dataclass(frozen=True, eq=False)
class LeadPath(AnyPath):
    """M policies for K classes, from the most cautious, which never quits, to the boldest."""

    order: npt.NDArray[np.int32]  # (T,)
    lead: npt.NDArray[np.float64]  # (M, T, K)
    penalty: npt.NDArray[np.float64]  # (M,) of a disagreement, in mean costs of a base model
    costs: npt.NDArray[np.float64]  # (T,) along the order
    ties: Ties = BY_SCORES  # which of classes wins whose full scores are equal

    drop: npt.NDArray[np.float64] | None = None  # (M, T) as of a policy; None: nothing is ruled out

    def __post_init__(self) -> None:
        for array in (self.lead, self.penalty, self.drop):
            if array is not None:
                array.setflags(write=False)  # like its members', which are copies

    def __getitem__(self, k: int) -> LeadPolicy:
        """The k-th policy."""
        drop = None if self.drop is None else self.drop[k]
        return LeadPolicy(self.order, self.lead[k], self.costs, self.ties, drop)

    def index_of(self, policy: LeadPolicy) -> int:
        """Which member a policy is."""
        for k in range(len(self)):
            same = np.array_equal(self.lead[k], policy.lead)
            if same and np.array_equal(self[k].ruled_out_at, policy.ruled_out_at):
                return k
        raise OptionError("the policy is not on this path")

    @property
    def target(self) -> ManyClasses:
        """What decides a row that never quits."""
        return ManyClasses(self.lead.shape[2], self.ties)
