"""Watched: a classifier's file that workers look at again while a job runs."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qwyc.classifier import Classifier, load
from qwyc.errors import OptionError, QwycError
from qwyc.predictor import Predictor
from qwyc.runtime.arguments import check_number

Delivery = Callable[[], Any]  # a classifier, or a model that is evaluated in full


@dataclass(frozen=True)
class Watched:
    """A `.qwyc` file whose newest version decides: `decide(Watched("/shared/fraud.qwyc"), stream)`.

    Each worker process looks at the file at most once in `every` seconds, between two batches, and loads
    it if it was replaced. The path must be the same on the driver and on all workers. Replace the file by
    renaming a new one to its name, as `Classifier.save` does. A new file must have the same columns and
    classes; one that has not, or that cannot be read, is reported as a warning in the worker, and the
    classifier before it stays."""

    path: str | os.PathLike[str]
    every: float = 10.0

    def __post_init__(self) -> None:
        if not isinstance(self.path, (str, os.PathLike)):
            raise OptionError(
                f"Watched takes the path of a .qwyc file; got {type(self.path).__name__}"
            )
        if not check_number("every", self.every) >= 0:
            raise OptionError(f"every must be a number of seconds, at least 0; got {self.every!r}")
        object.__setattr__(self, "path", str(Path(self.path).absolute()))

    def load(self) -> Any:
        """The classifier, or the model, that the file holds now."""
        return load(self.path)


@dataclass(frozen=True)
class Watch:
    """What a worker needs to follow a file."""

    path: str
    every: float
    shape: str  # the columns and classes that every version must have

    def follow(self, first: Delivery) -> Delivery:
        """A delivery of the newest version; of `first` until one could be loaded."""
        return Following(self, first)


@dataclass(frozen=True)
class Following:
    """Delivers the newest version of a file that could be loaded."""

    watch: Watch
    first: Delivery

    def __call__(self) -> Any:
        """The classifier, in a worker."""
        return newest(self.watch) or self.first()


def watch_of(watched: Watched, classifier: Classifier | Predictor) -> Watch:
    """What workers get of a watched file that holds this classifier now."""
    ensemble = classifier if isinstance(classifier, Predictor) else classifier.ensemble
    if ensemble.has_code:
        raise OptionError("a classifier that runs code cannot be watched: it has no file")
    return Watch(str(watched.path), float(watched.every), shape_of(classifier))


def shape_of(classifier: Classifier | Predictor) -> str:
    """The columns and classes of a classifier, as text to compare."""
    in_full = isinstance(classifier, Predictor)
    ensemble = classifier if isinstance(classifier, Predictor) else classifier.ensemble
    schema, classes, output = ensemble.schema, ensemble.classes, ensemble.output
    columns = None if schema is None else schema.names or schema.n_features
    if not ensemble.has_classes:
        dtype = "float64" if output is None else output.dtype
        return f"columns {columns}, {ensemble.base_models.n_scores} values in {dtype}"
    scores = ", a score for each" if ensemble.by_class else ""
    kind = ", evaluated in full" if in_full else ""
    return f"columns {columns}, classes {classes.dtype.str} {classes.tolist()}{scores}{kind}"


# ---- in a worker ----------------------------------------------------------------------------


@dataclass
class _Seen:
    looked: float = float("-inf")  # monotonic time of the last look
    identity: tuple[int, ...] | None = None  # of the file that was looked at last
    classifier: Any = field(default=None, repr=False)


_lock = threading.Lock()
_seen: dict[Watch, _Seen] = {}


def newest(watch: Watch) -> Any:
    """The newest version that this process could load; None if it could load none."""
    with _lock:
        seen = _seen.setdefault(watch, _Seen())
        now = time.monotonic()
        if now - seen.looked >= watch.every:
            _look(watch, seen)
            seen.looked = now
        return seen.classifier


def _look(watch: Watch, seen: _Seen) -> None:
    try:
        found = os.stat(watch.path)
        identity = (found.st_mtime_ns, found.st_size, found.st_ino)
        if identity == seen.identity:
            return
        seen.identity = identity  # a bad file is reported once
        loaded = load(watch.path)
        if (shape := shape_of(loaded)) != watch.shape:
            raise OptionError(f"it has {shape}; expected {watch.shape}")
        seen.classifier = loaded
    except (OSError, QwycError) as error:
        warnings.warn(
            f"{watch.path} was not taken, and the classifier before it stays: {error}", stacklevel=2
        )
