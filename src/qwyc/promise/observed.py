"""What statements about counted rows share: the counts by name, and what was lost of each class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from qwyc.policy.counts import Counts
from qwyc.promise.budget import Budget
from qwyc.promise.limits import Limit
from qwyc.target.two_classes import NEGATIVE, POSITIVE, TwoClasses

SHOWN = 5  # classes of which a text says what was lost; of more classes, the worst are shown


@dataclass(frozen=True)
class ClassLoss:
    """How many rows of one class, by the full decision, were decided differently."""

    name: str  # "negative" or "positive"; "class 0" and so on where there are more classes
    rows: int
    lost: int
    upper_bound: float | None  # on the share lost among such rows; None: nothing is promised
    label: str = ""  # what texts call the class, such as "late" or "class 1"; "": its name

    @property
    def share(self) -> float:
        """The observed share that was lost; 0 for no rows."""
        return self.lost / self.rows if self.rows else 0.0

    @property
    def shown(self) -> str:
        """What texts call the class."""
        return self.label or self.name

    def __str__(self) -> str:
        bound = "" if self.upper_bound is None else f", at most {self.upper_bound:.2%}"
        return f"{self.shown}: {self.lost:,} of {self.rows:,} lost{bound}"


class Observed:
    """A statement about counted rows: the counts' numbers under their usual names. Notebooks show it as
    `print` does."""

    counts: Counts
    budget: Budget
    labels: tuple[
        str, ...
    ]  # what texts call the classes; empty: negative and positive, class 0 and so on

    @property
    def class_names(self) -> tuple[str, ...]:
        """What texts call the classes."""
        names = self.budget.target.differences
        return self.labels if len(self.labels) == len(names) else names

    @property
    def alpha(self) -> float | dict[str, float] | None:
        """The share of all rows that may differ: in all, or by kind of difference; None where only
        classes have limits."""
        return self.budget.alpha

    @property
    def tolerance(self) -> float | None:
        """By how much an output may be off; None where decisions are compared."""
        return self.budget.tolerance

    @property
    def by_class(self) -> dict[str, float]:
        """The share of each class, such as "negative" or "positive", that may be lost, where it has a
        limit."""
        names = self.budget.target.differences
        return {names[c]: share for c, share in self.budget.by_class.items()}

    @property
    def rows(self) -> int:
        """How many rows the statement rests on."""
        return self.counts.rows

    @property
    def full_positive(self) -> int:
        """How many of the rows the full ensemble calls positive, of two classes."""
        return self.counts.by_class[POSITIVE]

    @property
    def negative(self) -> int:
        """How many full-positive rows were decided negative."""
        return self.counts.differences[NEGATIVE]

    @property
    def positive(self) -> int:
        """How many full-negative rows were decided positive."""
        return self.counts.differences[POSITIVE]

    @property
    def disagreements(self) -> int:
        """How many of the rows were decided differently."""
        return self.counts.disagreements

    @property
    def observed(self) -> float:
        """The share of the rows that was decided differently; 0 for no rows."""
        return self.counts.observed

    @property
    def mean_models(self) -> float:
        """Base models evaluated per row."""
        return self.counts.mean_models

    @property
    def mean_cost(self) -> float:
        """What the evaluated base models cost per row, by the policy's costs."""
        return self.counts.mean_cost

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _losses(self, bound: Callable[[int, Limit], float | None]) -> tuple[ClassLoss, ...]:
        """What was lost of each class; `bound` gives the bound for a class and what is counted for it."""
        losses = []
        target = self.budget.target
        for index in target.at_risk:
            limit = Limit(1.0, target.lost_from(index), index)
            lost, rows = limit.counted(self.counts)
            name = target.differences[index]
            shown = self.class_names[index]
            losses.append(ClassLoss(name, rows, lost, bound(index, limit), shown))
        return tuple(losses)

    def _count_facts(self) -> dict[str, Any]:
        """The counts as plain values, for JSON."""
        facts = {"alpha": self.alpha, "by_class": self.by_class, "rows": self.rows}
        if self.budget.target is TwoClasses:
            facts["full_positive"] = self.full_positive
            facts |= {"negative": self.negative, "positive": self.positive}
        if self.tolerance is not None:
            facts |= {"tolerance": self.tolerance, "off": self.disagreements}
        return facts | {"mean_models": self.mean_models}


def describe_losses(losses: Sequence[ClassLoss]) -> str:
    """What was lost of each class, as clauses; of many classes, where the most may be lost."""
    if len(losses) <= SHOWN:
        return "; ".join(str(loss) for loss in losses)
    worst = sorted(losses, key=lambda loss: (-(loss.upper_bound or 0), -loss.share))[: SHOWN - 2]
    rest = len(losses) - len(worst)
    said = "; ".join(str(loss) for loss in worst)
    return f"{said}; of each of the other {rest:,} classes, no larger share"
