"""Tables in files and pipes, read batch by batch: CSV, Parquet and Arrow IPC."""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from qwyc.errors import InputError, MissingDependencyError
from qwyc.rows.categories import RowError
from qwyc.rows.files.batch import Batch, Columns, Match, Read
from qwyc.rows.files.csv_reader import WrongRowError, read_csv
from qwyc.rows.matrix import listed, match_columns

if TYPE_CHECKING:
    from qwyc.rows.schema import Schema

KINDS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
COMPRESSED = (".gz", ".bz2", ".zst")  # of CSV
MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow"}  # how files start
BATCH = 1 << 16  # rows of a Parquet file in a batch
AHEAD = 2  # batches that wait to be worked on
BUFFER = 1 << 16  # bytes of each column of a Parquet file that are read at once

Report = Callable[[str, int, int], None]  # what, done, total; total 0: not known


def _silent(what: str, done: int, total: int) -> None:
    pass


def kind_of(path: Path, kind: str | None = None) -> str:
    """ "csv", "parquet" or "arrow", as asked for or by the file's name; pipes are CSV."""
    if kind is not None:
        return kind
    if str(path) == "-":
        return "csv"
    suffix = path.suffix.lower()
    if suffix in COMPRESSED and KINDS.get(path.with_suffix("").suffix.lower()) == "csv":
        return "csv"
    if suffix not in KINDS:
        raise InputError(
            f"{path} must be a .csv (.csv.gz, .tsv), .parquet, .arrow, .feather or .ipc file; otherwise "
            "say which it is with --format"
        )
    return KINDS[suffix]


def read_batches(
    path: Path,
    inputs: Schema,
    *,
    keep: Sequence[str] = (),
    option: str = "--keep",
    kind: str | None = None,
    report: Report = _silent,
) -> Generator[Batch]:
    """The rows of a file, or of standard input where the path is "-", batch by batch; at least one
    batch, which may be empty. Columns are matched with the model's before the first. `option` is what
    names those to keep."""
    need_pyarrow()
    kind = kind_of(path, kind)
    with _opened(path) as file, _readable(path, kind):
        _check_magic(file, path, kind)

        def match(labels: Sequence[str]) -> Columns:
            return _wanted(labels, path, inputs, list(keep), option)

        if kind == "csv":
            reading = _csv(file, path, inputs, match)
        else:
            reading = (_parquet if kind == "parquet" else _arrow)(file, path, match)
        for batch, done, total in _ahead(reading):
            report(f"Reading {shown(path)}", done, total)
            yield batch


def _ahead(batches: Read) -> Read:
    """The same batches, read by another thread while this one works on the last: a wait for a slow
    pipe can then be interrupted."""
    waiting: queue.Queue[Any] = queue.Queue(maxsize=AHEAD)
    stopped = threading.Event()

    def hand_over(item: Any) -> None:
        while not stopped.is_set():
            with contextlib.suppress(queue.Full):
                waiting.put(item, timeout=0.1)
                break

    def work() -> None:
        try:
            for batch in batches:
                hand_over(batch)
                if stopped.is_set():
                    return
            hand_over(None)
        except BaseException as error:  # to be raised where the batches are used
            hand_over(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while (item := waiting.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
        thread.join(timeout=0.5)  # longer only where it is stuck


def read_table(
    path: Path,
    inputs: Schema,
    *,
    keep: Sequence[str] = (),
    option: str = "--keep",
    kind: str | None = None,
    report: Report = _silent,
) -> tuple[Any, Any]:
    """All rows: a table of what the model takes, and one of the columns to keep."""
    pyarrow = need_pyarrow()
    reading = read_batches(path, inputs, keep=keep, option=option, kind=kind, report=report)
    batches = list(reading)
    return (
        pyarrow.Table.from_batches([batch.features for batch in batches]),
        pyarrow.Table.from_batches([batch.kept for batch in batches]),
    )


def need_pyarrow() -> Any:
    """The library that reads and writes tables."""
    try:
        import pyarrow
    except ImportError:
        raise MissingDependencyError("reading tables needs pyarrow: pip install pyarrow") from None
    return pyarrow


def shown(path: Path) -> str:
    """A path as messages name it."""
    return "standard input" if str(path) == "-" else str(path)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
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
def _readable(path: Path, kind: str) -> Iterator[None]:
    """Turn what damaged content sets off into one sentence."""
    import pyarrow

    try:
        yield
    except UnicodeDecodeError:
        raise InputError(
            f"cannot read {shown(path)} as {kind}: it is not UTF-8 text; save it as UTF-8"
        ) from None
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, InputError):
            raise
        reason = " ".join(str(error).split())
        raise InputError(f"cannot read {shown(path)} as {kind}: {reason}") from None


def _check_magic(file: BinaryIO, path: Path, kind: str) -> None:
    """Say so where a file is not what its name or --format says."""
    start = _peek(file)
    for magic, found in MAGIC.items():
        if start.startswith(magic) and found != kind:
            raise InputError(
                f"cannot read {shown(path)} as {kind}: it is {found.title()}; say so with --format {found}"
            )


def _peek(file: BinaryIO) -> bytes:
    """How a stream starts, which stays there to be read."""
    return file.peek(8)[:8] if hasattr(file, "peek") else b""


def in_file(path: Path, error: InputError, *, before: int = 0) -> InputError:
    """What is said about rows X, said about a file that has so many rows before them."""
    text = str(error.moved(before) if isinstance(error, RowError) else error)
    text = text.replace("(X has: ", "(it has: ")
    if text.startswith("X has "):
        return InputError(f"{shown(path)} {text.removeprefix('X ')}")
    return InputError(f"{shown(path)}: {text}")


# ---- which columns ---------------------------------------------------------------------------


def _wanted(
    labels: Sequence[str], path: Path, inputs: Schema, keep: list[str], option: str
) -> Columns:
    absent = [name for name in keep if name not in labels]
    if absent:
        raise InputError(
            f"{shown(path)} has no column {absent[0]!r}, which {option} names (it has: {listed(labels)})"
        )
    kept = list(dict.fromkeys(keep))
    offered = list(labels)
    if inputs.names is None and len(labels) != inputs.n_features:  # all but those to keep
        offered = [label for label in labels if label not in kept]
    try:
        positions = match_columns(offered, inputs)
    except InputError as error:
        raise in_file(path, error) from None
    return Columns([offered[i] for i in positions], kept)


# ---- CSV, Parquet and Arrow -----------------------------------------------------------------------


def _csv(file: BinaryIO, path: Path, inputs: Schema, match: Match) -> Read:
    try:
        yield from read_csv(file, shown(path), inputs, match)
    except WrongRowError as error:
        if error.known or str(path) == "-" or not path.is_file():
            raise
        with path.open("rb") as again:  # to the same error, which then knows the row
            for _ in read_csv(again, shown(path), inputs, match, numbered=True):
                pass
        raise


def _parquet(file: BinaryIO, path: Path, match: Match) -> Read:
    from pyarrow import RecordBatch, parquet

    if not file.seekable():
        raise InputError(
            f"cannot read {shown(path)} as parquet: it is a pipe, and Parquet is read from its end; "
            "give a file, or pipe CSV or Arrow"
        )
    # pre_buffer holds all that is read until the end; without a buffer, a row group is read whole.
    content = parquet.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER)
    columns = match(content.schema_arrow.names)
    total, done = content.metadata.num_rows, 0
    reading = content.iter_batches(BATCH, columns=columns.names)
    for rows in _checked(reading, path, "parquet"):  # its decoder takes text that is not UTF-8
        done += rows.num_rows
        yield columns.of(rows), done, total
    if not done:
        yield columns.of(RecordBatch.from_pylist([], schema=content.schema_arrow)), 0, 0


def _checked(batches: Iterator[Any], path: Path, kind: str) -> Iterator[Any]:
    """The same pyarrow.RecordBatches, each checked in full before anything looks at its values: Arrow
    believes what a file says of its lengths and offsets, and reads foreign memory where that is wrong."""
    import pyarrow

    number, before = 0, 0  # batches and rows
    while True:
        try:
            rows = next(batches, None)
            if rows is None:
                return
            rows.validate(full=True)
        except (pyarrow.ArrowInvalid, OSError) as error:
            if getattr(error, "errno", None) is not None:
                raise  # the system cannot read, and the file may be sound
            reason = " ".join(str(error).split())
            raise InputError(
                f"cannot read {shown(path)} as {kind}: batch {number:,}, which starts at row {before:,}, "
                f"is damaged ({reason}); write the file again"
            ) from None
        yield rows
        number, before = number + 1, before + rows.num_rows


def _arrow(file: BinaryIO, path: Path, match: Match) -> Read:
    from pyarrow import RecordBatch, ipc

    start = _peek(file)
    if start.startswith(b"ARROW1") and file.seekable():
        content = ipc.open_file(file)
        total = content.num_record_batches
        batches = (content.get_batch(i) for i in range(total))
    else:
        if start.startswith(b"FEA1"):
            raise InputError(
                f"{shown(path)} is a Feather file of version 1; write it again as version 2"
            )
        if start.startswith(b"ARROW1"):
            file.read(8)  # what follows is a stream, and then what only files have
        content = ipc.open_stream(file)
        total, batches = 0, iter(content)
    columns = match(content.schema.names)
    done = 0
    for done, rows in enumerate(_checked(batches, path, "arrow"), 1):
        yield columns.of(rows), done, total
    if not done:
        yield columns.of(RecordBatch.from_pylist([], schema=content.schema)), 0, 0
