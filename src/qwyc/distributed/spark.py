"""Spark: classic sessions and Spark Connect, 3.5 and later."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import SparkSession, functions, types
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type

from qwyc.distributed.adding import Adding, check_case, check_output
from qwyc.distributed.shipping import Parcel
from qwyc.distributed.spark_delivery import deliver
from qwyc.distributed.spark_tasks import Count, Decide, Function
from qwyc.distributed.work import Counting
from qwyc.errors import InputError

CASE_MATTERS = False  # in names of columns


def columns(data: Any) -> list[str]:
    return list(data.columns)


def empty(data: Any, columns: list[str]) -> Any:
    """A table without rows, of these columns as workers get them."""
    import pyarrow

    fields = [(name, _arrow_kind(data.schema[name].dataType)) for name in columns]
    return pyarrow.schema(fields).empty_table()


def _arrow_kind(kind: types.DataType) -> Any:
    import pyarrow

    if isinstance(kind, types.TimestampType):
        return pyarrow.timestamp("us", "UTC")
    try:
        return to_arrow_type(kind)
    except Exception:  # Spark does not send it to Python, and says so when the job starts
        return pyarrow.null()


def decide(data: Any, parcel: Parcel, work: Adding, classes: npt.NDArray[Any]) -> Any:
    """The DataFrame with decisions, through `mapInArrow`."""
    kept = [data.schema[name] for name in work.keep]
    kinds = output_types(classes, work).values()
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


def column(parcel: Parcel, work: Adding, output: str | None, classes: npt.NDArray[Any]) -> Any:
    """A column expression: a struct of decisions, or one field of it."""
    check_output(output, work)
    check_case(work.added)  # all of them are in the struct
    spark = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    columns = [functions.col(_quoted(name)) for name in work.features]
    if not hasattr(functions, "arrow_udf"):  # a pandas UDF gets one struct, which becomes a frame
        named = zip(columns, work.features, strict=True)
        columns = [functions.struct(*(column.alias(name) for column, name in named))]
    place = parcel.key, parcel.watch, work
    with _lock:
        known = _functions.setdefault(spark, {})
        if place not in known:
            known[place] = _function(spark, parcel, work, None, classes)
    decided = known[place](*columns)
    return decided if output is None else decided.getField(output)


def register(
    spark: Any,
    parcel: Parcel,
    name: str,
    work: Adding,
    output: str | None,
    classes: npt.NDArray[Any],
) -> None:
    """A function of SQL in this session."""
    check_output(output, work)
    spark.udf.register(name, _function(spark, parcel, work, output, classes))


def _function(
    spark: Any, parcel: Parcel, work: Adding, output: str | None, classes: npt.NDArray[Any]
) -> Any:
    """An Arrow UDF, or where Spark has none (before 4.1) a pandas UDF."""
    task = Function(deliver(spark, parcel, by_file=False), work, output)
    kinds = output_types(classes, work)
    whole = types.StructType([types.StructField(name, kind) for name, kind in kinds.items()])
    kind = whole if output is None else kinds[output]
    if hasattr(functions, "arrow_udf"):
        return functions.arrow_udf(task.over_arrow(), kind)
    return functions.pandas_udf(task.over_pandas(), kind)


def output_types(classes: npt.NDArray[Any], work: Adding) -> dict[str, types.DataType]:
    """What the columns added hold, and their types."""
    return {name: from_arrow_type(kind) for name, kind in work.types(classes).items()}


def _refuse_stream(data: Any) -> None:
    if data.isStreaming:
        raise InputError(
            "the data is a stream, which has no end: decide works on it, but counting its rows does not"
        )


def _select(data: Any, names: list[str]) -> Any:
    return data.select(*(functions.col(_quoted(name)) for name in names))


def _numbered(data: Any, names: list[str]) -> Any:
    """Columns under plain names: `mapInArrow` fails on names with dots or backticks."""
    return data.select(*(functions.col(_quoted(n)).alias(f"c{i}") for i, n in enumerate(names)))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
