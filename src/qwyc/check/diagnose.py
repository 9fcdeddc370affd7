"""diagnose: where a classifier's decisions differ from the full ensemble's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import distributed
from qwyc.check.verify import DEFAULT_CONFIDENCE
from qwyc.classifier import Classifier, check_classifier
from qwyc.errors import InputError, OptionError
from qwyc.promise.binomial import lower_bound, upper_bound
from qwyc.promise.certificate import check_confidence, percent
from qwyc.promise.compare import Comparison, compare
from qwyc.runtime.progress import ProgressOption

STEP_GROUPS = 8

Mask = npt.NDArray[np.bool_]


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
    check_classifier(classifier)
    level = check_confidence(confidence)
    if distributed.is_distributed(X):
        raise InputError(
            "where rows differ is shown for rows in memory: pass qwyc.distributed.sample(data, 100_000)"
        )
    against = compare(classifier, X, threads=threads, progress=progress)
    return diagnosis_of(classifier, against, slices=slices, confidence=level)


def diagnosis_of(
    classifier: Classifier,
    against: Comparison,
    *,
    slices: Mapping[str, Any] | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
) -> Diagnosis:
    """`diagnose` for rows that have been decided early and in full already."""
    level = confidence
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
        fit_share = float(evidence.fit_differences[k].sum() / evidence.fit_rows)
        held_out_share = evidence.counts[k].observed
    groups = [
        (str(label), against.full == i) for i, label in enumerate(classifier.ensemble.classes)
    ]
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
