"""Names of columns: which column of a table is which feature, and how messages list names."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence

from qwyc.errors import RowsError
from qwyc.rows.schema import Schema

_MAX_NAMES = 10  # in one message
_MAX_COMPARED = 1000  # names that one name is compared with: each takes some 30 microseconds
_MAX_LETTERS = 100  # of a name that is compared, or shown in a message


def match_columns(labels: Sequence[str], schema: Schema) -> Sequence[int]:
    """The position in `labels` of every feature, (n_features,)."""
    refuse_duplicates(labels)
    if schema.names is None:
        check_column_count(len(labels), schema)
        return range(len(labels))
    exact = {label: i for i, label in enumerate(labels)}
    underscored = [label.replace(" ", "_") for label in labels]  # as LightGBM stores names
    count = Counter(underscored)
    unique = {label: i for i, label in enumerate(underscored) if count[label] == 1}
    found = [exact.get(name, unique.get(name)) for name in schema.names]
    absent = [name for name, i in zip(schema.names, found, strict=True) if i is None]
    if absent:
        taken = set(found)
        unused = [label for i, label in enumerate(labels) if i not in taken]
        similar = similar_names(absent, unused)
        raise RowsError(
            "{rows} has no {columns} {absent}, which the model was trained on (it has: {labels}){hint}",
            columns="column" if len(absent) == 1 else "columns",
            absent=quoted_names(absent),
            labels=quoted_names(labels) or "none",
            hint=f"; did you mean {quoted_names(similar)}?" if similar else "",
        )
    return [i for i in found if i is not None]


def refuse_duplicates(labels: Sequence[str]) -> None:
    """Raise an error if two columns have the same name."""
    duplicates = [label for label, count in Counter(labels).items() if count > 1]
    if duplicates:
        raise RowsError(
            "{rows} has more than one column named {names}; rename or drop them",
            names=quoted_names(duplicates),
        )


def check_column_count(n_columns: int, schema: Schema) -> None:
    """Raise an error unless there is one column for each feature."""
    if n_columns != schema.n_features:
        raise RowsError(
            "{rows} has {n_columns} columns; the model was trained on {n_features}{names}",
            n_columns=n_columns,
            n_features=schema.n_features,
            names=f" ({quoted_names(schema.names)})" if schema.names else "",
        )


def feature_name(j: int, schema: Schema) -> str | int:
    """The name of feature `j`, or its position if features have no names."""
    return j if schema.names is None else schema.names[j]


def quoted_names(names: Iterable[str]) -> str:
    """Names for a message: quoted, with commas between them, and not more than a few."""
    listed = list(names)
    more = ", ..." if len(listed) > _MAX_NAMES else ""
    return ", ".join(repr(_shown(name)) for name in listed[:_MAX_NAMES]) + more


def _shown(name: str) -> str:
    return name if len(name) <= _MAX_LETTERS else f"{name[: _MAX_LETTERS - 3]}..."


def similar_names(absent: Sequence[str], unused: Sequence[str]) -> list[str]:
    """Those of the `unused` names that are spelt almost like one of the `absent` ones that a message
    lists. Of very many unused names, only some are compared, and no very long ones: that takes time that
    grows with the square of their length."""
    short = (label for label in unused[:_MAX_COMPARED] if len(label) <= _MAX_LETTERS)
    folded = {_fold(label): label for label in short}
    names = [name for name in absent[:_MAX_NAMES] if len(name) <= _MAX_LETTERS]
    matches = (difflib.get_close_matches(_fold(name), folded, n=1) for name in names)
    return sorted({folded[match] for found in matches for match in found})


def _fold(name: str) -> str:
    return name.casefold().replace("_", "").replace(" ", "")
