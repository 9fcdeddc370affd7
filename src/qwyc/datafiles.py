"""Tables in files and pipes, read batch by batch: CSV, Parquet and Arrow IPC.

Which columns are read, and as what, is settled once, from the model and the file's head: a CSV's
numbers are float64 and its categories what the model knows them as, in every batch alike."""

from __future__ import annotations

import contextlib
import io
import os
import queue
import re
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from qwyc.errors import InputError, MissingDependencyError
from qwyc.tables import match_columns

if TYPE_CHECKING:
    from qwyc.ensemble import Inputs

KINDS = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
HEAD = 1 << 20  # bytes of a CSV that its columns' types are taken from
BLOCK = 1 << 23  # bytes of a CSV in a batch
BATCH = 1 << 16  # rows of a Parquet file in a batch
AHEAD = 2  # batches that wait to be worked on

Report = Callable[[str, int, int], None]  # what, done, total; total 0: not known
Read = Iterator[tuple[Any, list[str], list[str], int, int]]  # batch, features, kept, done, total


def _silent(what: str, done: int, total: int) -> None:
    pass


@dataclass(frozen=True)
class Batch:
    """Some rows: what the model takes, and what the user wants to keep beside the answer."""

    features: Any  # a pyarrow.RecordBatch, columns in the model's order
    kept: Any  # a pyarrow.RecordBatch


def kind_of(path: Path, kind: str | None = None) -> str:
    """ "csv", "parquet" or "arrow", as asked for or by the file's name; pipes are CSV."""
    if kind is not None:
        return kind
    if str(path) == "-":
        return "csv"
    if path.suffix.lower() not in KINDS:
        raise InputError(
            f"{path} must be a .csv, .parquet, .arrow, .feather or .ipc file; otherwise say which "
            "it is with --format"
        )
    return KINDS[path.suffix.lower()]


def read_batches(
    path: Path,
    inputs: Inputs,
    *,
    keep: Sequence[str] = (),
    kind: str | None = None,
    report: Report = _silent,
) -> Generator[Batch]:
    """The rows of a file, or of standard input where the path is "-", batch by batch; at least one
    batch, which may be empty. Columns are matched with the model's before the first."""
    pyarrow = need_pyarrow()
    kind = kind_of(path, kind)
    with _opened(path) as file, _readable(path, kind):
        reader = {"csv": _csv, "parquet": _parquet, "arrow": _arrow}[kind]
        for batch, names, kept, done, total in _ahead(reader(file, path, inputs, list(keep))):
            report(f"Reading {shown(path)}", done, total)
            yield Batch(
                pyarrow.RecordBatch.from_arrays([batch.column(n) for n in names], names=names),
                pyarrow.RecordBatch.from_arrays([batch.column(n) for n in kept], names=kept),
            )


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
    inputs: Inputs,
    *,
    keep: Sequence[str] = (),
    kind: str | None = None,
    report: Report = _silent,
) -> tuple[Any, Any]:
    """All rows: a table of what the model takes, and one of the columns to keep."""
    pyarrow = need_pyarrow()
    batches = list(read_batches(path, inputs, keep=keep, kind=kind, report=report))
    return (
        pyarrow.Table.from_batches([batch.features for batch in batches]),
        pyarrow.Table.from_batches([batch.kept for batch in batches]),
    )


def need_pyarrow() -> Any:
    """The library that reads and writes tables."""
    try:
        import pyarrow
    except ImportError:
        raise MissingDependencyError(
            "reading tables needs pyarrow; install it with: pip install 'qwyc[cli]'"
        ) from None
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
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, InputError):
            raise
        reason = " ".join(str(error).split())
        raise InputError(f"cannot read {shown(path)} as {kind}: {reason}") from None


# ---- which columns ---------------------------------------------------------------------------


def _wanted(
    labels: Sequence[str], path: Path, inputs: Inputs, keep: list[str]
) -> tuple[list[str], list[str]]:
    """Names of the model's columns in its order, and of those to keep."""
    absent = [name for name in keep if name not in labels]
    if absent:
        raise InputError(
            f"{shown(path)} has no column {absent[0]!r} to keep; it has {', '.join(map(repr, labels))}"
        )
    kept = list(dict.fromkeys(keep))
    offered = list(labels)
    if inputs.names is None and len(labels) != inputs.n_features:  # all but those to keep
        offered = [label for label in labels if label not in kept]
    try:
        positions = match_columns(offered, inputs)
    except InputError as error:
        raise InputError(f"{shown(path)}: {error}") from None
    return [offered[i] for i in positions], kept


# ---- CSV -------------------------------------------------------------------------------------


class _Replayed(io.RawIOBase):
    """A stream whose head has been looked at already; counts what is read."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head, self._rest, self.done = head, rest, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        part, self._head = self._head, b""
        if size >= 0:
            part, self._head = part[:size], part[size:]
        part = part or self._rest.read(size)
        self.done += len(part)
        return part


def _csv(file: BinaryIO, path: Path, inputs: Inputs, keep: list[str]) -> Read:
    import pyarrow
    from pyarrow import csv

    head = file.read(HEAD)
    schema = _csv_schema(head, len(head) == HEAD)
    names, kept = _wanted(schema.names, path, inputs, keep)
    replayed, total, empty = _Replayed(head, file), _size(file), True
    try:
        reader = csv.open_csv(
            replayed,
            read_options=csv.ReadOptions(block_size=BLOCK),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                strings_can_be_null=True,
                include_columns=list(dict.fromkeys([*names, *kept])),
                column_types=_csv_types(schema, names, kept, inputs),
            ),
        )
        for batch in reader:
            yield batch, names, kept, min(replayed.done, total), total
            empty = False
    except pyarrow.ArrowInvalid as error:
        found = re.search(r"CSV column #(\d+): .*invalid value '(.*)'", str(error))
        if found is None:
            raise
        column, value = schema.names[int(found[1])], found[2]
        raise InputError(
            f"{shown(path)}: column {column!r} must hold numbers, as the model does; it has {value!r}"
        ) from None
    if empty:
        yield _none_of(reader.schema), names, kept, total, total


def _csv_schema(head: bytes, cut: bool) -> Any:
    """Names and types as the first rows show them."""
    from pyarrow import csv

    if cut and b"\n" in head:
        head = head[: head.rindex(b"\n") + 1]
    return csv.read_csv(
        io.BytesIO(head),
        parse_options=csv.ParseOptions(
            newlines_in_values=True,
            invalid_row_handler=lambda row: "skip" if cut else "error",  # a row cut in two
        ),
        convert_options=csv.ConvertOptions(strings_can_be_null=True),
    ).schema


def _csv_types(schema: Any, names: list[str], kept: list[str], inputs: Inputs) -> dict[str, Any]:
    """What each column is read as. A column that holds something else is an error later on."""
    import pyarrow

    types: dict[str, Any] = {name: pyarrow.string() for name in kept}
    for j, name in enumerate(names):
        found = schema.field(name).type
        known = inputs.categories.get(j)
        if known is not None and any(isinstance(value, str) for value in known):
            found = pyarrow.string()
        elif known is not None and any(abs(v) > 2**53 for v in known if isinstance(v, int)):
            found = pyarrow.int64()
        elif not pyarrow.types.is_boolean(found):
            found = pyarrow.float64()
        types[name] = found
    return types


# ---- Parquet and Arrow -----------------------------------------------------------------------


def _parquet(file: BinaryIO, path: Path, inputs: Inputs, keep: list[str]) -> Read:
    from pyarrow import parquet

    if not file.seekable():
        raise InputError(
            f"cannot read {shown(path)} as parquet: it is a pipe, and Parquet is read from its end; "
            "give a file, or pipe CSV or Arrow"
        )
    content = parquet.ParquetFile(file)
    names, kept = _wanted(content.schema_arrow.names, path, inputs, keep)
    total, done = content.metadata.num_rows, 0
    columns = list(dict.fromkeys([*names, *kept]))
    for batch in content.iter_batches(BATCH, columns=columns):
        done += batch.num_rows
        yield batch, names, kept, done, total
    if not done:
        yield _none_of(content.schema_arrow), names, kept, 0, 0


def _arrow(file: BinaryIO, path: Path, inputs: Inputs, keep: list[str]) -> Read:
    from pyarrow import ipc

    magic = file.peek(6)[:6] if hasattr(file, "peek") else b""
    if magic == b"ARROW1" and file.seekable():
        content = ipc.open_file(file)
        total = content.num_record_batches
        batches = (content.get_batch(i) for i in range(total))
    else:
        if magic[:4] == b"FEA1":
            raise InputError(
                f"{shown(path)} is a Feather file of version 1; write it again as version 2"
            )
        content = ipc.open_stream(file)
        total, batches = 0, iter(content)
    names, kept = _wanted(content.schema.names, path, inputs, keep)
    done = 0
    for done, batch in enumerate(batches, 1):
        yield batch, names, kept, done, total
    if not done:
        yield _none_of(content.schema), names, kept, 0, 0


def _none_of(schema: Any) -> Any:
    """A batch without rows."""
    import pyarrow

    return pyarrow.RecordBatch.from_arrays(
        [pyarrow.array([], field.type) for field in schema], schema=schema
    )


def _size(file: BinaryIO) -> int:
    try:
        return os.fstat(file.fileno()).st_size
    except (OSError, ValueError):
        return 0
