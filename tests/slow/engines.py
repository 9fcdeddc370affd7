"""Spark, Ray and Dask with two workers each, behind one face for the tests."""

import contextlib
import functools
import os
import shutil
import signal
import sys
from pathlib import Path

batches_seen = 0  # by this process


class Dying:
    """Hands batches on; the first process that sees its third kills itself, once in all."""

    def __init__(self, marker, and_its_executor=False):
        self.marker, self.and_its_executor = str(marker), and_its_executor

    def __call__(self, batch):
        global batches_seen
        batches_seen += 1
        if batches_seen >= 3:
            with contextlib.suppress(FileExistsError):  # somebody died already
                os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
                self.die()
        return batch

    def die(self):
        if self.and_its_executor:  # a Python process, started by a daemon, started by the JVM
            with open(f"/proc/{os.getppid()}/stat") as file:
                os.kill(int(file.read().rsplit(")", 1)[1].split()[1]), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    def over(self, batches):
        for batch in batches:
            yield self(batch)


def arrivals():
    """Which classifiers this process has loaded: (process, key)."""
    from qwyc.distributed import shipping

    return [(one.process, one.key) for one in shipping.arrivals]


class Spark:
    """Two executors, each a JVM of its own, of one core."""

    def __init__(self):
        assert shutil.which("java") or os.environ.get("JAVA_HOME"), (
            "Spark needs Java 17 or later on PATH or at JAVA_HOME, and there is none"
        )
        import pyspark
        from pyspark.sql import SparkSession

        os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
        os.environ["PYSPARK_PYTHON"] = sys.executable
        self.session = (
            SparkSession.builder.master("local-cluster[2,1,1024]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.execution.arrow.maxRecordsPerBatch", "200")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.driver.host", "127.0.0.1")
            .getOrCreate()
        )
        self.session.sparkContext.setLogLevel("OFF")

    def stop(self):
        self.session.stop()
        shutil.rmtree(Path(os.environ["SPARK_HOME"]) / "work", ignore_errors=True)

    def load(self, parts):
        import pyarrow as pa

        made = [
            self.session.createDataFrame(pa.Table.from_pandas(part, preserve_index=False))
            for part in parts
        ]
        return functools.reduce(lambda a, b: a.union(b), [part.coalesce(1) for part in made])

    def collect(self, data):
        return data.toArrow().to_pandas()

    def drop(self, data, name):
        return data.drop(name)

    def dying(self, data, marker):
        task = Dying(marker, and_its_executor=True)
        return data.repartition(4).mapInArrow(task.over, data.schema)

    def arrivals(self, data):
        def report(batches):
            for _ in batches:
                pass
            import pyarrow as pa

            rows = arrivals()
            yield pa.RecordBatch.from_arrays(
                [pa.array([r[0] for r in rows], pa.int64()), pa.array([r[1] for r in rows])],
                ["process", "key"],
            )

        seen = data.mapInArrow(report, "process long, key string").distinct().collect()
        return [(row["process"], row["key"]) for row in seen]


class Ray:
    """One node with two workers."""

    def __init__(self):
        import ray

        self.ray = ray
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        ray.data.DataContext.get_current().enable_progress_bars = False

    def stop(self):
        self.ray.shutdown()

    def load(self, parts):
        return self.ray.data.from_pandas(parts)

    def collect(self, data):
        return data.to_pandas()

    def drop(self, data, name):
        return data.drop_columns([name])

    def dying(self, data, marker):
        return data.repartition(8).map_batches(Dying(marker), batch_size=50)

    def arrivals(self, data):
        def report(batch):
            rows = arrivals()
            return {"process": [r[0] for r in rows], "key": [r[1] for r in rows]}

        seen = data.map_batches(report, batch_format="pyarrow").take_all()
        return {(row["process"], row["key"]) for row in seen}


class Dask:
    """Two worker processes of one thread."""

    def __init__(self):
        from dask.distributed import Client, LocalCluster

        self.cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
        self.client = Client(self.cluster)

    def stop(self):
        self.client.close()
        self.cluster.close()

    def load(self, parts):
        import dask.dataframe as dd

        return dd.concat([dd.from_pandas(part, npartitions=1) for part in parts])

    def collect(self, data):
        return data.compute()

    def drop(self, data, name):
        return data.drop(columns=name)

    def dying(self, data, marker):
        return data.repartition(npartitions=8).map_partitions(Dying(marker), meta=data._meta)

    def arrivals(self, data):
        return {tuple(row) for rows in self.client.run(arrivals).values() for row in rows}


ENGINES = {"spark": Spark, "ray": Ray, "dask": Dask}
