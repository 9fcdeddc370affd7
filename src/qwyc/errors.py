"""Every error and warning that qwyc raises on purpose. All derive from `QwycError`, and from the built-in
exception that a caller would expect as well."""

from __future__ import annotations


class QwycWarning(UserWarning):
    """What was requested can be done, but is probably not what was meant."""


class TrainingRowsWarning(QwycWarning):
    """The sample holds rows that the model was trained on, so nothing is promised about new rows."""


class QwycError(Exception):
    """Base class of all errors that qwyc raises on purpose."""


class ModelError(QwycError, ValueError):
    """The model cannot be read, or is of a kind that is not supported."""


class ParityError(QwycError, ValueError):
    """The model as read does not decide like the live model it was read from."""


class InputError(QwycError, ValueError):
    """Rows that the model cannot take: a missing column, a wrong shape, an unknown category.

    If one value is wrong, `row` is its row, counted from 0, and `column` its column: a name, or a position
    where columns have no names. They are None if they are not known."""

    row: int | None = None
    column: str | int | None = None
    is_named: bool = False  # whether the message names the file, or the like, that it is about

    @classmethod
    def naming_file(cls, message: str) -> InputError:
        """An error whose message names the file that it is about."""
        error = InputError(message)
        error.is_named = True
        return error

    def about(self, name: str, *, rows_before: int = 0) -> InputError:
        """The same error, for a caller that knows where the rows come from: `name` is a file, for example,
        and `rows_before` is the number of its rows that precede the rows of this error."""
        return InputError.naming_file(f"{name}: {self}")

    def after(self, rows_before: int) -> InputError:
        """The same error, for a caller that has passed a part of its rows: `rows_before` is the number of
        rows that precede the part."""
        return self


class RowsError(InputError):
    """An error about the rows themselves, which are called X until `about` gives them another name.

    `sentence` is a format string. "{rows}" stands for the name of the rows and "{place}" for the row and
    the column; other fields come from `details`. A sentence without "{rows}" gets the name as a prefix."""

    def __init__(
        self,
        sentence: str,
        *,
        row: int | None = None,
        column: str | int | None = None,
        rows: str | None = None,
        **details: str | int,
    ) -> None:
        super().__init__(sentence)  # `args` and attributes are all that pickle needs
        self.sentence = sentence
        self.row = row
        self.column = column
        self.rows = rows
        self.details = details
        self.is_named = rows is not None

    @property
    def place(self) -> str:
        """The row and the column, as far as they are known: "row 1,234 of column 'age'"."""
        row = None if self.row is None else f"row {self.row:,}"
        column = None if self.column is None else f"column {self.column!r}"
        return " of ".join(part for part in (row, column) if part is not None)

    def about(self, name: str, *, rows_before: int = 0) -> RowsError:
        """See `InputError.about`."""
        row = None if self.row is None else self.row + rows_before
        return RowsError(self.sentence, row=row, column=self.column, rows=name, **self.details)

    def after(self, rows_before: int) -> RowsError:
        """See `InputError.after`."""
        row = None if self.row is None else self.row + rows_before
        return RowsError(self.sentence, row=row, column=self.column, rows=self.rows, **self.details)

    def __str__(self) -> str:
        text = self.sentence.format(rows=self.rows or "X", place=self.place, **self.details)
        return text if self.rows is None or "{rows}" in self.sentence else f"{self.rows}: {text}"


class OptionError(QwycError, ValueError):
    """An option has a value outside what is allowed."""


class InfeasibleError(QwycError, ValueError):
    """So few rows cannot support the promise; the message states how many are needed."""


class CapacityError(QwycError, MemoryError):
    """The work does not fit into memory; the message says how much it needs and what would fit."""


class ArtifactError(QwycError, OSError):
    """A `.qwyc` file that cannot be read, or any file that cannot be written."""


class MissingDependencyError(QwycError, ImportError):
    """An optional library is needed for this and is not installed."""
