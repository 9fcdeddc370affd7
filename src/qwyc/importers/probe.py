"""Loads a model file with the library that wrote it in a process of its own, to see whether it survives."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from qwyc.errors import ModelError

_SECONDS = 600  # what loading may take
# The module's own exceptions are no matter here: the caller gets them again, and says what they mean.
_CODE = """
import contextlib, importlib, os, pathlib, sys
importer = importlib.import_module(sys.argv[1])
with contextlib.suppress(Exception):
    importer.load(pathlib.Path(sys.argv[2]))
os._exit(0)
"""


def refuse_if_loading_crashes(importer: str, path: Path) -> None:
    """ModelError where the library ends its process, or does not come to an end, while it loads the file.
    `importer` is the name of the module that reads files of the library."""
    command = [sys.executable, "-c", _CODE, importer, str(path)]
    nothing = subprocess.DEVNULL
    try:
        done = subprocess.run(
            command, stdin=nothing, stdout=nothing, stderr=nothing, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ModelError(f"{path}: loading it takes the library more than {_SECONDS} s") from None
    except OSError:  # no process can be started here
        return
    if done.returncode < 0:  # a signal has ended it
        known = {one.value: one.name for one in signal.Signals}
        name = known.get(-done.returncode, str(-done.returncode))
        raise ModelError(
            f"{path}: the library that wrote it crashes while it loads the file ({name}); save the model "
            "again, or leave the model out"
        )
