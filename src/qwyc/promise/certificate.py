"""Certificates: what is known about how often a classifier differs from the full ensemble."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from qwyc.errors import OptionError
from qwyc.policy.counts import Counts, sum_over_rows
from qwyc.policy.features import FeatureUse
from qwyc.policy.filter_policy import ClassPolicy
from qwyc.policy.policy import Policy
from qwyc.policy.scores import ScoreMatrix
from qwyc.promise.binomial import tail
from qwyc.promise.budget import Budget
from qwyc.promise.limits import Limit
from qwyc.promise.observed import ClassLoss, Observed, describe_losses
from qwyc.promise.windows import Window
from qwyc.runtime.arguments import is_number
from qwyc.runtime.wording import number_of
from qwyc.target.two_classes import TwoClasses

BATCH = 1000  # new rows, in the sentence about what a batch may show


@dataclass(frozen=True)
class Certificate(Observed):
    """How often decisions differ from the full ensemble's, and the evidence for that statement."""

    budget: Budget  # what was requested
    confidence: float | None  # with which it holds on new rows; None: no such promise
    counts: Counts  # what the policy did on the rows that the statement rests on
    full_cost: float  # what all base models cost
    how: str  # "held-out", "in-sample" (the rows it was fitted on) or "proven"
    fit_rows: int  # rows that order and thresholds were fitted on
    seed: int
    sample: str  # digest of the sample that it was made from, "" where there was none
    groups: int = 0  # of which the rows come, where `groups` were given
    policies: int = 1  # that the policy was chosen from on these rows
    quit: str = "both"  # which rows the policy lets quit: "both", "negative", "positive" or "never"
    headroom: int = 0  # rows of a later verification that room was left for
    doubts: tuple[str, ...] = ()  # why nothing is promised, as clauses; none where it is
    windows: tuple[Window, ...] = ()  # where rows have an order; the counts are those of the latest
    left_out: int = 0  # rows that were not counted, since the model refuses a value of theirs
    # Digest of the rows of `recertify` that it rests on, "" where they were not in memory; None: it rests
    # on a part of the sample.
    recertified: str | None = None
    # Which features rows need along the order; None where it is not known. `Certified` fills it in.
    features: FeatureUse | None = field(default=None, compare=False, repr=False)
    labels: tuple[str, ...] = field(default=(), compare=False, repr=False)  # filled in likewise

    # IPython takes the first class that has either method, and a dataclass has a __repr__ of its own.
    _repr_pretty_ = Observed._repr_pretty_

    @property
    def holds(self) -> bool:
        """Whether anything is promised about new rows."""
        return self.how == "proven" or (self.how == "held-out" and not self.doubts)

    @property
    def mean_features(self) -> float | None:
        """Features that a row needs before it is decided, on average; None where it is not known."""
        use = self._counted_features
        return None if use is None else use.mean_count(self.counts.stops)

    @property
    def mean_feature_cost(self) -> float | None:
        """What those features cost, which is a part of `mean_cost`; None where it is not known."""
        use = self._counted_features
        return None if use is None else use.mean_cost(self.counts.stops)

    @property
    def _counted_features(self) -> FeatureUse | None:
        return self.features if any(self.counts.stops) else None

    @cached_property
    def upper_bound(self) -> float | None:
        """With the stated confidence, at most this share of rows drawn like the sample is decided
        differently; None where nothing is promised.

        The policy was chosen by looking at the rows, so a bound for one fixed policy would be too small.
        This is alpha where alpha limits all rows, since that is what the choice was tested for. Otherwise
        it is a bound that holds for all policies of the path together."""
        if not self.holds:
            return None
        if self.how == "proven" or self.quit == "never":
            return 0.0
        whole = Limit(1.0, tuple(range(len(self.budget.target.differences))))
        return self._bound(whole) if self.budget.total is None else self.budget.total

    @cached_property
    def classes(self) -> tuple[ClassLoss, ...]:
        """What was lost of each class, with a bound on the share lost that holds with the stated
        confidence: the class's own limit where it has one, otherwise a bound that holds for all policies
        of the path together."""
        return self._losses(self._bound_of_class)

    def _bound_of_class(self, index: int, limit: Limit) -> float | None:
        if not self.holds:
            return None
        if self.how == "proven" or not self.can_lose(index):
            return 0.0
        own = self.budget.by_class.get(index)
        return self._bound(limit) if own is None else own

    def can_lose(self, index: int) -> bool:
        """Whether the policy can decide a row of a class, by its index, differently at all."""
        target = self.budget.target
        if target is not TwoClasses:
            return self.quit != "never" and index in target.at_risk
        ways = {target.differences[way] for way in target.lost_from(index)}
        return self.quit == "both" or self.quit in ways

    def _bound(self, limit: Limit) -> float:
        assert self.confidence is not None
        return limit.upper_bound(self.counts, 1 - (1 - self.confidence) / self.policies)

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        return self._count_facts() | {
            "confidence": self.confidence,
            "upper_bound": self.upper_bound,
            "classes": [asdict(loss) for loss in self.classes],
            "mean_cost": self.mean_cost,
            "full_cost": self.full_cost,
            "mean_features": self.mean_features,
            "mean_feature_cost": self.mean_feature_cost,
            "how": self.how,
            "fit_rows": self.fit_rows,
            "seed": self.seed,
            "sample": self.sample,
            "groups": self.groups,
            "headroom": self.headroom,
            "doubts": list(self.doubts),
            "left_out": self.left_out,
            "recertified": None
            if self.recertified is None
            else {"rows": self.rows, "sample": self.recertified or None},
            "windows": [
                asdict(window) | {"rows": window.rows, "interval": self._interval(window)}
                for window in self.windows
            ],
        }

    def __str__(self) -> str:
        return f"{self.promise} {self.basis}".rstrip()

    @property
    def promise(self) -> str:
        """What is promised about new rows, or why nothing is, in sentences."""
        if self.how == "proven":
            return "Proven: no input whatsoever is decided differently from the full ensemble."
        if self.how == "in-sample":
            return (
                f"In-sample, not a promise for new rows: {self.observed:.2%} of the {self.rows:,} rows "
                f"it was fitted on are decided differently (requested: {self._requested})."
            )
        if self.doubts:
            return (
                f"No promise for new rows: {'; '.join(self.doubts)}. Requested: {self._requested}."
            )
        if self.quit == "never":
            what = "decision" if self.tolerance is None else "output"
            return f"Every row is evaluated in full, so no {what} differs from the full ensemble's."
        return (
            f"With {percent(self.confidence)} confidence, {self.budget.statement(self.class_names)}. "
            f"{self._meaning()}"
        )

    @property
    def basis(self) -> str:
        """The rows that the promise rests on, and what they showed, in a sentence; "" for a proof and for
        rows that were fitted on."""
        if self.how in ("proven", "in-sample"):
            return ""
        rests_on = "Held out" if self.recertified is None else "Recertified on other rows"
        if self.recertified:
            rests_on += f", digest {self.recertified[:8]}"
        counted = f"{self.budget.describe_counts(self.counts)} of {self.rows:,} rows"
        parts = [f"{rests_on}: {counted} {self.budget.differ}"]
        if self.tolerance is None and (self.doubts or self.quit != "never"):
            parts.append(describe_losses(self.classes))
        if self.left_out:
            parts.append(f"{number_of(self.left_out, 'row')} with refused values left out")
        parts.append(
            f"fitted on {self.fit_rows:,} others, seed {self.seed}, sample {self.sample[:8]}"
        )
        return f"{'; '.join(parts)}."

    @property
    def _requested(self) -> str:
        return f"at most {self.budget.value(self.class_names)}"

    @property
    def window_table(self) -> list[str]:
        """What was decided differently in each window, a line each; none where rows have no order."""
        width = max((len(f"{w.first} to {w.last}") for w in self.windows), default=0)
        lines = []
        for window in self.windows:
            low, high = self._interval(window)
            lines.append(
                f"{window.first + ' to ' + window.last:<{width}}  {window.disagreements:>6,} of "
                f"{window.rows:>8,} rows  {window.share:.3%} ({low:.3%} to {high:.3%})"
            )
        return lines

    def _interval(self, window: Window) -> tuple[float, float]:
        return window.interval(self.confidence or 0.95)

    def _meaning(self) -> str:
        """What the promise is about, and what it is not."""
        share, grouped = self.budget.total, self.counts.groups
        text = "This is about rows drawn like the sample"
        if self.windows:
            latest = self.windows[-1]
            text = (
                "This is about rows drawn like those of the latest window, "
                f"{latest.first} to {latest.last}"
            )
        if grouped is not None:
            text = (
                "This is about rows in new groups drawn like those of the sample. Groups of "
                f"rows were counted ({self.groups:,} of them), not rows; the largest has "
                f"{grouped.cap(None):,} rows, and nothing is known about larger ones"
            )
        elif share is not None:
            most = 0
            while tail(most, BATCH, share) < 0.95:
                most += 1
            text += f"; among {BATCH:,} of them, up to {most:,} may differ by chance"
        if self.groups and grouped is None and self.groups < self.rows:
            text += (
                f". The rows come from {number_of(self.groups, 'group')} but were counted as independent "
                "draws: certify them again with groups"
            )
        if self.headroom:
            text += f". A verification on {self.headroom:,} other rows is expected to pass"
        return text + "."


def check_confidence(confidence: Any) -> float:
    """`confidence` as a probability."""
    if not is_number(confidence):
        raise OptionError(f"confidence must be a number such as 0.95; got {confidence!r}")
    if not 0 < confidence < 1:
        raise OptionError(
            f"confidence is a probability between 0 and 1, such as 0.95; got {confidence!r}"
        )
    return float(confidence)


def observed_certificate(
    how: str,
    budget: Budget,
    policy: Policy | ClassPolicy,
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
        full_cost=float(policy.costs.sum()),
        how=how,
        fit_rows=0 if proven else counts.rows,
        seed=seed,
        sample=sample,
        quit=policy.quit,
    )


def percent(confidence: float | None) -> str:
    """A confidence as a percentage, such as "95%"."""
    return f"{100 * (confidence or 0):.10g}%"
