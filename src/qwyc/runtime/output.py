"""Output files that are complete or absent: written under a temporary name, then renamed."""

from __future__ import annotations

import errno
import os
import secrets
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from qwyc.errors import ArtifactError

_OPEN_FILES = "/proc/self/fd"
_unfinished: set[Path] = set()  # temporary files that are being written


def check_target(path: Path, *, regular: bool = False, inputs: Iterable[Path] = ()) -> None:
    """Raise an error if the file cannot be written, before minutes of work are spent on its content.

    With `regular`, the path must not name a pipe or a device. The command reads `inputs`, so the path
    must not name one of them."""
    try:
        _check_target(path, regular)
    except OSError as error:  # the folder cannot even be searched, or the disk is broken
        if isinstance(error, ArtifactError):
            raise
        raise ArtifactError(f"cannot write {path}: {reason(error)}") from None
    for source in inputs:
        if _same_file(source, path):
            raise ArtifactError(
                f"cannot write {path}: the command reads this file; choose another file to write"
            )


def _same_file(source: Path, target: Path) -> bool:
    if str(target) == "-":
        return False
    try:
        if not target.is_file():  # /dev/null may be both
            return False
        source_status = os.fstat(0) if str(source) == "-" else source.stat()
        return os.path.samestat(source_status, target.stat())
    except OSError:  # one of them does not exist or cannot be examined
        return False


def _check_target(path: Path, regular: bool) -> None:
    if str(path) == "-":
        if regular:
            raise ArtifactError("cannot write to standard output: a file is needed; name one")
        return
    if path.is_dir():
        raise ArtifactError(f"cannot write {path}: it is a folder; name a file")
    if regular and path.exists() and not path.is_file():
        raise ArtifactError(f"cannot write {path}: it is a device, not a file; name a file")
    if not path.parent.is_dir():
        raise ArtifactError(f"cannot write {path}: there is no folder {path.parent}; create it")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ArtifactError(f"cannot write {path}: you do not have permission to write there")


@contextmanager
def open_output(path: Path) -> Iterator[BinaryIO]:
    """Open a path for writing: "-" is standard output, a device is opened as it is, and a file is
    replaced as in `replacing`."""
    if str(path) == "-":
        with _write_errors("standard output"):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        return
    check_target(path)
    with _write_errors(str(path)):
        is_device = path.exists() and not path.is_file()  # /dev/null, a named pipe
    if is_device:
        with _write_errors(str(path)), path.open("wb") as file:
            yield file
        return
    with replacing(path) as file:
        yield file


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` in one step after everything has been written and is on
    the disk. Until then, nobody else may read it. If the process is killed, the file that was there is
    still there; the temporary has no name until it is complete, where the system can do that."""
    try:
        target = path.resolve()  # a link stays a link; the file that it points to is replaced
    except (OSError, RuntimeError):  # links in a circle
        raise ArtifactError(f"cannot write {path}: its links lead nowhere; name a file") from None
    with _write_errors(str(path)):
        if target.exists() and not target.is_file():
            raise ArtifactError(f"cannot write {path}: it is a directory or a device, not a file")
    temporary = target.with_name(f".qwyc-{os.getpid()}-{secrets.token_hex(4)}.tmp")
    _unfinished.add(temporary)
    try:
        with _write_errors(str(path)):
            mode = _mode_of(target)
            with _open_temporary(temporary) as (file, has_name):
                yield file
                file.flush()
                os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
                if not has_name:
                    _give_name(file, temporary)
            os.replace(temporary, target)
            _sync_folder(target.parent)
    finally:
        with suppress(
            OSError
        ):  # the error that brought us here says more; after the rename it is gone
            temporary.unlink(missing_ok=True)
        _unfinished.discard(temporary)


def _mode_of(target: Path) -> int:
    """The permissions of the file that is replaced, or those that new files get."""
    if target.exists():
        return target.stat().st_mode & 0o7777
    return 0o666 & ~_umask()


def _umask() -> int:
    """The permissions that new files of this process do not get. `os.umask` can only ask by setting it,
    for a moment and for files of other threads too, so Linux is asked by other means."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("Umask:"):
                    return int(line.split()[1], 8)
    except (OSError, ValueError):
        pass
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


@contextmanager
def _open_temporary(path: Path) -> Iterator[tuple[BinaryIO, bool]]:
    """A file that only its owner can read, and whether it has a name already."""
    try:
        if not os.path.exists(_OPEN_FILES):
            raise OSError
        number = os.open(path.parent, os.O_TMPFILE | os.O_RDWR, 0o600)
        has_name = False
    except (AttributeError, OSError):  # not on this system, or not in this folder
        number = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        has_name = True
    with os.fdopen(number, "wb") as file:
        yield file, has_name


def _give_name(file: BinaryIO, path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    try:  # with a folder's number, Python follows the link to the file itself
        os.link(f"{_OPEN_FILES}/{file.fileno()}", path.name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.close(folder)


def _sync_folder(folder: Path) -> None:
    """Write a folder to the disk, so that a name in it survives a power failure. Some systems cannot."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def remove_unfinished() -> None:
    """Remove the temporary files that are being written.

    For a signal handler that ends the process, which runs no `finally` clause."""
    for temporary in list(_unfinished):
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def _write_errors(name: str) -> Iterator[None]:
    """Turn errors of the operating system into one sentence that names the file."""
    try:
        yield
    except OSError as error:
        if isinstance(error, (ArtifactError, BrokenPipeError)):
            raise
        raise ArtifactError(f"cannot write {name}: {reason(error)}") from None


def reason(error: OSError) -> str:
    """The reason of a failed write, as messages state it."""
    return "it is closed" if error.errno == errno.EBADF else error.strerror or str(error)
