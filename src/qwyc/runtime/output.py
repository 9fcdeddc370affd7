"""Files that are whole or not there: written under another name, then renamed."""

from __future__ import annotations

import csv
import errno
import io
import os
import secrets
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from qwyc.errors import ArtifactError, OptionError


def check_target(path: Path, *, regular: bool = False, inputs: Iterable[Path] = ()) -> None:
    """Fail now rather than after minutes of work. `regular`: no pipe or device will do; `inputs`: what
    is read, and must not be replaced by what is made from it."""
    try:
        _check_target(path, regular)
    except PermissionError as error:  # not even to look
        if isinstance(error, ArtifactError):
            raise
        raise ArtifactError(f"cannot write {path}: {error.strerror}") from None
    for source in inputs:
        if _same_file(source, path):
            raise ArtifactError(f"cannot write {path}: it is the file to read; name another one")


def _same_file(source: Path, target: Path) -> bool:
    if str(target) == "-" or not target.is_file():  # /dev/null may be both
        return False
    try:
        read = os.fstat(0) if str(source) == "-" else source.stat()
        return os.path.samestat(read, target.stat())
    except OSError:  # one of them is not there, or not to be looked at
        return False


def _check_target(path: Path, regular: bool) -> None:
    if str(path) == "-":
        if regular:
            raise ArtifactError("cannot write standard output: it has to be a file; name one")
        return
    if path.is_dir():
        raise ArtifactError(f"cannot write {path}: it is a folder; name a file")
    if regular and path.exists() and not path.is_file():
        raise ArtifactError(f"cannot write {path}: it is a device, not a file")
    if not path.parent.is_dir():
        raise ArtifactError(f"cannot write {path}: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ArtifactError(f"cannot write {path}: no right to write there")


@contextmanager
def output(path: Path) -> Iterator[BinaryIO]:
    """A stream to write to: standard output for "-", a device as it is, a file as `replacing` has it."""
    if str(path) == "-":
        with _writing("standard output"):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        return
    check_target(path)
    if path.exists() and not path.is_file():  # /dev/null, a named pipe
        with _writing(str(path)), path.open("wb") as file:
            yield file
        return
    with replacing(path) as file:
        yield file


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that gets its name, replacing another in one step, when all has been written."""
    target = path.resolve()  # a link stays a link; what it points to is replaced
    if target.exists() and not target.is_file():
        raise ArtifactError(f"cannot write {path}: it is a directory or a device, not a file")
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with _writing(str(path)):
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                os.chmod(temporary, target.stat().st_mode & 0o7777)
            os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _writing(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if isinstance(error, (ArtifactError, BrokenPipeError)):
            raise
        raise ArtifactError(f"cannot write {name}: {reason(error)}") from None


def reason(error: OSError) -> str:
    """Why something could not be written."""
    return "it is closed" if error.errno == errno.EBADF else error.strerror or str(error)


class TableWriter:
    """Batches of rows to CSV, Parquet or Arrow IPC."""

    def __init__(self, file: BinaryIO, kind: str, schema: Any, *, pipe: bool = False) -> None:
        import pyarrow
        from pyarrow import ipc, parquet

        self._sink = pyarrow.PythonFile(file, mode="w")
        self._writer: Any = None  # CSV has none
        if kind == "csv":
            _check_csv(schema)
            header = io.StringIO()
            csv.writer(header, lineterminator="\n").writerow(schema.names)
            file.write(header.getvalue().encode())
        elif kind == "parquet":
            self._writer = parquet.ParquetWriter(self._sink, schema)
        else:
            new = ipc.new_stream if pipe else ipc.new_file
            self._writer = new(self._sink, schema)

    def write(self, batch: Any) -> None:
        """Append rows."""
        if self._writer is None:
            _write_csv(batch, self._sink)
        else:
            self._writer.write_batch(batch)

    def close(self) -> None:
        """Write what ends the table; the file stays open."""
        if self._writer is not None:
            self._writer.close()


def _check_csv(schema: Any) -> None:
    """Fail before anything is written where a column is of a type that CSV does not hold."""
    from pyarrow import types

    for field in schema:
        inner = field.type.value_type if types.is_dictionary(field.type) else field.type
        if types.is_nested(inner) or "binary" in str(inner):
            raise OptionError(
                f"column {field.name!r} is {field.type}, which CSV does not hold; write Parquet or Arrow "
                "(--to parquet)"
            )


def _write_csv(batch: Any, sink: Any) -> None:
    """Rows as CSV, text in quotes where it needs them."""
    import pyarrow
    from pyarrow import compute
    from pyarrow import csv as arrow_csv

    plain, quotes = [], False
    for column in batch.columns:
        if pyarrow.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if "string" in str(column.type):
            column = column.cast(pyarrow.large_string())
            needs = compute.match_substring_regex(column, '[",\r\n]|^ | $|^$')
            quotes = quotes or bool(compute.any(needs, min_count=0).as_py())
        plain.append(column)
    options = arrow_csv.WriteOptions(
        include_header=False, quoting_style="needed" if quotes else "none"
    )
    arrow_csv.write_csv(
        pyarrow.RecordBatch.from_arrays(plain, names=batch.schema.names), sink, options
    )
