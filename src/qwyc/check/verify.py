"""Verifying and diagnosing a classifier on rows that had no part in making it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import distributed
from qwyc.check.parity import compare_with_model
from qwyc.classifier import Classifier, checked
from qwyc.errors import InputError, OptionError
from qwyc.model.ensemble import Ensemble
from qwyc.promise.binomial import lower_bound, upper_bound
from qwyc.promise.certificate import (
    Choices,
    check_budget,
    check_confidence,
    passes,
    percent,
    rows_to_certify,
    shown,
    warn_of_rare_classes,
)
from qwyc.promise.compare import compare, tally_path
from qwyc.runtime.progress import ProgressOption

DEFAULT_CONFIDENCE = 0.95
STEP_GROUPS = 8

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Verification:
    """Whether rows that the classifier has never seen bear its promise out."""

    passed: bool
    alpha: float | dict[str, float]
    confidence: float
    rows: int
    full_positive: int  # of them
    negative: int  # full-positive rows called negative
    positive: int  # full-negative rows called positive
    upper_bound: float  # on the share that differs among new rows
    mean_models: float
    full_models: int
    rows_needed: int  # the fewest rows that could have shown it
    parity: str | None = None  # what was compared with the model itself, if that was given

    def __str__(self) -> str:
        differ = self.negative + self.positive
        kinds = f", with {self.negative:,} of {self.full_positive:,} positives lost"
        if isinstance(self.alpha, Mapping):
            kinds += f" and {self.positive:,} gained"
        head = (
            f"{'PASS' if self.passed else 'FAIL'}: {differ:,} of {self.rows:,} rows are decided "
            f"differently from the full ensemble ({differ / self.rows:.3%}; with "
            f"{percent(self.confidence)} confidence at most {self.upper_bound:.3%}){kinds}, asked: "
            f"{shown(self.alpha)}; {self.mean_models:.1f} of {self.full_models} base models per row."
        )
        if not self.passed and self.rows < self.rows_needed:
            head += f" So few rows cannot show it: at least {self.rows_needed:,} are needed."
        elif (
            not self.passed
            and not isinstance(self.alpha, Mapping)
            and differ / self.rows <= self.alpha
        ):
            head += (
                " What was seen is within it, but does not show it with that confidence: verify on more "
                "rows, or optimise for a smaller alpha than you have to show."
            )
        return head if self.parity is None else f"{head}\n{self.parity}"


def verify(
    classifier: Classifier,
    X: Any,
    *,
    alpha: float | Mapping[str, float] | None = None,
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
    checked(classifier)
    certificate = classifier.certificate
    budget = certificate.alpha if alpha is None else check_budget(alpha)
    level = certificate.confidence if confidence is None else check_confidence(confidence)
    level = DEFAULT_CONFIDENCE if level is None else level
    proof = None
    if model is not None:
        proof = _compare_with(model, classifier, X, threads)
    if distributed.is_distributed(X):
        seen = distributed.tally(classifier, X)
        if not seen.rows:
            raise InputError("the data set has no rows; verifying needs rows like those to come")
    else:
        seen = compare(classifier, X, threads=threads, progress=progress).tally
    if budget == 0:
        passed = seen.negative + seen.positive == 0
    else:
        passed = passes(np.array([seen.negative, seen.positive]), seen.rows, budget, level)
    return Verification(
        passed=passed,
        alpha=budget,
        confidence=level,
        rows=seen.rows,
        full_positive=seen.full_positive,
        negative=seen.negative,
        positive=seen.positive,
        upper_bound=upper_bound(seen.negative + seen.positive, seen.rows, level),
        mean_models=seen.steps / seen.rows,
        full_models=classifier.policy.n_models,
        rows_needed=1 if budget == 0 else rows_to_certify(budget, level),
        parity=proof,
    )


def _compare_with(model: Any, classifier: Classifier, X: Any, threads: int | None) -> str:
    if not isinstance(classifier.ensemble, Ensemble):
        raise OptionError("a classifier over Python callables has no model file to compare with")
    if distributed.is_distributed(X):
        raise OptionError(
            "with the model itself, rows in memory are compared: pass a sample, "
            "qwyc.distributed.sample(data, 100_000)"
        )
    return compare_with_model(model, X, classifier.ensemble, threads=threads)


def recertify(
    classifier: Classifier,
    X: Any,
    *,
    alpha: float | Mapping[str, float] | None = None,
    confidence: float | None = None,
    threads: int | None = None,
    progress: ProgressOption = False,
) -> Classifier:
    """The same classifier with its operating point chosen and certified anew, on other rows: more of
    them, or such as come now. Nothing is fitted again.

    Every policy of its path is tried on all of X, a table or a data set of Spark, Ray or Dask; the
    boldest that an exact binomial test passes is taken. The more rows, the closer to alpha it comes
    and the smaller an alpha can be. X must be like the rows to come and must not hold the rows that
    the classifier was made from, or the promise is void. By default alpha and confidence are those of
    its certificate; choose them before you look, since each choice is valid by itself only. Rows are
    counted as independent draws. Whether quitting pays is not measured again.
    """
    checked(classifier)
    if classifier.certificate.how == "proven":
        raise OptionError("this classifier is proven for every input; there is nothing to certify")
    before = classifier.needed_choices()
    budget = check_budget(classifier.certificate.alpha if alpha is None else alpha)
    if budget == 0:
        raise OptionError("alpha=0 is proven, not sampled: optimise the model for it")
    level = classifier.certificate.confidence if confidence is None else confidence
    level = check_confidence(DEFAULT_CONFIDENCE if level is None else level)
    if distributed.is_distributed(X):
        seen = distributed.tally_members(classifier, X)
        if not seen.rows:
            raise InputError("the data set has no rows; certifying needs rows like those to come")
    else:
        seen, digest = tally_path(classifier, X, threads=threads, progress=progress)
        if digest == before.evidence.sample:
            raise InputError(
                "these are the rows that the classifier was made from, and its thresholds were fitted to "
                "some of them: certify it on others"
            )
    evidence = replace(
        before.evidence,
        rows=seen.rows,
        full_positive=seen.full_positive,
        flips=seen.flips,
        mean_models=seen.mean_models,
        mean_cost=seen.mean_cost,
        groups=0,
    )
    choices = Choices(before.path, evidence)
    policy, certificate = choices.choose(budget, level)
    warn_of_rare_classes(certificate, policy.quit)
    return replace(classifier, policy=policy, certificate=certificate, choices=choices, speed=None)


@dataclass(frozen=True)
class Share:
    """Disagreement among some of the rows, with an exact interval."""

    name: str
    rows: int
    disagreements: int
    low: float
    high: float
    mean_models: float


@dataclass(frozen=True)
class Diagnosis:
    """Where decisions differ from the full ensemble's."""

    confidence: float
    overall: Share
    by_decision: list[Share]  # of the full ensemble: negative, positive
    by_step: list[Share]  # by the number of base models that a row took
    by_slice: list[Share]
    fit_share: float | None  # on the rows the policy was fitted on, where that is known
    held_out_share: float | None  # on the rows it was certified on

    def __str__(self) -> str:
        every = [self.overall, *self.by_decision, *self.by_step, *self.by_slice]
        width = max(26, *(len(s.name) for s in every)) + 2  # names are shown whole
        level = percent(self.confidence)
        lines = [f"{'':{width}}{'rows':>10}{'differ':>9}{'share':>9}   {level} interval"]
        groups = {"by full decision": self.by_decision, "by base models taken": self.by_step}
        for title, shares in {"": [self.overall], **groups, "by slice": self.by_slice}.items():
            lines += [title] if title and shares else []
            for s in shares:
                observed = s.disagreements / s.rows if s.rows else 0.0
                name = s.name if s is self.overall else f"  {s.name}"
                lines.append(
                    f"{name:{width}}{s.rows:>10,}{s.disagreements:>9,}{observed:>9.3%}   "
                    f"{s.low:.3%} to {s.high:.3%}"
                )
        if self.fit_share is not None and self.held_out_share is not None:
            lines.append(
                f"For comparison: {self.fit_share:.3%} on the fitting rows, "
                f"{self.held_out_share:.3%} on the certifying rows."
            )
        return "\n".join(lines)


def diagnose(
    classifier: Classifier,
    X: Any,
    *,
    slices: Mapping[str, Any] | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
    threads: int | None = None,
    progress: ProgressOption = False,
) -> Diagnosis:
    """Disagreement on rows X by the full decision, by how far they were evaluated, and by `slices`:
    names to values, one per row; every value is a slice. Intervals are exact, each by itself."""
    checked(classifier)
    level = check_confidence(confidence)
    if distributed.is_distributed(X):
        raise InputError(
            "where rows differ is shown for rows in memory: pass qwyc.distributed.sample(data, 100_000)"
        )
    against = compare(classifier, X, threads=threads, progress=progress)
    differs = against.decided != against.full

    def share(name: str, rows: Mask) -> Share:
        n, count = int(rows.sum()), int((differs & rows).sum())
        side = (1 + level) / 2  # half of what may go wrong on either side
        return Share(
            name=name,
            rows=n,
            disagreements=count,
            low=lower_bound(count, n, side) if n else 0.0,
            high=upper_bound(count, n, side) if n else 1.0,
            mean_models=float(against.steps[rows].mean()) if n else float("nan"),
        )

    every = np.ones(len(differs), dtype=bool)
    fit_share = held_out_share = None
    if classifier.choices is not None:
        path, evidence = classifier.choices.path, classifier.choices.evidence
        k = path.index_of(classifier.policy)
        fit_share = float(evidence.fit_flips[k].sum() / evidence.fit_rows)
        held_out_share = float(evidence.flips[k].sum() / evidence.rows)
    negative, positive = classifier.ensemble.classes
    groups = [(str(negative), ~against.full), (str(positive), against.full)]
    return Diagnosis(
        confidence=level,
        overall=share("all rows", every),
        by_decision=[share(name, rows) for name, rows in groups],
        by_step=[share(name, rows) for name, rows in _by_step(against.steps)],
        by_slice=[share(name, rows) for name, rows in _slices(slices, len(differs))],
        fit_share=fit_share,
        held_out_share=held_out_share,
    )


def _by_step(steps: npt.NDArray[np.int32]) -> Iterator[tuple[str, Mask]]:
    """Rows by the number of base models that they took, in some groups of like size."""
    edges = np.unique(np.quantile(steps, np.linspace(0, 1, STEP_GROUPS + 1), method="nearest"))
    for i, last in enumerate(edges):
        first = int(edges[i - 1]) + 1 if i else int(last)
        name = f"{first}" if first == last else f"{first} to {last}"
        yield name, (steps >= first) & (steps <= last)


def _slices(slices: Mapping[str, Any] | None, n: int) -> Iterator[tuple[str, Mask]]:
    """Rows by every value of every slice."""
    if slices is not None and not isinstance(slices, Mapping):
        raise OptionError("slices must be a mapping from names to values, one per row")
    for name, of_rows in (slices or {}).items():
        try:
            labels = np.asarray(of_rows)
        except ValueError as error:
            raise OptionError(f"slice {name!r} must be one value per row: {error}") from None
        if labels.shape != (n,):
            raise OptionError(f"slice {name!r} must have {n} values; got shape {labels.shape}")
        values, which = np.unique(labels.astype(str), return_inverse=True)
        for i, value in enumerate(values):
            yield f"{name} = {value}", which == i
