"""What a user calls data, as a list of files: files, folders, patterns and URLs."""

from __future__ import annotations

import glob
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from qwyc.errors import InputError
from qwyc.rows.files.remote import Entry, FileSystem, file_system, is_url, url_errors

KINDS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
COMPRESSED_SUFFIXES = (".gz", ".bz2", ".zst")  # of CSV
STANDARD_INPUT = "-"

Data = str | Path | Sequence[str | Path]


class LocalFiles(FileSystem):
    """The files of this machine."""

    def entry(self, path: str) -> Entry | None:
        local = Path(path)
        try:
            local.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return Entry(path, local.is_dir())

    def listing(self, folder: str) -> list[Entry]:
        return [Entry(str(path), path.is_dir()) for path in Path(folder).iterdir()]

    def glob(self, pattern: str) -> list[Entry]:
        return [Entry(path, Path(path).is_dir()) for path in glob.glob(pattern, recursive=True)]

    def open(self, path: str) -> BinaryIO:
        return Path(path).open("rb")

    def url(self, path: str) -> str:
        return path


@dataclass(frozen=True, eq=False)
class Input:
    """One file, or standard input."""

    name: str  # in messages
    kind: str  # "csv", "parquet" or "arrow"
    path: str
    files: FileSystem

    @property
    def is_local(self) -> bool:
        """Whether it is a file of this machine, or standard input."""
        return isinstance(self.files, LocalFiles)

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The file to read."""
        if self.path == STANDARD_INPUT:
            yield sys.stdin.buffer
            return
        with _open_errors(self.name, self.files):
            file = self.files.open(self.path)
        with file:
            yield file


@contextmanager
def _open_errors(name: str, files: FileSystem) -> Iterator[None]:
    if not isinstance(files, LocalFiles):
        with url_errors(name):
            yield
        return
    try:
        yield
    except FileNotFoundError:
        raise InputError.naming_file(f"cannot read {name}: no such file") from None
    except OSError as error:
        raise InputError.naming_file(f"cannot read {name}: {error.strerror or error}") from None


def display_name(path: str | Path) -> str:
    """The name of a file in messages; "-" is standard input."""
    return "standard input" if str(path) == STANDARD_INPUT else str(path)


def kind_of_name(name: str) -> str | None:
    """ "csv", "parquet" or "arrow", by the name of a file; None if it has another name."""
    path = Path(name)
    suffix = path.suffix.lower()
    if suffix in COMPRESSED_SUFFIXES and KINDS.get(path.with_suffix("").suffix.lower()) == "csv":
        return "csv"
    return KINDS.get(suffix)


def find_inputs(data: Data, kind: str | None = None) -> list[Input]:
    """The files that `data` names, in the order of the names; those of a folder or pattern by their own
    names. All have one format: `kind` if it is given, otherwise that of their names."""
    given = [data] if isinstance(data, (str, Path)) else list(data)
    inputs = [found for one in given for found in _find(str(one), kind)]
    for one in inputs:
        if len(inputs) > 1 and one.path == STANDARD_INPUT:
            raise InputError.naming_file(
                "standard input (-) is read alone; leave out the other files"
            )
        if one.kind != inputs[0].kind:
            raise InputError.naming_file(
                f"{one.name} is {one.kind} and {inputs[0].name} is {inputs[0].kind}; give files of one "
                "format"
            )
    return inputs


def local_paths(data: Data) -> list[Path]:
    """The local files that `data` names, as far as they exist; no error if it names none."""
    found: list[Path] = []
    for one in [data] if isinstance(data, (str, Path)) else data:
        text = str(one)
        if is_url(text):
            text = text.removeprefix("file://")
        try:
            path = Path(text)
            if path.is_dir():
                found += path.iterdir()
            elif _is_pattern(text) and not path.exists():
                found += map(Path, glob.glob(text, recursive=True))
            else:
                found.append(path)
        except OSError:  # reported when it is read
            continue
    return found


def _find(text: str, kind: str | None) -> list[Input]:
    """The files that one argument names."""
    files, path = file_system(text) if is_url(text) else (LocalFiles(), text)
    if text == STANDARD_INPUT:
        return [Input(display_name(text), kind or "csv", text, files)]
    with _open_errors(text, files):
        there = files.entry(path)
        if there is not None and there.is_folder:
            return _of_folder(text, path, files, kind)
        if there is None and _is_pattern(path):
            return _data_files(text, files.glob(path), files, kind, "no data file matches it")
    known = kind or kind_of_name(path)
    if known is None:
        raise InputError.naming_file(
            f"{text} must be a .csv (.csv.gz, .tsv), .parquet, .arrow, .feather or .ipc file; for another "
            "name, give the format with --format"
        )
    if there is None:
        raise InputError.naming_file(f"cannot read {text}: no such file")
    return [Input(text, known, path, files)]


def _of_folder(text: str, path: str, files: FileSystem, kind: str | None) -> list[Input]:
    entries = files.listing(path)
    folders = sorted(_base_name(e) for e in entries if e.is_folder and not _is_hidden(e))
    if folders:
        raise InputError.naming_file(
            f"{text} has folders in it ({folders[0]}); name the files by a pattern, such as "
            f"'{text.rstrip('/')}/**/*.parquet'"
        )
    return _data_files(text, entries, files, kind, "it is a folder without data files")


def _data_files(
    text: str, entries: Sequence[Entry], files: FileSystem, kind: str | None, reason: str
) -> list[Input]:
    """The files among what was found that have the name of a table, or all of them if the format is
    given; an error with the `reason` if there is none."""
    found = [
        Input(files.url(entry.path), known, entry.path, files)
        for entry in sorted(entries, key=lambda entry: entry.path)
        if not entry.is_folder
        and not _is_hidden(entry)
        and (known := kind or kind_of_name(entry.path)) is not None
    ]
    if not found:
        raise InputError.naming_file(
            f"cannot read {text}: {reason}; data files are .csv, .parquet, .arrow, .feather and .ipc, or "
            "have any name with --format"
        )
    return found


def _is_pattern(text: str) -> bool:
    return any(mark in text for mark in "*?[")


def _base_name(entry: Entry) -> str:
    return entry.path.rstrip("/").rpartition("/")[2]


def _is_hidden(entry: Entry) -> bool:
    """Files such as .part.crc, _SUCCESS and _metadata, which systems write beside data."""
    return _base_name(entry).startswith((".", "_"))
