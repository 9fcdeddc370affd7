"""Warnings about what a certificate leaves open: rare classes, and shares that move over time."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from qwyc.errors import QwycWarning
from qwyc.promise.budget import Budget
from qwyc.promise.certificate import Certificate
from qwyc.promise.limits import least_share
from qwyc.promise.observed import ClassLoss
from qwyc.promise.windows import moved
from qwyc.target.two_classes import TwoClasses

RARE = 0.05  # of a class: where more may be lost, a warning says so
NAMED = 3  # classes that a warning names, of many


def warn_of_rare_classes(certificate: Certificate, labels: Sequence[Any]) -> None:
    """Warn where 5% of a class may be lost, and more than twice the share of all rows, although nobody
    asked for a limit on that class. Of many classes, one warning names the worst. It points at the caller
    of the function that calls this. `labels` are those of the classes."""
    share = max(RARE, 2 * (certificate.budget.total or 0))
    rare = {
        index: loss
        for index, loss in zip(certificate.budget.target.at_risk, certificate.classes, strict=True)
        if loss.upper_bound is not None
        and index not in certificate.budget.by_class
        and loss.upper_bound >= share
    }
    if certificate.budget.target is TwoClasses or len(rare) == 1:
        for index, loss in rare.items():
            label = labels[index] if index < len(labels) else loss.name
            warnings.warn(_about(loss, label, certificate), QwycWarning, stacklevel=3)
    elif rare:
        warnings.warn(
            _about_many(list(rare.values()), share, certificate), QwycWarning, stacklevel=3
        )


def _about(loss: ClassLoss, label: Any, certificate: Certificate) -> str:
    if loss.rows:
        named = f"class {label!r}"
        if certificate.budget.target is TwoClasses:
            named += f" (the {loss.name} one)"
        least = least_share(loss.rows, certificate.confidence or 0.95)
        limit = f"pass by_class={{{label!r}: {least:g}}}, or a larger share"
        if least >= 0.5:
            limit = "pass more rows of that class, and by_class={label: share}"
        return (
            f"up to {100 * (loss.upper_bound or 0):.3g}% of the rows that the full ensemble puts in "
            f"{named} may be decided differently: {loss.lost:,} of {loss.rows:,} such rows were. alpha "
            f"limits all rows together, so that a rare class can be lost. To limit this, {limit}"
        )
    return (
        f"the full ensemble calls none of {certificate.rows:,} rows {loss.shown}, so nothing is "
        f"known about such rows, although alpha = {certificate.budget} of all rows may be decided "
        "differently"
    )


def lost_without_limit(budget: Budget, classes: Sequence[ClassLoss]) -> str:
    """A sentence about classes without a limit of their own of which much was lost; "" where none are."""
    share = max(RARE, 2 * (budget.total or 0))
    lost = [
        f"{loss.lost:,} of {loss.rows:,} rows called {loss.shown}"
        for index, loss in zip(budget.target.at_risk, classes, strict=True)
        if index not in budget.by_class and loss.rows and loss.share >= share
    ]
    if not lost or budget.tolerance is not None:
        return ""
    return (
        f" But it is a limit on all rows together, and {' and '.join(lost)} were decided differently: pass "
        "by_class to limit how much of a class may be lost."
    )


def _about_many(rare: list[ClassLoss], share: float, certificate: Certificate) -> str:
    seen = sorted((loss for loss in rare if loss.rows), key=lambda loss: -(loss.upper_bound or 0))
    unseen = [loss.shown for loss in rare if not loss.rows]
    said = []
    if seen:
        worst = ", ".join(
            f"up to {100 * (loss.upper_bound or 0):.3g}% of {loss.shown} ({loss.lost:,} of {loss.rows:,} "
            "rows were)"
            for loss in seen[:NAMED]
        )
        more = f" and {len(seen) - NAMED:,} more" if len(seen) > NAMED else ""
        said.append(
            f"of {len(seen):,} classes, by the full decision, more than {100 * share:.3g}% may be decided "
            f"differently: {worst}{more}. alpha limits all rows together, so that a rare class can be "
            "lost. To limit this, pass by_class={label: share}, or more rows"
        )
    if unseen:
        more = f" and {len(unseen) - NAMED:,} more" if len(unseen) > NAMED else ""
        said.append(
            f"the full ensemble calls none of {certificate.rows:,} rows {', '.join(unseen[:NAMED])}{more}, "
            "so nothing is known about such rows"
        )
    return "; ".join(said)


def warn_of_moves(certificate: Certificate) -> None:
    """Warn where disagreement moved from window to window by more than chance. The warning points at the
    caller of the function that calls this."""
    if not moved(certificate.windows):
        return
    low, high = (end(certificate.windows, key=lambda window: window.share) for end in (min, max))
    before, after = sorted((low, high), key=certificate.windows.index)
    warnings.warn(
        f"the share of rows that are decided differently moved over time, from {before.share:.2%} "
        f"({before.first} to {before.last}) to {after.share:.2%} ({after.first} to {after.last}), by more "
        "than chance. The promise is about rows like those of the latest window; verify the classifier on "
        "newer rows as they come",
        QwycWarning,
        stacklevel=3,
    )
