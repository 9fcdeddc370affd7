"""Spark: classic sessions and Spark Connect, 3.5 and later.

The classifier's file is added to the session under a name made of its digest: Spark copies it once to
every executor's disk, and each of the executor's Python processes maps it from there and loads it
once."""

from __future__ import annotations

import tempfile
import threading
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

from qwyc.classifier import Classifier, load
from qwyc.distributed.shipping import Parcel, once, unpack
from qwyc.distributed.work import Counting, Deciding
from qwyc.errors import ArtifactError, InputError, OptionError
from qwyc.policy.columns import COLUMNS, arrow_type

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
    """A classifier that is pickled with the function that calls it: one with code in it, or its file."""

    key: str
    content: bytes | Classifier = field(repr=False)

    def __call__(self) -> Classifier:
        """The classifier, in a worker."""
        return once(self.key, lambda: unpack(self.content))


Delivery = Callable[[], Classifier]
_lock = threading.Lock()  # a file that is added twice, or while it is written, would stop every job
_sent: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()


def _deliver(spark: Any, parcel: Parcel, *, by_file: bool = True) -> Delivery:
    """`by_file=False`: where Spark Connect does not find files that were added to the session."""
    connect = "connect" in type(spark).__module__
    if isinstance(parcel.content, Classifier) or (connect and not by_file):
        return FromPickle(parcel.key, parcel.content)
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
    return FromFile(parcel.key)


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


# ---- the adapter ----------------------------------------------------------------------------


CASE_MATTERS = False  # in names of columns


def columns(data: Any) -> list[str]:
    return list(data.columns)


def decide(data: Any, parcel: Parcel, work: Deciding, classes: npt.NDArray[Any]) -> Any:
    """The DataFrame with decisions, through `mapInArrow`."""
    kept = [data.schema[name] for name in work.keep]
    added = [
        types.StructField(name, kind)
        for name, kind in zip(work.names, output_types(classes).values(), strict=True)
    ]
    by_file = not data.isStreaming
    task = _Decide(_deliver(data.sparkSession, parcel, by_file=by_file), work)
    return _numbered(data, work.needed).mapInArrow(task, types.StructType([*kept, *added]))


def total(data: Any, parcel: Parcel, work: Counting, size: int) -> npt.NDArray[np.float64]:
    """Sums over all rows: every partition gives one row for each, and Spark adds them up."""
    _refuse_stream(data)
    task = _Count(_deliver(data.sparkSession, parcel), work)
    parts = _numbered(data, list(work.features)).mapInArrow(task, "at int, value double")
    sums = np.zeros(size)
    for row in parts.groupBy("at").agg(functions.sum("value").alias("value")).collect():
        sums[row["at"]] = row["value"]
    return sums


def count(data: Any) -> int:
    _refuse_stream(data)
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
    """A column expression: an Arrow UDF, or where Spark has none (before 4.1) a pandas UDF."""
    kinds = output_types(classes)
    if output is not None and output not in kinds:
        raise OptionError(f"output must be one of {', '.join(COLUMNS)}, or None; got {output!r}")
    whole = types.StructType([types.StructField(name, kind) for name, kind in kinds.items()])
    spark = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    task = _Column(_deliver(spark, parcel, by_file=False), features, output)
    kind = whole if output is None else kinds[output]
    if hasattr(functions, "arrow_udf"):
        udf = functions.arrow_udf(task.arrow_function(), kind)
    else:
        udf = functions.pandas_udf(task.pandas_function(), kind)
    return udf(functions.struct(*(functions.col(_quoted(n)).alias(n) for n in features)))


def output_types(classes: npt.NDArray[Any]) -> dict[str, types.DataType]:
    """The columns that decisions come in, and their types."""
    label = from_arrow_type(arrow_type(classes))
    kinds = (label, types.IntegerType(), types.DoubleType(), types.BooleanType())
    return dict(zip(COLUMNS, kinds, strict=True))


def _refuse_stream(data: Any) -> None:
    if data.isStreaming:
        raise InputError("the data is a stream, which has no end; decide goes, counting does not")


def _select(data: Any, names: list[str]) -> Any:
    return data.select(*(functions.col(_quoted(name)) for name in names))


def _numbered(data: Any, names: list[str]) -> Any:
    """Columns under plain names: `mapInArrow` fails on names with dots or backticks."""
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

    @property
    def work(self) -> Deciding:
        return Deciding(self.features, (), COLUMNS)

    def arrow_function(self) -> Callable[[Iterator[Any]], Iterator[Any]]:
        """From structs of features; its annotations say what Spark looks for."""
        import pyarrow

        def decide(structs: Iterator[Any]) -> Iterator[Any]:
            for rows in structs:
                table = pyarrow.Table.from_arrays(rows.flatten(), names=list(self.features))
                columns = self.work.on_arrow(self.delivery(), table)
                found = columns.to_struct_array() if self.output is None else columns[self.output]
                yield pyarrow.concat_arrays(found.chunks)

        arrays = Iterator[pyarrow.Array]
        decide.__annotations__ = {"structs": arrays, "return": arrays}
        return decide

    def pandas_function(self) -> Callable[[Iterator[Any]], Iterator[Any]]:
        """The same over pandas frames."""
        import pandas

        def decide(frames: Iterator[Any]) -> Iterator[Any]:
            for frame in frames:
                columns = self.work.on_pandas(self.delivery(), frame)
                yield columns if self.output is None else columns[self.output]

        out: Any = pandas.DataFrame if self.output is None else pandas.Series
        decide.__annotations__ = {"frames": Iterator[pandas.DataFrame], "return": Iterator[out]}
        return decide
