"""Tables whose columns are in another order than the model's: qwyc takes them by name, some libraries by
position, and the same table would be decided differently."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from qwyc.errors import ParityError
from qwyc.importers.live import made_by
from qwyc.rows.column_names import match_columns, quoted_names
from qwyc.rows.frames import as_frame
from qwyc.rows.schema import Schema

MOST_NAMED = 5  # columns that an error names

Names = Sequence[str] | None  # of the model's columns, in its order
Predict = Callable[[Any], Any]


def refuse_by_position(X: Any, names: Names, library: str, code: str, predict: Predict) -> None:
    """Raise ParityError where X is a table in another order that the library takes: it goes by position.
    `code` gives the model's names, such as "model.feature_name()".

    Where `predict` refuses X, there is no decision that could differ from ours."""
    found = _labels_and_places(X, names)
    if found is not None and _outputs(predict, X) is not None:
        raise _another_order(X, names or (), *found, library, code)


def refuse_other_outputs(
    X: Any, names: Names, library: str, code: str, predict: Predict, ordered: Any
) -> None:
    """The same for a library that may go by name: only where `predict` does not give X the outputs that it
    gives `ordered`, the same rows in the model's order."""
    found = _labels_and_places(X, names)
    if found is None or (given := _outputs(predict, X)) is None:
        return
    by_name = _outputs(predict, ordered)
    if by_name is not None and not np.array_equal(given, by_name):
        raise _another_order(X, names or (), *found, library, code)


def _labels_and_places(X: Any, names: Names) -> tuple[list[str], list[int]] | None:
    """The columns of a table, and where each of the model's is, (n_features,); None where X is no table or
    has the model's order."""
    if names is None or isinstance(X, (np.ndarray, list, tuple)):
        return None
    if hasattr(X, "toarray") or (frame := as_frame(X)) is None:
        return None
    labels = [str(label) for label in frame.columns]
    places = list(match_columns(labels, Schema(len(names), tuple(names), "float64")))
    return None if places == list(range(len(places))) else (labels, places)


def _outputs(predict: Predict, X: Any) -> Any:
    """What a library gives for X; None where it refuses X, in whatever way."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return np.asarray(predict(X))
        except Exception:  # every library has its own exceptions
            return None


def _another_order(
    X: Any, names: Sequence[str], labels: list[str], places: list[int], library: str, code: str
) -> ParityError:
    wrong = [j for j, place in enumerate(places) if j != place]
    found = [f"{labels[j]!r} in place of {names[j]!r}" for j in wrong[:MOST_NAMED]]
    more = f" and {len(wrong) - MOST_NAMED} more" if len(wrong) > MOST_NAMED else ""
    order = code
    if set(names) - set(labels):  # LightGBM stores names without their spaces
        order = f"[{quoted_names(labels[place] for place in places)}]"
    ordered = f"X.select({order})" if made_by(X, "pyarrow") else f"X[{order}]"
    return ParityError(
        f"the columns of X are in another order than the model's: {', '.join(found)}{more}. {library} "
        "takes the columns of this table by position, and qwyc takes them by name, so that the same table "
        f"would be decided differently. Pass the columns in the model's order: {ordered}"
    )
