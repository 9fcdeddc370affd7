"""From a model, live or in a file, to an Ensemble. One module per source library: a `LiveImporter`, and a
`FileImporter` where the library has files that are not code. Reading a file imports nothing of the library
that wrote it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
    probe,
    sklearn,
    tensorflow_lattice,
    treelite,
    xgboost,
    ydf,
)
from qwyc.importers.column_order import refuse_other_outputs
from qwyc.importers.live import Predictions, as_pandas, unwrapped
from qwyc.importers.sklearn.callables import columns_of, take_apart
from qwyc.importers.sklearn.pipelines import (
    is_pipeline,
    last_step,
    with_transform,
)
from qwyc.model.ensemble import Ensemble, Sample
from qwyc.model.trees import by_share

__all__ = [
    "SUPPORTED_FILES",
    "OpenModel",
    "Predictions",
    "is_model_file",
    "library_of_file",
    "load_live",
    "open_model",
    "read_model",
]

Array = npt.NDArray[Any]

SHARE_ROUNDING = 1e-12  # how far rounding may move a share


class LiveImporter(Protocol):
    """What a module is that reads a library's own objects."""

    __name__: str
    LIVE_KINDS: str  # what it reads, in words: "Library (Class, OtherClass)"

    def is_live(self, model: Any) -> bool:
        """Whether this is one of the library's own objects."""

    def read_live(self, model: Any) -> Ensemble:
        """The model in it; ModelError where it cannot be read exactly."""

    def live_predictions(self, model: Any, sample: Sample) -> Predictions:
        """The library's own decisions and scores, and how far its scores may be from ours."""


class FileImporter(Protocol):
    """What a module is that reads a library's files."""

    __name__: str

    FILE_KINDS: str  # what it reads, in words: "Library (.suffix)"
    LOADING_ERROR: float  # relative; how far a loaded model's scores may be from the saved one's

    def looks_like(self, head: bytes) -> bool:
        """Whether a file that starts with `head`, 512 bytes, may be one of the library's."""

    def read_file(self, path: Path) -> Ensemble:
        """The model in it; ModelError where it is damaged or cannot be read exactly."""

    def load(self, path: Path) -> Any:
        """The live model in it, by the library itself."""


# scikit-learn last: the others subclass its estimators.
LIVE: Sequence[LiveImporter] = [
    xgboost,
    lightgbm,
    catboost,
    treelite,
    onnx,
    ydf,
    tensorflow_lattice,
    sklearn,
]
FILES: Sequence[FileImporter] = [xgboost, lightgbm, catboost, treelite, onnx]

SUPPORTED_FILES = ", ".join(importer.FILE_KINDS for importer in FILES)
SUPPORTED = (
    "fitted models of "
    + ", ".join(importer.LIVE_KINDS.partition(" (")[0] for importer in LIVE)
    + f", pipelines that end in one, and files of {SUPPORTED_FILES}"
)


PredictLive = Callable[[Sample], Predictions]


@dataclass(frozen=True)
class OpenModel:
    """A model as it was read, and the predictions of the live model itself."""

    ensemble: Ensemble
    predict_live: PredictLive | None = None  # None: no live model, as for a file or plain callables

    def for_probability(self, probability: float) -> OpenModel:
        """The same model, to be decided where its probability reaches this one: see `by_share`."""
        ensemble = by_share(self.ensemble, probability)
        if ensemble is self.ensemble:
            return self
        return OpenModel(ensemble, self.predict_live and partial(_by_share, self.predict_live))


def read_model(model: Any) -> Ensemble:
    """Read a trained model: a path, a live model of any library in docs/models.md, or a pipeline."""
    return open_model(model).ensemble


def open_model(model: Any) -> OpenModel:
    """Read a trained model. If it is live, keep a function that returns its own predictions."""
    if isinstance(model, Ensemble):
        return OpenModel(model)
    if isinstance(model, (str, os.PathLike)):
        return OpenModel(_importer_of(Path(model)).read_file(Path(model)))
    return _open_live(unwrapped(model))


def _open_live(model: Any) -> OpenModel:
    if is_pipeline(model):
        if tensorflow_lattice.is_live(last_step(model)):
            raise ModelError(
                "scikit-learn's pipelines cannot predict with a Keras model as their last step; pass the "
                "model itself, and rows as the steps before it give them"
            )
        inner = _open_live(last_step(model))
        ensemble = with_transform(model, inner.ensemble)
        return OpenModel(
            ensemble, partial(_predict, partial(_predict_pipeline, model, inner.predict_live))
        )
    # Keras models can be called, but a list of them is read, not called.
    if not tensorflow_lattice.is_list(model) and (apart := take_apart(model)) is not None:
        has_own = hasattr(model, "predict")  # a list of callables has not
        return OpenModel(
            apart, partial(_predict, partial(_predict_estimator, model)) if has_own else None
        )
    importer = _live_importer_of(model)
    return OpenModel(
        importer.read_live(model), partial(_predict, partial(importer.live_predictions, model))
    )


def _live_importer_of(model: Any) -> LiveImporter:
    for importer in LIVE:
        if importer.is_live(model):
            return importer
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    if isinstance(model, type):
        raise ModelError(
            f"{model.__qualname__} is a class; pass a fitted model, which is an instance of it"
        )
    if hasattr(model, "shape") or hasattr(model, "columns"):
        raise ModelError(
            f"a model was expected, and this is a table of rows ({kind}). Did you swap the arguments? The "
            "model comes first"
        )
    raise ModelError(f"cannot read a model of type {kind}; supported are {_supported_for(model)}")


def _supported_for(model: Any) -> str:
    """What is read of the library that an object belongs to; of all libraries if it is of none of them."""
    packages = {base.__module__.partition(".")[0] for base in type(model).__mro__}
    if packages & {"keras", "tf_keras"}:
        return tensorflow_lattice.LIVE_KINDS
    for importer in LIVE:
        if importer.__name__.rpartition(".")[2] in packages:
            return importer.LIVE_KINDS
    return SUPPORTED


def _predict(predict_live: PredictLive, sample: Sample) -> Predictions:
    """The predictions of a live model. Any exception of its library becomes an `InputError`."""
    try:
        return predict_live(sample)
    except QwycError:
        raise
    except Exception as error:
        raise InputError(
            f"the model's own predict fails on X, so its decisions cannot be compared "
            f"({files.reason(error)}); pass rows that the model takes"
        ) from error


def _by_share(predict_live: PredictLive, sample: Sample) -> Predictions:
    """The predictions of a live model that averages class shares. Next to 1/2, where the last bit decides
    between the shares, its scores alone are compared: the decision is ours."""
    found, ensemble = predict_live(sample), sample.ensemble
    ours = ensemble.score_full(sample)
    decided = ensemble.classes[ensemble.target.decide(ours)]
    labels = np.where(np.abs(ours - 0.5) <= SHARE_ROUNDING, decided, found.labels)
    return replace(found, labels=labels, tolerance=max(found.tolerance, SHARE_ROUNDING))


def _predict_estimator(model: Any, sample: Sample) -> Predictions:
    """The decisions of an estimator that was taken apart into its base models."""
    columns, X = columns_of(model), sample.transformed
    ordered = columns(X)
    names = None if columns.names is None else [str(name) for name in columns.names]
    code = "model.feature_names_in_"
    refuse_other_outputs(X, names, "The model", code, model.predict, ordered)
    return Predictions(np.asarray(model.predict(ordered)))


def _predict_pipeline(model: Any, last: PredictLive | None, sample: Sample) -> Predictions:
    """The pipeline's own decisions, and the scores of its last step."""
    labels = np.asarray(model.predict(as_pandas(sample.given))).reshape(-1)
    if last is None or sample.ensemble.schema is None:
        return Predictions(labels)
    return replace(last(sample.without_transform()), labels=labels)


@dataclass(frozen=True)
class LoadedModel:
    """A model file as the library that wrote it loads it."""

    model: Any
    predict_live: PredictLive
    error: float  # relative; how far its scores may be from those of the model that was saved


def load_live(path: str | os.PathLike[str]) -> LoadedModel:
    """The live model in a file, loaded by the library that wrote it. Libraries trust their files, and a
    damaged one can end the process. So the file is loaded in another process first."""
    importer = _importer_of(Path(path))
    probe.refuse_if_loading_crashes(importer.__name__, Path(path))
    try:
        model = importer.load(Path(path))
    except ImportError as error:
        raise MissingDependencyError(f"loading {path} needs {error.name}; install it") from None
    except Exception as error:  # whatever the library raises
        raise ModelError(f"{path}: the library cannot load it ({files.reason(error)})") from error
    predict_live = partial(_predict, partial(_live_importer_of(model).live_predictions, model))
    return LoadedModel(model, predict_live, importer.LOADING_ERROR)


def is_model_file(path: Path) -> bool:
    """Whether a file starts like a model that one of the libraries wrote."""
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError:
        return False
    return library_of_file(head) is not None


def library_of_file(head: bytes) -> str | None:
    """The library that wrote a file that starts with `head`, 512 bytes; None where it is none of them."""
    for importer in FILES:
        if importer.looks_like(head):
            return importer.FILE_KINDS.partition(" (")[0]
    return None


def _refuse_other_folders(path: Path) -> None:
    """Raise an error that says what to do if it is the folder of a library that has no reader here."""
    folder = path if path.is_dir() else path.parent
    if (path.is_dir() or path.suffix == ".pb") and any(folder.glob("*data_spec.pb")):
        raise ModelError(
            f"{path} is a YDF model, whose files only YDF reads; pass ydf.load_model({str(folder)!r})"
        )
    if (path / "saved_model.pb").exists():
        raise ModelError(f"{path} is a SavedModel; load it with Keras and pass the live model")


def _importer_of(path: Path) -> FileImporter:
    """The module that reads a file, by how the file starts."""
    try:
        _refuse_other_folders(path)
        with path.open("rb") as file:
            head = file.read(512)
    except ModelError:
        raise
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError:  # a null character, or half of a surrogate pair
        raise ModelError(f"a path was expected; got {str(path)!r}") from None
    for importer in FILES:
        if importer.looks_like(head):
            return importer
    if path.suffix in (".keras", ".h5", ".hdf5"):
        raise ModelError(
            f"{path} is a Keras model; load it with Keras and pass the live model, if it is one of "
            "TensorFlow Lattice"
        )
    if b'"qwyc"' in head:
        raise ModelError(
            f"{path} is a qwyc classifier; the model in it is qwyc.load(path).ensemble"
        )
    if head[:1] == b"\x80" or path.suffix in (".pkl", ".pickle", ".joblib"):
        raise ModelError(
            f"{path} looks like a pickle, and reading one runs code; load it yourself and pass the "
            "live model"
        )
    raise ModelError(
        f"{path} is not a model file that qwyc knows; supported are files of {SUPPORTED_FILES}"
    )
