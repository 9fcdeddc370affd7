"""Budgets as users request them: for an ensemble, with classes by their labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from qwyc.errors import OptionError
from qwyc.model.ensemble import Ensemble
from qwyc.promise.budget import LEAST_ALPHA, Alpha, Budget, budget_of
from qwyc.runtime.arguments import is_number
from qwyc.target.many_classes import ManyClasses
from qwyc.target.two_classes import TwoClasses

MOST_LABELS = 20  # in a message
DEFAULT_ALPHA = 0.005  # where neither alpha nor limits by class are given


def budget_for(
    ensemble: Ensemble,
    alpha: Alpha | None,
    by_class: Mapping[Any, float] | None = None,
    only: int | None = None,
) -> Budget:
    """The budget of `alpha`, and of a share of each class by its label; of a filter for class `only`, by
    its index."""
    shares = by_class_of(by_class, ensemble.classes)
    if only is not None and any(index != only for index in shares or ()):
        own = ensemble.classes.tolist()[only]
        raise OptionError(
            f"with only={own!r}, no row of another class is decided differently: by_class names {own!r} or "
            "nothing"
        )
    return budget_of(alpha, shares, target_of(ensemble, only))


def target_of(ensemble: Ensemble, only: int | None = None) -> ManyClasses | type[TwoClasses]:
    """What budgets for an ensemble, or for a filter for one of its classes, are about."""
    target = ensemble.target
    return replace(target, only=only) if isinstance(target, ManyClasses) else TwoClasses


def index_of_class(ensemble: Ensemble, only: Any) -> int:
    """The index of the class that a filter is for, from its label."""
    labels = ensemble.classes.tolist()
    if not ensemble.by_class:
        raise OptionError(
            f"only={only!r} is for models with a score for each class; of two classes with one score, "
            f"quit='negative' is the filter for {labels[1]!r}, and quit='positive' that for {labels[0]!r}"
        )
    if only not in labels:
        raise OptionError(f"only names {only!r}; the classes are {listed(labels)}")
    return int(labels.index(only))


def by_class_of(by_class: Any, classes: npt.NDArray[Any]) -> dict[int, float] | None:
    """Shares by the labels of classes, as users give them, by the index of the class."""
    if by_class is None:
        return None
    labels = classes.tolist()
    if not isinstance(by_class, Mapping):
        raise OptionError(
            f"by_class must be a mapping from a class to a share, such as {{{labels[-1]!r}: 0.01}}; "
            f"got {by_class!r}"
        )
    found = {}
    for label, share in by_class.items():
        if label not in labels:
            raise OptionError(f"by_class names {label!r}; the classes are {listed(labels)}")
        if not is_number(share) or not LEAST_ALPHA <= share < 1:
            raise OptionError(
                f"by_class has {share!r} for {label!r}; a share above 0 and below 1 was expected, such as "
                "0.01 (alpha=0 proves all classes)"
            )
        found[labels.index(label)] = float(share)
    return found


def listed(labels: list[Any]) -> str:
    """The labels, or the first of many."""
    if len(labels) <= MOST_LABELS:
        return repr(labels)
    first = ", ".join(repr(label) for label in labels[:MOST_LABELS])
    return f"[{first}, ...], {len(labels):,} in all"
