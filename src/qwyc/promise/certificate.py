"""Certificates: what is known about how often a classifier differs from the full ensemble.

The policy is fitted on one part of the sample. On the other part, which had no say in it, the family of
policies is tested from the cautious end by an exact binomial test, stopping at the first failure; the
boldest that passed is taken. Then P(disagreement on new rows <= alpha) >= confidence, whatever the
family, as long as new rows are drawn like the certifying ones."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import InfeasibleError, InputError, OptionError, QwycWarning
from qwyc.policy.counts import count_flips
from qwyc.policy.fit.stopping import Path
from qwyc.policy.policy import Policy
from qwyc.policy.scores import ScoreMatrix
from qwyc.promise.binomial import rows_needed, tail, upper_bound
from qwyc.rows.categories import is_null
from qwyc.runtime.arguments import check_alpha, is_number

ENOUGH_TO_FIT = 20_000  # more rows hardly help the fit; they are worth more for certifying
FEWEST_TO_FIT = 200
LEAST_ALPHA = 1e-9  # a sample of billions of rows without a flip

Alpha = float | Mapping[str, float]


@dataclass(frozen=True)
class Certificate:
    """How often decisions differ from the full ensemble's, and on what that statement rests."""

    alpha: float | dict[str, float]  # what was asked for, in all or by kind
    confidence: float | None  # with which the bound holds on new rows; None: no such promise
    rows: int  # how many rows it rests on
    full_positive: int  # of them, by the full ensemble
    negative: int  # of them full-positive, called negative
    positive: int  # of them full-negative, called positive
    upper_bound: float | None  # on the share that differs among new rows, at `confidence`
    mean_models: float  # base models evaluated per row, on the same rows
    mean_cost: float  # what they cost, by the policy's costs
    full_cost: float  # what all base models cost
    how: str  # "held-out", "in-sample" (the rows it was fitted on) or "proven"
    fit_rows: int  # rows that order and thresholds were fitted on
    seed: int
    sample: str  # digest of the sample that it was made from, "" where there was none
    groups: int = 0  # of which the rows come, where `groups` were given

    @property
    def disagreements(self) -> int:
        """How many of the rows were decided differently."""
        return self.negative + self.positive

    @property
    def observed(self) -> float:
        """The share of the rows that was decided differently; 0 for no rows."""
        return self.disagreements / self.rows if self.rows else 0.0

    def __str__(self) -> str:
        if self.how == "proven":
            return "Proven: no input whatsoever is decided differently from the full ensemble."
        most = shown(self.alpha)
        if self.how == "in-sample":
            return (
                f"In-sample, not a promise for new rows: {self.observed:.2%} of the {self.rows:,} rows "
                f"it was fitted on are decided differently (asked: {most})."
            )
        differ, seen = (
            f"new rows are decided differently in {most} of cases",
            f"{self.disagreements:,}",
        )
        if isinstance(self.alpha, Mapping):
            negative, positive = (f"{100 * self.alpha[k]:.4g}%" for k in ("negative", "positive"))
            differ = (
                f"at most {negative} of new rows are decided negative instead of positive, and "
                f"{positive} the other way round"
            )
            seen = f"{self.negative:,} and {self.positive:,}"
        sentence = (
            f"With {percent(self.confidence)} confidence, {differ} "
            f"(held out: {seen} of {self.rows:,} rows, with {self.negative:,} of "
            f"{self.full_positive:,} positives lost; bound {self.upper_bound:.3%}; "
            f"fitted on {self.fit_rows:,} others, seed {self.seed}, sample {self.sample[:8]})."
        )
        if self.groups:
            sentence += (
                f" Rows are counted as independent draws; they come from {self.groups:,} groups, so it "
                "holds less surely the more alike the rows of a group are."
            )
        return sentence


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a path's members did on rows that had no part in fitting them."""

    rows: int
    full_positive: int  # of them
    flips: npt.NDArray[
        np.int64
    ]  # (K, 2) full-positive called negative, full-negative called positive
    mean_models: npt.NDArray[np.float64]  # (K,) base models per row
    mean_cost: npt.NDArray[np.float64]  # (K,)
    fit_rows: int
    fit_flips: npt.NDArray[np.int64]  # (K, 2) the same on the fitting rows: how optimistic they are
    seed: int
    sample: str  # digest of the sample, of which the fitting rows are a part
    groups: int = 0  # held out, where `groups` were given

    def boldest(self, alpha: Alpha, confidence: float) -> int:
        """Fixed-sequence testing from the cautious end: the member before the first that fails."""
        passed = [passes(flips, self.rows, alpha, confidence) for flips in self.flips]
        if not passed[0]:
            raise InfeasibleError(
                f"alpha = {asked(alpha)} at confidence {confidence:g} needs at least "
                f"{rows_to_certify(alpha, confidence):,} certifying rows; there are {self.rows:,}. Certify "
                "on more rows, which recertify does without fitting again, or ask for a larger alpha."
            )
        return passed.index(False) - 1 if False in passed else len(passed) - 1

    def boldest_at_each(
        self, alphas: Iterable[float], confidence: float
    ) -> Iterator[tuple[float, int]]:
        """Each alpha that this can certify, and the member that is then taken."""
        for alpha in alphas:
            with suppress(InfeasibleError):
                yield alpha, self.boldest(alpha, confidence)


@dataclass(frozen=True, eq=False)
class Choices:
    """A path and what is known of its members: what the policy for an alpha is chosen from."""

    path: Path
    evidence: Evidence

    def choose(
        self, alpha: float | dict[str, float], confidence: float
    ) -> tuple[Policy, Certificate]:
        """The boldest policy that passes, and its certificate."""
        return self.member(self.evidence.boldest(alpha, confidence), alpha, confidence)

    def member(
        self, k: int, alpha: float | dict[str, float], confidence: float
    ) -> tuple[Policy, Certificate]:
        """The k-th policy and its certificate, for an alpha at which it passes."""
        seen = self.evidence
        negative, positive = (int(v) for v in seen.flips[k])
        return self.path[k], Certificate(
            alpha=alpha,
            confidence=confidence,
            rows=seen.rows,
            full_positive=seen.full_positive,
            negative=negative,
            positive=positive,
            upper_bound=upper_bound(negative + positive, seen.rows, confidence),
            mean_models=float(seen.mean_models[k]),
            mean_cost=float(seen.mean_cost[k]),
            full_cost=float(self.path.costs.sum()),
            how="held-out",
            fit_rows=seen.fit_rows,
            seed=seen.seed,
            sample=seen.sample,
            groups=seen.groups,
        )


def check_budget(alpha: Any) -> float | dict[str, float]:
    """`alpha` as a share, or as shares by kind of disagreement, each above 0."""
    if not isinstance(alpha, Mapping):
        share = check_alpha(alpha)
        if 0 < share < LEAST_ALPHA:
            raise OptionError(
                f"alpha = {share!r} is less than any sample could show; alpha=0 is proven without one"
            )
        return share
    if set(alpha) != {"negative", "positive"}:
        raise OptionError(
            "alpha by kind needs both 'negative' (full-positive rows called negative) and 'positive' "
            f"(the reverse); got {sorted(map(str, alpha))}"
        )
    budget = {kind: check_alpha(alpha[kind]) for kind in ("negative", "positive")}
    if min(budget.values()) < LEAST_ALPHA:
        raise OptionError("alpha by kind must be above 0 for both kinds; alpha=0 proves both")
    return budget


def check_confidence(confidence: Any) -> float:
    """`confidence` as a probability."""
    if not is_number(confidence):
        raise OptionError(f"confidence must be a number such as 0.95; got {confidence!r}")
    if not 0 < confidence < 1:
        raise OptionError(f"confidence is a probability between 0 and 1; got {confidence!r}")
    return float(confidence)


def split_sample(
    n_rows: int, alpha: Alpha, confidence: float, groups: Any, seed: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Rows to fit on and rows to certify on, each ascending: half and half, but no more than 20,000 to
    fit on, and enough to certify. A group stays on one side."""
    certify_at_least = rows_to_certify(alpha, confidence)
    if n_rows < certify_at_least + FEWEST_TO_FIT:
        raise InfeasibleError(
            f"alpha = {asked(alpha)} at confidence {confidence:g} needs at least "
            f"{certify_at_least + FEWEST_TO_FIT:,} rows ({certify_at_least:,} to certify, "
            f"{FEWEST_TO_FIT} to fit on); the sample has {n_rows:,}. Pass more rows, or ask for a larger "
            "alpha."
        )
    n_fit = max(FEWEST_TO_FIT, min(ENOUGH_TO_FIT, n_rows // 2, n_rows - certify_at_least))
    shuffled = np.random.default_rng(seed)
    if groups is None:
        chosen = np.zeros(n_rows, dtype=bool)
        chosen[shuffled.permutation(n_rows)[:n_fit]] = True
        return np.flatnonzero(chosen), np.flatnonzero(~chosen)
    group = group_numbers(groups, n_rows)
    n_groups = int(group.max()) + 1
    size = np.bincount(group)
    fits = np.zeros(n_groups, dtype=bool)
    taken = 0
    for g in shuffled.permutation(n_groups):  # each that still fits
        if taken + size[g] <= n_fit:
            fits[g] = True
            taken += int(size[g])
    chosen = fits[group]
    n_certify = int(np.count_nonzero(~chosen))
    if n_certify < certify_at_least or np.count_nonzero(chosen) < FEWEST_TO_FIT:
        raise InfeasibleError(
            f"with these {n_groups:,} groups, {n_certify:,} rows are left to certify and "
            f"{np.count_nonzero(chosen):,} to fit on; alpha = {asked(alpha)} at confidence "
            f"{confidence:g} needs {certify_at_least:,} and {FEWEST_TO_FIT}. Pass more or smaller groups."
        )
    return np.flatnonzero(chosen), np.flatnonzero(~chosen)


def group_numbers(groups: Any, n_rows: int) -> npt.NDArray[np.intp]:
    """Each row's group as a number from 0, in the order in which groups appear."""
    try:
        labels = list(
            groups.to_list() if hasattr(groups, "to_list") else np.asarray(groups).tolist()
        )
        known: dict[Any, int] = {}
        numbers = [known.setdefault(label, len(known)) for label in labels]
    except (TypeError, ValueError) as error:
        raise OptionError(f"groups must be one plain label per row: {error}") from None
    if len(labels) != n_rows:
        raise OptionError(f"groups must be {n_rows} values, one per row; got {len(labels)}")
    for i, label in enumerate(labels):
        if is_null(label):
            raise InputError(f"groups must be known for every row; row {i} has none: {label!r}")
    return np.array(numbers, dtype=np.intp)


def observed_certificate(
    how: str,
    alpha: float | dict[str, float],
    policy: Policy,
    scores: ScoreMatrix | None,
    *,
    seed: int = 0,
    threads: int | None = None,
) -> Certificate:
    """What a policy does on a sample, without a promise ("in-sample") or beside a proof ("proven"),
    which may do without a sample."""
    rows, full_positive, flips, sample = 0, 0, (0, 0), ""
    mean_models, mean_cost = float(policy.n_models), float(policy.costs.sum())
    if scores is not None:
        decisions = policy.apply(scores, threads=threads)
        rows, sample = len(decisions), scores.digest
        full = scores.full >= policy.threshold
        full_positive, flips = int(full.sum()), count_flips(decisions.label.astype(bool), full)
        mean_models = float(decisions.steps.mean())
        mean_cost = policy.mean_cost(decisions.steps)
    return Certificate(
        alpha=alpha,
        confidence=None,
        rows=rows,
        full_positive=full_positive,
        negative=flips[0],
        positive=flips[1],
        upper_bound=0.0 if how == "proven" else None,
        mean_models=mean_models,
        mean_cost=mean_cost,
        full_cost=float(policy.costs.sum()),
        how=how,
        fit_rows=0 if how == "proven" else rows,
        seed=seed,
        sample=sample,
    )


def warn_of_rare_classes(certificate: Certificate, quit: str) -> None:
    """A share of all rows may be all rows of a rare class. Points at who called our caller."""
    alpha, rows, positives = certificate.alpha, certificate.rows, certificate.full_positive
    for kind, rest, n in (
        ("negative", "positive", positives),
        ("positive", "negative", rows - positives),
    ):
        allowed = alpha[kind] if isinstance(alpha, Mapping) else alpha
        if quit in ("both", kind) and allowed * rows >= n / 2:
            few = f"only {n:,} of {rows:,} rows {rest}, and half of those or more may be called {kind}"
            none = f"none of {rows:,} rows {rest}, so nothing is known of what becomes of such rows"
            less = f". Ask for a share well below {100 * n / rows:.2g}%" if n else ""
            warnings.warn(
                f"alpha = {100 * allowed:.4g}% is much here: the full ensemble calls "
                f"{few if n else none}{less}",
                QwycWarning,
                stacklevel=3,
            )


def passes(flips: npt.NDArray[np.int64], rows: int, alpha: Alpha, confidence: float) -> bool:
    """Whether so few flips would be rare if the true share were alpha or more."""
    if not isinstance(alpha, Mapping):
        return tail(int(flips.sum()), rows, alpha) <= 1 - confidence
    # Two statements, both to hold with `confidence`: each gets half of what may go wrong.
    rest = (1 - confidence) / 2
    kinds = zip(("negative", "positive"), flips, strict=True)
    return all(tail(int(count), rows, alpha[kind]) <= rest for kind, count in kinds)


def rows_to_certify(alpha: Alpha, confidence: float) -> int:
    """The fewest rows, without a single flip, that certify alpha."""
    if not isinstance(alpha, Mapping):
        return rows_needed(alpha, confidence)
    return max(rows_needed(share, confidence, statements=2) for share in alpha.values())


def shown(alpha: Alpha) -> str:
    """What was asked for, in words."""
    if not isinstance(alpha, Mapping):
        return f"at most {alpha:.4g}" if alpha < 1e-4 else f"at most {100 * alpha:.4g}%"
    shares = [f"{100 * alpha[kind]:.4g}% {kind}" for kind in ("negative", "positive")]
    return f"at most {' and '.join(shares)}"


def percent(confidence: float | None) -> str:
    """A confidence as people say it: 95%."""
    return f"{100 * (confidence or 0):.10g}%"


def asked(alpha: Alpha) -> str:
    """The same as a value: 0.5%."""
    return shown(alpha).removeprefix("at most ")
