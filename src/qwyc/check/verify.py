"""verify: whether a classifier keeps its promise on rows that had no part in making it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import Any

from qwyc import distributed
from qwyc.approximation import Approximation
from qwyc.check.fresh_rows import KeptRows, RowHashes, fresh_rows, repeats_option
from qwyc.check.parity import ComparedModel
from qwyc.check.training_rows import doubts_of, look_at_rows
from qwyc.classifier import Classifier, check_classifier
from qwyc.errors import InputError, OptionError, QwycWarning
from qwyc.model.ensemble import Sample
from qwyc.policy.counts import Counts, sum_over_rows
from qwyc.policy.grouped import Differing, Prior
from qwyc.promise.budget import Alpha, Budget
from qwyc.promise.certificate import check_confidence, percent
from qwyc.promise.compare import Comparison, compare, group_counter
from qwyc.promise.doubtful import lost_without_limit
from qwyc.promise.limits import Limit
from qwyc.promise.observed import ClassLoss, Observed, describe_losses
from qwyc.promise.requested import budget_for
from qwyc.promise.tolerance import ToleranceBudget
from qwyc.rows.blocks import RowStream
from qwyc.rows.odd_values import ERROR, MISSING, check_unseen
from qwyc.runtime.progress import ProgressOption
from qwyc.runtime.wording import number_of

DEFAULT_CONFIDENCE = 0.95


PASS, FAIL, UNDECIDED = "pass", "fail", "undecided"


@dataclass(frozen=True)
class Verification(Observed):
    """The result of a test of a classifier's promise on rows that it has never seen."""

    outcome: str  # "pass": shown to hold; "fail": shown to be broken; "undecided": neither is shown
    budget: Budget
    confidence: float
    counts: Counts
    upper_bound: float  # on the share that differs among rows drawn like these
    full_models: int
    rows_needed: int  # the fewest rows that could have shown it
    more_rows: int | None = None  # about how many more would decide it; None where none would
    doubts: tuple[str, ...] = ()  # why the rows cannot show that it holds, as clauses
    parity: str | None = None  # what was compared with the model itself, if that was given
    groups: int = 0  # of which the rows come, where `groups` were given
    left_out: int = 0  # rows that were not counted, since the model refuses a value of theirs
    labels: tuple[str, ...] = ()  # what texts call the classes

    _repr_pretty_ = Observed._repr_pretty_  # before the __repr__ of a dataclass

    @property
    def passed(self) -> bool:
        """Whether the rows show that the promise holds."""
        return self.outcome == PASS

    @cached_property
    def classes(self) -> tuple[ClassLoss, ...]:
        """What was lost of each class, each with an exact bound on the share at the confidence."""
        return self._losses(lambda _, limit: limit.upper_bound(self.counts, self.confidence))

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        return (
            {"outcome": self.outcome, "passed": self.passed, "confidence": self.confidence}
            | self._count_facts()
            | {
                "upper_bound": self.upper_bound,
                "classes": [asdict(loss) for loss in self.classes],
                "full_models": self.full_models,
                "rows_needed": self.rows_needed,
                "more_rows": self.more_rows,
                "doubts": list(self.doubts),
                "groups": self.groups,
                "left_out": self.left_out,
                "parity": self.parity,
            }
        )

    def __str__(self) -> str:
        bound = ""
        if self.budget.alpha != 0:
            bound = f"; with {percent(self.confidence)} confidence at most {self.upper_bound:.3%}"
        text = (
            f"{self.outcome.upper()}: {self.disagreements:,} of {self.rows:,} rows {self._differ()} "
            f"({self.observed:.3%}{bound}); requested: at most {self.budget.value(self.class_names)}. "
            f"{self._lost()}{self.mean_models:.1f} of {self.full_models} base models per row."
            f"{self._counted()} {self._reason()}"
        )
        return text if self.parity is None else f"{text}\n{self.parity}"

    def _differ(self) -> str:
        target = self.budget.target
        if target.only is None:
            return f"{self.budget.differ} from the full ensemble"
        return f"left early although the full ensemble calls them {self.class_names[target.only]}"

    def _lost(self) -> str:
        if self.tolerance is not None:
            return ""
        return f"{describe_losses(self.classes)}. "

    def _counted(self) -> str:
        text = ""
        if self.left_out:
            text = (
                f" Left out, and not part of this result: {number_of(self.left_out, 'row')} with a value "
                "that the model refuses."
            )
        if self.counts.groups is None:
            return text
        return text + (
            f" The rows come from {number_of(self.groups, 'group')}, the largest of "
            f"{number_of(self.counts.groups.largest, 'row')}; groups were counted, not rows."
        )

    def _reason(self) -> str:
        level = percent(self.confidence)
        if self.doubts and self.outcome == UNDECIDED:
            return f"The rows cannot show that the limit holds: {'; '.join(self.doubts)}."
        if self.outcome == PASS:
            return f"The rows show that the limit holds.{lost_without_limit(self.budget, self.classes)}"
        if self.outcome == FAIL:
            return "The rows show that more than the limit differs: do not rely on this classifier."
        text = f"The rows are too few to decide with {level} confidence"
        if self.rows < self.rows_needed:
            text += f": at least {self.rows_needed:,} are needed"
        if self.more_rows is None:
            return (
                f"{text}. The observed share is not below the limit, so more rows with the same share "
                "would not show that it holds."
            )
        return (
            f"{text}. With the same share, about {number_of(self.more_rows, 'more row')} would show "
            "that the limit holds. To make a first verification pass, optimise with headroom."
        )


def verify(
    classifier: Classifier | Approximation,
    X: Any,
    *,
    alpha: Alpha | None = None,
    by_class: Mapping[Any, float] | None = None,
    confidence: float | None = None,
    groups: Any = None,
    model: Any = None,
    repeats: str | None = None,
    threads: int | None = None,
    progress: ProgressOption = False,
    unseen: str = ERROR,
) -> Verification:
    """Test the promise of a classifier on fresh rows that are like future rows.

    The outcome is "pass" if the rows show, by an exact binomial test at the confidence, that no more
    decisions differ than the limits allow; the limits are by default those of the certificate. It is
    "fail" if they show that more differ, and "undecided" if they show neither; the result then says about
    how many more rows would decide it. The policy was chosen because it just passes such a test, so a
    second test at the same limits is often undecided; `optimize(..., headroom=)` leaves room for it. A
    proven classifier passes if no decision differs at all, and fails otherwise. For an `Approximation`,
    outputs that are off by more than the tolerance are counted.

    With `groups`, a label per row, groups are counted instead of rows, as in `optimize`: the test is about
    the rows of new groups.

    X must not hold the rows that the classifier was made from. They are recognised, in any order and also
    in part, and InputError is raised. If many rows repeat, copies of a row are one group, unless `repeats`
    is "independent".

    X may be a data set of Spark, Ray or Dask. The engine then compares the decisions, and only counts come
    back; its rows are not checked for copies or recognised.

    `model` is the model that the classifier was made from, live or as a file. All full decisions and
    scores are then first compared with the model's own; if one differs, ParityError names the row.

    `unseen` is what happens to values that the model refuses, as in `Classifier.decide`. With "flag", their
    rows are left out, and the result says how many these are (`left_out`): it is about rows without such
    values only.
    """
    return verify_rows(
        classifier,
        X,
        alpha=alpha,
        by_class=by_class,
        confidence=confidence,
        groups=groups,
        model=model,
        repeats=repeats,
        threads=threads,
        progress=progress,
        unseen=unseen,
    )[0]


def verify_rows(
    classifier: Classifier | Approximation,
    X: Any,
    *,
    alpha: Alpha | None = None,
    by_class: Mapping[Any, float] | None = None,
    confidence: float | None = None,
    groups: Any = None,
    model: Any = None,
    repeats: str | None = None,
    threads: int | None = None,
    progress: ProgressOption = False,
    unseen: str = ERROR,
) -> tuple[Verification, Comparison | None]:
    """`verify`, and the decisions that it compared; None for a data set of an engine. With a classifier
    from a file, X may also be a `RowStream`, and `groups` may be `GroupLabels` that get their labels as the
    rows are read. Warnings point at the caller's caller."""
    if isinstance(classifier, Approximation):
        _refuse_for_outputs(classifier, X, by_class, model)
    else:
        check_classifier(classifier)
    check_unseen_rows(classifier, unseen)
    if model is not None and unseen == MISSING:
        raise OptionError(
            "the model itself gets rows as they are, so it refuses what unseen='missing' takes as missing: "
            "leave model out, or use unseen='flag'"
        )
    certificate = classifier.certificate
    budget = certificate.budget
    if isinstance(classifier, Approximation):
        if alpha is not None:
            budget = ToleranceBudget.of(alpha, classifier.rule.within)
    elif alpha is not None or by_class is not None:
        budget = budget_for(classifier.ensemble, alpha, by_class, classifier.only)
    level = certificate.confidence if confidence is None else check_confidence(confidence)
    level = DEFAULT_CONFIDENCE if level is None else level
    compared = None if model is None else _compared_model(model, classifier, X)
    proof = None
    if compared is not None and not isinstance(X, RowStream):
        sample = classifier.ensemble.sample(X, unseen)
        if not sample.is_empty:
            compared.add(sample, threads=threads)
        proof = compared.result()
    warn_of_missing_groups(classifier, groups, stacklevel=4)
    if not isinstance(classifier, Approximation) and distributed.is_distributed(X):
        if groups is not None:
            raise OptionError("groups are labels of rows in memory: draw a sample of the data set")
        sums = distributed.sums_of_policy(classifier, X, unseen=unseen)
        if not sums.rows:
            raise InputError("the data set has no rows; verifying needs rows like those to come")
        verified = _verification(classifier, budget, level, sums.counts()[0], parity=proof)
        return replace(verified, left_out=sums.left_out), None
    together = repeats_option(classifier, repeats)
    hashes, kept = RowHashes(), KeptRows()

    def look(sample: Sample) -> None:
        kept.add(sample)
        if sample.is_empty:
            return
        hashes.add(sample)
        if compared is not None and proof is None:
            compared.add(sample, threads=threads)

    watch = None if budget.is_zero else look_at_rows(classifier.ensemble, X, unseen)
    seen = compare(
        classifier,
        X,
        threads=threads,
        progress=progress,
        look=look,
        look_at_scores=None if watch is None else partial(watch.add_sample, threads=threads),
        unseen=unseen,
    )
    kept.check("verify")
    if compared is not None and proof is None:
        proof = compared.result()
    made_from = classifier.origins
    known = (made_from.sample, made_from.recertified) if certificate.how != "proven" else ()
    groups = fresh_rows(hashes.take(), known, kept.of(groups), together, stacklevel=4).groups
    sums = sum_over_rows(classifier.policy, seen.decided, seen.full, seen.steps)
    counter = grouped = None
    if groups is not None:
        differing = Differing(classifier.policy.target)
        differing.add(0, 0, seen.decided, seen.full)
        counter = group_counter(groups, len(seen.steps), differing)
    if counter is not None and not counter.alone:
        grouped = counter.groups()
    counts = sums.counts(grouped)[0]
    if counts.groups is not None:
        counts = replace(counts, groups=replace(counts.groups, prior=_prior(classifier)))
    found = None if watch is None else watch.closeness()
    doubts = doubts_of(found, "these rows cannot show that the promise holds", stacklevel=4)
    n_groups = 0 if counter is None else counter.n_groups
    result = _verification(classifier, budget, level, counts, doubts, proof, n_groups)
    return replace(result, left_out=seen.left_out), seen


def _refuse_for_outputs(made: Approximation, X: Any, by_class: Any, model: Any) -> None:
    """Refuse what a test of outputs within a tolerance does not take."""
    if by_class is not None:
        raise OptionError("outputs within a tolerance have no limits by class: leave out by_class")
    if distributed.is_distributed(X):
        raise OptionError(
            "outputs within a tolerance are verified on rows in memory: draw a sample with "
            "qwyc.distributed.sample"
        )
    if model is not None and not made.ensemble.has_classes:
        raise OptionError(
            "a model of values cannot be compared here: leave model out, and compare "
            "qwyc.read_model(model).predict(X) with the model's own predict"
        )


def check_unseen_rows(classifier: Classifier | Approximation, unseen: Any) -> None:
    """Refuse an option `unseen` that cannot be used with a classifier."""
    if check_unseen(unseen) == ERROR:
        return
    classifier.ensemble.schema_of_values(unseen)


def _verification(
    classifier: Classifier | Approximation,
    budget: Budget,
    level: float,
    counts: Counts,
    doubts: tuple[str, ...] = (),
    parity: str | None = None,
    groups: int = 0,
) -> Verification:
    whole = Limit(1.0, tuple(range(len(counts.differences))))
    outcome = _outcome(budget, counts, level)
    return Verification(
        outcome=UNDECIDED if doubts and outcome == PASS else outcome,
        budget=budget,
        confidence=level,
        counts=counts,
        upper_bound=whole.upper_bound(counts, level),
        full_models=classifier.policy.n_models,
        rows_needed=_rows_needed(budget, counts, level),
        more_rows=_more_rows(budget, counts, level),
        doubts=doubts,
        parity=parity,
        groups=groups,
        labels=classifier.ensemble.class_names,
    )


def _prior(classifier: Classifier | Approximation) -> Prior | None:
    """What is known about groups from the rows that the classifier was fitted on."""
    if classifier.choices is None or classifier.choices.evidence.counts.groups is None:
        return None
    known = classifier.choices.evidence.counts.groups.prior
    return None if known is None else known[classifier.choices.index_of(classifier.policy)]


def _rows_needed(budget: Budget, counts: Counts, confidence: float) -> int:
    """The fewest rows that could show the limits; about so many where groups are counted."""
    if counts.groups is None:
        return budget.rows_needed(confidence)
    needed = [limit.groups_needed(counts, confidence) or 1 for limit in budget.limits]
    return math.ceil(max(needed) * counts.rows / len(counts.groups))


def warn_of_missing_groups(
    classifier: Classifier | Approximation, groups: Any, *, stacklevel: int = 3
) -> None:
    """Warn where a classifier was certified by groups, and rows are to be counted instead. The warning
    points at the caller of the function that calls this, or so many levels up."""
    if groups is None and classifier.certificate.counts.groups is not None:
        warnings.warn(
            "the classifier was certified by groups of rows, but these rows are counted one by one, as "
            "independent draws: pass groups",
            QwycWarning,
            stacklevel=stacklevel,
        )


def _outcome(budget: Budget, counts: Counts, confidence: float) -> str:
    if budget.passes(counts, confidence):
        return PASS
    return FAIL if budget.fails(counts, confidence) else UNDECIDED


def _more_rows(budget: Budget, counts: Counts, confidence: float) -> int | None:
    """How many more rows, with the same share of differences, would show that every limit holds."""
    missing = 0
    for limit in budget.limits:
        if limit.passes(counts, confidence):
            continue
        rows, needed = limit.counted(counts)[1], limit.rows_like(counts, confidence)
        if needed is None:
            return None
        # Rows of one class come with rows of the other.
        missing = max(missing, math.ceil((needed - rows) * counts.rows / max(rows, 1)))
    return max(missing, 0)


def _compared_model(model: Any, classifier: Classifier | Approximation, X: Any) -> ComparedModel:
    if classifier.ensemble.source is None:
        raise OptionError(
            f"a classifier of {classifier.ensemble.description} has no model to compare with"
        )
    if distributed.is_distributed(X):
        raise OptionError(
            "with the model itself, rows in memory are compared: pass a sample, "
            "qwyc.distributed.sample(data, 100_000)"
        )
    return ComparedModel(model, classifier.ensemble)
