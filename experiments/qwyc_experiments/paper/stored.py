"""Trained lattice ensembles that are kept in the repository, so that nobody needs TensorFlow to rerun.

A folder has a .qwyc file for each and an index, a JSON file that says how each was trained. A stored model
is used only with the training rows that it was trained on: other rows may have been split differently, and
then the model may have seen what are test rows now."""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import qwyc

from ..internals import replacing
from .data import Data

FOLDER = Path(__file__).resolve().parents[2] / "models"  # of a checkout; packages do not have it
INDEX = "index.json"
CHECK_ROWS = 20
NEEDED = {"file", "rows", "threshold", "ranges", "scores"}  # in each entry


def key(name: str, training: str, size: int) -> str:
    return f"{name}-{training}-{size}"


def rows_digest(data: Data) -> str:
    """SHA-256 over the training rows and their labels."""
    digest = hashlib.sha256()
    for array in (data.X, data.y):
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def read_index(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """Entries by key; none where there is no index."""
    path = folder / INDEX
    if not path.is_file():
        return {}
    try:
        found: dict[str, dict[str, Any]] = json.loads(path.read_text())
    except ValueError as error:
        raise qwyc.ArtifactError(f"{path} is not an index of stored models: {error}") from None
    if not isinstance(found, dict) or not all(set(e) >= NEEDED for e in found.values()):
        raise qwyc.ArtifactError(
            f"{path} is not an index of stored models: it must be an object of entries that have "
            f"{', '.join(sorted(NEEDED))}; restore it with git"
        )
    return found


def load(entry: dict[str, Any], folder: Path = FOLDER) -> qwyc.Ensemble:
    """The ensemble of an entry; an error where the file is not the one that the entry is about."""
    path = folder / entry["file"]
    ensemble = qwyc.load(path).ensemble
    recorded = [float.fromhex(score) for score in entry["scores"]]
    if (
        ensemble.threshold != entry["threshold"]
        or ensemble.schema.n_features != len(entry["ranges"])
        or not np.allclose(check_scores(ensemble, entry["ranges"]), recorded, rtol=1e-5, atol=1e-6)
    ):
        raise qwyc.ArtifactError(
            f"{path} does not score as {INDEX} says, so it is another model; restore both with git, or "
            "train it anew: python -m qwyc_experiments.paper.lattice_training"
        )
    return ensemble


def save(name: str, ensemble: qwyc.Ensemble, facts: dict[str, Any], folder: Path = FOLDER) -> None:
    """Write the ensemble, and enter it into the index."""
    # A file holds a classifier. alpha=0 needs no rows: its policy follows from the ensemble.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", qwyc.QwycWarning)
        classifier = qwyc.optimize(ensemble, alpha=0, quit="negative", progress=False)
    folder.mkdir(parents=True, exist_ok=True)
    file = f"{name}.qwyc"
    classifier.save(folder / file)
    entry = {"file": file, **facts, "threshold": ensemble.threshold}
    entry["scores"] = [score.hex() for score in check_scores(ensemble, facts["ranges"])]
    index = {**read_index(folder), name: entry}
    with replacing(folder / INDEX) as out:
        out.write(index_text(index).encode())


def index_text(index: dict[str, dict[str, Any]]) -> str:
    """JSON with a line for each fact."""
    entries = []
    for name, entry in sorted(index.items()):
        facts = [f"  {json.dumps(what)}: {json.dumps(fact)}" for what, fact in entry.items()]
        entries.append(f" {json.dumps(name)}: {{\n" + ",\n".join(facts) + "\n }")
    return "{\n" + ",\n".join(entries) + "\n}\n"


def check_rows(ranges: list[list[float]]) -> npt.NDArray[np.float32]:
    """Rows to check a stored model on, (20, D): uniform within the least and the largest keypoints."""
    low, high = np.array(ranges, dtype=np.float32).T
    shares = np.random.default_rng(0).random((CHECK_ROWS, len(low)), dtype=np.float32)
    return low + shares * (high - low)


def check_scores(ensemble: qwyc.Ensemble, ranges: list[list[float]]) -> list[float]:
    """The full scores of these rows."""
    scores: list[float] = ensemble.score_full(check_rows(ranges)).tolist()
    return scores
