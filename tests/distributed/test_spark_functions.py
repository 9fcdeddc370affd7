"""Functions of columns in Spark: one evaluation for all outputs, SQL, and a stream that changes its
classifier."""

import pandas as pd
import pytest
from test_distributed import assert_equal_decisions, fitted, rows  # noqa: F401
from test_distributed_kinds import data, spark  # noqa: F401

import qwyc
from qwyc import distributed

pytestmark = pytest.mark.slow


def plan(frame):
    return frame._jdf.queryExecution().executedPlan().toString()


def test_outputs_of_one_query_are_one_evaluation(data, rows, fitted):  # noqa: F811
    fast, want = fitted[1], fitted[1].decide(rows)
    both = data.select(
        "id",
        distributed.column(fast).alias("label"),
        distributed.column(fast, output="steps").alias("steps"),
        distributed.column(fast, output="score").alias("score"),
        distributed.column(fast, output=None)["complete"].alias("complete"),
    )
    assert plan(both).count("ArrowEvalPython [") == 1
    assert plan(both).count("decide(") == 1
    assert_equal_decisions(both.toPandas(), want)
    chained = data.withColumn("label", distributed.column(fast)).withColumn(
        "steps", distributed.column(fast, output="steps")
    )
    assert plan(chained).count("decide(") == 1
    labels = distributed.column(fast), distributed.column(fast.full())
    other = data.select(*(label.alias(f"by_{i}") for i, label in enumerate(labels)))
    assert plan(other).count("decide(") == 2


def test_functions_of_sql(spark, data, rows, fitted):  # noqa: F811
    fast, want, session = fitted[1], fitted[1].decide(rows), spark.session
    data.createOrReplaceTempView("t")
    distributed.register(fast, session, "fraud", output="label")
    distributed.register(fast, session, "decided", digest=True)
    names = fast.ensemble.schema.names
    arguments = ", ".join(f"`{name}`" for name in names)
    found = session.sql(f"select id, fraud({arguments}) label from t").toPandas()
    assert found.sort_values("id")["label"].tolist() == want.label.tolist()
    found = session.sql("select id, decided(struct(*)) d from t").select("id", "d.*").toPandas()
    assert_equal_decisions(found, want)
    assert set(found["classifier"]) == {distributed.digest(fast)}
    with pytest.raises(Exception, match="takes the 6 columns of the model"):
        session.sql("select fraud(a, a) from t").collect()
    with pytest.raises(Exception, match="the struct has no field 'the colour'"):
        session.sql("select fraud(struct(a, count)) from t").collect()
    for wrong, message in (
        ((fast, session, "no name"), "name must be a name"),
        ((fast, session, 3), "name must be a name"),
        ((fast, data, "f"), "a SparkSession or a DuckDB connection was expected"),
        ((3, session, "f"), r"a qwyc\.Classifier.* was expected"),
    ):
        with pytest.raises(qwyc.OptionError, match=message):
            distributed.register(*wrong)
    with pytest.raises(qwyc.OptionError, match="output must be one of"):
        distributed.register(fast, session, "f", output="labels")


def test_a_stream_takes_a_new_file_without_a_restart(spark, data, rows, fitted, tmp_path):  # noqa: F811
    folder, path = tmp_path / "in", tmp_path / "fraud.qwyc"
    folder.mkdir()
    first, second = fitted[1], fitted[1].full()
    first.save(path)
    rows[:1000].to_parquet(folder / "1.parquet")
    schema = spark.session.read.parquet(str(folder)).schema
    stream = spark.session.readStream.schema(schema).parquet(str(folder))
    watched = distributed.Watched(path, every=0)
    decided = distributed.decide(watched, stream, keep=["id"], digest=True)
    writer = decided.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "c"))
    query = writer.start(str(tmp_path / "out"))
    try:
        query.processAllAvailable()
        second.save(path)
        rows[1000:].to_parquet(folder / "2.parquet")
        query.processAllAvailable()
    finally:
        query.stop()
    found = pd.read_parquet(tmp_path / "out").set_index("id").sort_index()
    assert set(found.loc[:999, "classifier"]) == {distributed.digest(first)}
    assert set(found.loc[1000:, "classifier"]) == {distributed.digest(second)}
    assert found.loc[1000:, "score"].tolist() == second.decide(rows[1000:]).score.tolist()
