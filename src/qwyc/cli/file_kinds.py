"""What kind of file an argument names, so that a wrong or swapped one is said in plain words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from qwyc.errors import InputError
from qwyc.importers import SUPPORTED_FILES, library_of_file
from qwyc.rows.files.inputs import kind_of_name

TABLES = {"csv": "a CSV file", "parquet": "a Parquet file", "arrow": "an Arrow file"}
SAVE_AS = f"save the model in a format of its library that is read: {SUPPORTED_FILES}"


@dataclass(frozen=True)
class FileKind:
    """What a file is, by how it starts and by its name."""

    what: str  # with an article: "a Parquet file"
    role: str  # "rows", "model", "qwyc" or "unreadable": a model that no command reads
    remedy: str = ""


def kind_of(path: Path) -> FileKind | None:
    """What a file or folder is; None where it cannot be told, or there is nothing to read."""
    try:
        if path.is_dir():
            return _kind_of_folder(path)
        if not path.is_file():  # a pipe must not be opened twice
            return None
        with path.open("rb") as file:
            head = file.read(512)
    except (OSError, ValueError):  # or the path holds a null character
        return None  # whoever reads the file says why it cannot
    if is_qwyc(head):
        return FileKind("a .qwyc file", "qwyc")
    if head[:4] == b"PAR1":
        return FileKind(TABLES["parquet"], "rows")
    if head[:6] == b"ARROW1":
        return FileKind(TABLES["arrow"], "rows")
    library = library_of_file(head)
    if library is not None:
        return FileKind(f"a model of {library}", "model")
    if head[:1] == b"\x80" or path.suffix in (".pkl", ".pickle", ".joblib"):
        return FileKind(
            "a pickle", "unreadable", f"reading one runs code, so no command does; {SAVE_AS}"
        )
    if path.suffix in (".keras", ".h5", ".hdf5"):
        return FileKind("a Keras model", "unreadable", "no command reads it; use qwyc from Python")
    table = kind_of_name(path.name)
    if table is not None:
        return FileKind(TABLES[table], "rows")
    return None


def _kind_of_folder(path: Path) -> FileKind | None:
    try:
        names = {child.name for child in path.iterdir()}
    except OSError:
        return None
    if any(name.endswith("data_spec.pb") for name in names):
        return FileKind("a YDF model", "unreadable", "no command reads it; use qwyc from Python")
    if "saved_model.pb" in names:
        return FileKind("a SavedModel", "unreadable", "no command reads it; use qwyc from Python")
    return None


def is_qwyc(head: bytes) -> bool:
    """Whether a file that starts with `head`, 512 bytes, is a .qwyc file: 8 bytes with the length of a
    JSON header, then the header."""
    return head[7:9] == b"\0{" and b'"qwyc"' in head


def check_model(path: Path, data: Iterable[str] = (), command: str = "") -> None:
    """Refuse a file that is no model, where a model or a .qwyc file is read. `command` is the whole
    command, for the right order of its arguments."""
    kind = kind_of(path)
    if kind is not None and kind.role in ("rows", "unreadable"):
        remedy = kind.remedy or (
            f"{_swapped(data, command)}a model is a file of {SUPPORTED_FILES}, or a .qwyc file"
        )
        raise InputError(f"{path} is {kind.what}; a model file was expected. {_sentence(remedy)}")
    check_rows(data, command)


def check_classifier(path: Path, data: Iterable[str] = (), command: str = "") -> None:
    """Refuse a file that is another than a .qwyc file, where only those are read."""
    kind = kind_of(path)
    if kind is not None and kind.role != "qwyc":
        remedy = kind.remedy or (
            f"make one with: qwyc optimize {path} DATA -o {path.with_suffix('.qwyc').name}"
            if kind.role == "model"
            else f"{_swapped(data, command)}make a .qwyc file with: qwyc optimize MODEL DATA"
        )
        raise InputError(f"{path} is {kind.what}; a .qwyc file was expected. {_sentence(remedy)}")
    check_rows(data, command)


def check_rows(data: Iterable[str], command: str = "") -> None:
    """Refuse models and .qwyc files among the files with rows."""
    for name in data:
        path = Path(name)
        if name == "-" or kind_of_name(name) is not None:
            continue
        kind = kind_of(path)
        if kind is not None and kind.role != "rows":
            order = f" The order is: {command}" if command else ""
            raise InputError(
                f"{name} is {kind.what}; rows were expected, as CSV, Parquet or Arrow. Did you swap the "
                f"arguments?{order}"
            )


def _swapped(data: Iterable[str], command: str) -> str:
    """A question, where a model stands in the place of the rows."""
    kinds = (kind_of(Path(name)) for name in data if name != "-")
    if command and any(kind is not None and kind.role in ("model", "qwyc") for kind in kinds):
        return f"did you swap the arguments? The order is: {command}; "
    return ""


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
