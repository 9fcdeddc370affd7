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
        reason = error.strerror or str(error)
        raise ModelError(f"{path}: the model file cannot be read: {reason}") from None
    if not content:
        raise ModelError(f"{path}: the model file is empty; save the model again")
    return content


@contextmanager
def reading(name: str, kind: str, remedy: str) -> Iterator[None]:
    """Name the model in every error, and turn what damaged content sets off into a ModelError."""
    try:
        with np.errstate(all="ignore"):  # what damaged numbers turn into is checked, not warned of
            yield
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from None
    except KeyError as error:
        reason = f"{error.args[0]!r} is missing" if error.args else "a part is missing"
        raise ModelError(f"{name}: the {kind} is damaged: {reason}; {remedy}") from None
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        MemoryError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise ModelError(f"{name}: the {kind} is damaged ({error}); {remedy}") from None
