"""Spark, Ray and Dask with two workers: row for row what one machine says, whatever happens."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn.ensemble
import xgboost
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import qwyc
from engines import ENGINES
from qwyc import distributed
from qwyc.policy.columns import COLUMNS
from trained import make_frame

pytestmark = pytest.mark.slow
TEXT = ["the colour", "constant"]


@pytest.fixture(scope="module", params=ENGINES)
def engine(request):
    tests = Path(__file__).parents[1]  # workers import what tests give them from here
    places = [str(tests / "support"), str(tests.parent), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(places)
    engine = ENGINES[request.param]()
    yield engine
    engine.stop()


@pytest.fixture(scope="module")
def fitted():
    """A model with categories and missing values, and a classifier made from it."""
    frame, y = make_frame(rows=6000)
    model = xgboost.XGBClassifier(n_estimators=40, max_depth=4, enable_categorical=True)
    model.fit(frame[:2000], y[:2000])
    return model, qwyc.optimize(model, frame[2000:], alpha=0.02, progress=False)


def rows_as_engines_hold_them(rows=3000, seed=5):
    """Text as text and a number for each row; no categories, which only pandas has."""
    frame, _ = make_frame(seed=seed, rows=rows)
    for name in TEXT:
        frame[name] = frame[name].astype(object).where(frame[name].notna(), None)
    frame["size"] = frame["size"].astype(int)
    frame.insert(0, "id", np.arange(rows))
    return frame.assign(note="kept as it is")


@pytest.fixture(scope="module")
def rows():
    return rows_as_engines_hold_them()


@pytest.fixture(scope="module")
def data(engine, rows):
    """Three parts, the second of them empty."""
    return engine.load([rows[:1000], rows[:0], rows[1000:]])


def assert_equal_decisions(decided, want, ids="id", prefix=""):
    decided = decided.sort_values(ids)
    assert decided[ids].tolist() == list(range(len(want)))  # nothing lost, nothing doubled
    for name in COLUMNS:
        got = decided[prefix + name].to_numpy()
        assert got.tolist() == getattr(want, name).tolist(), name


def test_every_row_is_decided_as_on_one_machine(engine, data, rows, fitted):
    fast = fitted[1]
    decided = engine.collect(distributed.decide(fast, data))
    assert_equal_decisions(decided, fast.decide(rows))
    assert list(decided.columns) == [*rows.columns, *COLUMNS]
    assert set(decided["note"]) == {"kept as it is"}
    kinds = {name: decided[name].to_numpy().dtype for name in COLUMNS}
    assert kinds == {"label": np.int64, "steps": np.int32, "score": float, "complete": bool}
    assert 0 < decided["steps"].mean() < 40


def test_only_what_is_kept_comes_back(engine, data, rows, fitted):
    some = distributed.decide(fitted[1], data, keep=["id"], prefix="q_")
    decided = engine.collect(some)
    assert list(decided.columns) == ["id", *("q_" + name for name in COLUMNS)]
    assert_equal_decisions(decided, fitted[1].decide(rows), prefix="q_")


def test_verification_counts_as_on_one_machine(data, rows, fitted):
    for alpha in (None, 0.001, {"negative": 0.02, "positive": 0.01}):
        there = qwyc.verify(fitted[1], data, alpha=alpha)
        assert there == qwyc.verify(fitted[1], rows, alpha=alpha)


def test_recertifying_counts_as_on_one_machine(data, rows, fitted):
    for alpha in (None, 0.01):
        there = qwyc.recertify(fitted[1], data, alpha=alpha)
        here = qwyc.recertify(fitted[1], rows, alpha=alpha)
        assert there.certificate.rows == len(rows)
        # The digest of rows is known in memory only.
        digest = here.certificate.recertified[:8]
        assert str(there) == str(here).replace(f", digest {digest}", "")
        np.testing.assert_array_equal(there.policy.upper, here.policy.upper)
        seen, expected = there.choices.evidence.counts, here.choices.evidence.counts
        np.testing.assert_array_equal(seen.differences, expected.differences)
        np.testing.assert_allclose(seen.mean_cost, expected.mean_cost)


def test_a_sample_is_drawn_without_repetition(data, rows):
    first, again = (distributed.sample(data, 500, seed=3) for _ in range(2))
    other = distributed.sample(data, 500, seed=4)
    assert len(first) == len(set(first["id"])) == 500
    assert first["id"].tolist() == again["id"].tolist() != other["id"].tolist()
    assert (first["id"] < 1000).sum() == pytest.approx(500 / 3, abs=60)  # from all parts alike
    drawn = first.set_index("id")["the colour"].fillna("none")
    assert drawn.tolist() == rows["the colour"][drawn.index].fillna("none").tolist()
    assert sorted(distributed.sample(data, 10**6)["id"]) == list(range(len(rows)))


def test_optimize_draws_its_sample_itself(data, fitted):
    model = fitted[0]
    fast = qwyc.optimize(model, data, alpha=0.03, max_rows=2000, progress=False)
    assert fast.certificate.rows + fast.certificate.fit_rows == 2000
    assert fast.certificate.how == "held-out"
    whole = qwyc.optimize(model.get_booster(), data, alpha=0.03, progress=False)
    assert whole.certificate.rows + whole.certificate.fit_rows == 3000


def test_what_is_wrong_is_said_before_anything_runs(engine, data, fitted):
    fast = fitted[1]
    with pytest.raises(qwyc.InputError, match=r"no column 'the colour'.*trained on"):
        distributed.decide(fast, engine.drop(data, "the colour"))
    with pytest.raises(qwyc.InputError, match=r"no column 'the colour'"):
        qwyc.verify(fast, engine.drop(data, "the colour"))
    with pytest.raises(qwyc.InputError, match="keep: the data has no column 'key'"):
        distributed.decide(fast, data, keep=["key"])
    with pytest.raises(qwyc.InputError, match="column 'label' already; pass prefix"):
        distributed.decide(fast, distributed.decide(fast, data))
    for wrong, message in (
        ({"keep": "id"}, "keep must be a list of column names; got 'id'"),
        ({"keep": [None]}, "keep must be a list of column names; it has None"),
        ({"keep": ["id", "id"]}, "keep names a column twice"),
        ({"prefix": 3}, "prefix must be text"),
    ):
        with pytest.raises(qwyc.OptionError, match=message):
            distributed.decide(fast, data, **wrong)
    with pytest.raises(qwyc.ArtifactError, match=r"cannot read none\.qwyc"):
        distributed.decide("none.qwyc", data)
    with pytest.raises(qwyc.OptionError, match="seed must be"):
        distributed.sample(data, 5, seed=-1)
    with pytest.raises(qwyc.OptionError, match="max_rows must be"):
        qwyc.optimize(fitted[0], data, alpha=0.1, max_rows=0)
    with pytest.raises(qwyc.OptionError, match="pass a sample"):
        qwyc.verify(fast, data, model=fitted[0])
    with pytest.raises(qwyc.InputError, match=r"distributed\.sample"):
        qwyc.diagnose(fast, data)
    with pytest.raises(qwyc.InputError, match=r"qwyc\.distributed\.decide"):
        fast.predict(data)


def test_a_data_set_without_rows(engine, rows, fitted):
    empty = engine.load([rows[:0], rows[:0]])
    assert len(engine.collect(distributed.decide(fitted[1], empty))) == 0
    with pytest.raises(qwyc.InputError, match="no rows"):
        qwyc.verify(fitted[1], empty)
    with pytest.raises(qwyc.InputError, match="no rows"):
        distributed.sample(empty, 10)


def test_a_bad_value_in_one_row_is_named(engine, rows):
    frame, y = make_frame(rows=1500)
    numbers = frame[["a", "count"]].fillna(0)
    forest = sklearn.ensemble.RandomForestClassifier(20, max_depth=3).fit(numbers, y)
    fast = qwyc.optimize(forest, numbers, alpha=0.05, progress=False)
    spoilt = rows[["id", "a", "count"]].fillna(0)
    spoilt.loc[1500, "a"] = np.inf
    with pytest.raises(Exception, match="infinity, or a number past float32, in row"):
        engine.collect(distributed.decide(fast, engine.load([spoilt])))


def test_labels_are_the_models_own_and_columns_may_have_no_names(engine, rows, tmp_path):
    frame, y = make_frame(rows=1500)
    numbers = frame[["a", "count"]].fillna(0)
    named = np.where(y, "good", "bad")
    forest = sklearn.ensemble.RandomForestClassifier(20, max_depth=3)
    forest.fit(numbers.to_numpy(), named.astype(object))
    fast = qwyc.optimize(forest, numbers.to_numpy(), alpha=0.05, progress=False)
    odd = rows[["id", "a", "count"]].fillna(0).rename(columns={"a": "a.b `c`", "count": "Ü 1"})
    data = engine.load([odd[:10], odd[10:]])
    names = ["a.b `c`", "Ü 1"]
    decided = engine.collect(distributed.decide(fast, data, columns=names, keep=["id"]))
    assert_equal_decisions(decided, fast.decide(odd[names].to_numpy()))
    engine.write(distributed.decide(fast, data, columns=names, keep=["id"]), tmp_path / "out")
    assert set(pd.read_parquet(tmp_path / "out")["label"]) == {"good", "bad"}
    with pytest.raises(qwyc.InputError, match="has 3 columns; the model was trained on 2"):
        distributed.decide(fast, data)
    with pytest.raises(qwyc.InputError, match="columns: the data has no column 'b'"):
        distributed.decide(fast, data, columns=["b", "Ü 1"])


def test_lattices_are_decided_as_on_one_machine(engine):
    rng = np.random.default_rng(4)
    names = ["u", "v", "w"]
    frame = pd.DataFrame(rng.normal(size=(6000, 3)), columns=names)
    curve = qwyc.lattice.PiecewiseLinear([-2, 0, 2], [0, 0.6, 1], missing_output=0.5)
    members = [
        qwyc.lattice.Lattice(pair, rng.normal([[-1, 0], [0, 1]]))
        for pair in (["u", "v"], ["v", "w"], ["w", "u"]) * 3
    ]
    model = qwyc.lattice.ensemble(members, calibrators=dict.fromkeys(names, curve), features=names)
    fast = qwyc.optimize(model, frame[:4000], alpha=0.02, evaluation="quit", progress=False)
    new = frame[4000:].reset_index(drop=True).assign(id=np.arange(2000))
    new.loc[7, "v"] = None
    data = engine.load([new[:900], new[900:]])
    want = fast.decide(new)
    assert want.steps.mean() < 9
    assert_equal_decisions(engine.collect(distributed.decide(fast, data)), want)
    assert qwyc.verify(fast, data, alpha=0.04) == qwyc.verify(fast, new, alpha=0.04)


def test_a_pipelines_own_steps_travel_with_it(engine):
    frame, y = make_frame(rows=3000)
    frame["size"] = frame["size"].astype(int)
    frame["the colour"] = np.where(frame["a"] > 0, "red", "blue")
    frame["constant"] = "only"
    codes = ColumnTransformer([("text", OrdinalEncoder(), TEXT)], remainder="passthrough")
    model = make_pipeline(codes, xgboost.XGBClassifier(n_estimators=20, max_depth=3))
    model.fit(frame[:1000], y[:1000])
    fast = qwyc.optimize(model, frame[1000:], alpha=0.05, progress=False)
    new = frame[1000:].assign(id=np.arange(2000))
    data = engine.load([new[:700], new[700:]])
    decided = engine.collect(
        distributed.decide(fast, data, columns=list(frame.columns), keep=["id"])
    )
    assert_equal_decisions(decided, fast.decide(frame[1000:]))


def test_a_worker_that_dies_loses_and_doubles_nothing(engine, rows, fitted, tmp_path):
    data = engine.load([rows[i : i + 600] for i in range(0, 3000, 600)])
    marker = tmp_path / "died"
    decided = engine.collect(distributed.decide(fitted[1], engine.dying(data, marker)))
    assert marker.exists()
    assert_equal_decisions(decided, fitted[1].decide(rows))
    marker.unlink()
    assert qwyc.verify(fitted[1], engine.dying(data, marker)) == qwyc.verify(fitted[1], rows)
    assert marker.exists()


def test_a_classifier_is_loaded_once_by_each_process(engine, rows, fitted, tmp_path):
    fast = fitted[1].at(alpha=0.05)  # one that no worker has seen
    for i in range(0, 3000, 300):
        rows[i : i + 300].to_parquet(tmp_path / f"{i}.parquet")
    data = engine.read(tmp_path)
    for _ in range(3):
        assert len(engine.collect(distributed.decide(fast, data, keep=["id"]))) == len(rows)
    key = distributed.pack(fast).key
    loaded = [process for process, name, _ in engine.arrivals(data) if name == key]
    assert 1 <= len(loaded) == len(set(loaded)) <= 2


def test_small_parts_are_drawn_from_like_large_ones(engine, rows):
    parts = [rows[:300]] + [rows[i : i + 3] for i in range(300, 420, 3)]
    data = engine.load([*parts, rows[420:]])
    drawn = np.concatenate([distributed.sample(data, 600, seed=s)["id"] for s in range(5)])
    small = np.mean((drawn >= 300) & (drawn < 420))
    assert small == pytest.approx(0.04, abs=0.012)


def test_threads_may_ask_at_once(engine, data, rows, fitted):
    fast = fitted[1].at(alpha=0.07)  # one that nobody has seen
    together = threading.Barrier(6)

    def ask(_):
        together.wait()
        return len(engine.collect(distributed.decide(fast, data, keep=["id"])))

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(ask, range(6))) == [len(rows)] * 6
    assert len(engine.collect(data)) == len(rows)  # and others' jobs go on


def test_unsigned_classes(engine, rows):
    frame, y = make_frame(rows=1500)
    numbers = frame[["a", "count"]].fillna(0)
    forest = sklearn.ensemble.RandomForestClassifier(5, max_depth=3).fit(numbers, y.astype("u1"))
    fast = qwyc.optimize(forest, numbers, alpha=0.05, progress=False)
    data = engine.load([rows[["id", "a", "count"]].fillna(0)])
    assert_equal_decisions(
        engine.collect(distributed.decide(fast, data)), fast.decide(rows.fillna({"a": 0}))
    )


def test_code_that_cannot_be_pickled_is_refused(engine, data):
    lock = threading.Lock()
    models = [lambda X, t=t: np.asarray(X["a"]) * t + 0 * bool(lock) for t in range(1, 5)]
    frame = rows_as_engines_hold_them(2000).fillna({"a": 0})
    fast = qwyc.optimize(models, frame, alpha=0.05, progress=False)
    with pytest.raises(qwyc.OptionError, match="code of yours, which must be pickled"):
        distributed.decide(fast, data)


def test_a_session_that_ended_is_not_asked_again(engine, rows, fitted):
    engine.restart()
    data = engine.load([rows])
    decided = engine.collect(distributed.decide(fitted[1], data, keep=["id"]))
    assert_equal_decisions(decided, fitted[1].decide(rows))
