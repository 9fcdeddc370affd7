"""Checks of batches from Parquet and Arrow files, which may claim something false about themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qwyc.errors import InputError
from qwyc.limits import MAX_ROWS_WITHOUT_DATA  # more rows need at least one bit each


def validated(batches: Iterator[Any], name: str, kind: str) -> Iterator[Any]:
    """The same pyarrow.RecordBatches, each validated in full before its values are used.

    Arrow does not check the lengths and offsets in a file, and reads foreign memory if they are wrong.
    `name` and `kind` of the file are for messages."""
    import pyarrow

    number, rows_before = 0, 0
    while True:
        try:
            rows = next(batches, None)
            if rows is None:
                return
            rows.validate(full=True)
            _check_data_size(rows)
        except (pyarrow.ArrowInvalid, OSError, MemoryError) as error:
            if getattr(error, "errno", None) is not None:
                raise  # the system cannot read the file, which may be valid
            reason = " ".join(str(error).split()) or "it claims more data than there is memory"
            raise InputError.naming_file(
                f"cannot read {name} as {kind}: batch {number:,}, which starts at row {rows_before:,}, is "
                f"damaged ({reason}); write the file again"
            ) from None
        yield rows
        number, rows_before = number + 1, rows_before + rows.num_rows


def _check_data_size(rows: Any) -> None:
    """Refuse a pyarrow.RecordBatch that claims many rows and holds almost no data.

    A column of type null has no buffers, so validation accepts any length. The matrix of the rows would
    need memory for all of them."""
    import pyarrow

    size = rows.get_total_buffer_size()
    if rows.num_rows > max(MAX_ROWS_WITHOUT_DATA, 8 * size):
        raise pyarrow.ArrowInvalid(f"length {rows.num_rows}, but only {size} bytes of data")
