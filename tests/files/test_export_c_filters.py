"""Exported filters for one of K classes decide every row as Python does, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import lightgbm
import numpy as np
import pytest

import qwyc
from class_forests import SUMMATIONS, random_classes
from commands import run
from exported import exported, odd_rows, with_random_filter
from forests import random_rows


@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("summation", SUMMATIONS)
def test_filters_of_every_summation(tmp_path, summation, vectors):
    ensemble = random_classes(3, summation=summation, vectors=vectors, gaps=not vectors)
    rows = random_rows(3, ensemble, 500)
    only = int(summation) % len(ensemble.classes)
    files = exported(tmp_path, with_random_filter(ensemble, rows, only))
    decide = files.compiled("-O1")
    decisions = files.check(decide, rows)
    files.check(decide, odd_rows(ensemble, 400))
    assert 0 < decisions.complete.mean() < 1
    left = decisions.label[~decisions.complete]
    assert ensemble.classes[only] not in left.tolist()  # a filter never gains a row of its class


@pytest.mark.parametrize(("K", "only"), [(2, 0), (2, 1), (3, 0), (3, 2), (11, 5)])
def test_filters_for_every_place_of_the_class(tmp_path, K, only):
    ensemble = random_classes(K, n_classes=K)
    rows = random_rows(K, ensemble, 400)
    files = exported(tmp_path, with_random_filter(ensemble, rows, only, seed=K))
    for flags in (("-O0",), ("-O3", "-march=native")):
        decisions = files.check(files.compiled(*flags), rows)
    assert 0 < decisions.complete.mean() < 1
    assert ensemble.classes[only] not in decisions.label[~decisions.complete].tolist()


def test_ties_between_other_classes(tmp_path):
    """Leaves of a few values, so that other classes tie for the best; the first of them wins."""
    made = random_classes(5, n_classes=4, rounds=6)
    leaves = np.sign(made.base_models.trees.leaf_value)
    trees = replace(made.base_models.trees, leaf_value=leaves)
    models = replace(made.base_models, trees=trees, start=np.zeros(4))
    ensemble = replace(made, base_models=models)
    rows = random_rows(5, ensemble, 2000)
    for only in (0, 2):
        fast = with_random_filter(ensemble, rows, only)
        policy = replace(fast.policy, gap=np.full(fast.policy.n_models, -0.5))  # many rows leave
        fast = replace(fast, policy=policy)
        files = exported(tmp_path / str(only), fast)
        decisions = files.check(files.compiled("-O2"), rows)
        others = [k for k in range(4) if k != only]
        score = decisions.score[~decisions.complete][:, others]
        ties = (score == score.max(axis=1, keepdims=True)).sum(axis=1) > 1
        assert ties.any()
        first = ensemble.classes[np.array(others)[score.argmax(axis=1)]]
        np.testing.assert_array_equal(decisions.label[~decisions.complete], first)


def test_a_filter_in_full(tmp_path):
    ensemble = random_classes(6)
    rows = random_rows(6, ensemble, 300)
    files = exported(tmp_path, with_random_filter(ensemble, rows, 1).full())
    assert files.check(files.compiled(), rows).complete.all()


@pytest.fixture(scope="module")
def trained():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 5)).round(2)
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=6000) / 4, [-1, 0.5, 2.5])
    model = lightgbm.LGBMClassifier(n_estimators=25, num_leaves=8, verbose=-1, n_jobs=1)
    return model.fit(X[:2000], y[:2000]), X


def test_a_trained_filter(tmp_path, trained):
    model, X = trained
    fast = qwyc.optimize(model, X[2000:4500], only=3, alpha=0.03, progress=False)
    assert isinstance(fast.policy, qwyc.FilterPolicy)
    files = exported(tmp_path, fast)
    decide = files.compiled("-O2")
    decisions = files.check(decide, X[4500:])
    files.check(decide, odd_rows(fast.ensemble, 500))
    assert decisions.steps.mean() < fast.ensemble.n_models / 2
    assert "A filter for class 3, index 3" in files.sources[0].read_text()


def test_the_command_exports_filters(tmp_path, trained):
    model, X = trained
    fast = qwyc.optimize(model, X[2000:4500], only=0, alpha=0.03, progress=False)
    fast.save(tmp_path / "filter.qwyc")
    done = run("export", "c", "filter.qwyc", "-o", "command", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "api").mkdir()
    direct, _ = fast.export_c(tmp_path / "api" / "command")
    assert (tmp_path / "command.c").read_bytes() == direct.read_bytes()


@pytest.mark.parametrize("quits", ["negative", "positive"])
@pytest.mark.parametrize("small", [False, True])
def test_trained_classifiers_of_two_classes_that_quit_one_way(tmp_path, trained, quits, small):
    import xgboost

    X = trained[1].astype(np.float32)
    y = X[:, 0] + X[:, 1] * X[:, 2] > 0.5
    model = xgboost.XGBClassifier(n_estimators=30, max_depth=3, n_jobs=1).fit(X[:2000], y[:2000])
    fast = qwyc.optimize(
        model, X[2000:4500], quit=quits, alpha=0.02, evaluation="quit", progress=False
    )
    files = exported(tmp_path, fast, small=small)
    decisions = files.check(files.compiled("-O2"), X[4500:])
    early = decisions.label[~decisions.complete]
    assert len(early) > 100
    assert (early == (quits == "positive")).all()
