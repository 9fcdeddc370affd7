"""verify: whether a classifier keeps its promise on rows that had no part in making it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qwyc import distributed
from qwyc.check.parity import compare_with_model
from qwyc.classifier import Classifier, check_classifier
from qwyc.errors import InputError, OptionError
from qwyc.policy.counts import Counts
from qwyc.promise.binomial import upper_bound
from qwyc.promise.budget import Alpha, Budget, budget_of
from qwyc.promise.certificate import Observed, check_confidence, percent
from qwyc.promise.compare import sums_of_policy
from qwyc.runtime.progress import ProgressOption

DEFAULT_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Verification(Observed):
    """Whether rows that the classifier has never seen confirm its promise."""

    passed: bool
    budget: Budget
    confidence: float
    counts: Counts
    upper_bound: float  # on the share that differs among new rows
    full_models: int
    rows_needed: int  # the fewest rows that could have shown it
    parity: str | None = None  # what was compared with the model itself, if that was given

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        return (
            {"passed": self.passed, "confidence": self.confidence}
            | self._count_facts()
            | {
                "upper_bound": self.upper_bound,
                "full_models": self.full_models,
                "rows_needed": self.rows_needed,
                "parity": self.parity,
            }
        )

    def __str__(self) -> str:
        text = (
            f"{'PASS' if self.passed else 'FAIL'}: {self.disagreements:,} of {self.rows:,} rows are "
            f"decided differently from the full ensemble ({self.observed:.3%}; with "
            f"{percent(self.confidence)} confidence at most {self.upper_bound:.3%}), with "
            f"{self.negative:,} of {self.full_positive:,} positives lost and {self.positive:,} gained; "
            f"requested: {self.budget.at_most}; {self.mean_models:.1f} of {self.full_models} base models "
            "per row."
        )
        if not self.passed and self.rows < self.rows_needed:
            text += f" {self.rows:,} rows are too few to show it: at least {self.rows_needed:,} are needed."
        elif not self.passed and self.budget.covers(self.counts):
            text += (
                " The observed share is within alpha, but these rows do not show with that confidence that "
                "the true share is: verify on more rows, or optimise for a smaller alpha."
            )
        return text if self.parity is None else f"{text}\n{self.parity}"


def verify(
    classifier: Classifier,
    X: Any,
    *,
    alpha: Alpha | None = None,
    confidence: float | None = None,
    model: Any = None,
    threads: int | None = None,
    progress: ProgressOption = False,
) -> Verification:
    """Test what a classifier promises, on fresh rows like those to come.

    It passes where the exact binomial bound on the share that differs is within alpha, by default
    what the certificate promises; a proven classifier passes where no decision differs at all.

    X may be a data set of Spark, Ray or Dask: the engine compares, and counts only come back.

    With `model`, the model that the classifier was made from, live or its file, all full decisions
    and scores are compared with the model's own first: ParityError, naming a row, where one differs.
    """
    check_classifier(classifier)
    certificate = classifier.certificate
    budget = certificate.budget if alpha is None else budget_of(alpha)
    level = certificate.confidence if confidence is None else check_confidence(confidence)
    level = DEFAULT_CONFIDENCE if level is None else level
    proof = None if model is None else _compare_with(model, classifier, X, threads)
    if distributed.is_distributed(X):
        sums = distributed.sums_of_policy(classifier, X)
        if not sums.rows:
            raise InputError("the data set has no rows; verifying needs rows like those to come")
    else:
        sums = sums_of_policy(classifier, X, threads=threads, progress=progress)
    counts = sums.counts()[0]
    return Verification(
        passed=budget.passes(counts, level),
        budget=budget,
        confidence=level,
        counts=counts,
        upper_bound=upper_bound(counts.disagreements, counts.rows, level),
        full_models=classifier.policy.n_models,
        rows_needed=budget.rows_needed(level),
        parity=proof,
    )


def _compare_with(model: Any, classifier: Classifier, X: Any, threads: int | None) -> str:
    if classifier.ensemble.source is None:
        raise OptionError(
            f"a classifier of {classifier.ensemble.description} has no model to compare with"
        )
    if distributed.is_distributed(X):
        raise OptionError(
            "with the model itself, rows in memory are compared: pass a sample, "
            "qwyc.distributed.sample(data, 100_000)"
        )
    return compare_with_model(model, X, classifier.ensemble, threads=threads)
