"""Operating points: the alphas that a reader of the report can choose from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from qwyc.errors import InfeasibleError, OptionError
from qwyc.policy.filter_policy import FilterPolicy
from qwyc.policy.lead_policy import LeadPolicy
from qwyc.policy.policy import Policy
from qwyc.promise.budget import Budget, budget_of
from qwyc.promise.certificate import Certificate, percent
from qwyc.promise.certified import Certified
from qwyc.promise.evaluation import Evaluation

# Round numbers, so that a reader can repeat the choice with `at`.
SHARES = (*(float(f"{m}e{e}") for e in (-4, -3, -2) for m in (1, 1.5, 2, 3, 4, 5, 7)), 0.1)
AS_IT_IS = "as it is"

AnyRule = Policy | LeadPolicy | FilterPolicy


@dataclass(frozen=True)
class Point:
    """A budget, and the policy and the certificate that `Classifier.at` gives for it."""

    name: str  # the budget as text, such as "0.5%"
    share: float  # by which points are sorted: alpha, or what stands for it
    policy: AnyRule
    certificate: Certificate


def operating_points(certified: Certified) -> tuple[list[Point], int]:
    """The points from cautious to bold, and which of them is the classifier as it is. There is one point
    only where the classifier has one policy, where no policy that quits can be certified, and where it was
    requested that no row quits."""
    seen = certified.certificate
    share = _share(seen.budget)
    own = Point(seen.budget.value(seen.class_names), share, certified.policy, seen)
    requested_full = certified.evaluation == Evaluation(False, "request")
    if certified.choices is None or seen.confidence is None or requested_full:
        return [own], 0
    others = list(_others(certified))
    if all(point.policy.quit == "never" for point in others):
        return [own], 0
    if certified.policy.quit == "never":
        # Rows could quit at this alpha, but it does not pay: the classifier is a point beside the others.
        return [Point(AS_IT_IS, share, certified.policy, seen), *others], 0
    before = [point for point in others if point.share < share]
    after = [point for point in others if point.share > share]
    return [*before, own, *after], len(before)


def _others(certified: Certified) -> Iterator[Point]:
    """What `at` gives at each of the shares that can be certified. Shares beyond the first that allows the
    boldest policy change nothing."""
    choices, seen = certified.choices, certified.certificate
    assert choices is not None
    assert seen.confidence is not None
    last = len(choices.path) - 1
    for budget in _budgets(seen.budget):
        try:
            policy, certificate = choices.choose(budget, seen.confidence)
        except InfeasibleError:
            continue
        certificate = certified.completed(certificate)
        name = budget.value(certificate.class_names)
        yield Point(name, _share(budget), policy, certificate)
        if choices.index_of(policy) == last:
            return


def _budgets(budget: Budget) -> Iterator[Budget]:
    """The same kind of budget with other shares: another alpha beside the same limits by class. Alpha by
    kind, or limits by class without an alpha, are scaled together."""
    alpha, by_class, now = budget.alpha, budget.by_class, _share(budget)
    for share in SHARES:
        shares: float | dict[str, float] | None = share
        limits = by_class
        if isinstance(alpha, dict):
            shares = {kind: part * share / now for kind, part in alpha.items()}
        elif alpha is None:
            shares = None
            limits = {index: part * share / now for index, part in by_class.items()}
        try:
            yield budget_of(shares, limits or None, budget.target)
        except OptionError:  # a share of 1 or more
            continue


def _share(budget: Budget) -> float:
    return max(budget.by_class.values()) if budget.total is None else budget.total


def sentences(certified: Certified, point: Point) -> list[str]:
    """The certificate in three short lines."""
    seen, T = point.certificate, point.policy.n_models
    names = [str(label) for label in certified.ensemble.classes]
    differ = f"{seen.disagreements:,} of {seen.rows:,}"
    share = f" ({100 * seen.observed:.3g}%)" if seen.rows else ""
    work = f"A row takes {seen.mean_models:.1f} of {T:,} base models on average."
    if seen.how == "proven":
        lines = [
            "Proven: no input is decided differently from the full ensemble.",
            "The proof rests on bounds of what base models can add, not on a sample.",
        ]
        if not seen.rows:
            work = f"A row takes at most {T:,} base models. How many it takes was not measured."
        return [*lines, work]
    if seen.how == "in-sample":
        return [
            "Nothing is promised for new rows.",
            f"{differ} rows{share} that it was fitted on are decided differently.",
            work,
        ]
    lost = _lost(seen, names)
    held_out = f"On rows held out, {differ} decisions{share} differ from the full ensemble{lost}."
    if seen.doubts:
        return [f"Nothing is promised for new rows: {'; '.join(seen.doubts)}.", held_out, work]
    if point.policy.quit == "never":
        promise = "Every row is evaluated in full, so every decision is that of the full ensemble."
        return [promise, held_out, work]
    statement = seen.budget.statement(seen.class_names)
    return [f"With {percent(seen.confidence)} confidence, {statement}.", held_out, work]


def _lost(seen: Certificate, names: list[str]) -> str:
    """How much of each of two classes was lost, since a limit on all rows does not show it."""
    if not seen.disagreements or len(names) != 2 or len(seen.classes) != 2:
        return ""
    parts = (
        f"{loss.lost:,} of the {loss.rows:,} rows of class {name}"
        for name, loss in zip(names, seen.classes, strict=True)
    )
    return f": {' and '.join(parts)}"
