"""What a run has computed so far, kept in files, so that a run can be resumed."""

from __future__ import annotations

import hashlib
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np

import qwyc

from ..internals import replacing
from . import stored
from .data import Data
from .experiments import Experiment
from .setting import Setting

T = TypeVar("T")

# A stage is computed anew when the code of one of these changes; claims, figures and pages are always
# made anew.
COMPUTING = (
    "bench",
    "compute",
    "curves",
    "ensembles",
    "methods",
    "models",  # chooses the strongest features for all families
    "promise",
    "timing",
)
OF_FAMILY = {
    "xgboost": (),
    "lightgbm": ("margins",),
    "forest": ("forests", "votes"),
    "joint": ("lattices",),
    "independent": ("lattices",),
}


class Store:
    """Results by stage, in a folder. A result counts only while what it was computed from is the same:
    the experiment, its setting, its data, the stored models that it uses, the code of this package and the
    version of qwyc."""

    def __init__(self, folder: Path, experiment: Experiment, setting: Setting, data: Data) -> None:
        self.folder = folder
        self.prefix = "quick " if setting.quick else ""  # neither run replaces the other's files
        facts = (qwyc.__version__, replace(experiment, title=""), setting)
        digest = hashlib.sha256(repr(facts).encode())
        for name in (*COMPUTING, *OF_FAMILY[experiment.family]):
            digest.update((Path(__file__).parent / f"{name}.py").read_bytes())
        for array in (data.X, data.y, data.X_test, data.y_test, data.validation):
            digest.update(np.ascontiguousarray(array).data)
        if experiment.family in ("joint", "independent"):
            models = {k: v for k, v in stored.read_index().items() if k.startswith(experiment.data)}
            digest.update(repr(sorted(models.items())).encode())
        self.key = digest.hexdigest()[:16]

    def get(self, stage: str, compute: Callable[[], T]) -> T:
        """The result of a stage: from an earlier run, or computed now and kept."""
        name = re.sub(r"[^a-z0-9]+", "-", f"{self.prefix}{stage}".lower()).strip("-")
        path = self.folder / f"{name}-{self.key}.pickle"
        if path.is_file():
            try:
                found: T = pickle.loads(path.read_bytes())
                return found
            except Exception:  # damaged bytes raise errors of many kinds
                pass  # or of another version of a library: computed anew
        result = compute()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for old in self.folder.glob(f"{name}-{'?' * len(self.key)}.pickle"):
                old.unlink()
        except OSError as error:
            raise qwyc.ArtifactError(f"cannot write into {self.folder}: {error.strerror}") from None
        with replacing(path) as file:
            file.write(pickle.dumps(result, protocol=pickle.HIGHEST_PROTOCOL))
        return result
