"""From a model, live or in a file, to an Ensemble. One module per source library: a `LiveImporter`, and a
`FileImporter` where the library has files that are not code. Reading a file imports nothing of the library
that wrote it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from qwyc.errors import InputError, MissingDependencyError, ModelError, QwycError
from qwyc.importers import (
    catboost,
    files,
    lightgbm,
    onnx,
    sklearn,
    treelite,
    xgboost,
    ydf,
)
from qwyc.importers.live import as_pandas, unwrapped
from qwyc.importers.sklearn import callables
from qwyc.importers.sklearn.pipelines import (
    is_pipeline,
    last_step,
    transform_of,
    with_preparation,
    with_transform,
)
from qwyc.model.callables import BaseModels
from qwyc.model.ensemble import Ensemble

__all__ = ["SUPPORTED_FILES", "Answer", "base_models", "live_answer", "load_live", "read_model"]

Array = npt.NDArray[Any]


class LiveImporter(Protocol):
    """What a module is that reads a library's own objects."""

    LIVE_KINDS: str  # what it reads, in words: "Library (Class, OtherClass)"
    TOLERANCE: float  # relative; how far its scores may be from ours

    def is_live(self, model: Any) -> bool:
        """Whether this is one of the library's own objects."""

    def read_live(self, model: Any) -> Ensemble:
        """The model in it; ModelError where it cannot be read exactly."""

    def live_labels(self, model: Any, X: Any, ensemble: Ensemble) -> Array:
        """The library's own decisions, (N,), to prove parity with."""

    def live_scores(self, model: Any, X: Any, ensemble: Ensemble) -> Array:
        """Its own scores, (N,), within TOLERANCE of which ours must be."""


class FileImporter(Protocol):
    """What a module is that reads a library's files."""

    FILE_KINDS: str  # what it reads, in words: "Library (.suffix)"
    LOADING_ERROR: float  # relative; how far a loaded model's scores may be from the saved one's

    def looks_like(self, head: bytes) -> bool:
        """Whether a file that starts with `head`, 512 bytes, may be one of the library's."""

    def read_file(self, path: Path) -> Ensemble:
        """The model in it; ModelError where it is damaged or cannot be read exactly."""

    def load(self, path: Path) -> Any:
        """The live model in it, by the library itself."""


# scikit-learn last: the others subclass its estimators.
LIVE: Sequence[LiveImporter] = [xgboost, lightgbm, catboost, treelite, onnx, ydf, sklearn]
FILES: Sequence[FileImporter] = [xgboost, lightgbm, catboost, treelite, onnx]

SUPPORTED_FILES = ", ".join(importer.FILE_KINDS for importer in FILES)
SUPPORTED = (
    "binary classifiers: objects of "
    + ", ".join(importer.LIVE_KINDS for importer in LIVE)
    + f", pipelines that end in one, and files of {SUPPORTED_FILES}"
)


def read_model(model: Any) -> Ensemble:
    """Read a trained model: a path, a live model of any library in docs/models.md, or a pipeline."""
    if isinstance(model, Ensemble):
        return model
    if isinstance(model, (str, os.PathLike)):
        return _importer_of(Path(model)).read_file(Path(model))
    model = unwrapped(model)
    if is_pipeline(model):
        return with_transform(model, read_model(last_step(model)))
    for importer in LIVE:
        if importer.is_live(model):
            return importer.read_live(model)
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    raise ModelError(f"cannot read a model of type {kind}; supported are {SUPPORTED}")


@dataclass(frozen=True)
class Answer:
    """What a live model itself says of some rows."""

    labels: Array  # (N,)
    scores: npt.NDArray[np.float64] | None = None  # (N,)
    tolerance: float = 0.0  # relative; above 0 where the library's own sums are not reproducible


def live_answer(model: Any, X: Any, ensemble: Ensemble | BaseModels) -> Answer | None:
    """What a live model itself says of X; None for anything that is not live."""
    try:
        return _live_answer(model, X, ensemble)
    except QwycError:
        raise
    except Exception as error:  # whatever the library raises
        raise InputError(
            f"the model's own predict fails on X, so that its decisions cannot be compared "
            f"({files.reason(error)}); pass rows that the model takes"
        ) from error


def _live_answer(model: Any, X: Any, ensemble: Ensemble | BaseModels) -> Answer | None:
    model = unwrapped(model)
    if is_pipeline(model):
        return _pipeline_answer(model, X, ensemble)
    if isinstance(ensemble, BaseModels):
        if not hasattr(model, "predict"):
            return None
        return Answer(np.asarray(model.predict(ensemble.prepare(X))))
    for importer in LIVE:
        if importer.is_live(model):
            scores = np.asarray(importer.live_scores(model, X, ensemble), dtype=np.float64)
            labels = importer.live_labels(model, X, ensemble)
            return Answer(labels, scores, importer.TOLERANCE)
    return None


def _pipeline_answer(model: Any, X: Any, ensemble: Ensemble | BaseModels) -> Answer:
    """The pipeline's own decisions, and the scores of its last step."""
    labels = np.asarray(model.predict(as_pandas(X))).reshape(-1)
    if isinstance(ensemble, BaseModels):
        return Answer(labels)
    inner = replace(ensemble, transform=None)
    said = live_answer(last_step(model), transform_of(model)(X), inner)
    return Answer(labels) if said is None else replace(said, labels=labels)


def base_models(model: Any) -> BaseModels | None:
    """The base models of `model`, or None where it is to be read as trees."""
    model = unwrapped(model)
    if not is_pipeline(model):
        return callables.base_models(model)
    inner = base_models(last_step(model))
    return None if inner is None else with_preparation(model, inner)


def load_live(path: str | os.PathLike[str]) -> tuple[Any, float]:
    """The live model in a file, loaded by the library that wrote it, and the relative error that its
    scores may have got on the way."""
    importer = _importer_of(Path(path))
    try:
        return importer.load(Path(path)), importer.LOADING_ERROR
    except ImportError as error:
        raise MissingDependencyError(f"loading {path} needs {error.name}; install it") from None
    except Exception as error:  # whatever the library raises
        raise ModelError(f"{path}: the library cannot load it ({files.reason(error)})") from error


def _importer_of(path: Path) -> FileImporter:
    """The module that reads a file, by how the file starts."""
    folder = path if path.is_dir() else path.parent
    if (path.is_dir() or path.suffix == ".pb") and any(folder.glob("*data_spec.pb")):
        raise ModelError(
            f"{path} is a YDF model, whose files only YDF reads; pass ydf.load_model({str(folder)!r})"
        )
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror or error}") from None
    for importer in FILES:
        if importer.looks_like(head):
            return importer
    if b'"qwyc"' in head:
        raise ModelError(f"{path} is a qwyc classifier, not a model; open it with qwyc.load")
    if head[:1] == b"\x80" or path.suffix in (".pkl", ".pickle", ".joblib"):
        raise ModelError(
            f"{path} looks like a pickle, and reading one runs code; load it yourself and pass the "
            "live model"
        )
    raise ModelError(f"{path} is not a model file that qwyc knows; supported are {SUPPORTED}")
