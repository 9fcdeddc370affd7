"""Columns that a worker adds to a batch of rows, whatever they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from qwyc.errors import InputError, OptionError
from qwyc.policy.columns import COLUMNS, REASON
from qwyc.rows.odd_values import ERROR

CLASSIFIER = "classifier"  # the column that names the classifier, or the model
FEW = 6  # columns: `assign` of pandas is slow for more


@dataclass(frozen=True)
class Adding:
    """Adds columns to a batch of rows: decisions (`work.py`), or labels and values (`evaluating.py`)."""

    features: tuple[str, ...]  # columns that the model takes
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

    def types(self, classes: npt.NDArray[Any]) -> dict[str, Any]:
        """What is added, and its Arrow types, for a model of these classes."""
        raise NotImplementedError

    def nothing(self, classes: npt.NDArray[Any]) -> list[Any]:
        """An empty array of the pandas or NumPy type of each of `added`."""
        raise NotImplementedError

    def decided(self, model: Any, rows: Any) -> list[Any]:
        """The columns added, for an Arrow table or record batch."""
        raise NotImplementedError

    def on_arrow(self, model: Any, rows: Any) -> Any:
        """An Arrow table or record batch, with the columns added."""
        return type(rows).from_arrays(
            [*rows.select(list(self.keep)).columns, *self.decided(model, rows)],
            names=[*self.keep, *self.names],
        )

    def on_pandas(self, model: Any, frame: Any) -> Any:
        """A pandas frame, with the columns added; its index is kept."""
        raise NotImplementedError

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
        if len(added) > FEW:
            return pandas.concat([frame[list(self.keep)], pandas.DataFrame(added)], axis=1)
        return frame[list(self.keep)].assign(**added)


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


def check_output(output: str | None, work: Adding) -> None:
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
                f"two classes would have the columns {other!r} and {name!r}, which this engine "
                "takes for one; relabel the classes, or register a function with output='label'"
            )
