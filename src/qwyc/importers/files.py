"""What the importers share about model files: reading them, and saying what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from qwyc.errors import ModelError


def read_bytes(path: Path) -> bytes:
    """All of a model file; ModelError where it cannot be read or is empty."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        why = error.strerror or str(error)
        raise ModelError(f"{path}: the model file cannot be read: {why}") from None
    if not content:
        raise ModelError(f"{path}: the model file is empty; save the model again")
    return content


def reason(error: Exception) -> str:
    """The message of a library's error, in one line and without the stack trace that some append."""
    lines = str(error).partition("Stack trace")[0].split("\n")
    return (
        " ".join(line.strip() for line in lines if line.strip()).rstrip(" .:")
        or type(error).__name__
    )


@contextmanager
def reading(name: str, kind: str, remedy: str) -> Iterator[None]:
    """Name the model in every error, and turn what damaged content sets off into a ModelError. The cause
    stays with it: it may be a mistake in an importer."""
    try:
        with np.errstate(all="ignore"):  # what damaged numbers turn into is checked, not warned of
            yield
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from None
    except KeyError as error:
        what = f"{error.args[0]!r} is missing" if error.args else "a part is missing"
        raise ModelError(f"{name}: the {kind} is damaged: {what}; {remedy}") from error
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        MemoryError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise ModelError(f"{name}: the {kind} is damaged ({reason(error)}); {remedy}") from error
