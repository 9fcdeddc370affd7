"""Spark: classic sessions and Spark Connect, 3.5 and later.

The classifier's file is added to the session under a name made of its digest: Spark copies it once to
every executor's disk, and each of the executor's Python processes maps it from there and loads it
once."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark import SparkFiles
from pyspark.sql import SparkSession, functions, types
from pyspark.sql.pandas.types import from_arrow_type

from qwyc.answers import COLUMNS, arrow_type
from qwyc.classifier import Classifier, load
from qwyc.distributed.shipping import Parcel, once, unpack
from qwyc.distributed.work import Counting, Deciding
from qwyc.errors import InputError, OptionError

# ---- shipping -------------------------------------------------------------------------------


@dataclass(frozen=True)
class FromFile:
    """Where a worker finds a classifier that was added to the session as a file."""

    key: str

    def __call__(self) -> Classifier:
        """The classifier, in a worker."""
        return once(self.key, lambda: load(SparkFiles.get(f"{self.key}.qwyc")))


@dataclass(frozen=True)
class FromPickle:
    """A classifier with code in it, pickled with the function that calls it."""

    key: str
    content: Classifier = field(repr=False)

    def __call__(self) -> Classifier:
        """The classifier, in a worker."""
        return once(self.key, lambda: unpack(self.content))


Delivery = Callable[[], Classifier]
# Files must stay where they are for executors that come later: until this process ends.
_folder: list[tempfile.TemporaryDirectory[str]] = []
_sent: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()


def _deliver(spark: Any, parcel: Parcel) -> Delivery:
    if isinstance(parcel.content, Classifier):
        return FromPickle(parcel.key, parcel.content)
    connect = "connect" in type(spark).__module__
    session = spark if connect else spark.sparkContext
    if parcel.key not in _sent.setdefault(session, set()):
        if not _folder:
            _folder.append(tempfile.TemporaryDirectory(prefix="qwyc-spark-"))
        path = Path(_folder[0].name) / f"{parcel.key}.qwyc"
        path.write_bytes(parcel.content)
        if connect:
            spark.addArtifact(str(path), file=True)
        else:
            session.addFile(str(path))
        _sent[session].add(parcel.key)
    return FromFile(parcel.key)


# ---- the adapter ----------------------------------------------------------------------------


def columns(data: Any) -> list[str]:
    """Names of the columns."""
    return list(data.columns)


def decide(data: Any, parcel: Parcel, work: Deciding, classes: npt.NDArray[Any]) -> Any:
    """The DataFrame that is wanted, through `mapInArrow`."""
    kept = [data.schema[name] for name in work.keep]
    added = [
        types.StructField(name, kind)
        for name, kind in zip(work.names, output_types(classes).values(), strict=True)
    ]
    task = _Decide(_deliver(data.sparkSession, parcel), work)
    return _numbered(data, work.needed).mapInArrow(task, types.StructType([*kept, *added]))


def total(data: Any, parcel: Parcel, work: Counting, size: int) -> npt.NDArray[np.float64]:
    """Sums over all rows: every partition gives one row for each, and Spark adds them up."""
    task = _Count(_deliver(data.sparkSession, parcel), work)
    parts = _numbered(data, list(work.features)).mapInArrow(task, "at int, value double")
    sums = np.zeros(size)
    for row in parts.groupBy("at").agg(functions.sum("value").alias("value")).collect():
        sums[row["at"]] = row["value"]
    return sums


def count(data: Any) -> int:
    """Number of rows."""
    return int(data.count())


def draw(data: Any, columns: list[str], share: float, seed: int) -> Any:
    """About that share of the rows, as a pandas frame."""
    drawn = _select(data, columns)
    if share < 1:
        drawn = drawn.sample(withReplacement=False, fraction=share, seed=seed)
    return drawn.toArrow().to_pandas() if hasattr(drawn, "toArrow") else drawn.toPandas()


def column(
    parcel: Parcel, features: tuple[str, ...], output: str | None, classes: npt.NDArray[Any]
) -> Any:
    """A column expression over a pandas UDfunctions."""
    spark = SparkSession.getActiveSession()
    if spark is None:
        raise InputError("there is no active Spark session; create one first")
    kinds = output_types(classes)
    if output is not None and output not in kinds:
        raise OptionError(f"output must be one of {', '.join(COLUMNS)}, or None; got {output!r}")
    whole = types.StructType([types.StructField(name, kind) for name, kind in kinds.items()])
    task = _Column(_deliver(spark, parcel), features, output)
    udf = functions.pandas_udf(_typed(task, output), whole if output is None else kinds[output])
    return udf(functions.struct(*(functions.col(_quoted(name)).alias(name) for name in features)))


def output_types(classes: npt.NDArray[Any]) -> dict[str, types.DataType]:
    """The columns that decisions come in, and their types."""
    label = from_arrow_type(arrow_type(classes))
    kinds = (label, types.IntegerType(), types.DoubleType(), types.BooleanType())
    return dict(zip(COLUMNS, kinds, strict=True))


def _select(data: Any, names: list[str]) -> Any:
    return data.select(*(functions.col(_quoted(name)) for name in names))


def _numbered(data: Any, names: list[str]) -> Any:
    """Columns under plain names: `mapInArrow` trips over dots and backticks in them."""
    return data.select(*(functions.col(_quoted(n)).alias(f"c{i}") for i, n in enumerate(names)))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


# ---- in a worker ----------------------------------------------------------------------------


def _renamed(batch: Any, names: list[str]) -> Any:
    import pyarrow

    return pyarrow.Table.from_arrays(batch.columns, names=names)


@dataclass(frozen=True)
class _Decide:
    delivery: Delivery
    work: Deciding

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            rows = _renamed(batch, self.work.needed)
            yield from self.work.on_arrow(self.delivery(), rows).to_batches()


@dataclass(frozen=True)
class _Count:
    delivery: Delivery
    work: Counting

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        sums: npt.NDArray[np.float64] | None = None
        for batch in batches:
            rows = _renamed(batch, list(self.work.features))
            part = self.work.on_arrow(self.delivery(), rows)
            sums = part if sums is None else sums + part
        if sums is not None:
            at = pyarrow.array(np.arange(len(sums), dtype=np.int32))
            yield pyarrow.RecordBatch.from_arrays([at, pyarrow.array(sums)], ["at", "value"])


@dataclass(frozen=True)
class _Column:
    delivery: Delivery
    features: tuple[str, ...]
    output: str | None

    def __call__(self, frames: Iterator[Any]) -> Iterator[Any]:
        import pandas

        work = Deciding(self.features, (), COLUMNS)
        for frame in frames:
            decided = work.on_pandas(self.delivery(), frame)
            yield decided if self.output is None else pandas.Series(decided[self.output])


def _typed(task: _Column, output: str | None) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The task as a function whose annotations say what Spark looks for."""
    import pandas

    def decide(frames: Iterator[Any]) -> Iterator[Any]:
        return task(frames)

    out: Any = pandas.DataFrame if output is None else pandas.Series
    decide.__annotations__ = {"frames": Iterator[pandas.DataFrame], "return": Iterator[out]}
    return decide
