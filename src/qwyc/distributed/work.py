"""What a worker does with one batch of rows; the same on every engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.classifier import Classifier
from qwyc.errors import InputError
from qwyc.policy.columns import COLUMNS, arrow_columns
from qwyc.policy.counts import Sums
from qwyc.policy.decisions import Decisions
from qwyc.promise.compare import sums_of_path, sums_of_policy

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Deciding:
    """Adds the columns of decisions to a batch of rows."""

    features: tuple[str, ...]  # columns that the classifier takes
    keep: tuple[str, ...]  # columns to keep
    names: tuple[str, ...]  # of the columns added, in the order of COLUMNS

    @property
    def needed(self) -> list[str]:
        """Every column that the work reads or keeps, once."""
        return list(dict.fromkeys([*self.features, *self.keep]))

    def on_arrow(self, classifier: Classifier, table: Any) -> Any:
        """An Arrow table, with decisions."""
        import pyarrow

        rows = as_rows(classifier, table.select(list(self.features)))
        decision_columns = arrow_columns(decide(classifier, rows), classifier.ensemble.classes)
        return pyarrow.Table.from_arrays(
            [*table.select(list(self.keep)).columns, *decision_columns],
            names=[*self.keep, *self.names],
        )

    def on_pandas(self, classifier: Classifier, frame: Any) -> Any:
        """A pandas frame, with decisions; its index is kept."""
        decided = decide(classifier, frame[list(self.features)])
        return self.with_columns(frame, {column: getattr(decided, column) for column in COLUMNS})

    def with_columns(self, frame: Any, decision_columns: Mapping[str, Any]) -> Any:
        """What is kept of a pandas frame, with an array for each of COLUMNS."""
        import pandas

        added = {
            name: pandas.Series(
                decision_columns[column], index=frame.index
            )  # text becomes pandas' kind
            for name, column in zip(self.names, COLUMNS, strict=True)
        }
        return frame[list(self.keep)].assign(**added)


@dataclass(frozen=True)
class Counting:
    """Reduces a batch of rows to sums, (n,), which are added up over batches."""

    features: tuple[str, ...]
    whole_path: bool = False  # of every policy of the path, not of the classifier's own alone

    def on_arrow(self, classifier: Classifier, table: Any) -> Floats:
        """Sums over an Arrow table."""
        return self._count(classifier, as_rows(classifier, table.select(list(self.features))))

    def on_pandas(self, classifier: Classifier, frame: Any) -> Floats:
        """Sums over a pandas frame."""
        return self._count(classifier, frame[list(self.features)])

    def _count(self, classifier: Classifier, rows: Any) -> Floats:
        if not len(rows):
            return np.zeros(self.size(classifier))
        if self.whole_path:
            return sums_of_path(classifier, rows, threads=1)[0].vector()
        return sums_of_policy(classifier, rows, threads=1).vector()

    def size(self, classifier: Classifier) -> int:
        """How many sums there are."""
        policies = len(classifier.needed_choices().path) if self.whole_path else 1
        return Sums.size(classifier.policy.target, classifier.policy.n_models, policies)


def decide(classifier: Classifier, rows: Any) -> Decisions:
    """Decisions about a batch. An error names the batch, because it counts rows within it."""
    try:
        return classifier.decide(rows, threads=1)
    except InputError as error:
        raise error.about(f"a batch of {len(rows):,} rows") from None


def as_rows(classifier: Classifier, table: Any) -> Any:
    """An Arrow table as the classifier takes it: what runs code of others gets pandas, as it would
    from its users."""
    return table.to_pandas() if classifier.ensemble.has_code else table


def output_names(prefix: str, keep: Sequence[str], case_matters: bool) -> tuple[str, ...]:
    """What the columns added are called; none may be there already."""
    names = tuple(prefix + column for column in COLUMNS)
    folded = {name.casefold() for name in names}
    taken = [name for name in keep if name in names]
    if not case_matters:
        taken = [name for name in keep if name.casefold() in folded]
    if taken:
        raise InputError(
            f"the data has a column {taken[0]!r} already; pass prefix='qwyc_' for other names, or keep= "
            "with the columns that you want to keep"
        )
    return names
