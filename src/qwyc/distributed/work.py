"""What a worker does with one batch of rows; the same on every engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.answers import COLUMNS, arrow_columns
from qwyc.classifier import Classifier
from qwyc.compare import compare, tally_path
from qwyc.distributed.shipping import has_code
from qwyc.errors import InputError

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Deciding:
    """Rows in, rows with decisions out."""

    features: tuple[str, ...]  # columns that the classifier takes
    keep: tuple[str, ...]  # columns to hand on
    names: tuple[str, ...]  # of the columns added, in the order of COLUMNS

    @property
    def needed(self) -> list[str]:
        """Every column that must travel, once."""
        return list(dict.fromkeys([*self.features, *self.keep]))

    def on_arrow(self, classifier: Classifier, table: Any) -> Any:
        """An Arrow table, with decisions."""
        import pyarrow

        rows = as_rows(classifier, table.select(list(self.features)))
        answer = arrow_columns(classifier.decide(rows, threads=1), classifier.ensemble.classes)
        return pyarrow.Table.from_arrays(
            [*table.select(list(self.keep)).columns, *answer], names=[*self.keep, *self.names]
        )

    def on_pandas(self, classifier: Classifier, frame: Any) -> Any:
        """A pandas frame, with decisions; its index is kept."""
        decided = classifier.decide(frame[list(self.features)], threads=1)
        added = {
            name: getattr(decided, column) for name, column in zip(self.names, COLUMNS, strict=True)
        }
        return frame[list(self.keep)].assign(**added)


@dataclass(frozen=True)
class Counting:
    """Rows in, a few sums out: (n,) numbers, which add up over batches."""

    features: tuple[str, ...]
    members: bool = False  # of every member of the path (PathTally), not of the policy (Tally)

    def on_arrow(self, classifier: Classifier, table: Any) -> Floats:
        """Sums over an Arrow table."""
        return self._count(classifier, as_rows(classifier, table.select(list(self.features))))

    def on_pandas(self, classifier: Classifier, frame: Any) -> Floats:
        """Sums over a pandas frame."""
        return self._count(classifier, frame[list(self.features)])

    def _count(self, classifier: Classifier, rows: Any) -> Floats:
        if not len(rows):
            return np.zeros(self.size(classifier))
        if self.members:
            return tally_path(classifier, rows, threads=1).numbers()
        return compare(classifier, rows, threads=1).tally.numbers()

    def size(self, classifier: Classifier) -> int:
        """How many sums there are."""
        return 4 if not self.members else 1 + 4 * len(classifier.path or ())


def as_rows(classifier: Classifier, table: Any) -> Any:
    """An Arrow table as the classifier takes it: what runs code of others gets pandas, as it would
    from its users."""
    return table.to_pandas() if has_code(classifier) else table


def output_names(prefix: str, keep: Sequence[str]) -> tuple[str, ...]:
    """What the columns added are called; none may be there already."""
    names = tuple(prefix + column for column in COLUMNS)
    taken = [name for name in names if name in keep]
    if taken:
        raise InputError(
            f"the data has a column {taken[0]!r} already; pass prefix='qwyc_' for other names, or keep= "
            "with the columns that you want to keep"
        )
    return names
