"""Checks of batches from Parquet and Arrow files, which may claim something false about themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qwyc.errors import InputError


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
        except (pyarrow.ArrowInvalid, OSError) as error:
            if getattr(error, "errno", None) is not None:
                raise  # the system cannot read the file, which may be valid
            reason = " ".join(str(error).split())
            raise InputError(
                f"cannot read {name} as {kind}: batch {number:,}, which starts at row {rows_before:,}, is "
                f"damaged ({reason}); write the file again"
            ) from None
        yield rows
        number, rows_before = number + 1, rows_before + rows.num_rows
