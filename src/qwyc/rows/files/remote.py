"""Files behind URLs, such as s3://bucket/rows.parquet: by fsspec if it is installed and knows the scheme,
otherwise by the file systems of Arrow."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import quote

from qwyc.errors import InputError, QwycError

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_RESERVED = "/:?#@!$&'()*+,;=%"  # characters that stay as they are in a URL


def is_url(text: str) -> bool:
    """Whether a text is the URL of a file, and not a path."""
    return _URL.match(text) is not None


@dataclass(frozen=True)
class Entry:
    """A file or a folder in a listing."""

    path: str
    is_folder: bool


class FileSystem(ABC):
    """What is needed of a file system. Paths are without the scheme."""

    @abstractmethod
    def entry(self, path: str) -> Entry | None:
        """What is there; None if nothing is."""

    @abstractmethod
    def listing(self, folder: str) -> list[Entry]:
        """What is in a folder, in any order."""

    @abstractmethod
    def glob(self, pattern: str) -> list[Entry]:
        """What matches a pattern, in any order."""

    @abstractmethod
    def open(self, path: str) -> BinaryIO:
        """A file to read, which can seek."""

    @abstractmethod
    def url(self, path: str) -> str:
        """The path with the scheme."""


@dataclass(frozen=True)
class FsspecFiles(FileSystem):
    """A file system of fsspec."""

    fs: Any

    def entry(self, path: str) -> Entry | None:
        if not self.fs.exists(path):
            return None
        return Entry(path, bool(self.fs.isdir(path)))

    def listing(self, folder: str) -> list[Entry]:
        return [_of_fsspec(info) for info in self.fs.ls(folder, detail=True)]

    def glob(self, pattern: str) -> list[Entry]:
        return [_of_fsspec(info) for info in self.fs.glob(pattern, detail=True).values()]

    def open(self, path: str) -> BinaryIO:
        file: BinaryIO = self.fs.open(path, "rb")
        return file

    def url(self, path: str) -> str:
        return str(self.fs.unstrip_protocol(path))


@dataclass(frozen=True)
class ArrowFiles(FileSystem):
    """A file system of pyarrow."""

    fs: Any
    scheme: str

    def entry(self, path: str) -> Entry | None:
        from pyarrow import fs

        info = self.fs.get_file_info(path)
        return None if info.type == fs.FileType.NotFound else _of_arrow(info)

    def listing(self, folder: str) -> list[Entry]:
        return self._find(folder, recursive=False)

    def glob(self, pattern: str) -> list[Entry]:
        fixed = re.split(r"[*?\[]", pattern, maxsplit=1)[0].rpartition("/")[0]
        found = self._find(fixed, recursive="/" in pattern[len(fixed) + 1 :])
        matches = re.compile(_pattern(pattern))
        return [entry for entry in found if matches.fullmatch(entry.path)]

    def _find(self, folder: str, *, recursive: bool) -> list[Entry]:
        from pyarrow import fs

        selector = fs.FileSelector(folder, recursive=recursive, allow_not_found=True)
        return [_of_arrow(info) for info in self.fs.get_file_info(selector)]

    def open(self, path: str) -> BinaryIO:
        file: BinaryIO = self.fs.open_input_file(path)
        return file

    def url(self, path: str) -> str:
        return f"{self.scheme}://{path}"


def _of_fsspec(info: Any) -> Entry:
    return Entry(info["name"], info["type"] == "directory")


def _of_arrow(info: Any) -> Entry:
    from pyarrow import fs

    return Entry(info.path, info.type == fs.FileType.Directory)


def _pattern(glob: str) -> str:
    """A regular expression for a pattern: `**` crosses folders, `*` and `?` do not."""

    def translated(found: re.Match[str]) -> str:
        mark = found[0]
        if len(mark) > 1:
            return "[^" + mark[2:] if mark.startswith("[!") else mark
        return {"*": "[^/]*", "?": "[^/]"}.get(mark) or re.escape(mark)

    folders = [
        "(?:[^/]+/)*" if part == "**" else re.sub(r"\[.+?\]|.", translated, part) + "/"
        for part in glob.split("/")
    ]
    return "".join(folders).removesuffix("/")


@contextmanager
def url_errors(url: str) -> Iterator[None]:
    """Turn what file systems raise, which may be any exception, into one InputError."""
    try:
        yield
    except QwycError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError.naming_file(f"cannot read {url}: {reason}") from None


def file_system(url: str) -> tuple[FileSystem, str]:
    """The file system of a URL, and the path in it."""
    with url_errors(url):
        missing = ""
        try:
            from fsspec.core import url_to_fs

            found, path = url_to_fs(url)
            return FsspecFiles(found), path
        except (ImportError, ValueError) as error:  # not installed, or not this scheme
            missing = " ".join(str(error).split())
        from pyarrow import ArrowException, fs

        scheme = url.partition("://")[0]
        try:
            found, path = fs.FileSystem.from_uri(quote(url, safe=_RESERVED))
        except (ArrowException, ValueError) as error:
            raise InputError.naming_file(
                f"cannot read {url}: neither fsspec ({missing}) nor pyarrow ({error}) has files of {scheme}://"
            ) from None
        return ArrowFiles(found, scheme), path
