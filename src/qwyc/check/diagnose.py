"""diagnose: where a classifier's decisions differ from the full ensemble's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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
from qwyc.rows.slices import Slices, slice_columns
from qwyc.runtime.progress import ProgressOption
from qwyc.runtime.wording import one_line

STEP_GROUPS = 8
MOST_CLASSES = 12  # that a text lists, of more
OTHERS = "other classes"  # than that of a filter
MOST_IN_TABLE = 10  # classes of which a text shows all pairs

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
class Change:
    """How many rows of one class, by the full decision, are decided as another."""

    full: str
    early: str
    rows: int


@dataclass(frozen=True)
class Diagnosis:
    """Where decisions differ from the full ensemble's. Notebooks show it as `print` does."""

    confidence: float
    overall: Share
    by_decision: list[Share]  # of the full ensemble: a class each; of a filter its class and others
    by_step: list[Share]  # by the number of base models that a row took
    by_slice: list[Share]
    fit_share: float | None  # on the rows the policy was fitted on, where that is known
    held_out_share: float | None  # on the rows it was certified on
    changes: list[Change] = field(default_factory=list)  # of more than two classes; most rows first

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def __str__(self) -> str:
        every = [self.overall, *self.by_decision, *self.by_step, *self.by_slice]
        width = max(26, *(len(s.name) for s in every)) + 2  # names are shown whole
        level = percent(self.confidence)
        lines = [f"{'':{width}}{'rows':>10}{'differ':>9}{'share':>9}   {level} interval"]
        groups = {"by full decision": self.by_decision, "by base models taken": self.by_step}
        for title, shares in {"": [self.overall], **groups, "by slice": self.by_slice}.items():
            lines += [title] if title and shares else []
            for s in _worst(shares) if shares is self.by_decision else shares:
                observed = s.disagreements / s.rows if s.rows else 0.0
                name = s.name if s is self.overall else f"  {s.name}"
                lines.append(
                    f"{name:{width}}{s.rows:>10,}{s.disagreements:>9,}{observed:>9.3%}   "
                    f"{s.low:.3%} to {s.high:.3%}"
                )
            if shares is self.by_decision and len(shares) > MOST_CLASSES:
                lines.append(f"  and {len(shares) - MOST_CLASSES:,} more classes")
        lines += self._changes()
        if self.fit_share is not None and self.held_out_share is not None:
            lines.append(
                f"For comparison: {self.fit_share:.3%} on the fitting rows, "
                f"{self.held_out_share:.3%} on the certifying rows."
            )
        return "\n".join(lines)

    def _changes(self) -> list[str]:
        """A table of classes that are taken for each other; of many classes, the most frequent pairs."""
        if not self.changes:
            return []
        names = [share.name for share in self.by_decision]
        known = all(change.early in names for change in self.changes)  # not of a filter
        if len(names) > MOST_IN_TABLE or not known:
            lines = ["most frequent changes, from the full decision to the early one"]
            for change in self.changes[:MOST_CLASSES]:
                lines.append(f"  {change.full} to {change.early}: {change.rows:,}")
            more = len(self.changes) - MOST_CLASSES
            return [*lines, f"  and {more:,} more pairs"] if more > 0 else lines
        found = {(change.full, change.early): f"{change.rows:,}" for change in self.changes}
        width = max(6, *(len(name) for name in names)) + 2
        lines = ["rows by full decision (lines) and by early decision (columns), where they differ"]
        lines.append(" " * width + "".join(f"{name:>{width}}" for name in names))
        for full in names:
            cells = ["-" if full == early else found.get((full, early), "0") for early in names]
            lines.append(f"{full:>{width}}" + "".join(f"{cell:>{width}}" for cell in cells))
        return lines


def _worst(shares: list[Share]) -> list[Share]:
    """All of a few classes, or those with the most rows that differ, in their order."""
    if len(shares) <= MOST_CLASSES:
        return shares
    most = sorted(shares, key=lambda s: -s.disagreements)[:MOST_CLASSES]
    return [s for s in shares if s in most]


def diagnose(
    classifier: Classifier,
    X: Any,
    *,
    slices: Slices | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
    threads: int | None = None,
    progress: ProgressOption = False,
) -> Diagnosis:
    """Disagreement on rows X by the full decision, by the number of steps, and by `slices`: names of
    columns of the table X, or a mapping from names to values, one per row; every value is a slice.
    Intervals are exact, each by itself. For more than two classes, `changes` has the pairs of classes
    that are mistaken for each other."""
    check_classifier(classifier)
    level = check_confidence(confidence)
    if distributed.is_distributed(X):
        raise InputError(
            "where rows differ is shown for rows in memory: pass qwyc.distributed.sample(data, 100_000)"
        )
    columns = slice_columns(slices, X)
    against = compare(classifier, X, threads=threads, progress=progress)
    return diagnosis_of(classifier, against, slices=columns, confidence=level)


def diagnosis_of(
    classifier: Classifier,
    against: Comparison,
    *,
    slices: Mapping[str, Any] | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
) -> Diagnosis:
    """`diagnose` for rows that have been decided early and in full already."""
    level = confidence
    target, differs = classifier.policy.target, np.zeros(len(against.full), dtype=bool)
    differs[target.differing(against.decided, against.full)[0]] = True

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
        evidence, k = classifier.choices.evidence, classifier.choices.index_of(classifier.policy)
        fit_share = float(evidence.fit_differences[k].sum() / evidence.fit_rows)
        held_out_share = evidence.counts[k].observed
    labels = [one_line(label) for label in classifier.ensemble.classes]
    groups = [(label, against.full == i) for i, label in enumerate(labels)]
    if (only := classifier.only) is not None:
        groups = [groups[only], (OTHERS, against.full != only)]
    return Diagnosis(
        confidence=level,
        overall=share("all rows", every),
        by_decision=[share(name, rows) for name, rows in groups],
        by_step=[share(name, rows) for name, rows in _by_step(against.steps)],
        by_slice=[share(name, rows) for name, rows in _slices(slices, len(differs))],
        fit_share=fit_share,
        held_out_share=held_out_share,
        changes=_pairs(against, differs, labels),
    )


def _pairs(against: Comparison, differs: Mask, names: list[str]) -> list[Change]:
    """Which classes are taken for each other, most rows first; nothing for two classes, of which the shares
    by full decision say it."""
    K = len(names)
    if K == 2:
        return []
    pair = against.full.astype(np.int64) * K + against.decided
    found, rows = np.unique(pair[differs], return_counts=True)
    return [
        Change(names[found[i] // K], names[found[i] % K], int(rows[i]))
        for i in np.argsort(-rows, kind="stable")
    ]


def _by_step(steps: npt.NDArray[np.int32]) -> Iterator[tuple[str, Mask]]:
    """Rows by the number of base models that they took, in some groups of like size."""
    edges = np.unique(np.quantile(steps, np.linspace(0, 1, STEP_GROUPS + 1), method="nearest"))
    for i, last in enumerate(edges):
        first = int(edges[i - 1]) + 1 if i else int(last)
        name = f"{first}" if first == last else f"{first} to {last}"
        yield name, (steps >= first) & (steps <= last)


def _slices(slices: Mapping[str, Any] | None, n: int) -> Iterator[tuple[str, Mask]]:
    """Rows by every value of every slice."""
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
