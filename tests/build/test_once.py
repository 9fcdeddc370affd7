"""optimize does its work once: one look at the model, one conversion of the rows, one layout."""

import lightgbm
import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import qwyc
from qwyc import importers
from qwyc.model import ensemble, trees


class Counter:
    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, *arguments, **options):
        self.calls += 1
        return self.function(*arguments, **options)


@pytest.fixture
def counted(monkeypatch):
    counters = {
        "opened": Counter(importers.open_model),
        "converted": Counter(ensemble.to_matrix),
        "laid out": Counter(trees._native.Quitter),
    }
    monkeypatch.setattr(importers, "open_model", counters["opened"])
    monkeypatch.setattr(ensemble, "to_matrix", counters["converted"])
    monkeypatch.setattr(trees._native, "Quitter", counters["laid out"])
    return counters


@pytest.mark.parametrize("kind", ["array", "frame", "pipeline"])
def test_model_rows_and_engine_are_handled_once(kind, counted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 4)).astype(np.float32)
    y = X[:, 0] + X[:, 1] > 0
    rows = X if kind == "array" else pd.DataFrame(X, columns=list("abcd"))
    model = lightgbm.LGBMClassifier(n_estimators=30, verbose=-1, n_jobs=1)
    if kind == "pipeline":
        model = make_pipeline(StandardScaler(), model)
    model.fit(rows[:1000], y[:1000])
    fast = qwyc.optimize(
        model, rows[1000:], alpha=0.02, costs="size", evaluation="measured", progress=False
    )
    assert {name: counter.calls for name, counter in counted.items()} == {
        "opened": 1,
        "converted": 1,
        "laid out": 1,
    }
    assert fast.speed is not None  # costs are counted, so both ways were timed
    assert fast.evaluation.decided_by == "measurement"


@pytest.mark.parametrize("evaluation", ["quit", "full"])
def test_what_is_requested_is_not_measured(evaluation, tmp_path):
    X = np.random.default_rng(0).normal(size=(6000, 4)).astype(np.float32)
    model = lightgbm.LGBMClassifier(n_estimators=30, verbose=-1, n_jobs=1)
    model.fit(X[:1000], X[:1000, 0] > 0)
    made = [
        qwyc.optimize(model, X[1000:], alpha=0.02, evaluation=evaluation, progress=False)
        for _ in range(2)
    ]
    assert made[0].speed is None
    assert made[0].evaluation.decided_by == "request"
    assert made[0].evaluation.quits == (evaluation == "quit") == (made[0].policy.quit == "both")
    for i, fast in enumerate(made):
        fast.save(tmp_path / f"{i}.qwyc")
    assert (tmp_path / "0.qwyc").read_bytes() == (tmp_path / "1.qwyc").read_bytes()
    again = qwyc.load(tmp_path / "0.qwyc")
    assert again.evaluation == made[0].evaluation


def test_an_unknown_evaluation_is_refused():
    with pytest.raises(
        qwyc.OptionError, match="evaluation must be one of 'model', 'measured', 'quit', 'full'"
    ):
        qwyc.optimize([len], np.zeros((5, 2)), alpha=0.1, evaluation="guess")
