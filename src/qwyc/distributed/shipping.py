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

from qwyc.classifier import Classifier, check_classifier, from_certified
from qwyc.distributed.watching import Delivery, Watch
from qwyc.errors import OptionError
from qwyc.files import classifier_file
from qwyc.promise.certified import Certified
from qwyc.promise.origin import UNKNOWN

KEPT = 8  # classifiers that a worker process keeps; the oldest goes first


@dataclass(frozen=True)
class Parcel:
    """A classifier as it is sent to workers."""

    key: str  # the same classifier has the same key
    content: bytes | Classifier  # of a `.qwyc` file; or what has code in it
    watch: Watch | None = None  # a file whose newer versions take its place

    def follow(self, first: Delivery) -> Delivery:
        """What delivers the classifier to a worker, given what delivers this version of it."""
        return first if self.watch is None else self.watch.follow(first)


def pack(classifier: Classifier, *, whole_path: bool = False) -> Parcel:
    """Pack a classifier, as the content of a file if it has no code in it. Its path is left out unless
    `whole_path` is set: deciding needs the policy alone, which is much smaller."""
    light = replace(
        classifier, origins=UNKNOWN
    )  # which rows it was made from, deciding does not ask
    light = light if whole_path else replace(light, choices=None)
    if classifier.ensemble.has_code:
        _check_that_it_pickles(light)
        return Parcel(f"qwyc-{uuid.uuid4().hex[:16]}", light)
    content = classifier_file.to_bytes(light)
    return Parcel(f"qwyc-{_short_digest(content)}", content)


def digest(classifier: Classifier) -> str:
    """16 hexadecimal digits that name a classifier, as `decide(..., digest=True)` adds them to every row.
    Classifiers with the same digest have the same model, policy and certificate."""
    with _lock:
        known = _digests.get(classifier)
    if known is None:
        if classifier.ensemble.has_code:
            raise OptionError("a classifier that runs code has no digest: digest=False")
        light = replace(classifier, origins=UNKNOWN, choices=None)
        known = _short_digest(classifier_file.to_bytes(light))
        with _lock:
            _digests[classifier] = known
    return known


def _short_digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _check_that_it_pickles(classifier: Classifier) -> None:
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


def unpack(content: bytes | memoryview | Classifier) -> Classifier:
    """The classifier in a parcel."""
    if isinstance(content, Classifier):
        return content
    found = classifier_file.from_bytes(content)
    assert isinstance(found, Certified)  # a parcel never holds a model without a policy
    return check_classifier(from_certified(found))


# ---- in a worker ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Arrival:
    """One classifier in one process: when it was loaded, and how long that took."""

    key: str
    process: int
    seconds: float


_lock = threading.Lock()
_digests: weakref.WeakKeyDictionary[Classifier, str] = weakref.WeakKeyDictionary()
_here: dict[str, Classifier] = {}
arrivals: list[Arrival] = []  # in this process; the tests count them


def once(key: str, load: Callable[[], Classifier]) -> Classifier:
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
