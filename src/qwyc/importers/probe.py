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
    quiet = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    try:
        code = subprocess.run(command, timeout=_SECONDS, check=False, **quiet).returncode
    except subprocess.TimeoutExpired:
        raise ModelError(f"{path}: loading it takes the library more than {_SECONDS} s") from None
    except OSError:  # no process can be started here
        return
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        raise ModelError(
            f"{path}: the library that wrote it crashes while it loads the file ({name}); save the model "
            "again, or leave the model out"
        )
