"""What a run has computed so far, kept in files, so that a run can be resumed."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import qwyc

from ..internals import replacing

T = TypeVar("T")

# A stage is computed anew when one of these changes; claims, figures and pages are always made anew.
COMPUTING = (
    "bench",
    "curves",
    "data",
    "ensembles",
    "experiments",
    "forests",
    "lattices",
    "margins",
    "methods",
    "models",
    "promise",
    "setting",
    "timing",
    "votes",
)


class Store:
    """Results by stage, in a folder. A result counts only while what it was computed from is the same:
    the experiment, its setting, this package's code and the version of qwyc."""

    def __init__(self, folder: Path, *facts: Any) -> None:
        self.folder = folder
        here = Path(__file__).parent
        code = [(here / f"{name}.py").read_bytes() for name in COMPUTING]
        digest = hashlib.sha256(repr((qwyc.__version__, facts)).encode())
        for part in code:
            digest.update(part)
        self.key = digest.hexdigest()[:16]

    def get(self, stage: str, compute: Callable[[], T]) -> T:
        """The result of a stage: from an earlier run, or computed now and kept."""
        path = self.folder / f"{stage}-{self.key}.pickle"
        if path.is_file():
            try:
                found: T = pickle.loads(path.read_bytes())
                return found
            except (pickle.UnpicklingError, EOFError, AttributeError, ImportError):
                pass  # of another version of a library: computed anew
        result = compute()
        self.folder.mkdir(parents=True, exist_ok=True)
        for old in self.folder.glob(f"{stage}-*.pickle"):
            old.unlink()
        with replacing(path) as file:
            file.write(pickle.dumps(result, protocol=pickle.HIGHEST_PROTOCOL))
        return result
