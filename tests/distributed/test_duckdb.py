"""Relations of DuckDB and classifiers as functions of SQL: row for row what `decide` says."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn.ensemble
import xgboost

import qwyc
from qwyc import distributed
from qwyc.model.ensemble import Ensemble
from qwyc.policy.columns import COLUMNS
from trained import make_frame

ROWS = 6000  # two whole chunks of DuckDB's and a part of one
TEXT = ["the colour", "constant"]
TELLS_CONNECTION = hasattr(duckdb.sql("SELECT 1"), "_con")  # DuckDB 2.0 and later


@pytest.fixture(scope="module")
def fitted():
    """A model with categories and missing values, and a classifier made from it."""
    frame, y = make_frame(rows=6000)
    model = xgboost.XGBClassifier(n_estimators=40, max_depth=4, enable_categorical=True, n_jobs=1)
    model.fit(frame[:2000], y[:2000])
    return model, qwyc.optimize(model, frame[2000:], alpha=0.02, progress=False)


@pytest.fixture(scope="module")
def rows():
    """An Arrow table with text as text, a number for each row and a column that no model knows."""
    frame, _ = make_frame(seed=5, rows=ROWS)
    for name in TEXT:
        frame[name] = frame[name].astype(object).where(frame[name].notna(), None)
    frame["size"] = frame["size"].astype(int)
    frame.insert(0, "id", np.arange(ROWS))
    return pa.Table.from_pandas(frame.assign(note="kept as it is"), preserve_index=False)


@pytest.fixture
def connection(rows):
    made = duckdb.default_connection() if not TELLS_CONNECTION else duckdb.connect()
    made.execute("CREATE OR REPLACE TABLE t AS SELECT * FROM rows")
    made.execute("SET threads = 3")
    return made


def table_of(relation):
    return relation.to_arrow_table()


def arguments(classifier):
    return ", ".join(f'"{name}"' for name in classifier.ensemble.schema.names)


def assert_equal_decisions(table, want, prefix=""):
    table = table.sort_by("id")
    assert table["id"].to_pylist() == list(range(len(want)))  # nothing lost, nothing doubled
    for name in COLUMNS:
        assert table[prefix + name].to_pylist() == getattr(want, name).tolist(), name


# ---- relations ------------------------------------------------------------------------------


def test_every_row_is_decided_as_in_memory(connection, rows, fitted):
    fast = fitted[1]
    decided = distributed.decide(fast, connection.table("t"))
    assert isinstance(decided, duckdb.DuckDBPyRelation)
    assert decided.columns == [*rows.column_names, *COLUMNS]
    kinds = [str(kind) for kind in decided.types[-4:]]
    assert kinds == ["BIGINT", "INTEGER", "DOUBLE", "BOOLEAN"]
    found = table_of(decided)
    assert_equal_decisions(found, fast.decide(rows))
    assert set(found["note"].to_pylist()) == {"kept as it is"}
    assert 0 < np.mean(found["steps"]) < 40


def test_only_what_is_kept_comes_back(connection, rows, fitted):
    some = distributed.decide(fitted[1], connection.table("t"), keep=["id"], prefix="q_")
    assert some.columns == ["id", *("q_" + name for name in COLUMNS)]
    assert_equal_decisions(table_of(some), fitted[1].decide(rows), prefix="q_")
    none = distributed.decide(fitted[1], connection.table("t"), keep=[])
    assert none.columns == list(COLUMNS)


def test_what_was_decided_goes_into_other_queries(connection, rows, fitted, tmp_path):
    fast = fitted[1]
    want = fast.decide(rows)
    decided = distributed.decide(fast, connection.sql("SELECT * FROM t WHERE id < 4000"))
    found = decided.filter("label = 1").aggregate("count(*), sum(steps)").fetchall()
    chosen = (want.label == 1) & (np.arange(ROWS) < 4000)
    assert found == [(chosen.sum(), want.steps[chosen].sum())]
    decided.write_parquet(str(tmp_path / "decided.parquet"))
    assert len(pd.read_parquet(tmp_path / "decided.parquet")) == 4000
    again = distributed.decide(fast, decided, keep=["id", "label"], prefix="again ")
    assert again.filter('label <> "again label"').fetchall() == []


def test_a_row_is_decided_once_also_where_decisions_are_filtered(connection, fitted, monkeypatch):
    fast, seen = fitted[1].at(alpha=0.05), []
    whole = Ensemble.decide_in_order

    def watched(self, table, runner):
        seen.append(len(table))
        return whole(self, table, runner)

    monkeypatch.setattr(Ensemble, "decide_in_order", watched)
    decided = distributed.decide(fast, connection.table("t"))
    assert seen == []  # nothing runs before it is asked for
    assert decided.filter("label = 1 AND steps < 30").aggregate("count(*)").fetchall()[0][0] > 0
    assert sum(seen) == ROWS
    assert max(seen) <= 2048


def test_counts_are_those_of_rows_in_memory(connection, rows, fitted):
    fast, data = fitted[1], connection.table("t")
    for alpha in (None, 0.001, {"negative": 0.02, "positive": 0.01}):
        assert qwyc.verify(fast, data, alpha=alpha) == qwyc.verify(fast, rows, alpha=alpha)
    for alpha in (None, 0.01):
        there, here = (qwyc.recertify(fast, X, alpha=alpha) for X in (data, rows))
        assert there.certificate.rows == ROWS
        # The digest of rows is known in memory only.
        digest = here.certificate.recertified[:8]
        assert str(there) == str(here).replace(f", digest {digest}", "")
        np.testing.assert_array_equal(there.policy.upper, here.policy.upper)


def test_a_sample_is_drawn_without_repetition(connection, rows):
    data = connection.table("t")
    first, again = (distributed.sample(data, 500, seed=3) for _ in range(2))
    other = distributed.sample(data, 500, seed=4)
    assert len(first) == len(set(first["id"])) == 500
    assert first["id"].tolist() == again["id"].tolist() != other["id"].tolist()
    assert (first["id"] < 2000).sum() == pytest.approx(500 / 3, abs=60)
    assert sorted(distributed.sample(data, 10**6)["id"]) == list(range(ROWS))
    exact = connection.sql("SELECT 1.5::DECIMAL(4, 1) AS d, 7::HUGEINT AS h FROM t")
    assert distributed.sample(exact, 5).dtypes.tolist() == [float, float]


def test_decimals_of_a_sample_are_the_nearest_doubles(connection):
    texts = [f"{i}.{7 * i % 100_000:05}" for i in range(123_456, 124_000)]
    listed = ", ".join(f"({text})" for text in texts)
    numbers = connection.sql(f"SELECT col0::DECIMAL(18, 5) AS d FROM (VALUES {listed})")
    assert sorted(distributed.sample(numbers, 10_000)["d"]) == sorted(map(float, texts))


def test_optimize_draws_its_sample_itself(connection, fitted):
    fast = qwyc.optimize(
        fitted[0], connection.table("t"), alpha=0.03, max_rows=2000, progress=False
    )
    assert fast.certificate.rows + fast.certificate.fit_rows == 2000


def test_what_is_wrong_is_said_before_anything_runs(connection, fitted):
    fast, data = fitted[1], connection.table("t")
    without = connection.sql('SELECT * EXCLUDE "the colour" FROM t')
    with pytest.raises(qwyc.InputError, match=r"no column 'the colour'.*trained on"):
        distributed.decide(fast, without)
    with pytest.raises(qwyc.InputError, match="no column 'the colour'"):
        qwyc.verify(fast, without)
    with pytest.raises(qwyc.InputError, match="keep: the data has no column 'key'"):
        distributed.decide(fast, data, keep=["key"])
    with pytest.raises(qwyc.InputError, match="column 'Label' already; pass prefix"):
        distributed.decide(fast, connection.sql("SELECT *, 1 AS Label FROM t"))
    with pytest.raises(qwyc.InputError, match=r"is in DuckDB; use qwyc\.distributed\.decide"):
        fast.predict(data)
    with pytest.raises(qwyc.InputError, match=r"pass connection\.sql\(query\)"):
        distributed.decide(fast, connection)
    with pytest.raises(qwyc.InputError, match=r"distributed\.sample"):
        qwyc.diagnose(fast, data)


def test_a_relation_without_rows(connection, fitted):
    empty = connection.sql("SELECT * FROM t WHERE id < 0")
    assert distributed.decide(fitted[1], empty).fetchall() == []
    with pytest.raises(qwyc.InputError, match="no rows"):
        qwyc.verify(fitted[1], empty)
    with pytest.raises(qwyc.InputError, match="no rows"):
        distributed.sample(empty, 10)


def test_odd_names_and_classes_of_text(connection, rows):
    frame, y = make_frame(rows=1500)
    numbers = frame[["a", "count"]].fillna(0).to_numpy()
    forest = sklearn.ensemble.RandomForestClassifier(20, max_depth=3)
    forest.fit(numbers, np.where(y, "good", "bad").astype(object))
    fast = qwyc.optimize(forest, numbers, alpha=0.05, progress=False)
    names = ['a.b "c"', "Ü 1; --"]
    odd = connection.sql("""SELECT id, coalesce(a, 0) AS "a.b ""c\""", count AS "Ü 1; --" FROM t""")
    decided = table_of(distributed.decide(fast, odd, columns=names, keep=["id"]))
    plain = np.stack([rows["a"].fill_null(0).to_numpy(), rows["count"].to_numpy()], axis=1)
    assert_equal_decisions(decided, fast.decide(plain))
    assert set(decided["label"].to_pylist()) == {"good", "bad"}
    with pytest.raises(qwyc.InputError, match="has 3 columns; the model was trained on 2"):
        distributed.decide(fast, odd)
    spoilt = connection.sql("SELECT 'inf'::DOUBLE AS x, 1 AS y")
    with pytest.raises(duckdb.Error, match=r"a batch of 1 rows .*infinity"):
        distributed.decide(fast, spoilt).fetchall()


def test_a_value_that_is_refused_is_named_and_the_connection_goes_on(connection):
    frame, y = make_frame(rows=1500)
    numbers = frame[["a", "count"]].fillna(0)
    forest = sklearn.ensemble.RandomForestClassifier(5, max_depth=3, random_state=0)
    fast = qwyc.optimize(forest.fit(numbers, y), numbers, alpha=0.05, progress=False)
    spoilt = """SELECT i AS id, (CASE i WHEN 40_000 THEN 'inf' ELSE '1' END)::DOUBLE AS a, 2 AS count
        FROM range(200_000) r(i)"""
    with pytest.raises(qwyc.InputError, match=r"row 40,000 of column 'a'") as caught:
        qwyc.verify(fast, connection.sql(spoilt))
    assert connection.execute("SELECT 1").fetchall() == [(1,)]
    assert caught.value.row == 40_000


@pytest.mark.skipif(
    not TELLS_CONNECTION, reason="the default connection is used by other tests too"
)
def test_transactions(connection, rows, fitted):
    fast = fitted[1].at(alpha=0.06)
    connection.begin()
    connection.execute("CREATE TABLE inner_t AS SELECT * FROM t")
    for keep in (["id"], ["id", "note"]):
        decided = distributed.decide(fast, connection.table("inner_t"), keep=keep)
        assert_equal_decisions(table_of(decided), fast.decide(rows))
    distributed.register(fast, connection, "inner_f")
    connection.rollback()
    decided = distributed.decide(fast, connection.table("t"))
    assert_equal_decisions(table_of(decided), fast.decide(rows))
    distributed.register(fast, connection, "inner_f")
    found = connection.sql("SELECT id, unnest(inner_f(t)) FROM t")
    assert_equal_decisions(table_of(found), fast.decide(rows))


def test_a_table_larger_than_the_memory_of_duckdb(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(4000, 4)), columns=list("abcd"))
    model = xgboost.XGBClassifier(n_estimators=10, max_depth=3, n_jobs=1).fit(X, X["a"] > X["b"])
    fast = qwyc.optimize(model, X, alpha=0.05, progress=False)
    with duckdb.connect(str(tmp_path / "large.duckdb")) as large:
        large.execute("""CREATE TABLE t AS SELECT i AS id, random() AS a, random() AS b, random() AS c,
            random() AS d, repeat(chr(65 + (i % 26)::INT), 50) || random() AS note
            FROM range(600_000) r(i)""")
    with duckdb.connect(str(tmp_path / "large.duckdb")) as large:
        large.execute("SET memory_limit = '24MB'; SET threads = 2; SET temp_directory = ''")
        with pytest.raises(duckdb.OutOfMemoryException):
            large.execute("CREATE TEMP TABLE copy AS SELECT * FROM t")
        distributed.register(fast, large, "sign", output="label")
        out = tmp_path / "decided.parquet"
        asked = f"SELECT id, sign(t) AS label FROM t) TO '{out}' (ROW_GROUP_SIZE 20_000"
        large.execute(f"COPY ({asked})")
        assert qwyc.verify(fast, large.table("t")).counts.rows == 600_000
        if TELLS_CONNECTION:
            decided = distributed.decide(fast, large.table("t"), keep=["id"])
            positive = decided.aggregate("count(*), sum(label)").fetchall()
            expected = f"SELECT count(*), sum(label) FROM '{out}'"
            assert positive == large.execute(expected).fetchall()
            assert positive[0][0] == 600_000


# ---- functions ------------------------------------------------------------------------------


def test_a_function_says_what_decide_says(connection, rows, fitted):
    fast = fitted[1]
    want = fast.decide(rows)
    distributed.register(fast, connection, "fraud")
    named = f"SELECT id, unnest(fraud({arguments(fast)})) FROM t"
    assert_equal_decisions(table_of(connection.sql(named)), want)
    whole = "SELECT id, unnest(fraud(t)) FROM t"  # also with columns that it does not take
    assert_equal_decisions(table_of(connection.sql(whole)), want)
    shuffled = 'SELECT id, unnest(fraud(s)) FROM (SELECT count, size, "constant", * FROM t) s'
    assert_equal_decisions(table_of(connection.sql(shuffled)), want)
    for output in COLUMNS:
        distributed.register(fast, connection, "fraud", output=output)
        found = connection.sql(f"SELECT id, fraud({arguments(fast)}) AS it FROM t ORDER BY id")
        assert table_of(found)["it"].to_pylist() == getattr(want, output).tolist()


def test_types_reach_the_model_as_they_are_stored(connection):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 2))
    y = X[:, 0] + X[:, 1] > 0
    model = xgboost.XGBClassifier(n_estimators=30, max_depth=3, n_jobs=1).fit(X, y)
    fast = qwyc.optimize(model, X, alpha=0.02, progress=False)
    distributed.register(fast, connection, "fraud", columns=["x", "y"])
    split = float(fast.ensemble.base_models.cuts()[0][0])  # of float32
    step = float(np.spacing(np.float32(split)))
    whole = [2**60 + 2**36 + 1, 2**60 + 2**36, -(2**24) - 1, 2**24 + 1, 3, 0, None]
    numbers = [split, split - step, split - step / 2, split + step, 0.1, np.nan, None, np.inf]
    for kind, values in {
        "BIGINT": whole, "HUGEINT": whole, "UBIGINT": [2**63 + 2**39 + 1, 2**64 - 1, None],
        "TINYINT": [-1, 0, 1, None], "BOOLEAN": [True, False, None], "FLOAT": numbers,
        "DOUBLE": numbers, "DECIMAL(18, 9)": [f"{v:.9f}" for v in numbers[:5]] + [None],
    }.items():  # fmt: skip
        table = pa.table({"x": [None if v is None else str(v) for v in values]})
        query = (
            f"SELECT row_number() OVER () - 1 AS id, x::{kind} AS x, -0.3::FLOAT AS y FROM table_"
        )
        table_ = table  # noqa: F841, DuckDB finds it by name
        stored = connection.sql(query).to_arrow_table()
        want = fast.decide(stored.select(["x", "y"]))
        found = connection.sql("SELECT id, unnest(fraud(x, y)) FROM stored").to_arrow_table()
        assert_equal_decisions(found, want)


def test_integers_are_rounded_once(connection):
    """Through a double, the number between would become the smaller one."""
    small, large = 2**60, 2**60 + 2**37  # neighbours in float32
    X = np.repeat(np.array([[small], [large]], np.float32), 1000, axis=0)
    X = pd.DataFrame(X, columns=["x"])
    model = xgboost.XGBClassifier(n_estimators=5, max_depth=1, n_jobs=1, tree_method="exact")
    model.fit(X, X["x"] > small)
    fast = qwyc.optimize(model, X, alpha=0.05, repeats="independent", progress=False)
    distributed.register(fast, connection, "is_large", output="label")
    between = small + 2**36 + 1
    assert float(np.float32(float(between))) == small
    found = connection.sql(
        f"SELECT is_large(x) FROM (VALUES ({small}), ({between}), ({large}), (NULL)) v(x)"
    )
    assert [bool(label) for (label,) in found.fetchall()[:3]] == [False, True, True]


def test_categories_may_be_enums_and_nulls_are_missing(connection, rows, fitted):
    fast = fitted[1]
    distributed.register(fast, connection, "fraud")
    colours = sorted({*rows["the colour"].to_pylist()} - {None}, reverse=True)
    kind = "ENUM (" + ", ".join(f"'{colour}'" for colour in colours) + ")"
    query = f"""SELECT * REPLACE ("the colour"::{kind} AS "the colour") FROM t"""
    assert str(connection.sql(query).types[2]).startswith("ENUM")
    for relation in (
        connection.sql(f"SELECT id, unnest(fraud(e)) FROM ({query}) e"),
        distributed.decide(fast, connection.sql(query)),
    ):
        assert_equal_decisions(table_of(relation), fast.decide(rows))
    found = connection.sql("SELECT fraud(NULL, NULL, NULL, NULL, NULL, NULL).score").fetchall()
    missing = pa.table({name: pa.nulls(1) for name in fast.ensemble.schema.names})
    assert found == [(fast.decide(missing).score[0],)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("fraud(1, 2)", r"fraud takes 6 columns \('a', 'the colour', .*\), or one row .* got 2"),
        ("fraud(DATE '2020-01-01', 'x', true, 'x', 7, 1)", "column 'a' holds .*takes numbers"),
        ("fraud(TIMESTAMP '2020-01-01', 'x', true, 'x', 7, 1)", "column 'a' holds .*takes numbers"),
        ("fraud([1], 'x', true, 'x', 7, 1)", "column 'a' holds .*takes numbers"),
        ("fraud('text', 'x', true, 'x', 7, 1)", "column 'a' holds String, but the model takes num"),
        ("fraud({'a': 1, 'The Colour': 2})", "no column 'the colour', .*did you mean 'The Colour'"),
    ],
)
def test_what_a_function_refuses_is_said_in_one_line(connection, fitted, call, message):
    distributed.register(fitted[1], connection, "fraud")
    with pytest.raises(duckdb.Error, match=message):
        connection.sql(f"SELECT {call}").fetchall()


def test_wrong_options_of_register(connection, fitted):
    fast = fitted[1]
    for changed, message in (
        (
            {"session": "t"},
            r"a SparkSession or a DuckDB connection was expected; got builtins\.str",
        ),
        ({"classifier": None}, r"a qwyc\.Classifier, .* was expected; got NoneType"),
        ({"name": ""}, "name must be a name"),
        ({"output": "proba"}, "output must be one of label"),
        ({"columns": "a"}, "columns must be a list"),
        ({"name": "sum"}, "has a function 'sum' already"),
    ):
        given = {"session": connection, "classifier": fast, "name": "fraud", **changed}
        with pytest.raises(qwyc.OptionError, match=message):
            distributed.register(**given)
    with pytest.raises(qwyc.InputError, match="no columns"):
        distributed.register(fast, connection, "fraud", columns=["a"])


def test_a_function_outlives_the_connection_that_made_it(connection, rows, fitted):
    fast = fitted[1]
    other = connection.cursor()
    distributed.register(fast, other, "outliving")
    other.close()
    del other
    gc.collect()
    found = connection.sql("SELECT id, unnest(outliving(t)) FROM t")
    assert_equal_decisions(table_of(found), fast.decide(rows))


def test_many_threads_at_once(connection, rows, fitted):
    fast = fitted[1]
    distributed.register(fast, connection, "fraud", output="score")
    want, together = fast.decide(rows).score.tolist(), threading.Barrier(6)

    def ask(_):
        mine = connection.cursor()
        together.wait()
        return [score for (score,) in mine.execute("SELECT fraud(t) FROM t ORDER BY id").fetchall()]

    with ThreadPoolExecutor(6) as pool:
        for found in pool.map(ask, range(6)):
            assert found == want


def test_code_sees_pandas_frames(connection, rows):
    frame = rows.to_pandas().fillna({"a": 0})
    models = [lambda X, t=t: np.asarray(X["a"], dtype=float) * t for t in range(1, 5)]
    fast = qwyc.optimize(models, frame, alpha=0.05, progress=False)
    filled = connection.sql("SELECT * REPLACE (coalesce(a, 0) AS a) FROM t")
    decided = distributed.decide(fast, filled, keep=["id"])
    assert_equal_decisions(table_of(decided), fast.decide(frame))
    distributed.register(fast, connection, "code", columns=["a"], output="label")
    found = connection.sql("SELECT code(coalesce(a, 0)) FROM t ORDER BY id").fetchall()
    assert [label for (label,) in found] == fast.decide(frame[["a"]]).label.tolist()


# ---- odd values, lineage, newer files -----------------------------------------------------------


@pytest.fixture
def odd_rows(rows):
    """The rows, two of which have a category that the model does not know."""
    values = rows["the colour"].to_pylist()
    values[3] = values[5000] = "ultraviolet"
    at = rows.column_names.index("the colour")
    return rows.set_column(at, "the colour", pa.array(values, rows["the colour"].type))


def test_rows_with_odd_values_are_flagged(connection, odd_rows, fitted):
    fast = fitted[1]
    connection.register("odd", odd_rows)
    data = connection.sql("SELECT * FROM odd")
    found = table_of(distributed.decide(fast, data, unseen="flag")).sort_by("id")
    want = fast.decide(odd_rows, unseen="flag")
    assert [i for i, reason in enumerate(found["reason"].to_pylist()) if reason] == [3, 5000]
    assert found["reason"].to_pylist() == want.reason.tolist()
    assert found["label"].to_pylist() == want.label.tolist()
    distributed.register(fast, connection, "flagged", unseen="flag")
    called = connection.sql(
        f"SELECT id, unnest(flagged({arguments(fast)})) FROM odd WHERE id % 2 = 1"
    )
    assert table_of(called).sort_by("id")["reason"].null_count == ROWS // 2 - 1
    missing = table_of(distributed.decide(fast, data, unseen="missing")).sort_by("id")
    assert missing["label"].to_pylist() == fast.predict(odd_rows, unseen="missing").tolist()
    assert qwyc.verify(fast, data, unseen="flag").left_out == 2
    with pytest.raises(Exception, match="ultraviolet"):
        table_of(distributed.decide(fast, data))


def test_the_classifier_that_decided_is_named(connection, fitted):
    fast = fitted[1]
    found = table_of(distributed.decide(fast, connection.table("t"), keep=["id"], digest=True))
    assert set(found["classifier"].to_pylist()) == {distributed.digest(fast)}
    distributed.register(fast, connection, "named", output="classifier", digest=True)
    called = connection.sql(f"SELECT DISTINCT named({arguments(fast)}) FROM t").fetchall()
    assert called == [(distributed.digest(fast),)]


def test_a_newer_file_takes_over(connection, fitted, tmp_path):
    fast, path = fitted[1], tmp_path / "fast.qwyc"
    fast.save(path)
    watched = distributed.Watched(path, every=0)
    distributed.register(watched, connection, "watched", output="classifier", digest=True)
    query = f"SELECT DISTINCT watched({arguments(fast)}) FROM t"
    assert connection.sql(query).fetchall() == [(distributed.digest(fast),)]
    never = fast.full()
    never.save(path)
    assert connection.sql(query).fetchall() == [(distributed.digest(never),)]


def test_a_wrong_type_is_found_before_any_row_is_read(connection, fitted):
    fast = fitted[1]
    number = next(name for name in fast.ensemble.schema.names if name not in TEXT)
    data = connection.sql(f"SELECT * REPLACE (DATE '2020-01-01' AS \"{number}\") FROM t")
    with pytest.raises(qwyc.InputError, match=number):
        distributed.decide(fast, data)


def test_a_null_row_has_no_decision(connection, fitted):
    fast = fitted[1]
    distributed.register(fast, connection, "maybe")
    distributed.register(fast, connection, "maybe_label", output="label")
    query = (
        "SELECT maybe(r), maybe_label(r) FROM (SELECT CASE WHEN id = 1 THEN NULL ELSE t END AS r"
    )
    (first, label), (second, none) = connection.sql(
        f"{query} FROM t ORDER BY id LIMIT 2)"
    ).fetchall()
    assert first["label"] == label
    assert (second, none) == (None, None)
