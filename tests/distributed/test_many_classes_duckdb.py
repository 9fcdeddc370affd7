"""Models of three classes over relations of DuckDB and in SQL: row for row what `decide` says."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import qwyc
from qwyc import distributed
from qwyc.distributed.adding import check_case
from qwyc.distributed.shipping import pack
from qwyc.distributed.spark_tasks import Count, Decide, Function
from qwyc.distributed.watching import shape_of
from qwyc.distributed.work import Counting, Deciding
from qwyc.model.ensemble import Ensemble
from qwyc.policy.counts import Sums
from three_classes import (
    ADDED,
    ODD_LABELS,
    ROUNDS,
    decision_columns,
    fitted_model,
    forest_of,
    rows_as_text,
)

ROWS = 5000


@pytest.fixture(scope="module")
def fitted():
    return fitted_model()


@pytest.fixture(scope="module")
def fast(fitted):
    return fitted[1]


@pytest.fixture(scope="module")
def rows():
    return pa.Table.from_pandas(rows_as_text(ROWS), preserve_index=False)


@pytest.fixture
def connection(rows):
    tells = hasattr(duckdb.sql("SELECT 1"), "_con")  # DuckDB 2.0 and later
    made = duckdb.connect() if tells else duckdb.default_connection()
    made.execute("CREATE OR REPLACE TABLE t AS SELECT * FROM rows")
    made.execute("SET threads = 2")
    return made


def in_order(relation):
    return relation.to_arrow_table().sort_by("id")


def assert_equal_decisions(table, want, labels, prefix=""):
    assert table["id"].to_pylist() == list(range(len(want)))
    for name, values in decision_columns(want, labels).items():
        assert table[prefix + name].to_pylist() == values, name


def test_a_relation_gets_a_score_for_each_class(connection, rows, fast):
    decided = distributed.decide(fast, connection.table("t"))
    assert decided.columns == [*rows.column_names, *ADDED]
    kinds = [str(kind) for kind in decided.types[-6:]]
    assert kinds == ["BIGINT", "INTEGER", "DOUBLE", "DOUBLE", "DOUBLE", "BOOLEAN"]
    want = fast.decide(rows)
    assert set(want.label) == {0, 1, 2}
    assert want.complete.mean() < 1
    assert len(set(want.steps)) > 1
    assert want.steps.mean() < 0.8 * ROUNDS
    assert_equal_decisions(in_order(decided), want, range(3))
    some = distributed.decide(fast, connection.table("t"), keep=["id"], prefix="q_", digest=True)
    assert some.columns == ["id", *("q_" + name for name in ADDED), "q_classifier"]
    assert_equal_decisions(in_order(some), want, range(3), "q_")
    assert set(in_order(some)["q_classifier"].to_pylist()) == {distributed.digest(fast)}
    taken = connection.sql("SELECT *, 1 AS SCORE_1 FROM t")
    with pytest.raises(qwyc.InputError, match="column 'SCORE_1' already; pass prefix"):
        distributed.decide(fast, taken)


def test_both_ways_to_decide_a_chunk_agree(connection, rows, fast, monkeypatch):
    monkeypatch.setattr(Ensemble, "decide_in_order", lambda self, table, runner: None)
    decided = distributed.decide(fast, connection.table("t"), keep=["id"])
    assert_equal_decisions(in_order(decided), fast.decide(rows), range(3))


def test_functions_of_sql(connection, rows, fast):
    distributed.register(fast, connection, "kind", output="label")
    distributed.register(fast, connection, "score_of_2", output="score_2")
    distributed.register(fast, connection, "whole", digest=True)
    want = fast.decide(rows)
    names = ", ".join(f'"{name}"' for name in fast.ensemble.schema.names)
    query = f"SELECT id, kind({names}) AS label, score_of_2(t) AS score, whole(t).score_1 AS one"
    found = in_order(connection.sql(query + " FROM t"))
    assert found["label"].to_pylist() == want.label.tolist()
    assert found["score"].to_pylist() == want.score[:, 2].tolist()
    assert found["one"].to_pylist() == want.score[:, 1].tolist()
    whole = in_order(connection.sql("SELECT id, unnest(whole(t)) FROM t"))
    assert whole.column_names == ["id", *ADDED, "classifier"]
    assert_equal_decisions(whole, want, range(3))
    with pytest.raises(qwyc.OptionError, match="output must be one of label, steps, score_0"):
        distributed.register(fast, connection, "other", output="score")


def test_counts_are_those_of_rows_in_memory(connection, rows, fast):
    data = connection.table("t")
    for options in ({}, {"alpha": 0.001}, {"alpha": 0.05, "by_class": {0: 0.1}}):
        there, here = (qwyc.verify(fast, X, **options) for X in (data, rows))
        assert there == here
        assert there.rows == ROWS
    for options in ({}, {"by_class": {0: 0.05, 1: 0.05, 2: 0.05}}):
        there, here = (qwyc.recertify(fast, X, **options) for X in (data, rows))
        assert there.certificate.rows == ROWS
        # The digest of rows is known in memory only.
        digest = here.certificate.recertified[:8]
        assert str(there) == str(here).replace(f", digest {digest}", "")
        np.testing.assert_array_equal(there.policy.lead, here.policy.lead)
        seen, expected = there.choices.evidence.counts, here.choices.evidence.counts
        assert seen.by_class == expected.by_class
        np.testing.assert_array_equal(seen.differences, expected.differences)
        np.testing.assert_array_equal(seen.exits, expected.exits)


def test_optimize_draws_its_sample_itself(connection, fitted):
    model = fitted[0]
    made = qwyc.optimize(model, connection.table("t"), alpha=0.05, max_rows=3000, progress=False)
    assert made.certificate.rows + made.certificate.fit_rows == 3000
    assert len(made.certificate.classes) == 3
    assert len(distributed.sample(connection.table("t"), 100)) == 100


def test_flagged_rows_have_no_decision(connection, rows, fast):
    odd = "SELECT * REPLACE (CASE WHEN id = 7 THEN 'odd' ELSE a::VARCHAR END AS a) FROM t"
    data = connection.sql(odd)
    want = fast.decide(data.to_arrow_table().sort_by("id"), unseen="flag")
    known = want.decided  # a number as text is refused, a missing one is not
    assert 0 < known.sum() < ROWS / 2
    found = in_order(distributed.decide(fast, data, keep=["id"], unseen="flag"))
    assert found.column_names == ["id", *ADDED, "reason"]
    for name in ADDED:
        assert found[name].is_null().to_pylist() == (~known).tolist()
    assert found["reason"].to_pylist() == want.reason.tolist()
    assert "odd" in found["reason"][7].as_py()
    for k in range(3):
        score = found[f"score_{k}"].to_numpy()
        assert score[known].tolist() == want.score[known, k].tolist()
    assert qwyc.verify(fast, data, unseen="flag").left_out == (~known).sum()


def test_a_watched_file_is_followed(connection, rows, fast, tmp_path):
    path = tmp_path / "w.qwyc"
    fast.save(path)
    watched = distributed.Watched(path, every=0)
    decided = distributed.decide(watched, connection.table("t"), keep=["id"], digest=True)
    first = in_order(decided)
    assert set(first["classifier"].to_pylist()) == {distributed.digest(fast)}
    fast.full().save(path)
    found = in_order(decided)
    assert set(found["classifier"].to_pylist()) == {distributed.digest(fast.full())}
    assert_equal_decisions(found, fast.full().decide(rows), range(3))
    assert set(found["steps"].to_pylist()) == {ROUNDS} != set(first["steps"].to_pylist())
    assert shape_of(fast).endswith("[0, 1, 2], a score for each")


def test_labels_may_be_any_text():
    fast, new = forest_of(ODD_LABELS)
    connection = duckdb.default_connection()
    data = connection.sql("SELECT * FROM new")
    decided = distributed.decide(fast, data, keep=["id"])
    assert decided.columns[3:6] == [f"score_{label}" for label in ODD_LABELS]
    assert_equal_decisions(in_order(decided), fast.decide(new[["u", "v", "w"]]), ODD_LABELS)
    distributed.register(fast, connection, "odd_labels")
    query = """SELECT id, odd_labels(u, v, w)."score_the ""high"" one" AS high FROM new"""
    high = in_order(connection.sql(query))["high"].to_pylist()
    assert high == fast.decide(new[["u", "v", "w"]]).score[:, 2].tolist()


def test_labels_that_differ_in_case_only():
    fast, new = forest_of(["A", "a", "b"])
    connection = duckdb.default_connection()
    same = "columns 'score_A' and 'score_a', which this engine takes for one"
    with pytest.raises(qwyc.OptionError, match=same):
        distributed.decide(fast, connection.sql("SELECT * FROM new"))
    with pytest.raises(qwyc.OptionError, match=same):
        distributed.register(fast, connection, "cases")
    distributed.register(fast, connection, "cases", output="label")
    found = in_order(connection.sql("SELECT id, cases(u, v, w) AS label FROM new"))
    assert found["label"].to_pylist() == fast.predict(new[["u", "v", "w"]]).tolist()
    check_case(["score_a", "score_b"])


# ---- what workers of other engines run, without the engines ----------------------------------


def as_sent(classifier, whole_path=False):
    """A classifier as it arrives at a worker."""
    content = pack(classifier, whole_path=whole_path).content
    return lambda: distributed.shipping.unpack(content)


def test_tasks_of_spark(rows, fast):
    features, want = tuple(fast.ensemble.schema.names), fast.decide(rows)
    work = Deciding(features, ("id",), ADDED, ADDED)
    numbered = rows.select(work.needed).rename_columns([f"c{i}" for i in range(len(work.needed))])
    batches = numbered.to_batches(max_chunksize=700)
    table = pa.Table.from_batches(Decide(as_sent(fast), work)(iter(batches)))
    assert table.column_names == ["id", *ADDED]
    assert_equal_decisions(table, want, range(3))
    arrays = [tuple(batch.columns) for batch in rows.select(list(features)).to_batches()]
    for output in (None, "score_1"):
        made = Function(as_sent(fast), work, output).over_arrow()(iter(arrays))
        whole = pa.concat_arrays(list(made))
        one = whole.field("score_1") if output is None else whole
        assert one.to_pylist() == want.score[:, 1].tolist()
    frames = [batch.to_pandas() for batch in rows.to_batches()]
    for frame in Function(as_sent(fast), Deciding(features, (), ADDED, ADDED)).over_pandas()(
        iter(frames)
    ):
        assert list(frame.columns) == list(ADDED)
        assert frame["score_2"].tolist() == want.score[:, 2].tolist()


def test_sums_of_parts_add_up(rows, fast):
    features = tuple(fast.ensemble.schema.names)
    target, chosen = fast.policy.target, rows.select(list(features))
    parts, whole = chosen.to_batches(max_chunksize=900), chosen.to_batches()
    assert len(parts) == 6
    assert len(whole) == 1
    for whole_path in (False, True):
        work = Counting(features, whole_path)
        (sums,) = Count(as_sent(fast, whole_path), work)(iter(parts))
        vector = sums["value"].to_numpy()
        assert len(vector) == work.size(fast)
        found = Sums.from_vector(vector, target, fast.policy.n_models)
        assert found.rows == ROWS
        (alone,) = Count(as_sent(fast, whole_path), work)(iter(whole))
        expected = Sums.from_vector(alone["value"].to_numpy(), target, fast.policy.n_models)
        np.testing.assert_array_equal(found.differences, expected.differences)
        np.testing.assert_array_equal(found.exits, expected.exits)
        np.testing.assert_array_equal(found.by_class, expected.by_class)
