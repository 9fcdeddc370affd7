"""The budget of answers within a tolerance: how many outputs may be off by more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qwyc.errors import OptionError
from qwyc.promise.budget import LEAST_ALPHA, TotalBudget
from qwyc.runtime.arguments import check_alpha
from qwyc.target.within import Within


@dataclass(frozen=True)
class ToleranceBudget(TotalBudget):
    """At most a share of all rows may get an output that is off by more than a tolerance."""

    @classmethod
    def of(cls, alpha: Any, within: Within) -> ToleranceBudget:
        """From what a user, or a file, gives as alpha."""
        if alpha is None:
            raise OptionError(
                "tolerance needs alpha: the share of rows whose output may be off by more than the "
                "tolerance, such as alpha=0.005"
            )
        if isinstance(alpha, Mapping):
            raise OptionError(
                "with tolerance, alpha is one number: outputs have no kinds to differ"
            )
        share = check_alpha(alpha)
        if share < LEAST_ALPHA:
            raise OptionError(
                "with tolerance, alpha must be above 0: what no row may miss cannot be shown by a sample. "
                "qwyc.read_model(model) gives the exact outputs of all rows, from every base model"
            )
        return cls(share, within)

    @property
    def tolerance(self) -> float:
        """By how much outputs may be off."""
        assert isinstance(self.target, Within)
        return self.target.tolerance

    @property
    def differ(self) -> str:
        """What outputs do that count, as a verb."""
        return f"have an output that is off by more than {self.tolerance:g}"

    def statement(self, names: Sequence[str], emphasis: str = "{}") -> str:
        """At most so many of the outputs are further off."""
        return (
            f"at most {emphasis.format(self)} of new rows get an output that is off by more than "
            f"{self.tolerance:g} from the full ensemble's"
        )
