"""What a worker does with one batch of rows; the same on every engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.classifier import Classifier
from qwyc.distributed.adding import CLASSIFIER, Adding
from qwyc.distributed.shipping import digest
from qwyc.errors import InputError
from qwyc.model.ensemble import Ensemble
from qwyc.policy.columns import (
    REASON,
    arrow_columns,
    arrow_type,
    column_names,
    score_columns,
)
from qwyc.policy.counts import Sums
from qwyc.policy.decisions import Decisions
from qwyc.promise.compare import sums_of_path, sums_of_policy
from qwyc.rows.odd_values import ERROR, FLAG

Floats = npt.NDArray[np.float64]


def added_columns(ensemble: Ensemble, with_digest: bool, unseen: str) -> tuple[str, ...]:
    """What is known of a decided row; a score for each class where the ensemble has them."""
    classes = ensemble.classes if ensemble.by_class else None
    names = column_names(reason=unseen == FLAG, classes=classes)
    return (*names, CLASSIFIER) if with_digest else names


@dataclass(frozen=True)
class Deciding(Adding):
    """Adds the columns of decisions to a batch of rows."""

    @property
    def scores(self) -> tuple[str, ...]:
        """Which of `added` are scores: one, or one for each class."""
        return self.added[2 : self.added.index("complete")]

    def types(self, classes: npt.NDArray[Any]) -> dict[str, Any]:
        """The columns added, and their Arrow types."""
        import pyarrow

        known = {
            "label": arrow_type(classes),
            "steps": pyarrow.int32(),
            "complete": pyarrow.bool_(),
            REASON: pyarrow.string(),
            CLASSIFIER: pyarrow.string(),
        }
        return {column: known.get(column, pyarrow.float64()) for column in self.added}  # scores

    def nothing(self, classes: npt.NDArray[Any]) -> list[Any]:
        """An empty array of the type of each of `added`."""
        import pandas

        label = pandas.Series(classes)[:0]  # text is of pandas' own kind, as in what comes
        if self.unseen == FLAG:
            label = pandas.Series([], dtype=label_dtype(classes))
        known = {"label": label, "steps": np.empty(0, "int32"), "complete": np.empty(0, bool)}
        return [known.get(column, np.empty(0)) for column in self.added]

    def decided(self, model: Classifier, rows: Any) -> list[Any]:
        """The columns added, for an Arrow table or record batch."""
        import pyarrow

        chosen = as_rows(model.ensemble, rows.select(list(self.features)))
        decided = decide(model, chosen, self.unseen)
        columns = arrow_columns(decided, model.ensemble.classes)
        if self.digest:
            columns.append(pyarrow.repeat(digest(model), rows.num_rows))
        return columns

    def on_pandas(self, model: Classifier, frame: Any) -> Any:
        """A pandas frame, with decisions; its index is kept."""
        import pandas

        decided = decide(model, frame[list(self.features)], self.unseen)
        label, scores = decided.label, score_columns(decided.score)
        if self.unseen == FLAG:
            label = pandas.array(label, dtype=label_dtype(model.ensemble.classes))
        columns: list[Any] = [label, decided.steps, *scores, decided.complete]
        if self.unseen == FLAG:
            columns.append(decided.reason)
        if self.digest:
            columns.append([digest(model)] * len(frame))
        return self.with_columns(frame, columns)


@dataclass(frozen=True)
class Counting:
    """Reduces a batch of rows to sums, (n,), which are added up over batches."""

    features: tuple[str, ...]
    whole_path: bool = False  # of every policy of the path, not of the classifier's own alone
    unseen: str = ERROR

    def on_arrow(self, classifier: Classifier, table: Any) -> Floats:
        """Sums over an Arrow table."""
        return self._count(
            classifier, as_rows(classifier.ensemble, table.select(list(self.features)))
        )

    def on_pandas(self, classifier: Classifier, frame: Any) -> Floats:
        """Sums over a pandas frame."""
        return self._count(classifier, frame[list(self.features)])

    def _count(self, classifier: Classifier, rows: Any) -> Floats:
        if not len(rows):
            return np.zeros(self.size(classifier))
        options: dict[str, Any] = {} if self.unseen == ERROR else {"unseen": self.unseen}
        if self.whole_path:
            return sums_of_path(classifier, rows, threads=1, **options)[0].vector()
        return sums_of_policy(classifier, rows, threads=1, **options).vector()

    def size(self, classifier: Classifier) -> int:
        """How many sums there are."""
        policies = len(classifier.needed_choices().path) if self.whole_path else 1
        return Sums.size(classifier.policy.target, classifier.policy.n_models, policies)


def decide(classifier: Classifier, rows: Any, unseen: str = ERROR) -> Decisions:
    """Decisions about a batch. An error names the batch, because it counts rows within it."""
    try:
        return classifier.decide(rows, threads=1, unseen=unseen)
    except InputError as error:
        raise error.about(f"a batch of {len(rows):,} rows") from None


def label_dtype(classes: npt.NDArray[Any]) -> str:
    """The pandas type of labels of which some are missing."""
    return {"i": "Int64", "u": "Int64", "b": "boolean", "f": "float64"}.get(
        classes.dtype.kind, "str"
    )


def as_rows(ensemble: Ensemble, table: Any) -> Any:
    """An Arrow table as the model takes it: what runs code of others gets pandas, as it would from its
    users."""
    return table.to_pandas() if ensemble.has_code else table
