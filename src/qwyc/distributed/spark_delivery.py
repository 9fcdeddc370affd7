"""How a classifier reaches Spark's workers.

Its file is added to the session under a name made of its digest: Spark copies it once to every executor's
disk, and each of the executor's Python processes maps it from there and loads it once."""

from __future__ import annotations

import tempfile
import threading
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark import SparkFiles

from qwyc.classifier import load
from qwyc.distributed.shipping import Model, Parcel, once, unpack
from qwyc.distributed.watching import Delivery
from qwyc.errors import ArtifactError


@dataclass(frozen=True)
class FromFile:
    """Where a worker finds a classifier that was added to the session as a file."""

    key: str

    def __call__(self) -> Any:
        """The classifier, in a worker."""
        return once(self.key, lambda: load(SparkFiles.get(f"{self.key}.qwyc")))


@dataclass(frozen=True)
class FromPickle:
    """A classifier that is pickled with the function that calls it: one with code in it, or its file."""

    key: str
    content: bytes | Model = field(repr=False)

    def __call__(self) -> Any:
        """The classifier, in a worker."""
        return once(self.key, lambda: unpack(self.content))


_lock = threading.Lock()  # a file that is added twice, or while it is written, would stop every job
_sent: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()


def deliver(spark: Any, parcel: Parcel, *, by_file: bool = True) -> Delivery:
    """`by_file=False`: where Spark Connect does not find files that were added to the session."""
    connect = "connect" in type(spark).__module__
    if not isinstance(parcel.content, bytes) or (connect and not by_file):
        return parcel.follow(FromPickle(parcel.key, parcel.content))
    session = spark if connect else spark.sparkContext
    with _lock:
        if parcel.key not in _sent.setdefault(session, set()):
            try:
                _add_file(session, connect, f"{parcel.key}.qwyc", parcel.content)
            except OSError as error:
                raise ArtifactError(
                    f"cannot write the classifier for Spark to fetch: {error}"
                ) from None
            _sent[session].add(parcel.key)
    return parcel.follow(FromFile(parcel.key))


def _add_file(session: Any, connect: bool, name: str, content: bytes) -> None:
    if connect:  # it is uploaded at once
        with tempfile.TemporaryDirectory(prefix="qwyc-") as folder:
            path = Path(folder) / name
            path.write_bytes(content)
            session.addArtifact(str(path), file=True)
        return
    # Executors that start later fetch it too: it is among Spark's own files, which are removed with the
    # session.
    path = Path(tempfile.mkdtemp(prefix="qwyc-", dir=session._temp_dir)) / name
    path.write_bytes(content)
    session.addFile(str(path))
