"""Errors of workers as the driver raises them: the one line that a worker raised, without what engines
add to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from qwyc import errors
from qwyc.errors import InputError, QwycError

# The last line of a traceback, as Spark passes it on: `qwyc.errors.InputError: ...`.
_LINE = re.compile(r"^qwyc\.errors\.(\w+): (.+)$", re.MULTILINE)


@contextmanager
def unwrapped() -> Iterator[None]:
    """Raise an error of qwyc from a worker as itself; every other error is the engine's."""
    try:
        yield
    except QwycError:
        raise
    except Exception as error:
        found = _find(error)
        if found is None:
            raise
        raise found from None


def _find(error: BaseException) -> QwycError | None:
    """The error of qwyc among an error's causes, or in its text."""
    chain: list[BaseException] = [error]
    for one in chain:
        if isinstance(one, QwycError):
            return one
        for other in (getattr(one, "cause", None), one.__cause__, one.__context__):
            if isinstance(other, BaseException) and other not in chain:
                chain.append(other)
    for one in chain:
        lines = _LINE.findall(str(one))
        if lines:
            name, message = lines[-1]
            kind = getattr(errors, name, InputError)
            return InputError(message) if issubclass(kind, InputError) else kind(message)
    return None
