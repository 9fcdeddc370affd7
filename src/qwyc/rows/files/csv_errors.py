"""Which row of a block of CSV text is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qwyc.errors import RowsError
from qwyc.rows.files.csv_dialect import CsvDialect

_MAX_CHARACTERS = 80  # of a wrong value in a message


def find_wrong_row(
    block: bytes | memoryview, names: Sequence[str], types: Mapping[str, Any], dialect: CsvDialect
) -> RowsError | None:
    """The error of the first row that has too few or too many values, or a value of the wrong type, or
    else text that is not UTF-8; None if there is no such row. Rows are counted from 0 in the block.

    `names` are those of all columns, `types` the Arrow types of the columns that are read. Arrow's own
    error is only text, and does not tell the row if Arrow has several threads."""
    import pyarrow

    invalid: list[Any] = []  # pyarrow.csv.InvalidRow

    def skip(row: Any) -> str:
        invalid.append(row)
        return "skip"

    table = dialect.read(
        bytes(block).decode(errors="replace").encode(),  # Arrow fails on invalid rows without UTF-8
        names=names,
        types={name: pyarrow.string() for name in types},
        use_threads=False,  # with several threads, invalid rows have no number
        invalid_row_handler=skip,
    )
    n_rows = invalid[0].number - 1 if invalid else table.num_rows  # before the first invalid row
    wrong: tuple[int, str, str] | None = None  # row, column, value
    for name, arrow_type in types.items():
        cells = table.column(name).slice(0, n_rows).fill_null("").to_pylist()
        row = _first_wrong_cell(cells, arrow_type, dialect)
        if row is not None:
            wrong, n_rows = (row, name, cells[row]), row
    if wrong is not None:
        row, name, value = wrong
        more = "..." if len(value) > _MAX_CHARACTERS else ""
        return RowsError(
            _wrong_type_sentence(types[name]),
            row=row,
            column=name,
            value=repr(value[:_MAX_CHARACTERS] + more),
        )
    if invalid:
        return RowsError(
            "{place} has {actual} value{s}, but the header has {expected}",
            row=n_rows,
            actual=invalid[0].actual_columns,
            s="" if invalid[0].actual_columns == 1 else "s",
            expected=invalid[0].expected_columns,
        )
    return _find_wrong_encoding(block, names, types, dialect)


def _find_wrong_encoding(
    block: bytes | memoryview, names: Sequence[str], types: Mapping[str, Any], dialect: CsvDialect
) -> RowsError | None:
    """The error of the first row with text that is not UTF-8. All rows have the right length."""
    import pyarrow

    table = dialect.read(block, names=names, types={name: pyarrow.binary() for name in types})
    columns = (table.column(name).to_pylist() for name in types)
    for row, cells in enumerate(zip(*columns, strict=True)):
        for name, cell in zip(types, cells, strict=True):
            try:
                (cell or b"").decode()
            except UnicodeDecodeError:
                return RowsError(
                    "{place} holds {value}, which is not UTF-8 text; save the file as UTF-8",
                    row=row,
                    column=name,
                    value=repr(cell[:_MAX_CHARACTERS]),
                )
    return None


def _first_wrong_cell(cells: Sequence[str], arrow_type: Any, dialect: CsvDialect) -> int | None:
    """The position of the first cell that Arrow does not convert to a type, found by bisection."""
    if converts(cells, arrow_type, dialect):
        return None
    good, bad = 0, len(cells)  # cells[:good] are converted, cells[:bad] are not
    while bad - good > 1:
        middle = (good + bad) // 2
        if converts(cells[good:middle], arrow_type, dialect):
            good = middle
        else:
            bad = middle
    return good


def converts(cells: Sequence[str], arrow_type: Any, dialect: CsvDialect) -> bool:
    """Whether Arrow converts all cells of a column to a type."""
    import pyarrow

    if not cells:
        return True
    text = "\n".join('"' + cell.replace('"', '""') + '"' for cell in cells)
    try:
        dialect.read(text.encode(), names=["cell"], types={"cell": arrow_type})
    except pyarrow.ArrowInvalid:
        return False
    return True


def _wrong_type_sentence(arrow_type: Any) -> str:
    from pyarrow import types

    if types.is_boolean(arrow_type):
        return "{place} holds {value}, and the first rows hold true or false there; write all rows alike"
    if types.is_integer(arrow_type):
        return "{place} holds {value}, but the model takes integers there"
    return "{place} holds {value}, but the model takes numbers there"
