"""What policies do on the rows that the report is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import InputError, RowsError
from qwyc.policy.counts import exit_bins
from qwyc.policy.features import reaching
from qwyc.policy.rule import StoppingRule
from qwyc.promise.binomial import lower_bound, upper_bound
from qwyc.promise.certified import Certified
from qwyc.report.html.columns import Column, feature_columns, given_columns
from qwyc.rows.selection import part, row_count, take
from qwyc.rows.slices import Slices, slice_columns
from qwyc.runtime.arguments import check_count
from qwyc.runtime.progress import ProgressOption, progress_reporter

SCORES = 1 << 22  # scores of base models that are kept at once
LEVEL = 0.95  # of intervals
SPREAD = ("pyspark", "ray", "dask", "duckdb", "_duckdb")  # data sets that are not in memory

Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Given:
    """The rows of a report."""

    X: Any
    rows: Any  # as the base models take them
    truth: npt.NDArray[np.int64] | None  # (N,) the index of each row's true class
    columns: list[Column]
    total: int  # rows that were given; more than N where some were drawn

    def __len__(self) -> int:
        return row_count(self.X)


def given_rows(certified: Certified, X: Any, y: Any, slices: Slices | None, max_rows: int) -> Given:
    """Rows, labels and slices, checked; at most `max_rows` of them, drawn at random."""
    if type(X).__module__.split(".")[0] in SPREAD:
        raise InputError(
            "a report is made from rows in memory: pass qwyc.distributed.sample(data, 20_000)"
        )
    n, most = row_count(X), check_count("max_rows", max_rows)
    if not n:
        raise RowsError("{rows} has no rows; leave X out, or pass rows like those to come")
    truth = None if y is None else true_classes(certified, y, n)
    given = list(given_columns(slice_columns(slices, X), n))
    if n > most:
        chosen = np.sort(np.random.default_rng(0).choice(n, most, replace=False))
        X, truth = take(X, chosen), None if truth is None else truth[chosen]
        given = [Column(c.name, c.slices, c.where[chosen]) for c in given]
    rows = certified.ensemble.rows(X)
    known = {column.name for column in given}
    if isinstance(rows, np.ndarray):  # sparse rows have thousands of columns
        given += [c for c in feature_columns(certified, rows) if c.name not in known]
    return Given(X, rows, truth, given, n)


def true_classes(certified: Certified, y: Any, n: int) -> npt.NDArray[np.int64]:
    """The index of each label among the classes, (N,). Labels are those of `predict`, or the same as
    text."""
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise InputError(f"there must be {n:,} labels, one per row; got shape {labels.shape}")
    classes = certified.ensemble.classes.tolist()
    index = {str(label): i for i, label in enumerate(classes)}
    index |= {label: i for i, label in enumerate(classes)}
    values = labels.tolist()
    found = np.array([index.get(v, index.get(str(v), -1)) for v in values], dtype=np.int64)
    if (found < 0).any():
        row = int(np.flatnonzero(found < 0)[0])
        known = ", ".join(map(repr, classes[:10])) + (", ..." if len(classes) > 10 else "")
        raise InputError(
            f"labels must be those that the classifier decides ({known}); row {row:,} has {values[row]!r}"
        )
    return found


@dataclass(frozen=True, eq=False)
class Observed:
    """What one policy does on the rows."""

    decided: npt.NDArray[Any]  # (N,) the index of each row's class
    full: npt.NDArray[Any]  # (N,)
    steps: npt.NDArray[np.int32]  # (N,)
    n_models: int

    @cached_property
    def differs(self) -> npt.NDArray[np.bool_]:
        """(N,)"""
        return np.asarray(self.decided != self.full)

    @cached_property
    def stops(self) -> npt.NDArray[np.int64]:
        """(T,) rows that took 1, 2, ..., T steps."""
        return np.bincount(self.steps - 1, minlength=self.n_models).astype(np.int64)

    @property
    def survival(self) -> npt.NDArray[np.float64]:
        """(T,) the share of rows that reach each step."""
        return np.asarray(reaching(self.stops.tolist())[:-1] / len(self.steps), dtype=np.float64)

    def on(self, rows: npt.NDArray[np.intp]) -> Observed:
        """The same on some of the rows."""
        return Observed(self.decided[rows], self.full[rows], self.steps[rows], self.n_models)

    def facts(self, given: Given) -> dict[str, Any]:
        """Counts as plain values, with exact intervals."""
        n, differ = len(self.steps), int(self.differs.sum())
        facts = {
            "rows": n,
            "differ": differ,
            "interval": interval(differ, n),
            "models": float(self.steps.mean()),
            "by_step": self._by_step(),
            "by_slice": [self._by_slice(column) for column in given.columns],
        }
        if given.truth is not None:
            facts["accuracy"] = float(np.mean(self.decided == given.truth))
        return facts

    def _by_step(self) -> list[list[Any]]:
        """Rows, those that differ, and the interval of their share, for each of `exit_bins`."""
        found = []
        for first, last in exit_bins(self.n_models):
            here = (self.steps >= first) & (self.steps <= last)
            rows, differ = int(here.sum()), int((here & self.differs).sum())
            found.append([rows, differ, *interval(differ, rows)])
        return found

    def _by_slice(self, column: Column) -> list[list[Any]]:
        """Rows that differ, and the interval of their share, for each slice."""
        size = len(column.slices)
        rows = np.bincount(column.where, minlength=size).tolist()
        differ = np.bincount(column.where[self.differs], minlength=size).tolist()
        return [[d, *interval(d, n)] for d, n in zip(differ, rows, strict=True)]


@lru_cache(maxsize=1 << 16)
def interval(differ: int, rows: int) -> Interval:
    """The exact interval of a share."""
    side = (1 + LEVEL) / 2
    if not rows:
        return 0.0, 1.0
    return lower_bound(differ, rows, side), upper_bound(differ, rows, side)


def observe(
    certified: Certified,
    policies: Sequence[StoppingRule],
    given: Given,
    *,
    threads: int | None,
    progress: ProgressOption,
) -> list[Observed]:
    """What each of the policies does on the rows. Scores are made in parts, so that memory is bounded."""
    ensemble, target = certified.ensemble, certified.policy.target
    n, T = len(given), ensemble.n_models
    decided: list[list[Any]] = [[] for _ in policies]
    steps: list[list[Any]] = [[] for _ in policies]
    full = []
    size = max(256, SCORES // (T * ensemble.base_models.n_scores))
    with progress_reporter(progress, "Deciding rows", n) as report:
        for start in range(0, n, size):
            scores = ensemble.scores(part(given.X, start, start + size), threads=threads)
            full.append(target.decide(scores.full))
            for i, policy in enumerate(policies):
                found = policy.apply(scores, threads=threads)
                decided[i].append(found.label)
                steps[i].append(found.steps)
            report(min(start + size, n))
    whole = np.concatenate(full)
    return [
        Observed(np.concatenate(d), whole, np.concatenate(s), T)
        for d, s in zip(decided, steps, strict=True)
    ]
