"""Spark: classic sessions and Spark Connect, 3.5 and later."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import SparkSession, functions, types
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type

from qwyc.distributed.shipping import Parcel
from qwyc.distributed.spark_delivery import deliver
from qwyc.distributed.spark_tasks import Count, Decide, Function
from qwyc.distributed.work import CLASSIFIER, Counting, Deciding, added_columns
from qwyc.errors import InputError, OptionError
from qwyc.policy.columns import COLUMNS, arrow_type

CASE_MATTERS = False  # in names of columns


def columns(data: Any) -> list[str]:
    return list(data.columns)


def empty(data: Any, columns: list[str]) -> Any:
    """A table without rows, of these columns as workers get them."""
    import pyarrow

    fields = []
    for name in columns:
        try:
            fields.append(pyarrow.field(name, to_arrow_type(data.schema[name].dataType)))
        except Exception:  # a type that Spark itself does not send to Python: its error says which
            return None
    return pyarrow.schema(fields).empty_table()


def decide(data: Any, parcel: Parcel, work: Deciding, classes: npt.NDArray[Any]) -> Any:
    """The DataFrame with decisions, through `mapInArrow`."""
    kept = [data.schema[name] for name in work.keep]
    kinds = output_types(classes, work.digest).values()
    added = [types.StructField(name, kind) for name, kind in zip(work.names, kinds, strict=True)]
    task = Decide(deliver(data.sparkSession, parcel, by_file=not data.isStreaming), work)
    return _numbered(data, work.needed).mapInArrow(task, types.StructType([*kept, *added]))


def total(data: Any, parcel: Parcel, work: Counting, size: int) -> npt.NDArray[np.float64]:
    """Sums over all rows: every partition gives one row for each, and Spark adds them up."""
    _refuse_stream(data)
    task = Count(deliver(data.sparkSession, parcel), work)
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


# ---- functions of columns -------------------------------------------------------------------

_lock = threading.Lock()
# Spark evaluates equal expressions once. They are equal if their function is the same object, so each
# session has one function for a classifier and its columns, whatever output is asked for.
_functions: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()


def column(
    parcel: Parcel,
    features: tuple[str, ...],
    output: str | None,
    classes: npt.NDArray[Any],
    digest: bool,
) -> Any:
    """A column expression: a struct of decisions, or one field of it."""
    _check_output(output, digest)
    spark = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    columns = [functions.col(_quoted(name)) for name in features]
    if not hasattr(functions, "arrow_udf"):  # a pandas UDF gets one struct, which becomes a frame
        named = zip(columns, features, strict=True)
        columns = [functions.struct(*(column.alias(name) for column, name in named))]
    decided = _struct_function(spark, parcel, features, classes, digest)(*columns)
    return decided if output is None else decided.getField(output)


def register(
    spark: Any,
    parcel: Parcel,
    name: str,
    features: tuple[str, ...],
    output: str | None,
    classes: npt.NDArray[Any],
    digest: bool,
) -> None:
    """A function of SQL in this session."""
    _check_output(output, digest)
    work = Deciding(features, (), added_columns(digest), digest)
    task = Function(deliver(spark, parcel, by_file=False), work, output)
    spark.udf.register(name, _user_function(task, classes))


def _struct_function(
    spark: Any, parcel: Parcel, features: tuple[str, ...], classes: npt.NDArray[Any], digest: bool
) -> Any:
    place = parcel.key, parcel.watch, features, digest
    with _lock:
        known = _functions.setdefault(spark, {})
        if place not in known:
            work = Deciding(features, (), added_columns(digest), digest)
            task = Function(deliver(spark, parcel, by_file=False), work)
            known[place] = _user_function(task, classes)
        return known[place]


def _user_function(task: Function, classes: npt.NDArray[Any]) -> Any:
    """An Arrow UDF, or where Spark has none (before 4.1) a pandas UDF."""
    kinds = output_types(classes, task.work.digest)
    whole = types.StructType([types.StructField(name, kind) for name, kind in kinds.items()])
    kind = whole if task.output is None else kinds[task.output]
    if hasattr(functions, "arrow_udf"):
        return functions.arrow_udf(task.over_arrow(), kind)
    return functions.pandas_udf(task.over_pandas(), kind)


def _check_output(output: str | None, digest: bool) -> None:
    if output is not None and output not in added_columns(digest):
        raise OptionError(f"output must be one of {', '.join(COLUMNS)}, or None; got {output!r}")


def output_types(classes: npt.NDArray[Any], with_digest: bool = False) -> dict[str, types.DataType]:
    """The columns that decisions come in, and their types."""
    label = from_arrow_type(arrow_type(classes))
    kinds = (label, types.IntegerType(), types.DoubleType(), types.BooleanType())
    known: dict[str, types.DataType] = dict(zip(COLUMNS, kinds, strict=True))
    return {**known, CLASSIFIER: types.StringType()} if with_digest else known


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
