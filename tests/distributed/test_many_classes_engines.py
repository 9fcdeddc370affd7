"""Spark, Ray and Dask with two workers, for models of three classes: row for row what one machine says."""

import numpy as np
import pandas as pd
import pytest
from test_distributed import engine  # noqa: F401

import qwyc
from qwyc import distributed
from three_classes import ADDED, ODD_LABELS, decision_columns, fitted_model, forest_of, rows_as_text

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def fitted():
    return fitted_model()


@pytest.fixture(scope="module")
def rows():
    return rows_as_text(3000)


@pytest.fixture(scope="module")
def data(engine, rows):  # noqa: F811
    """Three parts, the second of them empty."""
    return engine.load([rows[:1000], rows[:0], rows[1000:]])


def assert_equal_decisions(decided, want, labels, prefix=""):
    decided = decided.sort_values("id")
    assert decided["id"].tolist() == list(range(len(want)))
    for name, values in decision_columns(want, labels).items():
        assert decided[prefix + name].tolist() == values, name


def test_every_row_is_decided_as_on_one_machine(engine, data, rows, fitted):  # noqa: F811
    fast = fitted[1]
    lazy = distributed.decide(fast, data)
    decided, want = engine.collect(lazy), fast.decide(rows)
    assert set(want.label) == {0, 1, 2}
    assert 0 < want.complete.mean() < 1
    assert list(decided.columns) == [*rows.columns, *ADDED]
    assert_equal_decisions(decided, want, range(3))
    kinds = [decided[name].to_numpy().dtype for name in ADDED]
    assert kinds == [np.int64, np.int32, float, float, float, bool]
    if engine.title == "Dask":
        assert lazy.dtypes.equals(decided.dtypes)
    some = distributed.decide(fast, data, keep=["id"], prefix="q_", digest=True)
    decided = engine.collect(some)
    assert list(decided.columns) == ["id", *("q_" + name for name in ADDED), "q_classifier"]
    assert_equal_decisions(decided, want, range(3), "q_")
    assert set(decided["q_classifier"]) == {distributed.digest(fast)}
    with pytest.raises(qwyc.InputError, match="already; pass prefix"):
        distributed.decide(fast, lazy)


def test_counting_as_on_one_machine(data, rows, fitted):
    fast = fitted[1]
    for options in ({}, {"alpha": 0.001}, {"alpha": 0.05, "by_class": {0: 0.1}}):
        there = qwyc.verify(fast, data, **options)
        assert there == qwyc.verify(fast, rows, **options)
        assert there.rows == len(rows)
    for options in ({}, {"by_class": {0: 0.05, 1: 0.05, 2: 0.05}}):
        there, here = (qwyc.recertify(fast, X, **options) for X in (data, rows))
        assert there.certificate.rows == len(rows)
        # The digest of rows is known in memory only.
        digest = here.certificate.recertified[:8]
        assert str(there) == str(here).replace(f", digest {digest}", "")
        np.testing.assert_array_equal(there.policy.lead, here.policy.lead)
        seen, expected = there.choices.evidence.counts, here.choices.evidence.counts
        np.testing.assert_array_equal(seen.differences, expected.differences)


def test_optimize_draws_its_sample_itself(data, fitted):
    made = qwyc.optimize(fitted[0], data, alpha=0.05, max_rows=2000, progress=False)
    assert made.certificate.rows + made.certificate.fit_rows == 2000
    assert [loss.name for loss in made.certificate.classes] == [f"class {k}" for k in range(3)]


def test_odd_values_are_flagged(engine, rows, fitted):  # noqa: F811
    fast, odd = fitted[1], rows[:600].copy()
    odd["a"] = odd["a"].map(lambda value: None if pd.isna(value) else str(value))
    data = engine.load([odd[:300], odd[300:]])
    want = fast.decide(odd, unseen="flag")
    known = want.decided
    assert 0 < known.sum() < 300
    found = engine.collect(distributed.decide(fast, data, keep=["id"], unseen="flag"))
    assert list(found.columns) == ["id", *ADDED, "reason"]
    found = found.sort_values("id").reset_index(drop=True)
    assert found["label"].isna().tolist() == found["reason"].notna().tolist() == (~known).tolist()
    assert found["label"][known].astype(int).tolist() == want.label[known].tolist()
    for k in range(3):
        assert found[f"score_{k}"][known].tolist() == want.score[known, k].tolist()
        assert found[f"score_{k}"][~known].isna().all()


def test_a_watched_file_is_followed(engine, data, rows, fitted, tmp_path):  # noqa: F811
    path = tmp_path / "watched.qwyc"
    first, second = fitted[1], fitted[1].full()
    first.save(path)
    decided = distributed.decide(distributed.Watched(path, every=0), data, keep=["id"], digest=True)
    assert set(engine.collect(decided)["classifier"]) == {distributed.digest(first)}
    second.save(path)
    found = engine.collect(decided)
    assert set(found["classifier"]) == {distributed.digest(second)}
    assert_equal_decisions(found, second.decide(rows), range(3))


def test_labels_may_be_any_text(engine, tmp_path):  # noqa: F811
    fast, new = forest_of(ODD_LABELS)
    data = engine.load([new[:300], new[300:]])
    decided = distributed.decide(fast, data, keep=["id"])
    assert_equal_decisions(engine.collect(decided), fast.decide(new[["u", "v", "w"]]), ODD_LABELS)
    engine.write(decided, tmp_path / "out")
    assert set(pd.read_parquet(tmp_path / "out")["label"]) == set(ODD_LABELS)


def test_columns_and_functions_of_spark(engine, data, rows, fitted):  # noqa: F811
    if engine.title != "Spark":
        with pytest.raises(qwyc.OptionError, match="a SparkSession or a DuckDB connection"):
            distributed.register(fitted[1], data, "kind")
        return
    fast, want = fitted[1], fitted[1].decide(rows)
    whole = data.select("id", distributed.column(fast, output=None).alias("q")).select("id", "q.*")
    assert_equal_decisions(whole.toPandas(), want, range(3))
    one = data.select("id", distributed.column(fast, output="score_1").alias("one")).toPandas()
    assert one.sort_values("id")["one"].tolist() == want.score[:, 1].tolist()
    distributed.register(fast, engine.session, "kind", output="label")
    data.createOrReplaceTempView("three_classes")
    found = engine.session.sql("select id, kind(struct(*)) as label from three_classes").toPandas()
    assert found.sort_values("id")["label"].tolist() == want.label.tolist()
