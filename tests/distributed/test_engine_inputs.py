"""Spark, Ray and Dask: wrong types are refused by the driver, errors of workers are one line, sparse and
skewed data, lineage and watched files."""

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_distributed import (  # noqa: F401
    assert_equal_decisions,
    engine,
    fitted,
    rows,
    rows_as_engines_hold_them,
)

import qwyc
from qwyc import distributed
from qwyc.policy.columns import COLUMNS

pytestmark = pytest.mark.slow


def one_line(error):
    return "\n" not in str(error.value)


def typed(engine, frame):  # noqa: F811
    """Rows whose types the engine knows: Ray keeps pandas blocks as they are."""
    import pyarrow as pa

    if engine.title == "Ray Data":
        return engine.ray.data.from_arrow(pa.Table.from_pandas(frame, preserve_index=False))
    return engine.load([frame])


def test_wrong_types_are_refused_before_anything_runs(engine, rows, fitted):  # noqa: F811
    fast, some = fitted[1], rows[:50]
    dates = pd.Series(pd.to_datetime(["2024-01-01"] * 50), index=some.index)
    for wrong in (
        some.assign(a="text"),
        some.assign(count=dates),
    ):
        data = typed(engine, wrong)
        with pytest.raises(qwyc.InputError, match=r"holds .*the model takes numbers") as error:
            distributed.decide(fast, data)
        assert one_line(error)
        with pytest.raises(qwyc.InputError, match="the model takes numbers"):
            qwyc.verify(fast, data)
    if engine.title != "Dask":
        for value in ([1.0, 2.0], {"x": 1.0}):
            data = typed(engine, some.assign(a=[value] * 50))
            with pytest.raises(qwyc.InputError, match=r"column 'a' holds .*one number") as error:
                distributed.decide(fast, data)
            assert one_line(error)


def test_an_error_of_a_worker_is_one_line(engine, rows, fitted):  # noqa: F811
    import sklearn.ensemble

    from trained import make_frame

    frame, y = make_frame(rows=1500)
    numbers = frame[["a", "count"]].fillna(0)
    forest = sklearn.ensemble.RandomForestClassifier(20, max_depth=3).fit(numbers, y)
    fast = qwyc.optimize(forest, numbers, alpha=0.05, progress=False)
    spoilt = rows[["id", "a", "count"]].fillna(0)
    spoilt.loc[1500, "a"] = np.inf
    data = engine.load([spoilt])
    for ask in (qwyc.verify, qwyc.recertify):
        with pytest.raises(qwyc.InputError, match="infinity, or a number past float32") as error:
            ask(fast, data)
        assert one_line(error)
        assert error.value.__cause__ is None
    with pytest.raises(Exception, match="infinity, or a number past float32"):
        engine.collect(distributed.decide(fast, data))


def test_text_that_is_missing_for_a_whole_batch(engine, rows, fitted):  # noqa: F811
    sparse = pd.concat([rows] * 2, ignore_index=True).assign(id=np.arange(2 * len(rows)))
    sparse["the colour"] = sparse["the colour"].where(sparse.index < 400, None)  # sorted by it
    want = fitted[1].decide(sparse)
    data = engine.load([sparse[:3], sparse[3:5000], sparse[:0], sparse[5000:]])  # skewed
    assert_equal_decisions(engine.collect(distributed.decide(fitted[1], data)), want)
    there, here = (qwyc.verify(fitted[1], X, repeats="independent") for X in (data, sparse))
    assert there == here


def test_rows_name_the_classifier_that_decided(engine, rows, fitted, tmp_path):  # noqa: F811
    fast = fitted[1]
    data = engine.load([rows[:700], rows[:0], rows[700:]])
    decided = engine.collect(distributed.decide(fast, data, keep=["id"], prefix="q_", digest=True))
    assert list(decided.columns) == ["id", *("q_" + n for n in COLUMNS), "q_classifier"]
    assert set(decided["q_classifier"]) == {distributed.digest(fast)}
    fast.save(tmp_path / "f.qwyc")
    assert distributed.digest(qwyc.load(tmp_path / "f.qwyc")) == distributed.digest(fast)
    assert distributed.digest(fast.at(alpha=0.07)) != distributed.digest(fast)
    with pytest.raises(qwyc.OptionError, match="digest must be True or False"):
        distributed.decide(fast, data, digest="yes")


def test_a_watched_file_is_followed(engine, rows, fitted, tmp_path):  # noqa: F811
    path = tmp_path / "watched.qwyc"
    first, second = fitted[1], fitted[1].full()
    first.save(path)
    data = engine.load([rows[:1000], rows[1000:]])
    decided = distributed.decide(distributed.Watched(path, every=0), data, keep=["id"], digest=True)
    assert set(engine.collect(decided)["classifier"]) == {distributed.digest(first)}
    second.save(path)  # the same lazy data set, computed again
    found = engine.collect(decided)
    assert set(found["classifier"]) == {distributed.digest(second)}
    assert_equal_decisions(found, second.decide(rows))
    path.write_bytes(b"no classifier")
    assert set(engine.collect(decided)["classifier"]) <= {
        distributed.digest(first),  # by a process that had not seen the second
        distributed.digest(second),
    }


def test_files_are_watched_in_one_process(fitted, tmp_path, monkeypatch):  # noqa: F811
    from qwyc.distributed import watching

    path = tmp_path / "w.qwyc"
    fast = fitted[1]
    fast.save(path)
    watched = distributed.Watched(path, every=5)
    watch = watching.watch_of(watched, fast)
    now = [0.0]
    monkeypatch.setattr(watching.time, "monotonic", lambda: now[0])
    first = watching.newest(watch)
    fast.full().save(path)
    assert watching.newest(watch) is first  # not looked at yet
    now[0] = 5.0
    second = watching.newest(watch)
    assert distributed.digest(second) == distributed.digest(fast.full())
    now[0] = 10.0
    assert watching.newest(watch) is second  # the same file is not loaded again
    for spoil in (lambda: path.write_bytes(b"no"), lambda: os.unlink(path)):
        spoil()
        now[0] += 5
        with pytest.warns(UserWarning, match="the classifier before it stays"):
            assert watching.newest(watch) is second
    other = qwyc.optimize(
        [lambda X: np.asarray(X["a"])],
        pd.DataFrame({"a": [1.0, -1.0] * 300}),
        alpha=0.5,
        progress=False,
    )
    with pytest.raises(qwyc.OptionError, match="cannot be watched"):
        watching.watch_of(watched, other)
    for wrong in ({"path": 3}, {"path": "x", "every": -1}):
        with pytest.raises(qwyc.OptionError):
            distributed.Watched(**wrong)
    with pytest.raises(qwyc.QwycError), warnings.catch_warnings():
        distributed.decide(distributed.Watched(Path("nothing.qwyc")), None)


def test_odd_values_are_missing_or_flagged(engine, rows, fitted):  # noqa: F811
    fast = fitted[1]
    odd = rows[:600].assign(a=rows["a"][:600].astype(object).where(rows["id"][:600] != 7, "odd"))
    odd["a"] = odd["a"].map(lambda value: None if pd.isna(value) else str(value))  # text throughout
    data = engine.load([odd[:300], odd[300:]])
    for unseen in ("missing", "flag"):
        want = fast.decide(odd, unseen=unseen)
        found = engine.collect(distributed.decide(fast, data, keep=["id"], unseen=unseen))
        found = found.sort_values("id").reset_index(drop=True)
        known = np.ones(600, bool) if unseen == "missing" else want.decided
        assert found["label"][known].astype(int).tolist() == want.label[known].tolist()
        assert found["score"][known].tolist() == want.score[known].tolist()
        if unseen == "flag":
            assert found["reason"].notna().tolist() == (~want.decided).tolist()
            assert found["label"].isna().tolist() == (~want.decided).tolist()
    with pytest.raises(qwyc.OptionError, match="unseen"):
        distributed.decide(fast, data, unseen="ignore")
