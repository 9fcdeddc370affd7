"""How a classifier reaches workers: as the content of its file, loaded once in each process.

What a file cannot hold, code in a pipeline's own steps or callables, travels as the engine's own
pickle of it, like any function that users give to these engines."""

from __future__ import annotations

import hashlib
import importlib
import os
import threading
import time
import uuid
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from qwyc.classifier import Classifier, check_classifier, from_certified
from qwyc.distributed.watching import Delivery, Watch
from qwyc.errors import OptionError
from qwyc.files import classifier_file
from qwyc.model.ensemble import Ensemble
from qwyc.predictor import Predictor
from qwyc.promise.origin import UNKNOWN

Model = Classifier | Predictor
KEPT = 8  # classifiers that a worker process keeps; the oldest goes first


@dataclass(frozen=True)
class Parcel:
    """A classifier, or a model that is evaluated in full, as it is sent to workers."""

    key: str  # the same classifier has the same key
    content: bytes | Model  # of a `.qwyc` file; or what has code in it
    watch: Watch | None = None  # a file whose newer versions take its place

    def follow(self, first: Delivery) -> Delivery:
        """What delivers the classifier to a worker, given what delivers this version of it."""
        return first if self.watch is None else self.watch.follow(first)


def ensemble_of(model: Model) -> Ensemble:
    """The base models, and what rows they take."""
    return model if isinstance(model, Predictor) else model.ensemble


def pack(model: Model, *, whole_path: bool = False) -> Parcel:
    """Pack a classifier or a model, as the content of a file if it has no code in it. The path of a
    classifier is left out unless `whole_path` is set: deciding needs the policy alone, which is much
    smaller."""
    light = model if isinstance(model, Predictor) else _light(model, whole_path)
    if ensemble_of(model).has_code:
        _check_that_it_pickles(light)
        return Parcel(f"qwyc-{uuid.uuid4().hex[:16]}", light)
    content = _content(light)
    return Parcel(f"qwyc-{_short_digest(content)}", content)


def _light(classifier: Classifier, whole_path: bool = False) -> Classifier:
    """A classifier without what deciding does not ask for: which rows it was made from."""
    light = replace(classifier, origins=UNKNOWN)
    return light if whole_path else replace(light, choices=None)


def _content(model: Model) -> bytes:
    if isinstance(model, Predictor):
        return classifier_file.model_to_bytes(model)
    return classifier_file.to_bytes(model)


def digest(classifier: Model) -> str:
    """16 hexadecimal digits that name a classifier, as `decide(..., digest=True)` adds them to every row.
    Classifiers with the same digest have the same model, policy and certificate. A `Predictor` has a
    digest of its model."""
    with _lock:
        known = _digests.get(classifier)
    if known is None:
        if ensemble_of(classifier).has_code:
            raise OptionError("a classifier that runs code has no digest: digest=False")
        light = classifier if isinstance(classifier, Predictor) else _light(classifier)
        known = _short_digest(_content(light))
        with _lock:
            _digests[classifier] = known
    return known


def _short_digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _check_that_it_pickles(classifier: Model) -> None:
    """Raise an `OptionError` here rather than let the engine fail with a stack trace later."""
    for module in ("cloudpickle", "pyspark.cloudpickle", "ray.cloudpickle"):
        try:
            dumps = importlib.import_module(module).dumps
        except ImportError:
            continue
        try:
            dumps(classifier)
        except Exception as error:  # whatever the base models raise
            raise OptionError(
                "this classifier runs code of yours, which must be pickled to reach the workers, and "
                f"cannot be: {error}"
            ) from None
        return


def unpack(content: bytes | memoryview | Model) -> Any:
    """The classifier, or the model, in a parcel."""
    if isinstance(content, (Classifier, Predictor)):
        return content
    found = classifier_file.from_bytes(content)
    if isinstance(found, Ensemble):
        return Predictor.of(found)
    return check_classifier(from_certified(found))


# ---- in a worker ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Arrival:
    """One classifier in one process: when it was loaded, and how long that took."""

    key: str
    process: int
    seconds: float


_lock = threading.Lock()
_digests: weakref.WeakKeyDictionary[Model, str] = weakref.WeakKeyDictionary()
_here: dict[str, Model] = {}
arrivals: list[Arrival] = []  # in this process; the tests count them


def once(key: str, load: Callable[[], Model]) -> Any:
    """The classifier of that key, loaded where this process does not have it yet."""
    with _lock:
        if key not in _here:
            started = time.perf_counter()
            loaded = load()
            arrivals.append(Arrival(key, os.getpid(), time.perf_counter() - started))
            while len(_here) >= KEPT:
                del _here[next(iter(_here))]
            _here[key] = loaded
        return _here[key]
