"""Odd values: those that a model refuses, found in all rows instead of the first one alone.

A call tries its rows as they are. Only where that raises an error about a value are the odd values looked
for, and taken as missing or left out with their rows, as the option `unseen` says."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError, QwycWarning, RowsError
from qwyc.rows.categories import NUMBERS, type_of_categories
from qwyc.rows.schema import Schema
from qwyc.rows.values import quoted, shortened
from qwyc.runtime.arguments import check_choice
from qwyc.runtime.wording import number_of

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Name = str | int  # of a column, or its position

ERROR, MISSING, FLAG = "error", "missing", "flag"
UNSEEN = (ERROR, MISSING, FLAG)

_MOST_REASONS = 3  # of one row


@dataclass(frozen=True, eq=False)
class OddValues:
    """Values of one feature that the model refuses."""

    feature: int
    rows: npt.NDArray[np.intp]  # (m,) ascending
    reasons: Array  # (m,) of text
    # Whether it is no number or no category, and not a missing, infinite or ambiguous number.
    can_be_missing: bool = True

    def after(self, rows_before: int) -> OddValues:
        """The same values, counted from a row that so many rows precede."""
        return replace(self, rows=self.rows + rows_before)


@dataclass(frozen=True, eq=False)
class MarkedRows:
    """A frame, and values that are null in it because its file holds something that is no number."""

    frame: Any
    odd: tuple[OddValues, ...]

    def __len__(self) -> int:
        return len(self.frame)


def marked(frame: Any, found: Iterable[OddValues], first: int) -> Any:
    """A frame whose rows are those from `first` on, with the odd values of these rows; the frame alone
    if it has none."""
    odd = []
    for part in found:
        inside = (part.rows >= first) & (part.rows < first + len(frame))
        if inside.any():
            rows, reasons = part.rows[inside] - first, part.reasons[inside]
            odd.append(OddValues(part.feature, rows, reasons, part.can_be_missing))
    return MarkedRows(frame, tuple(odd)) if odd else frame


@dataclass(frozen=True, eq=False)
class TakenRows:
    """The rows that a model takes, of N."""

    rows: Array  # (n, n_features) as the base models take them
    reason: Array | None = None  # (N,) of objects: why a row was left out, None for the n others
    kept: Bools | None = None  # (N,) which rows were not left out; None for all of them


def check_unseen(unseen: Any) -> str:
    """The option `unseen`, if it is one of UNSEEN."""
    return check_choice("unseen", unseen, UNSEEN)


def refuse_code(what: str, unseen: str) -> OptionError:
    """The error for rows that code of others reads."""
    return OptionError(
        f"unseen={unseen!r} needs rows that qwyc converts itself, and {what} reads them here: which values "
        "it refuses is not known. Use unseen='error', and repair or drop rows before"
    )


def not_known(name: Name, value: object) -> str:
    """Why a category is refused."""
    return f"column {name!r}: {quoted(value)} is not a category that the model knows"


def not_known_of(known: Sequence[Any]) -> Callable[[Name, Any], str]:
    """Why a value is refused where these are the categories. Text is no category where they are numbers."""
    if type_of_categories(known) != NUMBERS:
        return not_known

    def reason(name: Name, value: object) -> str:
        if not isinstance(value, str):
            return not_known(name, value)
        return f"column {name!r}: {quoted(value)} is text, and the model's categories are numbers"

    return reason


def not_a_category(name: Name, value: object) -> str:
    """Why a value that cannot be compared with categories is refused."""
    return f"column {name!r}: a {type(value).__name__} is not a category"


def not_hashed(name: Name, value: object) -> str:
    """Why CatBoost refuses a value for a category."""
    return (
        f"column {name!r}: {quoted(value)} is neither text nor an integer, as CatBoost takes them"
    )


def not_a_number(name: Name, value: object) -> str:
    """Why a value in a column of numbers is refused."""
    return f"column {name!r}: {quoted(value)} is not a number"


def not_true_or_false(name: Name, value: object) -> str:
    """Why a value of a CSV file is refused in a column of true and false."""
    return f"column {name!r}: {quoted(value)} is neither true nor false, as the first rows are"


def ambiguous(name: Name, value: object) -> str:
    """Why a large integer is refused."""
    return f"column {name!r}: {value} is past 2**53, and the source library rounds it in two ways"


def wrong_type(name: Name, dtype: object) -> str:
    """Why all values of a column are refused."""
    return f"column {name!r} holds {shortened(str(dtype))}, and the model takes none of its values"


def odd_values(
    feature: int,
    name: Name,
    rows: Any,
    values: Iterable[Any],
    reason: Callable[[Name, Any], str],
    *,
    can_be_missing: bool = True,
) -> list[OddValues]:
    """The odd values of one feature in these rows, (m,), with a reason for each; [] if there are none."""
    if not len(rows):
        return []
    reasons = np.empty(len(rows), object)
    reasons[:] = [reason(name, value) for value in values]
    return [OddValues(feature, np.asarray(rows, np.intp), reasons, can_be_missing)]


def alike(feature: int, rows: Any, reason: str, *, can_be_missing: bool = True) -> list[OddValues]:
    """The same with one reason for all rows."""
    if not len(rows):
        return []
    reasons = np.full(len(rows), reason, object)
    return [OddValues(feature, np.asarray(rows, np.intp), reasons, can_be_missing)]


def row_reasons(found: Sequence[OddValues], n_rows: int) -> tuple[Array, Bools]:
    """Why rows are left out, (N,) of objects: the reasons of the first features, and how many more features
    there are; None for rows without odd values. And which rows these are not, (N,)."""
    reason = np.full(n_rows, None, object)
    count = np.zeros(n_rows, np.intp)
    for odd in sorted(found, key=lambda odd: odd.feature):
        first = count[odd.rows] == 0
        reason[odd.rows[first]] = odd.reasons[first]
        more = ~first & (count[odd.rows] < _MOST_REASONS)
        if more.any():
            reason[odd.rows[more]] += "; " + odd.reasons[more]
        count[odd.rows] += 1
    for i in np.flatnonzero(count > _MOST_REASONS).tolist():
        reason[i] += f"; and {number_of(int(count[i]) - _MOST_REASONS, 'more column')}"
    return reason, count == 0


def special_values(rows: Array, schema: Schema, names: Sequence[Name]) -> list[OddValues]:
    """The values of a matrix, (N, n_features), that are missing or infinite where the model refuses it."""
    if not schema.finite_only:
        return []
    found: list[OddValues] = []
    for j, name in enumerate(names):
        values = rows[:, j]
        if np.isfinite(values).all():
            continue
        if not schema.accepts_missing or j in schema.must_have:
            reason = f"column {name!r}: the value is missing, and the model refuses missing values"
            found += alike(j, np.flatnonzero(np.isnan(values)), reason, can_be_missing=False)
        if not schema.accepts_infinity:
            past = "" if rows.dtype == np.float64 else " or past float32"
            reason = f"column {name!r}: the number is infinite{past}, and the model refuses it"
            found += alike(j, np.flatnonzero(np.isinf(values)), reason, can_be_missing=False)
    return found


def warn_of_lost_columns(found: Sequence[OddValues], names: Sequence[Name], n_rows: int) -> None:
    """Warn where all values of a column are taken as missing, which is rarely what was meant."""
    for odd in found:
        if len(odd.rows) == n_rows > 1:
            warnings.warn(
                f"every value of column {names[odd.feature]!r} is taken as missing ({odd.reasons[0]})",
                QwycWarning,
                stacklevel=2,
            )


def refuses_missing(schema: Schema, feature: int) -> bool:
    """Whether the model refuses a missing value of this feature."""
    if schema.hashed and schema.categories.get(feature):
        return True
    return not schema.accepts_missing or feature in schema.must_have


def refuse_as_missing(found: Sequence[OddValues], schema: Schema, names: Sequence[Name]) -> None:
    """Raise an error if an odd value cannot be taken as missing."""
    for odd in found:
        place: dict[str, Any] = {"row": int(odd.rows[0]), "column": names[odd.feature]}
        if not odd.can_be_missing:
            raise RowsError(
                "{rows} has a value in {place} that the model refuses: {reason}. Fill it in or drop "
                "the row",
                reason=str(odd.reasons[0]),
                **place,
            )
        if refuses_missing(schema, odd.feature):
            raise RowsError(
                "{place} cannot be taken as missing, because the model refuses missing values there "
                "({reason}): fill it in, or pass unseen='flag' to leave the row out",
                reason=str(odd.reasons[0]),
                **place,
            )
