"""What a worker does with one batch of rows; the same on every engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.classifier import Classifier
from qwyc.distributed.shipping import digest
from qwyc.errors import InputError, OptionError
from qwyc.model.ensemble import Ensemble
from qwyc.policy.columns import (
    COLUMNS,
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
CLASSIFIER = "classifier"  # the column that names the classifier


def added_columns(ensemble: Ensemble, with_digest: bool, unseen: str) -> tuple[str, ...]:
    """What is known of a decided row; a score for each class where the ensemble has them."""
    classes = ensemble.classes if ensemble.by_class else None
    names = column_names(reason=unseen == FLAG, classes=classes)
    return (*names, CLASSIFIER) if with_digest else names


def added_types(classes: npt.NDArray[Any], added: Sequence[str]) -> dict[str, Any]:
    """The columns added, and their Arrow types."""
    import pyarrow

    known = {
        "label": arrow_type(classes),
        "steps": pyarrow.int32(),
        "complete": pyarrow.bool_(),
        REASON: pyarrow.string(),
        CLASSIFIER: pyarrow.string(),
    }
    return {column: known.get(column, pyarrow.float64()) for column in added}  # the rest are scores


@dataclass(frozen=True)
class Deciding:
    """Adds the columns of decisions to a batch of rows."""

    features: tuple[str, ...]  # columns that the classifier takes
    keep: tuple[str, ...]  # columns to keep
    names: tuple[str, ...]  # of the columns added, in the order of `added`
    added: tuple[str, ...] = COLUMNS  # what the columns added hold
    unseen: str = ERROR  # what becomes of rows with values that the model refuses

    @property
    def needed(self) -> list[str]:
        """Every column that the work reads or keeps, once."""
        return list(dict.fromkeys([*self.features, *self.keep]))

    @property
    def digest(self) -> bool:
        """Whether a column names the classifier."""
        return CLASSIFIER in self.added

    @property
    def scores(self) -> tuple[str, ...]:
        """Which of `added` are scores: one, or one for each class."""
        return self.added[2 : self.added.index("complete")]

    def on_arrow(self, classifier: Classifier, rows: Any) -> Any:
        """An Arrow table or record batch, with decisions."""
        return type(rows).from_arrays(
            [*rows.select(list(self.keep)).columns, *self.decided(classifier, rows)],
            names=[*self.keep, *self.names],
        )

    def decided(self, classifier: Classifier, rows: Any) -> list[Any]:
        """The columns added, for an Arrow table or record batch."""
        import pyarrow

        chosen = as_rows(classifier, rows.select(list(self.features)))
        decided = decide(classifier, chosen, self.unseen)
        columns = arrow_columns(decided, classifier.ensemble.classes)
        if self.digest:
            columns.append(pyarrow.repeat(digest(classifier), rows.num_rows))
        return columns

    def on_pandas(self, classifier: Classifier, frame: Any) -> Any:
        """A pandas frame, with decisions; its index is kept."""
        import pandas

        decided = decide(classifier, frame[list(self.features)], self.unseen)
        label, scores = decided.label, score_columns(decided.score)
        if self.unseen == FLAG:
            label = pandas.array(label, dtype=label_dtype(classifier.ensemble.classes))
        columns: list[Any] = [label, decided.steps, *scores, decided.complete]
        if self.unseen == FLAG:
            columns.append(decided.reason)
        if self.digest:
            columns.append([digest(classifier)] * len(frame))
        return self.with_columns(frame, columns)

    def with_columns(self, frame: Any, columns: Sequence[Any]) -> Any:
        """What is kept of a pandas frame, with an array for each of `added`."""
        import pandas

        added = {
            name: pandas.Series(
                values,
                index=frame.index,  # text becomes pandas' kind
                dtype="str" if column in (CLASSIFIER, REASON) else None,
            )
            for name, column, values in zip(self.names, self.added, columns, strict=True)
        }
        if len(self.scores) > 1:  # `assign` is slow for many columns
            return pandas.concat([frame[list(self.keep)], pandas.DataFrame(added)], axis=1)
        return frame[list(self.keep)].assign(**added)


@dataclass(frozen=True)
class Counting:
    """Reduces a batch of rows to sums, (n,), which are added up over batches."""

    features: tuple[str, ...]
    whole_path: bool = False  # of every policy of the path, not of the classifier's own alone
    unseen: str = ERROR

    def on_arrow(self, classifier: Classifier, table: Any) -> Floats:
        """Sums over an Arrow table."""
        return self._count(classifier, as_rows(classifier, table.select(list(self.features))))

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


def as_rows(classifier: Classifier, table: Any) -> Any:
    """An Arrow table as the classifier takes it: what runs code of others gets pandas, as it would
    from its users."""
    return table.to_pandas() if classifier.ensemble.has_code else table


def output_names(
    prefix: str, keep: Sequence[str], case_matters: bool, added: Sequence[str] = COLUMNS
) -> tuple[str, ...]:
    """What the columns added are called; none may be there already."""
    names = tuple(prefix + column for column in added)
    folded = {name.casefold() for name in names}
    taken = [name for name in keep if name in names]
    if not case_matters:
        taken = [name for name in keep if name.casefold() in folded]
    if taken:
        raise InputError(
            f"the data has a column {taken[0]!r} already; pass prefix='qwyc_' for other names, or keep= "
            "with the columns that you want to keep"
        )
    if not case_matters:
        check_case(names)
    return names


def check_output(output: str | None, work: Deciding) -> None:
    """Raise an `OptionError` unless a function of SQL can give this output; None is all."""
    if output is None:
        check_case(work.added)
    elif output not in work.added:
        raise OptionError(f"output must be one of {', '.join(work.added)}, or None; got {output!r}")


def check_case(names: Sequence[str]) -> None:
    """Raise an `OptionError` if two names differ in case only, which the engine takes for the same."""
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.setdefault(name.casefold(), name)) != name:
            raise OptionError(
                f"the scores of two classes would be the columns {other!r} and {name!r}, which this engine "
                "takes for one; relabel the classes, or register a function with output='label'"
            )
