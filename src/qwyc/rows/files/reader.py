"""Tables in files and pipes, read batch by batch: CSV, Parquet and Arrow IPC."""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from qwyc.errors import InputError, MissingDependencyError, RowsError
from qwyc.rows.column_names import match_columns, quoted_names
from qwyc.rows.files.arrow_reader import FILE_MAGIC, read_arrow
from qwyc.rows.files.batch import Batch, BatchReader, Columns
from qwyc.rows.files.csv_reader import read_csv
from qwyc.rows.files.parquet_reader import read_parquet
from qwyc.rows.schema import Schema

KINDS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
COMPRESSED_SUFFIXES = (".gz", ".bz2", ".zst")  # of CSV
MAGIC = {b"PAR1": "parquet", FILE_MAGIC: "arrow"}  # kinds by the first bytes of a file
BATCHES_AHEAD = 2  # that are read before they are asked for

Report = Callable[[str, int, int], None]  # what is done, work done, total work (0: not known)


def _no_report(what: str, done: int, total: int) -> None:
    pass


def display_name(path: Path) -> str:
    """The name of a file in messages; "-" is standard input."""
    return "standard input" if str(path) == "-" else str(path)


def file_kind(path: Path, kind: str | None = None) -> str:
    """ "csv", "parquet" or "arrow": `kind` if it is given, otherwise by the name; pipes are CSV."""
    if kind is not None:
        return kind
    if str(path) == "-":
        return "csv"
    suffix = path.suffix.lower()
    if suffix in COMPRESSED_SUFFIXES and KINDS.get(path.with_suffix("").suffix.lower()) == "csv":
        return "csv"
    if suffix not in KINDS:
        raise InputError(
            f"{path} must be a .csv (.csv.gz, .tsv), .parquet, .arrow, .feather or .ipc file; for another "
            "name, give the format with --format"
        )
    return KINDS[suffix]


def read_batches(
    path: Path,
    schema: Schema,
    *,
    keep: Sequence[str] = (),
    option: str = "--keep",
    kind: str | None = None,
    report: Report = _no_report,
) -> Generator[Batch]:
    """The rows of a file, or of standard input if the path is "-", batch by batch.

    There is at least one batch, which may be empty. Columns are matched with the model's before the first
    batch is read. `keep` are columns to read besides the model's, and `option` is what messages call
    them."""
    import_pyarrow()
    kind, name = file_kind(path, kind), display_name(path)
    with _open(path) as file, _read_errors(name, kind):
        start = _first_bytes(file)
        _check_magic(start, name, kind)

        def match(labels: Sequence[str]) -> Columns:
            return _choose_columns(labels, name, schema, list(keep), option)

        batches: BatchReader
        if kind == "csv":
            batches = read_csv(file, name, schema, match)
        elif kind == "parquet":
            batches = read_parquet(file, name, match)
        else:
            batches = read_arrow(file, start, name, match)
        for batch, done, total in _read_ahead(batches):
            report(f"Reading {name}", done, total)
            yield batch


def read_table(
    path: Path,
    schema: Schema,
    *,
    keep: Sequence[str] = (),
    option: str = "--keep",
    kind: str | None = None,
    report: Report = _no_report,
) -> tuple[Any, Any]:
    """All rows: a pyarrow.Table of the columns that the model takes, and one of the columns to keep."""
    pyarrow = import_pyarrow()
    batches = list(read_batches(path, schema, keep=keep, option=option, kind=kind, report=report))
    return (
        pyarrow.Table.from_batches([batch.features for batch in batches]),
        pyarrow.Table.from_batches([batch.kept for batch in batches]),
    )


def import_pyarrow() -> Any:
    """The library that reads tables, or an error that says how to install it."""
    try:
        import pyarrow
    except ImportError:
        raise MissingDependencyError("reading tables needs pyarrow: pip install pyarrow") from None
    return pyarrow


def _read_ahead(batches: BatchReader) -> BatchReader:
    """The same batches, read by another thread while this thread works on the last one. So Ctrl-C is
    noticed while a slow pipe is read."""
    waiting: queue.Queue[Any] = queue.Queue(maxsize=BATCHES_AHEAD)
    stopped = threading.Event()

    def put(item: Any) -> None:
        while not stopped.is_set():
            with contextlib.suppress(queue.Full):
                waiting.put(item, timeout=0.1)
                break

    def read() -> None:
        try:
            for batch in batches:
                put(batch)
                if stopped.is_set():
                    return
            put(None)
        except BaseException as error:  # raised again by the thread that uses the batches
            put(error)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        while (item := waiting.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
        thread.join(timeout=0.5)  # a thread that waits for a pipe does not end


# ---- opening ---------------------------------------------------------------------------------


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise InputError(f"cannot read {path}: no such file") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    with file:
        yield file


@contextmanager
def _read_errors(name: str, kind: str) -> Iterator[None]:
    """Turn the exceptions that damaged content causes into one InputError."""
    import pyarrow

    try:
        yield
    except UnicodeDecodeError:
        raise InputError(
            f"cannot read {name} as {kind}: it is not UTF-8 text; save it as UTF-8"
        ) from None
    except (pyarrow.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"cannot read {name} as {kind}: {reason}") from None


def _first_bytes(file: BinaryIO) -> bytes:
    """The first bytes of a stream, which are still to be read; none if the stream cannot tell."""
    return file.peek(8)[:8] if hasattr(file, "peek") else b""


def _check_magic(start: bytes, name: str, kind: str) -> None:
    """Refuse a file that is of another kind than its name or --format says."""
    for magic, found in MAGIC.items():
        if start.startswith(magic) and found != kind:
            raise InputError(
                f"cannot read {name} as {kind}: it is {found.title()}; say so with --format {found}"
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
