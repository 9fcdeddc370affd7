"""Certificates: what is known about how often a classifier differs from the full ensemble."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from qwyc.errors import OptionError, QwycWarning
from qwyc.policy.counts import Counts, sum_over_rows
from qwyc.policy.policy import Policy
from qwyc.policy.scores import ScoreMatrix
from qwyc.promise.budget import Budget
from qwyc.runtime.arguments import is_number
from qwyc.target.two_classes import NEGATIVE, POSITIVE, TwoClasses


class Observed:
    """A statement about counted rows: the counts' numbers under their usual names."""

    counts: Counts
    budget: Budget

    @property
    def alpha(self) -> float | dict[str, float]:
        """The share that may differ: in all, or by kind of difference."""
        return self.budget.alpha

    @property
    def rows(self) -> int:
        """How many rows the statement rests on."""
        return self.counts.rows

    @property
    def full_positive(self) -> int:
        """How many of the rows the full ensemble calls positive."""
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

    def _count_facts(self) -> dict[str, Any]:
        """The counts as plain values, for JSON."""
        return {
            "alpha": self.alpha,
            "rows": self.rows,
            "full_positive": self.full_positive,
            "negative": self.negative,
            "positive": self.positive,
            "mean_models": self.mean_models,
        }


@dataclass(frozen=True)
class Certificate(Observed):
    """How often decisions differ from the full ensemble's, and on what that statement rests."""

    budget: Budget  # what was requested
    confidence: float | None  # with which the bound holds on new rows; None: no such promise
    counts: Counts  # what the policy did on the rows that the statement rests on
    upper_bound: float | None  # on the share that differs among new rows, at `confidence`
    full_cost: float  # what all base models cost
    how: str  # "held-out", "in-sample" (the rows it was fitted on) or "proven"
    fit_rows: int  # rows that order and thresholds were fitted on
    seed: int
    sample: str  # digest of the sample that it was made from, "" where there was none
    groups: int = 0  # of which the rows come, where `groups` were given

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        return self._count_facts() | {
            "confidence": self.confidence,
            "upper_bound": self.upper_bound,
            "mean_cost": self.mean_cost,
            "full_cost": self.full_cost,
            "how": self.how,
            "fit_rows": self.fit_rows,
            "seed": self.seed,
            "sample": self.sample,
            "groups": self.groups,
        }

    def __str__(self) -> str:
        if self.how == "proven":
            return "Proven: no input whatsoever is decided differently from the full ensemble."
        if self.how == "in-sample":
            return (
                f"In-sample, not a promise for new rows: {self.observed:.2%} of the {self.rows:,} rows "
                f"it was fitted on are decided differently (requested: {self.budget.at_most})."
            )
        sentence = (
            f"With {percent(self.confidence)} confidence, "
            f"{self.budget.statement(('negative', 'positive'))} "
            f"(held out: {self.budget.describe_counts(self.counts)} of {self.rows:,} rows, with "
            f"{self.negative:,} of {self.full_positive:,} positives lost; bound {self.upper_bound:.3%}; "
            f"fitted on {self.fit_rows:,} others, seed {self.seed}, sample {self.sample[:8]})."
        )
        if self.groups:
            sentence += (
                f" The rows come from {self.groups:,} groups but are counted as independent draws: the "
                "more alike the rows of a group are, the less certain the statement is."
            )
        return sentence


def check_confidence(confidence: Any) -> float:
    """`confidence` as a probability."""
    if not is_number(confidence):
        raise OptionError(f"confidence must be a number such as 0.95; got {confidence!r}")
    if not 0 < confidence < 1:
        raise OptionError(f"confidence is a probability between 0 and 1; got {confidence!r}")
    return float(confidence)


def observed_certificate(
    how: str,
    budget: Budget,
    policy: Policy,
    scores: ScoreMatrix | None,
    *,
    seed: int = 0,
    threads: int | None = None,
) -> Certificate:
    """What a policy does on a sample, without a promise ("in-sample") or beside a proof ("proven"),
    which needs no sample."""
    counts, sample = Counts.without_rows(policy), ""
    if scores is not None:
        decisions, full = policy.apply(scores, threads=threads), policy.target.decide(scores.full)
        counts = sum_over_rows(policy, decisions.label, full, decisions.steps).counts()[0]
        sample = scores.digest
    proven = how == "proven"
    return Certificate(
        budget=budget,
        confidence=None,
        counts=counts,
        upper_bound=0.0 if proven else None,
        full_cost=float(policy.costs.sum()),
        how=how,
        fit_rows=0 if proven else counts.rows,
        seed=seed,
        sample=sample,
    )


def warn_of_rare_classes(certificate: Certificate, quit: str) -> None:
    """Warn where the budget, a share of all rows, is as large as half of a class. The warning points at
    the caller of the function that calls this."""
    rows, names = certificate.rows, TwoClasses.differences
    for kind, difference in enumerate(names):
        rare = names[1 - kind]  # rows of this class are lost where they differ so
        n = certificate.counts.by_class[1 - kind]
        share = certificate.budget.share_of(difference)
        if quit not in ("both", difference) or share * rows < n / 2:
            continue
        if n:
            said = (
                f"the full ensemble calls only {n:,} of {rows:,} rows {rare}, and half of those or more "
                f"may be called {difference}. Ask for a share well below {100 * n / rows:.2g}%"
            )
        else:
            said = (
                f"the full ensemble calls none of {rows:,} rows {rare}, so nothing is known about such "
                "rows"
            )
        warnings.warn(
            f"alpha = {100 * share:.4g}% is too large for this sample: {said}",
            QwycWarning,
            stacklevel=3,
        )


def percent(confidence: float | None) -> str:
    """A confidence as a percentage, such as "95%"."""
    return f"{100 * (confidence or 0):.10g}%"
