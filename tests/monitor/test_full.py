"""Classifier.full: the way back to the full ensemble."""

import numpy as np
import pytest
import xgboost

import qwyc
from monitored import bold, of_callables, rows_for


@pytest.fixture(scope="module")
def boosted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 6)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    return xgboost.XGBClassifier(n_estimators=40, max_depth=3).fit(X[:500], y[:500]), X[500:]


@pytest.mark.parametrize(
    "options",
    [
        {"alpha": 0.05},
        {"alpha": 0},
        {"alpha": 0.05, "method": "natural"},
        {"by_class": {1: 0.1}},
        {"alpha": 0.05, "quit": "negative"},
    ],
)
def test_every_kind_of_certificate(boosted, options, tmp_path):
    model, X = boosted
    fast = qwyc.optimize(model, X, evaluation="quit", progress=False, **options)
    assert fast.decide(X).steps.mean() < 40
    full = fast.full()
    for never in (full, full.full(), reloaded(full, tmp_path)):
        decisions = never.decide(X)
        np.testing.assert_array_equal(decisions.label, model.predict(X))
        np.testing.assert_array_equal(decisions.score, fast.score_full(X))
        assert decisions.complete.all()
        assert never.policy.quit == never.certificate.quit == "never"
        assert never.certificate.budget == fast.certificate.budget
        assert never.certificate.how == fast.certificate.how
        assert (never.certificate.disagreements, never.certificate.mean_models) == (0, 40)
        assert never.certificate.counts.exits[-1] == never.certificate.rows
        assert (never.evaluation.quits, never.evaluation.decided_by) == (False, "request")
    assert fast.policy.quit != "never"
    assert "never quits early" in repr(full)


def reloaded(classifier, folder):
    classifier.save(folder / "full.qwyc")
    return qwyc.load(folder / "full.qwyc")


def test_the_same_as_asking_for_it(boosted):
    model, X = boosted
    asked = qwyc.optimize(model, X, alpha=0.05, evaluation="full", progress=False)
    full = qwyc.optimize(model, X, alpha=0.05, evaluation="quit", progress=False).full()
    assert full.certificate == asked.certificate
    assert full.evaluation == asked.evaluation
    assert asked.full() is asked
    assert full.at(alpha=0.05).policy.quit == "never"  # as asked for


def test_callables():
    fast, rows = of_callables()
    full = fast.full()
    np.testing.assert_array_equal(full.predict(rows), rows.sum(axis=1) >= 0)
    assert full.decide(rows).complete.all()


def test_a_monitor_of_it_sees_no_difference():
    fast = bold()
    rows = rows_for(fast)
    monitor = qwyc.Monitor(fast.full(), rate=1)
    monitor.predict(rows)
    assert (monitor.rows_checked, monitor.disagreements) == (len(rows), 0)
    assert monitor.mean_models == 12
