"""Budgets: how many decisions may differ from the full ensemble's, in every form that alpha has.

A budget is a set of limits. A new form of alpha is a new class here with the members of `Budget`. Nothing
else in the package asks which form it has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from qwyc.errors import OptionError
from qwyc.policy.counts import Counts
from qwyc.promise.limits import Limit
from qwyc.runtime.arguments import allowed_disagreements, check_alpha
from qwyc.target.target import Target
from qwyc.target.two_classes import DIFFERENCES, TwoClasses

LEAST_ALPHA = 1e-9  # billions of rows without a difference would be needed to show less

Alpha = float | Mapping[str, float]  # as users give it
Differing = Target | type[TwoClasses]  # which decisions there are, and how they differ


class Budget(ABC):
    """What may differ, and what it takes to show that no more does.

    It passes where each of its limits passes its own test at the full confidence. A policy that breaks
    the budget breaks some limit, and passes that limit's test with a probability of at most
    1 - confidence, so the confidence need not be shared out among the limits."""

    @property
    def target(self) -> Differing:
        """Which decisions there are, and in which ways they differ. For two classes it is the class
        TwoClasses: no threshold matters here."""
        return TwoClasses

    @property
    @abstractmethod
    def limits(self) -> tuple[Limit, ...]:
        """The statements that must all hold."""

    @property
    @abstractmethod
    def alpha(self) -> float | dict[str, float] | None:
        """The share of all rows as users give it, and as files keep it; None where there is none."""

    @property
    def by_class(self) -> dict[int, float]:
        """The share of each class that may be lost, by the index of the class."""
        return {}

    @property
    def is_zero(self) -> bool:
        """Whether nothing at all may differ, which is proven rather than tested."""
        return False

    @property
    def total(self) -> float | None:
        """The share of all rows that may differ in any way; None where there is no such limit."""
        return None

    @property
    def tolerance(self) -> float | None:
        """By how much outputs may be off; None where decisions are compared."""
        return None

    @property
    def differ(self) -> str:
        """What rows do that count, as a verb."""
        return "are decided differently"

    def rows_needed(self, confidence: float) -> int:
        """The fewest rows, none of them decided differently, that show the limits on all rows."""
        whole = [limit for limit in self.limits if limit.among is None]
        return max((limit.rows_needed(confidence) for limit in whole), default=1)

    def shortfall(self, counts: Counts, confidence: float, names: Sequence[str]) -> str:
        """Which rows are too few to show this budget, in words; empty where there are enough."""
        parts = (limit.shortfall(counts, confidence, names) for limit in self.limits)
        return next(filter(None, parts), "")

    def passes(self, counts: Counts, confidence: float) -> bool:
        """Whether every limit is shown to hold."""
        return all(limit.passes(counts, confidence) for limit in self.limits)

    def fails(self, counts: Counts, confidence: float) -> bool:
        """Whether some limit is shown to be broken. Any of them could be by chance, so they share what
        may go wrong."""
        level = 1 - (1 - confidence) / len(self.limits)
        return any(limit.fails(counts, level) for limit in self.limits)

    def covers(self, counts: Counts) -> bool:
        """Whether the observed shares are within it, however surely."""
        return all(limit.covers(counts) for limit in self.limits)

    def allowed(self, quit: str) -> str:
        """Which rows may quit: of those that `quit` allows, those whose mistakes a limit bounds. Rows of a
        class without a limit are never put at risk."""
        names = self.target.differences
        bounded = {names[kind] for limit in self.limits for kind in limit.differences}
        if self.target is not TwoClasses:  # a row that quits may be of any other class
            if not {names[way] for way in self.target.at_risk} <= bounded:
                raise OptionError("by_class must name every class, or alpha be given as well")
            return quit
        wanted = set(DIFFERENCES) if quit == "both" else {quit}
        left = sorted(bounded & wanted)
        if not left:
            raise OptionError(
                f"with quit={quit!r}, only rows that by_class does not name could be decided differently; "
                "name their class in by_class, give alpha, or quit the other way"
            )
        return "both" if len(left) == len(DIFFERENCES) else left[0]

    def share_of(self, difference: str, by_class: Sequence[int]) -> float | None:
        """The share of all rows that may differ in this way, where rows of the classes are in these
        proportions; None where nothing bounds it."""
        kind, rows = self.target.differences.index(difference), max(sum(by_class), 1)
        shares = [
            limit.share * (1 if limit.among is None else by_class[limit.among] / rows)
            for limit in self.limits
            if kind in limit.differences
        ]
        return min(shares, default=None)

    def penalty_weights(self, by_class: Sequence[int]) -> tuple[float, ...]:
        """How much each way to differ costs while fitting, relative to the others. What is allowed less
        often costs more; the weights average to 1 over what is allowed."""
        known = [self.share_of(difference, by_class) for difference in self.target.differences]
        least = 1 / max(sum(by_class), 1)  # a class of which there is no row
        shares = [None if share is None else max(share, 1e-3 * least) for share in known]
        given = [share for share in shares if share is not None]
        if len(set(given)) == 1:
            return (1.0,) * len(known)
        mean = len(given) / sum(1 / share for share in given)
        return tuple(1.0 if share is None else mean / share for share in shares)

    def with_room(self, rows: int, confidence: float, counts: Counts) -> Budget:
        """A smaller budget: a classifier within it passes a test of this one on so many other rows with
        high probability. Rows of the classes come in the proportions of the counts, and so do groups."""
        limits, total = [], max(counts.rows, 1)
        for limit in self.limits:
            n = rows if limit.among is None else rows * counts.by_class[limit.among] // total
            if counts.groups is not None:  # as if every group differed whole, or not at all
                n //= counts.groups.cap(limit.among)
            smaller = limit.with_room(n, confidence)
            if smaller is None:
                kind = "rows" if counts.groups is None else "groups"
                raise OptionError(
                    f"headroom={rows} is too small: a verification of {self} at confidence {confidence:g} "
                    f"needs {limit.rows_needed(confidence):,} {kind}"
                    + (
                        ""
                        if limit.among is None
                        else f" of one class, and would see about {n:,} of it"
                    )
                )
            limits.append(smaller)
        return _Limits(tuple(limits), self)

    def rows_allowed(self, n_rows: int) -> int:
        """How many rows of a sample may differ, for methods that count on the sample itself."""
        raise OptionError("a share by kind or by class needs method='auto'; pass one alpha")

    @abstractmethod
    def statement(self, names: Sequence[str], emphasis: str = "{}") -> str:
        """What is promised about new rows, as the main clause of a sentence. `names` are those of the
        classes, such as the negative and the positive one; `emphasis` formats each share."""

    @abstractmethod
    def describe_counts(self, counts: Counts) -> str:
        """The differences that were counted, as this budget counts them."""

    @abstractmethod
    def __str__(self) -> str: ...

    @property
    def named(self) -> str:
        """The budget as the subject of a sentence, such as "alpha = 0.5%"."""
        return f"a limit of {self}" if self.by_class else f"alpha = {self}"

    def value(self, names: Sequence[str]) -> str:
        """The budget as `str` gives it, with these names of the classes."""
        return str(self)


@dataclass(frozen=True)
class TotalBudget(Budget):
    """At most a share of all rows may be decided differently."""

    share: float
    target: Differing = field(default=TwoClasses, repr=False)

    @property
    def limits(self) -> tuple[Limit, ...]:
        """One, on all rows."""
        return (Limit(self.share, tuple(range(len(self.target.differences)))),)

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

    def rows_allowed(self, n_rows: int) -> int:
        """The largest whole number of rows that is within the share."""
        return allowed_disagreements(self.share, n_rows)

    def statement(self, names: Sequence[str], emphasis: str = "{}") -> str:
        """At most so many of the new rows are decided differently, or lost by a filter."""
        if self.target.only is not None:
            return (
                f"at most {emphasis.format(self)} of new rows leave early although the full ensemble calls "
                f"them {names[self.target.only]}"
            )
        return f"at most {emphasis.format(self)} of new rows are decided differently"

    def describe_counts(self, counts: Counts) -> str:
        return f"{counts.disagreements:,}"

    def __str__(self) -> str:
        return percentage(self.share)


@dataclass(frozen=True)
class BudgetByDifference(Budget):
    """A share of all rows for each way to differ."""

    shares: tuple[float, ...]  # by DIFFERENCES

    @property
    def limits(self) -> tuple[Limit, ...]:
        """One for each way."""
        return tuple(Limit(share, (kind,)) for kind, share in enumerate(self.shares))

    @property
    def alpha(self) -> dict[str, float]:
        return dict(zip(DIFFERENCES, self.shares, strict=True))

    @property
    def total(self) -> float:
        """The shares together: both limits hold at once."""
        return sum(self.shares)

    def statement(self, names: Sequence[str], emphasis: str = "{}") -> str:
        """At most so many in each direction."""
        lost, gained = (emphasis.format(percentage(share)) for share in self.shares)
        return (
            f"at most {lost} of new rows are decided as {names[0]} instead of {names[1]}, and {gained} the "
            "other way round"
        )

    def describe_counts(self, counts: Counts) -> str:
        """How many differ in each direction."""
        return " and ".join(f"{count:,}" for count in counts.differences)

    def __str__(self) -> str:
        pairs = zip(DIFFERENCES, self.shares, strict=True)
        return " and ".join(f"{percentage(share)} {name}" for name, share in pairs)


@dataclass(frozen=True)
class BudgetByClass(Budget):
    """A share of the rows of a class, by the full decision, with or without a budget for all rows."""

    shares: tuple[tuple[int, float], ...]  # (index of the class, share that may be lost), ascending
    overall: Budget | None = None
    target: Differing = field(default=TwoClasses, repr=False)

    @property
    def limits(self) -> tuple[Limit, ...]:
        """One for each class named, and those on all rows."""
        own = tuple(Limit(share, self.target.lost_from(c), c) for c, share in self.shares)
        return own if self.overall is None else (*self.overall.limits, *own)

    @property
    def alpha(self) -> float | dict[str, float] | None:
        return None if self.overall is None else self.overall.alpha

    @property
    def by_class(self) -> dict[int, float]:
        return dict(self.shares)

    @property
    def total(self) -> float | None:
        return None if self.overall is None else self.overall.total

    @property
    def _of_each(self) -> float | None:
        """The share of every class, where there are many and all have the same; otherwise None."""
        distinct = {share for _, share in self.shares}
        every = self.target is not TwoClasses and len(self.shares) == self.target.n_classes
        return distinct.pop() if every and len(distinct) == 1 else None

    def statement(self, names: Sequence[str], emphasis: str = "{}") -> str:
        """At most so many of each class, and of all rows."""
        parts = [
            f"at most {emphasis.format(percentage(share))} of the new rows that the full ensemble calls "
            f"{names[c]} are decided differently"
            for c, share in self.shares
        ]
        if (share := self._of_each) is not None:
            parts = [
                f"of each class, by the full ensemble, at most {emphasis.format(percentage(share))} of the "
                "new rows are decided differently"
            ]
        if self.overall is not None:
            parts.insert(0, self.overall.statement(names, emphasis))
        return ", and ".join(parts)

    def describe_counts(self, counts: Counts) -> str:
        return f"{counts.disagreements:,}"

    def __str__(self) -> str:
        return self.value(self.target.differences)

    def value(self, names: Sequence[str]) -> str:
        of_all = " of all rows" if isinstance(self.overall, TotalBudget) else ""
        overall = [] if self.overall is None else [f"{self.overall}{of_all}"]
        parts = [f"{percentage(share)} of the rows called {names[c]}" for c, share in self.shares]
        if (share := self._of_each) is not None:
            parts = [f"{percentage(share)} of each class"]
        return " and ".join([*overall, *parts])


@dataclass(frozen=True)
class _Limits(Budget):
    """Other limits in place of a budget's own: it is tested by them, and speaks like the budget."""

    own: tuple[Limit, ...]
    budget: Budget

    @property
    def target(self) -> Differing:
        return self.budget.target

    @property
    def limits(self) -> tuple[Limit, ...]:
        return self.own

    @property
    def alpha(self) -> float | dict[str, float] | None:
        return self.budget.alpha

    def statement(self, names: Sequence[str], emphasis: str = "{}") -> str:
        return self.budget.statement(names, emphasis)

    def describe_counts(self, counts: Counts) -> str:
        return self.budget.describe_counts(counts)

    def __str__(self) -> str:
        return str(self.budget)


def budget_of(
    alpha: Any, by_class: Mapping[int, float] | None = None, target: Differing = TwoClasses
) -> Budget:
    """The budget that a user, or a file, gives as alpha, and as a share of each class by its index."""
    overall = None if alpha is None else _of_alpha(alpha, target)
    if by_class is None or (not by_class and overall is not None):
        if overall is None:
            raise OptionError("alpha or by_class is needed: the share of decisions that may differ")
        return overall
    return _by_class(by_class, overall, target)


def _of_alpha(alpha: Any, target: Differing) -> Budget:
    if isinstance(alpha, Budget):
        return alpha
    if isinstance(alpha, Mapping):
        if target is not TwoClasses:
            raise OptionError("alpha by kind is for two classes; pass one alpha, or by_class")
        return _by_difference(alpha)
    share = check_alpha(alpha)
    if 0 < share < LEAST_ALPHA:
        what = f"alpha = {share!r} is less than any sample could show"
        raise OptionError(f"{what}; alpha=0 is proven without one")
    return TotalBudget(share, target)


def _by_difference(alpha: Mapping[Any, Any]) -> BudgetByDifference:
    if set(alpha) != set(DIFFERENCES):
        raise OptionError(
            "alpha by kind needs both 'negative' (full-positive rows called negative) and 'positive' "
            f"(the reverse); got {sorted(map(str, alpha))}. Limits by label are by_class={{label: share}}"
        )
    shares = tuple(check_alpha(alpha[name]) for name in DIFFERENCES)
    if min(shares) < LEAST_ALPHA:
        raise OptionError("alpha by kind must be above 0 for both kinds; alpha=0 proves both")
    return BudgetByDifference(shares)


def _by_class(
    by_class: Mapping[int, float], overall: Budget | None, target: Differing
) -> BudgetByClass:
    if overall is not None and overall.is_zero:
        raise OptionError("with alpha=0 no row is decided differently: leave out by_class")
    if not by_class:
        raise OptionError("by_class names no class; pass the share of a class, such as {1: 0.01}")
    shares = []
    for index, share in sorted(by_class.items()):
        if not 0 <= index < target.n_classes:
            raise OptionError(f"by_class names class {index}; there are {target.n_classes}")
        if check_alpha(share) < LEAST_ALPHA:
            raise OptionError("a share in by_class must be above 0; alpha=0 proves all classes")
        shares.append((int(index), float(share)))
    return BudgetByClass(tuple(shares), overall, target)


def percentage(share: float) -> str:
    """A share as text, such as "0.5%"."""
    return f"{share:.4g}" if share < 1e-4 else f"{100 * share:.4g}%"
