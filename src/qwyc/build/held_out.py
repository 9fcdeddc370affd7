"""Which rows of a sample are fitted on, which are held out, and what a path does on the latter. Rows are
independent draws, or come in groups, or in the order of time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError
from qwyc.model.ensemble import Ensemble
from qwyc.policy.counts import Counts
from qwyc.policy.grouped import GroupCounter, PathPrior, in_random_order
from qwyc.policy.path import AnyPath
from qwyc.policy.scores import ScoreMatrix
from qwyc.promise.budget import Budget
from qwyc.promise.evidence import Evidence, too_little_evidence
from qwyc.promise.ordered import Order, OrderedSplit, split_by_order
from qwyc.promise.split import split_sample
from qwyc.promise.windows import WindowCounter
from qwyc.rows.frames import as_frame
from qwyc.runtime.progress import Report
from qwyc.target.target import Decided, Target
from qwyc.target.two_classes import TwoClasses

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows to fit on, and rows to certify on that have no part in the fit, each ascending."""

    fit: Rows
    rows: Rows  # of the latest window, where rows have an order
    units: Rows | None  # (N,) the group of each row of the sample, where groups are counted
    groups: int  # held out, where `units` were given
    ordered: OrderedSplit | None
    seed: int

    @classmethod
    def of(
        cls,
        decided: Decided,
        budget: Budget,
        confidence: float,
        units: Rows | None,
        order: Order | None,
        seed: int,
    ) -> HeldOut:
        """Split a sample of which `decided` (N,) are the full decisions. `units` (N,) are numbers of
        groups from 0, and `order` is the rows' order in time."""
        n = len(decided)
        if order is not None:
            ordered = split_by_order(order, budget, confidence, decided)
            return cls(ordered.fit, ordered.latest, None, 0, ordered, seed)
        alone = units is None or int(units.max()) + 1 == n  # each row is a group of its own
        by_class = np.bincount(decided, minlength=budget.target.n_classes).tolist()
        fit, rows = split_sample(n, budget, confidence, None if alone else units, seed, by_class)
        if units is None or alone:
            return cls(fit, rows, None, 0 if units is None else len(rows), None, seed)
        split = cls(fit, rows, units, len(np.unique(units[rows])), None, seed)
        split._check_groups(decided, budget, confidence)
        return split

    def evidence(
        self,
        path: AnyPath,
        scores: ScoreMatrix,
        fitting: ScoreMatrix,
        threads: int | None,
        report: Report,
    ) -> Evidence:
        """What the path does on the rows held out. `fitting` are the scores of the rows to fit on."""
        K, target = len(path), path.target
        seen_in_fit = self._counter(self.fit, target, K)
        fit_sums = path.sums(fitting, threads=threads, watch=_adder(seen_in_fit))
        prior = None if seen_in_fit is None else PathPrior.of(seen_in_fit.groups())
        counter = self._counter(self.rows, target, K)
        sums = path.sums(
            scores, rows=self.rows, threads=threads, report=report, watch=_adder(counter)
        )
        windows = None
        if self.ordered is not None:
            ordered, all_windows = self.ordered, WindowCounter(self.ordered.window, target, K)
            path.sums(scores, rows=ordered.held_out, threads=threads, watch=all_windows.add)
            windows = all_windows.windows(ordered.first, ordered.last)
        return Evidence(
            counts=sums.counts(None if counter is None else counter.groups(prior)),
            fit_rows=len(self.fit),
            fit_differences=fit_sums.differences,
            seed=self.seed,
            sample=scores.digest,
            groups=self.groups,
            windows=windows,
        )

    def _counter(self, rows: Rows, target: Target, K: int) -> GroupCounter | None:
        if self.units is None:
            return None
        return GroupCounter(in_random_order(self.units[rows], self.seed), target, K)

    def _check_groups(self, decided: Decided, budget: Budget, confidence: float) -> None:
        """Refuse groups that could not show the budget even without a difference, before anything is
        fitted."""
        kinds, sides = budget.target, []
        target: Target = TwoClasses(0.0) if isinstance(kinds, type) else kinds
        for rows in (self.fit, self.rows):
            counter = self._counter(rows, target, 1)
            assert counter is not None  # there are groups
            counter.add(0, decided[rows], decided[rows])
            sides.append(counter)
        groups = sides[1].groups(PathPrior.of(sides[0].groups()))
        by_class = tuple(int(n) for n in groups.sizes.sum(axis=0))
        counts = Counts(by_class, (0,) * len(target.differences), 0.0, 0.0, groups=groups[0])
        if not budget.passes(counts, confidence):
            raise too_little_evidence(budget, counts, confidence, "Pass more groups")


def _adder(counter: GroupCounter | None) -> Callable[[int, Any, Any], None]:
    return (lambda k, decided, full: None) if counter is None else counter.add


def order_column(X: Any, name: str, ensemble: Ensemble) -> tuple[Any, Any]:
    """The values of the column of X that orders its rows, (N,), and X without that column if the model does
    not take it."""
    frame = as_frame(X)
    if frame is None:
        raise OptionError(
            f"order_by={name!r} names a column, but X is a {type(X).__name__} without column names; pass "
            "the values themselves, one per row"
        )
    if name not in frame.columns:
        raise OptionError(f"order_by={name!r} is not a column of X, which has {frame.columns}")
    values = frame.get_column(name).to_numpy()
    return values, X if _takes(ensemble, name, len(frame.columns)) else frame.drop(name).to_native()


def _takes(ensemble: Ensemble, name: str, n_columns: int) -> bool:
    """Whether a column is a feature, as far as that is known."""
    names, schema = None, ensemble.schema
    if ensemble.transform is not None:
        pipeline = getattr(ensemble.transform, "pipeline", None)
        names = getattr(pipeline, "feature_names_in_", None)
    elif schema is not None:
        names = schema.names
        if names is None:
            return n_columns == schema.n_features
    return names is None or name in names or name.replace(" ", "_") in names
