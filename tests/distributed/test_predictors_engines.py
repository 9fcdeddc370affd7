"""Spark, Ray and Dask with two workers, for models that are evaluated in full: bit for bit their library's
own outputs, in its own types."""

import pyarrow
import pytest
from test_distributed import engine  # noqa: F401
from test_predictors_duckdb import assert_equal_bits

import predictors
import qwyc
from qwyc import distributed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def live():
    return predictors.models()


@pytest.fixture(scope="module")
def rows():
    return predictors.rows(2000)


@pytest.fixture(scope="module")
def data(engine, rows):  # noqa: F811
    """Three parts, the second of them empty."""
    return engine.load([rows[:700], rows[:0], rows[700:]])


def test_every_row_is_evaluated_as_on_one_machine(engine, data, rows, live, tmp_path):  # noqa: F811
    for name, one in live.items():
        model, want = predictors.read(one), predictors.expected(name, one, rows)
        proba = predictors.has_proba(name)
        lazy = distributed.decide(model, data, proba=proba)
        found = engine.collect(lazy).sort_values("id")
        assert list(found.columns) == [*rows.columns, *want]
        assert_equal_bits(found, want)
        if engine.title == "Dask":
            assert lazy.dtypes.equals(found.dtypes)
        model.save(tmp_path / "m.qwyc")
        path = str(tmp_path / "m.qwyc")
        some = distributed.decide(path, data, keep=["id"], prefix="q_", digest=True)
        found = engine.collect(some).sort_values("id")
        names = [n for n in want if not n.startswith("proba")]
        assert list(found.columns) == ["id", *("q_" + n for n in names), "q_classifier"]
        assert_equal_bits(found, {"q_" + n: want[n] for n in names})
        assert set(found["q_classifier"]) == {distributed.digest(model)}


def test_a_watched_model_is_followed(engine, data, rows, live, tmp_path):  # noqa: F811
    path = tmp_path / "watched.qwyc"
    predictors.read(live["values float64"]).save(path)
    lazy = distributed.decide(distributed.Watched(path, every=0), data, keep=["id"])
    first = engine.collect(lazy).sort_values("id")
    assert_equal_bits(first, predictors.expected("values float64", live["values float64"], rows))
    again = predictors.models()["values float64"]
    again.set_params(n_estimators=3)
    again.fit(rows[predictors.COLUMNS], rows["a"])
    predictors.read(again).save(path)
    second = engine.collect(lazy).sort_values("id")
    assert_equal_bits(second, {"value": again.predict(rows[predictors.COLUMNS])})


def test_errors_come_before_any_work_and_in_one_line(engine, data, rows, live):  # noqa: F811
    values = predictors.read(live["values float32"])
    odd = rows.assign(a="text")
    text = engine.load([odd])
    if engine.title == "Ray Data":  # of pandas blocks it knows no types
        text = engine.ray.data.from_arrow(pyarrow.Table.from_pandas(odd))
    with pytest.raises(qwyc.InputError, match="'a'") as caught:
        distributed.decide(values, text)
    assert "\n" not in str(caught.value)
    with pytest.raises(qwyc.OptionError, match="gives values, not probabilities"):
        distributed.decide(values, data, proba=True)
    for check in (qwyc.verify, qwyc.recertify):
        with pytest.raises(qwyc.OptionError, match="evaluates every row in full and has no policy"):
            check(predictors.read(live["two classes"]), data)


def test_columns_and_functions_of_spark(engine, data, rows, live):  # noqa: F811
    if engine.title != "Spark":
        with pytest.raises(qwyc.OptionError, match="a SparkSession or a DuckDB connection"):
            distributed.register(predictors.read(live["two classes"]), data, "kind")
        return
    data.createOrReplaceTempView("evaluated")
    for name, one in live.items():
        model, want = predictors.read(one), predictors.expected(name, one, rows)
        proba, first = predictors.has_proba(name), next(iter(want))
        made = distributed.column(model)  # its label or value, or a struct of several values
        chosen = made.getField(first) if name == "two targets" else made
        found = data.select("id", chosen.alias(first)).toPandas().sort_values("id")
        assert_equal_bits(found, {first: want[first]})
        whole = distributed.column(model, output=None, proba=proba).alias("q")
        found = data.select("id", whole).select("id", "q.*").toPandas().sort_values("id")
        assert_equal_bits(found, want)
        last = list(want)[-1]
        distributed.register(model, engine.session, "evaluate", output=last)
        query = f"select id, evaluate(struct(*)) as `{last}` from evaluated"
        found = engine.session.sql(query).toPandas().sort_values("id")
        assert_equal_bits(found, {last: want[last]})
