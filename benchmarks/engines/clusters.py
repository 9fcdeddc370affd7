"""Spark, Ray and Dask on this machine with two workers each, behind one face; and no engine at all."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .contestants import Sums

Work = Callable[[Any], Any]  # an Arrow table of feature columns -> a table with a column `label`
Arrivals = set[tuple[int, str, float]]  # process, classifier, seconds that loading took

WORKERS = 2


def arrivals() -> list[tuple[int, str, float]]:
    """Which classifiers this process has loaded."""
    from qwyc.distributed import shipping

    return [(one.process, one.key, one.seconds) for one in shipping.arrivals]


class Spark:
    """`local[2]` has its two workers in one JVM, `local-cluster` gives each a JVM of its own."""

    title = "Spark"
    package = "pyspark"

    def __init__(self, master: str = f"local[{WORKERS}]", **options: str) -> None:
        if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
            raise RuntimeError(
                "Spark needs Java 17 or later, on PATH or at JAVA_HOME; there is none"
            )
        import pyspark
        from pyspark.sql import SparkSession

        os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
        os.environ["PYSPARK_PYTHON"] = sys.executable
        builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
        builder = builder.config("spark.driver.host", "127.0.0.1")
        for name, value in options.items():
            builder = builder.config(name.replace("_", "."), value)
        self.session = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("OFF")

    def stop(self) -> None:
        """End all workers, and take away what `local-cluster` leaves behind."""
        self.session.stop()
        shutil.rmtree(Path(os.environ["SPARK_HOME"]) / "work", ignore_errors=True)

    def read(self, path: Path) -> Any:
        """Rows of Parquet files in a folder."""
        return self.session.read.parquet(str(path))

    def select(self, data: Any, features: list[str]) -> Any:
        """Some columns."""
        return data.select(*(f"`{name}`" for name in features))

    def mapped(self, data: Any, features: list[str], work: Work) -> Any:
        """What users of any other model write."""

        def over(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow

            for batch in batches:
                yield from work(pyarrow.Table.from_batches([batch])).to_batches()

        return self.select(data, features).mapInArrow(over, "label long")

    def sums(self, data: Any) -> Sums:
        """Rows, and positive labels."""
        from pyspark.sql import functions

        row = data.agg(functions.count("label").alias("n"), functions.sum("label").alias("p"))
        (first,) = row.collect()
        return Sums(int(first["n"]), int(first["p"]))

    def write(self, data: Any, path: Path) -> None:
        """Parquet files in a folder."""
        data.write.parquet(str(path))

    def arrivals(self, data: Any) -> Arrivals:
        """Which classifiers the workers have loaded."""

        def report(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow

            for _ in batches:
                pass
            found = [list(each) for each in zip(*arrivals(), strict=True)] or [[], [], []]
            kinds = (pyarrow.int64(), pyarrow.string(), pyarrow.float64())
            columns = [pyarrow.array(v, k) for v, k in zip(found, kinds, strict=True)]
            yield pyarrow.RecordBatch.from_arrays(columns, ["process", "key", "seconds"])

        seen = data.mapInArrow(report, "process long, key string, seconds double").collect()
        return {(row["process"], row["key"], row["seconds"]) for row in seen}


class Ray:
    """One node with two workers."""

    title = "Ray Data"
    package = "ray"

    def __init__(self) -> None:
        import ray

        self.ray = ray
        # Ray packs small files into read tasks of this size, 128 MiB by default, and decides within the
        # read task: the files of a benchmark would be one task. `override_num_blocks` is ignored.
        os.environ["RAY_DATA_PARQUET_BIN_PACKING_BYTES"] = str(1 << 20)
        ray.init(
            num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, logging_level="ERROR"
        )
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.print_on_execution_start = False

    def stop(self) -> None:
        """End all workers."""
        self.ray.shutdown()

    def read(self, path: Path) -> Any:
        """Rows of Parquet files in a folder."""
        return self.ray.data.read_parquet(str(path))

    def select(self, data: Any, features: list[str]) -> Any:
        """Some columns."""
        return data.select_columns(features)

    def mapped(self, data: Any, features: list[str], work: Work) -> Any:
        """What users of any other model write."""
        return data.select_columns(features).map_batches(
            work, batch_format="pyarrow", batch_size=None
        )

    def sums(self, data: Any) -> Sums:
        """Rows, and positive labels."""

        def count(table: Any) -> Any:
            return {"n": [table.num_rows], "p": [int(table["label"].to_numpy().sum())]}

        parts = data.map_batches(count, batch_format="pyarrow", batch_size=None).take_all()
        return Sums(sum(int(p["n"]) for p in parts), sum(int(p["p"]) for p in parts))

    def write(self, data: Any, path: Path) -> None:
        """Parquet files in a folder."""
        data.write_parquet(str(path))

    def arrivals(self, data: Any) -> Arrivals:
        """Which classifiers the workers have loaded."""

        def report(table: Any) -> Any:
            found = arrivals()
            names = ("process", "key", "seconds")
            return {name: [each[i] for each in found] for i, name in enumerate(names)}

        seen = data.map_batches(report, batch_format="pyarrow").take_all()
        return {(row["process"], row["key"], row["seconds"]) for row in seen}


class Dask:
    """Two worker processes of one thread."""

    title = "Dask"
    package = "dask"

    def __init__(self) -> None:
        from dask.distributed import Client, LocalCluster

        self.cluster = LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None)
        self.client = Client(self.cluster)

    def stop(self) -> None:
        """End all workers."""
        self.client.close()
        logging.getLogger("distributed").setLevel("CRITICAL")  # of streams that it closes itself
        self.cluster.close()

    def read(self, path: Path) -> Any:
        """Rows of Parquet files in a folder."""
        import dask.dataframe

        return dask.dataframe.read_parquet(path)

    def select(self, data: Any, features: list[str]) -> Any:
        """Some columns."""
        return data[features]

    def mapped(self, data: Any, features: list[str], work: Work) -> Any:
        """What users of any other model write."""
        import pandas

        def over(frame: Any) -> Any:
            import pyarrow

            return work(pyarrow.Table.from_pandas(frame, preserve_index=False)).to_pandas()

        meta = pandas.DataFrame({"label": pandas.Series(dtype="int64")})
        return data[features].map_partitions(over, meta=meta, enforce_metadata=False)

    def sums(self, data: Any) -> Sums:
        """Rows, and positive labels."""
        import dask

        rows, positive = dask.compute(data["label"].size, data["label"].sum())
        return Sums(int(rows), int(positive))

    def write(self, data: Any, path: Path) -> None:
        """Parquet files in a folder."""
        data.to_parquet(path)

    def arrivals(self, data: Any) -> Arrivals:
        """Which classifiers the workers have loaded."""
        return {tuple(row) for rows in self.client.run(arrivals).values() for row in rows}


ENGINES = {"spark": Spark, "ray": Ray, "dask": Dask}
