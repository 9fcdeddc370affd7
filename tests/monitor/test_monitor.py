"""Monitor: the same decisions, the right rows checked, the right numbers and alarms."""

import copy
import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import qwyc
from monitored import bold, of_callables, rows_for, slow_callables, truth
from qwyc.model.callables import callable_ensemble
from qwyc.monitor.checks import CHECKED_AT_ONCE
from qwyc.policy.counts import sum_over_rows


@pytest.fixture(scope="module")
def fast():
    return bold()


@pytest.fixture(scope="module")
def rows(fast):
    return rows_for(fast)


# ---- decisions --------------------------------------------------------------------------------


def test_decisions_are_the_classifiers_own(fast, rows):
    monitor = qwyc.Monitor(fast, rate=0.3)
    np.testing.assert_array_equal(monitor.predict(rows), fast.predict(rows))
    ours, its = monitor.decide(rows, threads=2), fast.decide(rows)
    for name in ("label", "steps", "score", "complete"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(its, name))
    assert [monitor.predict_one(row) for row in rows[:300]] == fast.predict(rows[:300]).tolist()
    assert monitor.rows_seen == 2 * len(rows) + 300
    assert monitor.classifier is fast


def test_every_form_of_rows():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(1200, 4)), columns=list("abcd"))
    label = (frame["a"] + frame["b"] * frame["c"] > 0).astype(int)
    model = xgboost.XGBClassifier(n_estimators=30, max_depth=3).fit(frame[:400], label[:400])
    fast = qwyc.optimize(model, frame[400:], alpha=0.05, evaluation="quit", progress=False)
    expected = truth(fast, frame)
    for X in (frame, pl.from_pandas(frame), frame.to_numpy(), frame[list("dcba")]):
        monitor = qwyc.Monitor(fast, rate=1)
        np.testing.assert_array_equal(monitor.predict(X), fast.predict(frame))
        assert monitor.counts.by_class == (sum(expected[1] == 0), sum(expected[1] == 1))
        assert monitor.disagreements == np.sum(expected[0] != expected[1])
    single = qwyc.Monitor(fast, rate=1)
    forms = [
        lambda i: frame.to_numpy()[i],
        lambda i: frame.iloc[[i]],
        lambda i: tuple(frame.iloc[i]),
    ]
    forms += [lambda i: pl.from_pandas(frame)[i], lambda i: frame.to_numpy()[::2][i // 2]]
    answers = [single.predict_one(forms[i % 5](i)) for i in range(0, 1000, 2)]
    assert answers == fast.predict(frame[:1000:2]).tolist()
    assert single.rows_checked == single.rows_seen == 500
    assert single.disagreements == np.sum(expected[0][:1000:2] != expected[1][:1000:2])


def test_a_pipeline():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1500, 5))
    y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
    boosting = xgboost.XGBClassifier(n_estimators=20, max_depth=3)
    pipe = make_pipeline(StandardScaler(), boosting).fit(X[:500], y[:500])
    fast = qwyc.optimize(pipe, X[500:], alpha=0.05, evaluation="quit", progress=False)
    monitor = qwyc.Monitor(fast, rate=1)
    np.testing.assert_array_equal(monitor.predict(X), fast.predict(X))
    assert [monitor.predict_one(row) for row in X[:20]] == fast.predict(X[:20]).tolist()
    decided, full = truth(fast, np.vstack([X, X[:20]]))
    assert (monitor.rows_checked, monitor.disagreements) == (1520, np.sum(decided != full))


def test_callables():
    fast, rows = of_callables()
    decided, full = truth(fast, rows)
    for X in (rows, pd.DataFrame(rows)):
        monitor = qwyc.Monitor(fast, rate=1)
        np.testing.assert_array_equal(monitor.predict(X), fast.predict(rows))
        assert monitor.predict_one(rows[3]) == fast.predict(rows[3:4])[0]
        assert monitor.rows_checked == len(rows) + 1
        assert monitor.disagreements == np.sum(decided != full) + (decided[3] != full[3])


def test_an_error_of_the_rows_counts_nothing(fast, rows):
    monitor = qwyc.Monitor(fast, rate=1)
    with pytest.raises(qwyc.InputError):
        monitor.predict(rows[:, :2])
    with pytest.raises(qwyc.InputError):
        monitor.predict_one("a")
    assert (monitor.rows_seen, monitor.rows_checked) == (0, 0)


def test_a_check_that_fails_leaves_the_decisions_alone():
    fast, rows = of_callables()
    quits = fast.decide(rows).steps < 8
    assert quits.any()
    last = fast.policy.order[-1]  # rows that quit never reach this base model

    def fails(X):
        raise RuntimeError("out of order")

    models = slow_callables()
    models[last] = fails
    broken = replace(fast, ensemble=callable_ensemble(models))
    monitor = qwyc.Monitor(broken, rate=1)
    with pytest.warns(qwyc.QwycWarning, match="could not evaluate .* out of order"):
        labels = monitor.predict(rows[quits])
    np.testing.assert_array_equal(labels, fast.predict(rows[quits]))
    assert (monitor.rows_failed, monitor.rows_checked) == (quits.sum(), 0)
    assert f"{quits.sum():,} rows could not be checked" in repr(monitor)


# ---- which rows are checked -------------------------------------------------------------------


def test_at_rate_one_every_row_is_counted_once(fast, rows):
    monitor = qwyc.Monitor(fast, rate=1)
    for part in np.split(rows, [1, 2, 500, 3999]):
        monitor.predict(part)
    decided, full = truth(fast, rows)
    expected = sum_over_rows(fast.policy, decided, full, fast.decide(rows).steps).counts()[0]
    assert monitor.counts == expected
    assert monitor.mean_models == expected.mean_models
    assert list(monitor.exits.values()) == list(expected.exits)
    assert list(monitor.exits)[-1] == (12, 12)
    assert monitor.disagreements == sum(expected.differences) > 100


def checked_rows(fast, rows, step, seed=0, rate=0.05):
    """The rows that a monitor checks: a column of the rows says which they are."""
    monitor = qwyc.Monitor(fast, rate=rate, seed=seed)
    found = []
    monitor._checks._check = None  # nothing is evaluated here
    monitor._checks._check_waiting = lambda threads: None
    for i in range(0, len(rows), step):
        monitor.predict(rows[i : i + step]) if step > 1 else monitor.predict_one(rows[i])
    found = monitor._checks.waiting().rows[:, 0]
    return np.sort(found).astype(int).tolist()


@pytest.fixture(scope="module")
def numbered(fast):
    rows = np.zeros((20_000, fast.ensemble.schema.n_features))
    rows[:, 0] = np.arange(len(rows))
    return rows


def test_which_rows_are_checked_depends_on_the_seed_alone(fast, numbered):
    one_by_one = checked_rows(fast, numbered, 1)
    assert checked_rows(fast, numbered, 7) == one_by_one
    assert checked_rows(fast, numbered, 20_000) == one_by_one
    others = numbered.copy()
    others[:, 1:] = np.random.default_rng(0).normal(size=others[:, 1:].shape)
    assert checked_rows(fast, others, 100) == one_by_one
    assert checked_rows(fast, numbered, 100, seed=1) != one_by_one


@pytest.mark.parametrize("rate", [0.003, 0.05, 0.4])
def test_the_rate_is_right_and_the_gaps_are_geometric(fast, numbered, rate):
    at = np.concatenate(
        [np.array(checked_rows(fast, numbered, 5_000, seed, rate)) for seed in range(5)]
    )
    n = 5 * len(numbered)
    assert abs(len(at) - rate * n) < 4 * np.sqrt(rate * (1 - rate) * n)
    gaps = np.diff(at)
    gaps = gaps[gaps > 0]
    assert abs(np.mean(gaps == 1) - rate) < 4 * np.sqrt(rate / len(gaps))
    long = np.mean(gaps > 1 / rate)
    assert abs(long - (1 - rate) ** np.floor(1 / rate)) < 4 * np.sqrt(0.25 / len(gaps))


def test_batches_and_single_rows_count_the_same(fast, rows):
    together, apart = (qwyc.Monitor(fast, rate=0.2, seed=5) for _ in range(2))
    together.predict(rows)
    for row in rows:
        apart.predict_one(row)
    assert together.counts == apart.counts
    assert 0 < together.rows_checked < len(rows)
    assert together._state.raised == apart._state.raised
    assert together.metrics() == apart.metrics()


def test_rows_wait_for_others_and_whoever_looks_sees_them(fast):
    rows = rows_for(fast, n=CHECKED_AT_ONCE)
    monitor = qwyc.Monitor(fast, rate=1)
    buffer = np.empty(rows.shape[1], dtype=rows.dtype)
    for row in rows[: CHECKED_AT_ONCE - 1]:
        buffer[:] = row  # callers may use one array for all rows
        monitor.predict_one(buffer)
    assert sum(monitor._state.record.by_class) == 0
    decided, full = truth(fast, rows[: CHECKED_AT_ONCE - 1])
    assert monitor.disagreements == np.sum(decided != full)
    monitor.predict(rows)
    assert sum(monitor._state.record.by_class) == 2 * CHECKED_AT_ONCE - 1


def test_many_threads(fast, rows):
    monitor, alone = (qwyc.Monitor(fast, rate=0.1, seed=3) for _ in range(2))
    parts = np.split(rows, 40)

    def work(i):
        if i % 2:
            return monitor.predict(parts[i]).tolist()
        return [monitor.predict_one(row) for row in parts[i]]

    with ThreadPoolExecutor(8) as pool:
        answers = [answer for part in pool.map(work, range(40)) for answer in part]
        list(pool.map(lambda _: monitor.interval, range(20)))
    assert answers == fast.predict(rows).tolist()
    alone.predict(rows)
    assert monitor.rows_seen == len(rows)
    assert monitor.rows_checked == alone.rows_checked  # as many positions, of other rows


# ---- alarms -----------------------------------------------------------------------------------


def test_the_alarm_is_raised_and_stays():
    fast = bold(alpha=0.01)
    rows = rows_for(fast)
    decided, full = truth(fast, rows)
    good = rows[decided == full]
    monitor = qwyc.Monitor(fast, rate=1)
    monitor.predict(good)
    assert not monitor.alarm
    assert monitor.alarms == ()
    monitor.predict(rows[decided != full][:40])
    assert monitor.alarm
    (words,) = monitor.alarms
    assert words.startswith("more than 1% of the rows are decided differently (raised after")
    for _ in range(20):
        monitor.predict(good)
    assert monitor.alarm
    assert "ALARM" in repr(monitor)


def test_a_promise_that_holds_stays_quiet(fast, rows):
    decided, full = truth(fast, rows)
    share = float(np.mean(decided != full))
    quiet = qwyc.Monitor(bold(alpha=1.5 * share), rate=1)
    broken = qwyc.Monitor(bold(alpha=0.5 * share), rate=1)
    for monitor in (quiet, broken):
        monitor.predict(rows)
    assert (quiet.alarm, broken.alarm) == (False, True)
    assert quiet.interval == broken.interval
    low, high = quiet.interval
    assert low < share < high


def test_limits_by_class_count_the_rows_of_the_class():
    fast = bold(alpha=None, by_class={1: 0.01})
    rows = rows_for(fast)
    decided, full = truth(fast, rows)
    gained = rows[(decided != full) & (full == 0)]
    lost = rows[(decided != full) & (full == 1)]
    kept = rows[(decided == full) & (full == 1)]
    monitor = qwyc.Monitor(fast, rate=1)
    monitor.predict(np.vstack([kept, gained]))
    assert not monitor.alarm
    monitor.predict(lost[:40])
    assert "that the full ensemble calls 1 are decided differently" in monitor.alarms[0]
    assert set(monitor.by_class) == {0, 1}
    assert monitor.by_class[1][1] < monitor.by_class[0][0]  # every negative row was gained


def test_limits_by_difference_share_the_risk():
    fast = bold(alpha={"negative": 0.01, "positive": 0.4})
    rows = rows_for(fast)
    decided, full = truth(fast, rows)
    monitor = qwyc.Monitor(fast, rate=1)
    monitor.predict(rows[decided == full][:1000])
    monitor.predict(rows[(decided != full) & (full == 1)][:60])
    (words,) = monitor.alarms
    assert "more than 1% of the rows are decided 0 instead of" in words
    assert monitor._judge.needed == pytest.approx(2 / 0.05)


def test_a_proof_that_one_row_contradicts():
    fast = bold(alpha=0, how="proven")
    rows = rows_for(fast)
    decided, full = truth(fast, rows)
    monitor = qwyc.Monitor(fast, rate=1)
    monitor.predict(rows[decided == full])
    assert not monitor.alarm
    wrong = rows[decided != full][0]
    monitor.predict_one(wrong)
    assert monitor.alarm
    assert f"raised after {np.sum(decided == full) + 1:,} checked rows" in monitor.alarms[0]


def test_the_row_of_the_alarm_is_the_one_that_raised_it():
    fast = bold(alpha=0.01)
    rows = rows_for(fast)
    monitor, whole = (qwyc.Monitor(fast, rate=1) for _ in range(2))
    n = 0
    while not monitor.alarm:
        monitor.predict_one(rows[n])
        n += 1
    whole.predict(rows)
    assert whole.alarm
    assert whole._state.raised == monitor._state.raised == (n,)


def test_a_certificate_without_a_promise_is_said_to_be_one(fast):
    assert "against the certificate's promise" in repr(qwyc.Monitor(fast))
    assert "promises nothing for new rows" in repr(qwyc.Monitor(bold(how="in-sample")))


# ---- the rest ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": 0}, "rate is the share"),
        ({"rate": 1.5}, "rate is the share"),
        ({"rate": "a"}, "rate must be"),
        ({"confidence": 1}, "confidence is a probability"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_options_outside_what_is_allowed(fast, options, message):
    with pytest.raises(qwyc.OptionError, match=message):
        qwyc.Monitor(fast, **options)
    with pytest.raises(qwyc.OptionError, match=r"qwyc\.Classifier was expected"):
        qwyc.Monitor("fast")


def test_before_the_first_row(fast):
    monitor = qwyc.Monitor(fast)
    assert monitor.interval == (0.0, 1.0)
    assert monitor.by_class == {0: (0.0, 1.0), 1: (0.0, 1.0)}
    assert np.isnan(monitor.mean_models)
    assert (monitor.rows_seen, monitor.rows_checked, monitor.alarm) == (0, 0, False)
    assert "0 rows seen" in repr(monitor)


def test_it_can_be_pickled_and_copied(fast, rows):
    monitor = qwyc.Monitor(fast, rate=0.5)
    monitor.predict(rows)
    for again in (pickle.loads(pickle.dumps(monitor)), copy.deepcopy(monitor)):
        assert repr(again) == repr(monitor)
        np.testing.assert_array_equal(again.predict(rows), fast.predict(rows))
        assert again.rows_seen == 2 * len(rows)


def test_it_is_collected_as_garbage(fast, rows):
    monitor = qwyc.Monitor(fast, rate=0.5)
    monitor.predict_one(rows[0])
    gone = weakref.ref(monitor)
    del monitor
    gc.collect()
    assert gone() is None
