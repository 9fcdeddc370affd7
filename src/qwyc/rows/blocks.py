"""Rows in blocks of one size, from a container in memory or from a stream of any length.

Some sums depend on where blocks begin, in their last bits. So blocks have the same size wherever the rows
come from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from qwyc.errors import InputError, RowsError
from qwyc.rows.selection import part, row_count
from qwyc.rows.sparse import is_sparse, to_csr
from qwyc.runtime.progress import ProgressOption, progress_reporter


class RowStream(ABC):
    """Rows that are not in memory at once, such as those of a large file. They are read once."""

    @abstractmethod
    def blocks(self, size: int) -> Iterator[Any]:
        """Tables of `size` rows each; the last one has what is left, if anything."""

    @abstractmethod
    def named(self, error: InputError, rows_before: int) -> InputError:
        """An error about a block, with the name of its file; `rows_before` precede the block."""


def row_blocks(
    X: Any, size: int, progress: ProgressOption, what: str
) -> Iterator[tuple[slice, Any]]:
    """Blocks of rows, and where each is in X. A stream reports its progress itself."""
    if isinstance(X, RowStream):
        done = 0
        for block in X.blocks(size):
            yield slice(done, done + len(block)), block
            done += len(block)
        if not done:
            raise X.named(_no_rows(), 0)
        return
    if is_sparse(X) and len(X.shape) == 2:  # converted once, not for each block
        X = to_csr(X)
    n = row_count(X)
    if not n:
        raise _no_rows()
    with progress_reporter(progress, what, n) as report:
        for i in range(0, n, size):
            place = slice(i, min(i + size, n))
            yield place, X if n <= size else part(X, place.start, place.stop)
            report(place.stop)


def error_in_block(X: Any, error: InputError, rows_before: int) -> InputError:
    """An error about a block of X that `rows_before` rows precede, as one about X."""
    if isinstance(X, RowStream):
        return X.named(error, rows_before)
    return error.after(rows_before)


def _no_rows() -> RowsError:
    return RowsError("{rows} has no rows; rows like those to come are needed")
