"""Tables in files and pipes, read batch by batch: CSV, Parquet and Arrow IPC."""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

from qwyc.errors import InputError, MissingDependencyError, QwycError, RowsError
from qwyc.rows.blocks import RowStream
from qwyc.rows.categories import TEXT, type_of_categories
from qwyc.rows.column_names import match_columns, quoted_names
from qwyc.rows.files.ahead import read_ahead
from qwyc.rows.files.arrow_reader import FILE_MAGIC, read_arrow
from qwyc.rows.files.batch import Batch, BatchReader, Columns
from qwyc.rows.files.csv_reader import read_csv
from qwyc.rows.files.inputs import Data, Input, find_inputs
from qwyc.rows.files.parquet_reader import coded_texts, read_parquet
from qwyc.rows.odd_values import OddValues, marked
from qwyc.rows.schema import Schema
from qwyc.runtime.wording import number_of

MAGIC = {b"PAR1": "parquet", FILE_MAGIC: "arrow"}  # kinds by the first bytes of a file

Report = Callable[[str, int, int], None]  # what is done, work done, total work (0: not known)


def _no_report(what: str, done: int, total: int) -> None:
    pass


def _ignore(kept: Any) -> None:
    pass


class TableFiles(RowStream):
    """The rows of one or several files of one format, one after the other, in bounded memory.

    `data` is a path, a URL, a folder or a pattern, or several of them; "-" is standard input. Only the
    columns that the model takes are read, and the columns `keep`; `option` is what messages call these.
    `kind` is the format, by default that of the names. The columns that are read must have the same names
    and types in all files. With `odd`, text in a column of numbers of a CSV file is not an error: batches
    and blocks say where it is, for `qwyc.rows.odd_rows.take_rows`."""

    def __init__(
        self,
        data: Data,
        schema: Schema,
        *,
        keep: Sequence[str] = (),
        option: str = "--keep",
        kind: str | None = None,
        report: Report = _no_report,
        see_kept: Callable[[Any], None] = _ignore,
        odd: bool = False,
    ) -> None:
        import_pyarrow()
        self.inputs = find_inputs(data, kind)
        self._schema, self._keep, self._option = schema, list(keep), option
        self._report = report
        self._odd = odd
        self._see_kept = see_kept  # gets the kept columns of each batch, when `blocks` reads it
        self._begins: list[int] = []  # the first row of each file that has been opened
        self._coded: Sequence[str] | None = None  # text that is read as dictionaries, of all files

    @property
    def name(self) -> str:
        """What messages call the files."""
        first, more = self.inputs[0].name, len(self.inputs) - 1
        return first if not more else f"{first} and {number_of(more, 'more file')}"

    def batches(self) -> Generator[Batch]:
        """Rows in batches of any size. There is at least one batch, which may be empty. Columns are
        matched with the model's before the first batch of a file is read."""
        with contextlib.closing(read_ahead(self._read())) as reading:
            for batch, name, done, total in reading:
                self._report(f"Reading {name}", done, total)
                yield batch

    def blocks(self, size: int) -> Iterator[Any]:
        """Tables of `size` rows of the columns that the model takes: see `RowStream`."""
        import pyarrow

        waiting: list[Any] = []
        marks: list[
            OddValues
        ] = []  # of the rows that wait and those after them, counted from the first
        begin = end = 0  # rows before the block, and before the next batch
        missing = size  # rows until a block is complete
        with contextlib.closing(self.batches()) as reading:
            for batch in reading:
                self._see_kept(batch.kept)
                rows = batch.features
                marks += [odd.after(end) for odd in batch.odd]
                end += rows.num_rows
                while rows.num_rows >= missing:
                    table = pyarrow.Table.from_batches([*waiting, rows.slice(0, missing)])
                    yield marked(table, marks, begin)
                    rows, waiting, missing, begin = rows.slice(missing), [], size, begin + size
                    marks = [odd for odd in marks if odd.rows[-1] >= begin]
                if rows.num_rows:
                    waiting.append(rows)
                    missing -= rows.num_rows
        if waiting:
            yield marked(pyarrow.Table.from_batches(waiting), marks, begin)
        del waiting
        pyarrow.default_memory_pool().release_unused()  # what follows needs memory of its own

    def table(self) -> tuple[Any, Any]:
        """All rows: a pyarrow.Table of the columns that the model takes, and one of the columns to keep."""
        import pyarrow

        batches = list(self.batches())
        return (
            pyarrow.Table.from_batches([batch.features for batch in batches]),
            pyarrow.Table.from_batches([batch.kept for batch in batches]),
        )

    def named(self, error: InputError, rows_before: int) -> InputError:
        """An error about rows that `rows_before` rows precede, with the name of the files; or, if it is
        about one row, with the name of its file and the number of the row in the file."""
        if error.row is None:
            return error.about(self.name)
        k = max(bisect_right(self._begins, rows_before + error.row) - 1, 0)
        begin = self._begins[k] if self._begins else 0
        return error.about(self.inputs[k].name, rows_before=rows_before - begin)

    # ---- in the thread that reads ahead -------------------------------------------------------

    def _read(self) -> Iterator[tuple[Batch, str, int, int]]:
        """Batches, the name of the file, and how much of the file is done, of how much."""
        import pyarrow

        first: Batch | None = None
        self._begins, rows, self._coded = [], 0, None
        for one in self.inputs:
            self._begins.append(rows)
            with _read_errors(one), one.open() as file:
                for batch, done, total in self._reader(one, file):
                    first = first or batch
                    _check_types(batch, one, first, self.inputs[0])
                    rows += batch.features.num_rows
                    yield batch, one.name, done, total
            pyarrow.default_memory_pool().release_unused()  # what this file's decoder held

    def _reader(self, one: Input, file: BinaryIO) -> BatchReader:
        start = _first_bytes(file)
        _check_magic(start, one)

        def match(labels: Sequence[str]) -> Columns:
            return _choose_columns(labels, one.name, self._schema, self._keep, self._option)

        if one.kind == "csv":
            return read_csv(file, one.name, self._schema, match, odd=self._odd)
        if one.kind == "parquet":
            return read_parquet(file, one.name, match, self._coded_texts)
        return read_arrow(file, start, one.name, match)

    def _coded_texts(self, content: Any, columns: Columns) -> Sequence[str]:
        """The columns that are read as dictionaries: as the first file shows it, since columns must have
        the same types in all files. Kept columns stay as they are."""
        if self._coded is None:
            categories = self._schema.categories
            texts = [
                label
                for j, label in enumerate(columns.features)
                if label not in columns.kept
                and j in categories
                and (self._schema.hashed or type_of_categories(categories[j]) == TEXT)
            ]
            self._coded = coded_texts(content, texts)
        return self._coded


def read_table(
    data: Data,
    schema: Schema,
    *,
    keep: Sequence[str] = (),
    option: str = "--keep",
    kind: str | None = None,
    report: Report = _no_report,
) -> tuple[Any, Any]:
    """All rows: a pyarrow.Table of the columns that the model takes, and one of the columns to keep."""
    return TableFiles(data, schema, keep=keep, option=option, kind=kind, report=report).table()


def import_pyarrow() -> Any:
    """The library that reads tables, or an error that says how to install it."""
    try:
        import pyarrow
    except ImportError:
        raise MissingDependencyError("reading tables needs pyarrow: pip install pyarrow") from None
    return pyarrow


# ---- opening ---------------------------------------------------------------------------------


@contextmanager
def _read_errors(one: Input) -> Iterator[None]:
    """Turn the exceptions that damaged content causes into one InputError."""
    import pyarrow

    name, kind = one.name, one.kind
    try:
        yield
    except QwycError:
        raise
    except UnicodeDecodeError:
        raise InputError.naming_file(
            f"cannot read {name} as {kind}: it is not UTF-8 text; save it as UTF-8"
        ) from None
    except (pyarrow.ArrowException, OSError, MemoryError) as error:
        reason = " ".join(str(error).split()) or "it claims more data than there is memory"
        raise InputError.naming_file(f"cannot read {name} as {kind}: {reason}") from None
    except Exception as error:
        if one.is_local:
            raise
        reason = " ".join(str(error).split())  # file systems raise exceptions of their own
        raise InputError.naming_file(
            f"cannot read {name}: {reason or type(error).__name__}"
        ) from None


def _first_bytes(file: BinaryIO) -> bytes:
    """The first bytes of a stream, which are still to be read; none if the stream cannot tell."""
    if hasattr(file, "peek"):
        return bytes(file.peek(8)[:8])
    if not file.seekable():
        return b""
    start = file.read(8)
    file.seek(-len(start), 1)
    return start


def _check_magic(start: bytes, one: Input) -> None:
    """Refuse a file that is of another kind than its name or --format says."""
    for magic, found in MAGIC.items():
        if start.startswith(magic) and found != one.kind:
            raise InputError.naming_file(
                f"cannot read {one.name} as {one.kind}: it is {found.title()}; say so with --format {found}"
            )


def _check_types(batch: Batch, one: Input, first: Batch, first_input: Input) -> None:
    """Refuse a file whose columns differ from those of the first file."""
    if batch is first or one is first_input:
        return
    pairs = ((batch.features, first.features), (batch.kept, first.kept))
    for own, other in (pair for a, b in pairs for pair in zip(a.schema, b.schema, strict=True)):
        if own.name != other.name or own.type != other.type:
            raise InputError.naming_file(
                f"{one.name} differs from {first_input.name}: its column {own.name!r} is {own.type}, and "
                f"column {other.name!r} is {other.type} there; write all files with the same columns and "
                "types"
            )


# ---- columns ---------------------------------------------------------------------------------


def _choose_columns(
    labels: Sequence[str], name: str, schema: Schema, keep: list[str], option: str
) -> Columns:
    """The columns of a file that are read, if it has all of them."""
    try:
        absent = [label for label in keep if label not in labels]
        if absent:
            raise RowsError(
                "{rows} has no column {absent}, which {option} names (it has: {labels})",
                absent=repr(absent[0]),
                option=option,
                labels=quoted_names(labels),
            )
        kept = list(dict.fromkeys(keep))
        candidates = list(labels)
        if schema.names is None and len(labels) != schema.n_features:  # all but those to keep
            candidates = [label for label in labels if label not in kept]
        positions = match_columns(candidates, schema)
    except RowsError as error:
        raise error.about(name) from None
    return Columns([candidates[i] for i in positions], kept)
