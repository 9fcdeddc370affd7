"""What only Spark has: column expressions, streams, names whose case does not matter; and what only Dask
has: partitions of one row, numbers as names."""

import threading

import numpy as np
import pandas as pd
import pytest
import xgboost
from test_distributed import assert_equal_decisions, fitted, rows  # noqa: F401

import qwyc
from engines import Spark
from qwyc import distributed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def spark():
    engine = Spark()
    yield engine
    engine.stop()


@pytest.fixture(scope="module")
def data(spark, rows):  # noqa: F811
    return spark.load([rows[:1000], rows[1000:]])


def test_columns_are_expressions(data, rows, fitted):  # noqa: F811
    from pyspark.sql import functions

    fast, want = fitted[1], fitted[1].decide(rows)
    answer = data.select("id", distributed.column(fast, output=None).alias("all"))
    assert_equal_decisions(answer.select("id", "all.*").toPandas(), want)
    one = data.withColumn("label", distributed.column(fast))
    assert one.filter(functions.col("label") == 1).count() == (want.label == 1).sum()
    steps = data.select(functions.avg(distributed.column(fast, output="steps")).alias("mean"))
    assert steps.collect()[0]["mean"] == want.steps.mean()
    with pytest.raises(qwyc.OptionError, match="output must be one of"):
        distributed.column(fast, output="labels")
    with pytest.raises(qwyc.OptionError, match="columns must be a list"):
        distributed.column(fast, columns="abcd")
    with pytest.raises(qwyc.InputError, match="no columns 'the colour'"):
        distributed.column(fast, columns=["a"])
    found = []
    thread = threading.Thread(target=lambda: found.append(distributed.column(fast)))
    thread.start()
    thread.join()
    assert len(found) == 1


def test_large_integers_with_nulls_keep_their_last_bits(spark):
    rng = np.random.default_rng(0)
    near = 2**60 + 2**36 + rng.integers(-2, 3, 2000)
    frame = pd.DataFrame({"x": rng.normal(size=2000), "v": near})
    y = (frame["x"] + (near > 2**60 + 2**36) > 0).astype(int)
    model = xgboost.XGBClassifier(n_estimators=10, max_depth=3).fit(frame, y)
    fast = qwyc.optimize(model, frame, alpha=0.05, progress=False)
    new = frame.astype({"v": "Int64"}).assign(id=np.arange(2000))
    new.loc[5, "v"] = None
    data = spark.load([new])
    want = fast.decide(new)
    answer = data.select("id", distributed.column(fast, output=None).alias("q"))
    assert_equal_decisions(answer.select("id", "q.*").toArrow().to_pandas(), want)
    assert_equal_decisions(distributed.decide(fast, data).toArrow().to_pandas(), want)


def test_case_does_not_matter_in_names(data, fitted):  # noqa: F811
    with pytest.raises(qwyc.InputError, match="a column 'Label' already; pass prefix"):
        distributed.decide(fitted[1], data.withColumnRenamed("note", "Label"))
    with pytest.raises(qwyc.InputError, match=r"no column 'a'.*did you mean 'A'\?"):
        distributed.decide(fitted[1], data.withColumnRenamed("a", "A"))


def test_a_name_that_is_there_twice_is_refused(data, fitted):  # noqa: F811
    twice = data.join(data.select("id", "note"), data["id"] == data["id"])
    for keep in (None, ["note"]):
        with pytest.raises(qwyc.InputError, match="more than one column"):
            distributed.decide(fitted[1], twice, keep=keep)
    with pytest.raises(qwyc.InputError, match="more than one column"):
        distributed.sample(twice, 5)


def test_streams_are_decided_and_not_counted(spark, data, rows, fitted, tmp_path):  # noqa: F811
    data.write.parquet(str(tmp_path / "in"))
    stream = spark.session.readStream.schema(data.schema).parquet(str(tmp_path / "in"))
    decided = distributed.decide(fitted[1], stream, keep=["id"])
    writer = decided.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "c"))
    query = writer.trigger(availableNow=True).start(str(tmp_path / "out"))
    assert query.awaitTermination(120)
    assert_equal_decisions(pd.read_parquet(tmp_path / "out"), fitted[1].decide(rows))
    for count in (qwyc.verify, qwyc.recertify, lambda _, d: distributed.sample(d, 5)):
        with pytest.raises(qwyc.InputError, match="is a stream"):
            count(fitted[1], stream)


def test_partitions_of_one_row_and_numbers_as_names():
    import dask
    import dask.dataframe as dd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(2000, 3)))  # its columns are 0, 1 and 2
    model = xgboost.XGBClassifier(n_estimators=10, max_depth=3).fit(frame, frame[0] > frame[1])
    fast = qwyc.optimize(model, frame, alpha=0.05, progress=False)
    data = dd.concat([dd.from_pandas(frame[:1600], 2), dd.from_pandas(frame[1600:], 400)])
    with dask.config.set(scheduler="synchronous"):
        decided = distributed.decide(fast, data).compute()
        assert decided["score"].tolist() == fast.decide(frame).score.tolist()
        drawn = distributed.sample(data, 500)
        assert len(drawn) == 500
        small = drawn[0].isin(frame[0][1600:]).mean()
        assert small == pytest.approx(0.2, abs=0.08)


def test_other_things_of_these_libraries_are_refused(fitted):  # noqa: F811
    import dask.array
    import dask.bag

    for wrong in (dask.array.zeros((4, 6)), dask.bag.from_sequence([1])):
        with pytest.raises(
            qwyc.InputError,
            match=r"a Dask DataFrame or a DuckDB relation was expected; got .*: pass ",
        ):
            distributed.decide(fitted[1], wrong)
    with pytest.raises(qwyc.InputError, match="was expected; got pandas"):
        distributed.decide(fitted[1], pd.DataFrame())
