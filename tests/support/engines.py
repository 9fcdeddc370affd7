"""Spark, Ray and Dask with two workers each, as the benchmarks start them, and what tests do with them:
data in parts, some of them empty, and workers that die."""

import contextlib
import os
import signal

from benchmarks.engines import clusters

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


class Spark(clusters.Spark):
    """Two executors of one core, each a JVM of its own."""

    def __init__(self):
        super().__init__(
            "local-cluster[2,1,1024]",
            spark_sql_execution_arrow_maxRecordsPerBatch="200",
            spark_sql_shuffle_partitions="2",
        )

    def load(self, parts):
        import pyarrow as pa

        made = [
            self.session.createDataFrame(pa.Table.from_pandas(part, preserve_index=False))
            for part in parts
        ]  # which Spark would plan away: as RDDs they stay apart, and empty ones stay
        rows = self.session.sparkContext.union([part.rdd.coalesce(1) for part in made])
        return self.session.createDataFrame(rows, made[0].schema)

    def collect(self, data):
        return data.toArrow().to_pandas()

    def write(self, data, folder):
        data.write.parquet(str(folder))

    def restart(self):
        self.stop()
        self.__init__()

    def drop(self, data, name):
        return data.drop(name)

    def dying(self, data, marker):
        task = Dying(marker, and_its_executor=True)
        return data.repartition(4).mapInArrow(task.over, data.schema)


class Ray(clusters.Ray):
    def load(self, parts):
        return self.ray.data.from_pandas(parts)

    def collect(self, data):
        return data.to_pandas()

    def write(self, data, folder):
        data.write_parquet(str(folder))

    def restart(self):
        self.stop()
        self.__init__()

    def drop(self, data, name):
        return data.drop_columns([name])

    def dying(self, data, marker):
        return data.repartition(8).map_batches(Dying(marker), batch_size=50)


class Dask(clusters.Dask):
    def load(self, parts):
        import dask.dataframe as dd

        return dd.concat([dd.from_pandas(part, npartitions=1) for part in parts])

    def collect(self, data):
        return data.compute()

    def write(self, data, folder):
        data.to_parquet(folder)

    def restart(self):
        self.stop()
        self.__init__()

    def drop(self, data, name):
        return data.drop(columns=name)

    def dying(self, data, marker):
        return data.repartition(npartitions=8).map_partitions(Dying(marker), meta=data._meta)


ENGINES = {"spark": Spark, "ray": Ray, "dask": Dask}
