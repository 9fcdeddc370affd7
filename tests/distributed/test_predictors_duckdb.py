"""Models that are evaluated in full, over relations of DuckDB and in SQL: bit for bit their library's own
outputs, in its own types. And what workers of other engines run, without the engines."""

import duckdb
import lightgbm
import numpy as np
import pyarrow as pa
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import predictors
import qwyc
from qwyc import distributed
from qwyc.distributed.evaluating import evaluated_columns, evaluating
from qwyc.distributed.shipping import pack, unpack
from qwyc.distributed.spark_tasks import Decide, Function

ROWS = 3000
LIVE = predictors.models()
FRAME = predictors.rows(ROWS)


@pytest.fixture
def connection():
    tells = hasattr(duckdb.sql("SELECT 1"), "_con")  # DuckDB 2.0 and later
    made = duckdb.connect() if tells else duckdb.default_connection()
    made.execute("CREATE OR REPLACE TABLE t AS SELECT * FROM FRAME")
    return made


def assert_equal_bits(found, want):
    """Columns of an Arrow table or pandas frame, of the same numbers and types as arrays (N,)."""
    for name, values in want.items():
        got = found[name].to_numpy()
        if values.dtype.kind == "f":
            assert got.dtype == values.dtype, name
        assert got.tolist() == values.tolist(), name


def in_order(relation):
    return relation.to_arrow_table().sort_by("id")


@pytest.mark.parametrize("name", LIVE)
def test_relations_and_functions(connection, name, tmp_path):
    live, model = LIVE[name], predictors.read(LIVE[name])
    want, proba = predictors.expected(name, live, FRAME), predictors.has_proba(name)
    found = distributed.decide(model, connection.table("t"), proba=proba)
    assert found.columns == ["id", *predictors.COLUMNS, *want]
    assert_equal_bits(in_order(found), want)
    path = tmp_path / "model.qwyc"
    model.save(path)
    some = distributed.decide(path, connection.table("t"), keep=["id"], prefix="q_", digest=True)
    assert some.columns[-1] == "q_classifier"
    assert set(in_order(some)["q_classifier"].to_pylist()) == {distributed.digest(model)}
    distributed.register(str(path), connection, "whole", proba=proba)
    query = "SELECT id, unnest(whole(a, b, c, d)) FROM t"
    assert_equal_bits(in_order(connection.sql(query)), want)
    last = list(want)[-1]
    distributed.register(distributed.Watched(path), connection, "one", output=last)
    query = f'SELECT id, one(t) AS "{last}" FROM t'
    assert_equal_bits(in_order(connection.sql(query)), {last: want[last]})


def test_files_of_other_libraries(connection, tmp_path):
    path = tmp_path / "model.ubj"
    LIVE["values float32"].save_model(path)
    found = distributed.decide(path, connection.table("t"), keep=["id"])
    want = predictors.expected("values float32", LIVE["values float32"], FRAME)
    assert_equal_bits(in_order(found), want)


def test_pipelines_run_their_own_steps(connection):
    X = FRAME[predictors.COLUMNS]
    last = lightgbm.LGBMRegressor(n_estimators=9, n_jobs=1, verbose=-1)
    live = make_pipeline(StandardScaler(), last).fit(X[:300], X["a"][:300])
    chosen = connection.sql("SELECT a, b, c, d FROM t ORDER BY id")
    found = distributed.decide(qwyc.read_model(live), chosen).to_arrow_table()
    assert found["value"].to_pylist() == live.predict(X).tolist()


def test_what_is_refused(connection):
    t = connection.table("t")
    values, classes, forest, isolation = (
        predictors.read(LIVE[name])
        for name in ("values float64", "three classes", "forest", "isolation")
    )
    for model, options, message in (
        (values, {"proba": True}, "gives values, not probabilities: use predict"),
        (isolation, {"proba": True}, "an isolation forest has no probabilities: use score_samples"),
        (values, {"unseen": "flag"}, "unseen='flag' is for classifiers that quit early"),
        (classes, {"unseen": "odd"}, "unseen must be"),
        (classes, {"digest": "yes"}, "digest must be True or False"),
    ):
        with pytest.raises(qwyc.OptionError, match=message) as caught:
            distributed.decide(model, t, **options)
        assert "\n" not in str(caught.value)
    for output, message in (("steps", "one of value, or None"), ("proba_1", "gives values, not")):
        with pytest.raises(qwyc.OptionError, match=message):
            distributed.register(values, connection, "f", output=output)
    with pytest.raises(qwyc.OptionError, match="output must be one of label, proba_high"):
        distributed.register(classes, connection, "f", output="proba_none")
    with pytest.raises(qwyc.InputError, match="column 'a' holds"):
        distributed.decide(
            forest, connection.sql("SELECT * REPLACE (DATE '2024-01-01' AS a) FROM t")
        )
    with pytest.raises(qwyc.InputError, match="a column 'value' already; pass prefix"):
        distributed.decide(values, connection.sql("SELECT *, 1 AS value FROM t"))
    for check in (qwyc.verify, qwyc.recertify, qwyc.diagnose):
        for data in (t, FRAME):
            with pytest.raises(
                qwyc.OptionError, match="evaluates every row in full and has no policy"
            ):
                check(classes, data)


def test_a_classifier_has_no_probabilities_here(connection):
    live = LIVE["two classes"]
    fast = qwyc.optimize(live, predictors.rows(2000, 5), alpha=0.05, progress=False)
    with pytest.raises(qwyc.OptionError, match=r"pass qwyc\.Predictor\.of\(classifier\.ensemble\)"):
        distributed.decide(fast, connection.table("t"), proba=True)
    model = qwyc.Predictor.of(fast.ensemble)
    found = distributed.decide(model, connection.table("t"), proba=True)
    assert_equal_bits(in_order(found), predictors.expected("two classes", live, FRAME))


# ---- what workers of other engines run, without the engines ----------------------------------


@pytest.mark.parametrize("name", LIVE)
def test_tasks(name):
    model, proba = predictors.read(LIVE[name]), predictors.has_proba(name)
    want, content = predictors.expected(name, LIVE[name], FRAME), pack(model).content
    added = evaluated_columns(model, False, proba)
    assert added == tuple(want)
    work = evaluating(model, tuple(predictors.COLUMNS), ("id",), added, added, proba)

    def delivery():
        return unpack(content)

    table = pa.Table.from_pandas(FRAME)
    numbered = table.select(work.needed).rename_columns([f"c{i}" for i in range(5)])
    parts = Decide(delivery, work)(iter(numbered.to_batches(max_chunksize=700)))
    assert_equal_bits(pa.Table.from_batches(parts), want)
    arrays = tuple(table.select(predictors.COLUMNS).combine_chunks().to_batches()[0].columns)
    (whole,) = Function(delivery, work).over_arrow()(iter([arrays]))
    kinds = work.types(model.classes)
    assert [whole.type.field(i).type for i in range(len(kinds))] == list(kinds.values())
    frame = work.on_pandas(delivery(), FRAME)
    assert_equal_bits(frame, want)
    empty = work.with_columns(FRAME[["id"]][:0], work.nothing(model.classes))
    assert empty.dtypes.equals(frame.dtypes)


def test_a_watched_file_must_stay_of_its_kind(tmp_path):
    from qwyc.distributed.watching import shape_of

    shapes = {name: shape_of(predictors.read(live)) for name, live in LIVE.items()}
    assert len(set(shapes.values())) == len(shapes)
    assert "1 values in float32" in shapes["values float32"]
    assert np.all([shape.startswith("columns") for shape in shapes.values()])
