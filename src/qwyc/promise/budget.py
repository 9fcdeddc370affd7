"""Budgets: how many decisions may differ from the full ensemble's, in every form that alpha has.

A new form of alpha is a new class here with the members of `Budget`. Nothing else in the package asks
which form it has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qwyc.errors import OptionError
from qwyc.policy.counts import Counts
from qwyc.promise.binomial import rows_needed, tail
from qwyc.runtime.arguments import allowed_disagreements, check_alpha
from qwyc.target.two_classes import DIFFERENCES

LEAST_ALPHA = 1e-9  # billions of rows without a difference would be needed to show less

Alpha = float | Mapping[str, float]  # as users give it


class Budget(ABC):
    """What may differ, and what it takes to show that no more does."""

    @property
    @abstractmethod
    def alpha(self) -> float | dict[str, float]:
        """The budget as users give it, and as files keep it."""

    @property
    def is_zero(self) -> bool:
        """Whether nothing at all may differ, which is proven rather than tested."""
        return False

    @property
    def total(self) -> float | None:
        """The one share that may differ in all; None where there are several."""
        return None

    @abstractmethod
    def rows_needed(self, confidence: float) -> int:
        """The fewest rows, none of them decided differently, that show it."""

    @abstractmethod
    def passes(self, counts: Counts, confidence: float) -> bool:
        """Whether so few differences would be rare if more than the budget differed."""

    @abstractmethod
    def covers(self, counts: Counts) -> bool:
        """Whether the observed shares are within it, however surely."""

    @abstractmethod
    def share_of(self, difference: str) -> float:
        """The share of all rows that may differ in this way."""

    @property
    @abstractmethod
    def penalty_weights(self) -> tuple[float, ...]:
        """How much each way to differ costs while fitting, relative to the others."""

    @abstractmethod
    def rows_allowed(self, n_rows: int) -> int:
        """How many rows of a sample may differ, for methods that count on the sample itself."""

    @abstractmethod
    def statement(self, names: Sequence[str], emphasis: str = "{}") -> str:
        """What is promised about new rows, as the main clause of a sentence. `names` are those of the
        negative and the positive class; `emphasis` formats each share."""

    @abstractmethod
    def describe_counts(self, counts: Counts) -> str:
        """The differences that were counted, as this budget counts them."""

    @abstractmethod
    def __str__(self) -> str:
        """The budget as a value, such as "0.5%"."""

    @property
    def at_most(self) -> str:
        """The budget as a bound, such as "at most 0.5%"."""
        return f"at most {self}"


@dataclass(frozen=True)
class TotalBudget(Budget):
    """At most a share of all rows may be decided differently."""

    share: float

    @property
    def alpha(self) -> float:
        return self.share

    @property
    def is_zero(self) -> bool:
        """Whether nothing at all may differ."""
        return self.share == 0

    @property
    def total(self) -> float:
        return self.share

    def rows_needed(self, confidence: float) -> int:
        """The fewest rows that show it; a proof needs one to be contradicted."""
        return 1 if self.is_zero else rows_needed(self.share, confidence)

    def passes(self, counts: Counts, confidence: float) -> bool:
        """An exact binomial test; with a budget of 0, no difference at all."""
        if self.is_zero:
            return counts.disagreements == 0
        return tail(counts.disagreements, counts.rows, self.share) <= 1 - confidence

    def covers(self, counts: Counts) -> bool:
        """Whether the observed share is within the budget."""
        return counts.observed <= self.share

    def share_of(self, difference: str) -> float:
        """All of the budget may be used in one way."""
        return self.share

    @property
    def penalty_weights(self) -> tuple[float, ...]:
        """Every way to differ costs the same."""
        return (1.0,) * len(DIFFERENCES)

    def rows_allowed(self, n_rows: int) -> int:
        """The largest whole number of rows that is within the share."""
        return allowed_disagreements(self.share, n_rows)

    def statement(self, names: Sequence[str], emphasis: str = "{}") -> str:
        """At most so many of the new rows are decided differently."""
        return f"at most {emphasis.format(self)} of new rows are decided differently"

    def describe_counts(self, counts: Counts) -> str:
        return f"{counts.disagreements:,}"

    def __str__(self) -> str:
        return f"{self.share:.4g}" if self.share < 1e-4 else _percent(self.share)


@dataclass(frozen=True)
class BudgetByDifference(Budget):
    """A share of all rows for each way to differ. All shares hold together with the confidence, so each
    gets an equal part of what may go wrong."""

    shares: tuple[float, ...]  # by DIFFERENCES

    @property
    def alpha(self) -> dict[str, float]:
        return dict(zip(DIFFERENCES, self.shares, strict=True))

    def rows_needed(self, confidence: float) -> int:
        """What the smallest share takes."""
        statements = len(self.shares)
        return max(rows_needed(share, confidence, statements=statements) for share in self.shares)

    def passes(self, counts: Counts, confidence: float) -> bool:
        """One exact binomial test for each way to differ."""
        risk = (1 - confidence) / len(self.shares)
        pairs = zip(counts.differences, self.shares, strict=True)
        return all(tail(count, counts.rows, share) <= risk for count, share in pairs)

    def covers(self, counts: Counts) -> bool:
        """Whether every observed share is within its own."""
        pairs = zip(counts.differences, self.shares, strict=True)
        return all(count <= share * counts.rows for count, share in pairs)

    def share_of(self, difference: str) -> float:
        """The share of this way to differ."""
        return self.alpha[difference]

    @property
    def penalty_weights(self) -> tuple[float, ...]:
        """What is allowed less often costs more; the weights average to 1 over what is allowed."""
        mean = len(self.shares) / sum(1 / share for share in self.shares)
        return tuple(mean / share for share in self.shares)

    def rows_allowed(self, n_rows: int) -> int:
        """There is no one number."""
        raise OptionError("alpha by kind of disagreement goes with method='auto'")

    def statement(self, names: Sequence[str], emphasis: str = "{}") -> str:
        """At most so many in each direction."""
        lost, gained = (emphasis.format(_percent(share)) for share in self.shares)
        return (
            f"at most {lost} of new rows are decided {names[0]} instead of {names[1]}, and {gained} the "
            "other way round"
        )

    def describe_counts(self, counts: Counts) -> str:
        """How many differ in each direction."""
        return " and ".join(f"{count:,}" for count in counts.differences)

    def __str__(self) -> str:
        pairs = zip(DIFFERENCES, self.shares, strict=True)
        return " and ".join(f"{_percent(share)} {name}" for name, share in pairs)


def budget_of(alpha: Any) -> Budget:
    """The budget that a user, or a file, gives as alpha."""
    if isinstance(alpha, Budget):
        return alpha
    if isinstance(alpha, Mapping):
        return _by_difference(alpha)
    share = check_alpha(alpha)
    if 0 < share < LEAST_ALPHA:
        raise OptionError(
            f"alpha = {share!r} is less than any sample could show; alpha=0 is proven without one"
        )
    return TotalBudget(share)


def _by_difference(alpha: Mapping[Any, Any]) -> BudgetByDifference:
    if set(alpha) != set(DIFFERENCES):
        raise OptionError(
            "alpha by kind needs both 'negative' (full-positive rows called negative) and 'positive' "
            f"(the reverse); got {sorted(map(str, alpha))}"
        )
    shares = tuple(check_alpha(alpha[name]) for name in DIFFERENCES)
    if min(shares) < LEAST_ALPHA:
        raise OptionError("alpha by kind must be above 0 for both kinds; alpha=0 proves both")
    return BudgetByDifference(shares)


def _percent(share: float) -> str:
    return f"{100 * share:.4g}%"
