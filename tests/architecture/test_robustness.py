"""What an attacker or a careless caller may try: each is one clear error, or simply works."""

import copy
import os
import pickle
import stat
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
from sklearn.naive_bayes import GaussianNB

import qwyc
from forests import random_ensemble, random_rows
from qwyc.model.callables import callable_ensemble


@pytest.fixture(scope="module")
def fast():
    ensemble = random_ensemble(2, n_trees=8)
    rows = random_rows(2, ensemble, n=1500)
    return qwyc.optimize(ensemble, rows, alpha=0.05), rows


def predict(classifier, rows):
    return classifier.predict(rows)


def test_a_classifier_can_be_pickled_copied_and_sent_to_processes(fast):
    classifier, rows = fast
    expected = classifier.predict(rows)
    for again in (pickle.loads(pickle.dumps(classifier)), copy.deepcopy(classifier)):
        np.testing.assert_array_equal(again.predict(rows), expected)
        assert again.ensemble.digest == classifier.ensemble.digest
        assert not again.policy.lower.flags.writeable
    with get_context("spawn").Pool(1) as pool:
        np.testing.assert_array_equal(pool.apply(predict, (classifier, rows)), expected)


def test_saving_keeps_links_and_modes_and_refuses_what_is_no_file(fast, tmp_path):
    classifier, _ = fast
    target, link, pipe = (tmp_path / name for name in ("real.qwyc", "link.qwyc", "pipe.qwyc"))
    classifier.save(target)
    target.chmod(0o600)
    link.symlink_to(target)
    classifier.save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    os.mkfifo(pipe)
    with pytest.raises(qwyc.ArtifactError, match="not a file"):
        classifier.save(pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("path", [None, "", "a\0b", 7.5])
def test_paths_that_are_none(fast, path):
    with pytest.raises(qwyc.ArtifactError, match="a path was expected"):
        fast[0].save(path)
    with pytest.raises(qwyc.ArtifactError, match="a path was expected"):
        qwyc.load(path)


@pytest.mark.parametrize("base", [None, GaussianNB()], ids=["trees", "callables"])
@pytest.mark.parametrize("make", [BaggingClassifier, AdaBoostClassifier])
def test_columns_of_scikit_learn_ensembles_are_matched_by_name(make, base):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(800, 4)), columns=list("abcd"))
    model = make(base, n_estimators=8, random_state=0).fit(X, X["a"] + X["b"] > 0)
    fast = qwyc.optimize(model, X, alpha=0.05)
    expected = fast.predict(X)
    np.testing.assert_array_equal(fast.predict(X[list("dcba")].assign(e=1.0)), expected)
    assert qwyc.optimize(model, X[list("dcba")], alpha=0.05).certificate.rows == 400
    with pytest.raises(qwyc.InputError, match="no column 'b'"):
        fast.predict(X.drop(columns="b"))
    with pytest.raises(qwyc.InputError, match="trained on 4"):
        fast.predict(X.to_numpy()[:, :3])
    if make is AdaBoostClassifier:
        with pytest.raises(qwyc.InputError, match=r"a missing value|missing or infinite"):
            fast.predict(X.assign(a=np.nan))


@pytest.mark.parametrize("dtype", [np.longdouble, ">f4", ">f8", np.float16, np.int64])
def test_numbers_of_any_type(toy, dtype):
    X, y = toy
    model = xgboost.XGBClassifier(n_estimators=10).fit(X, y)
    rows = np.round(X, 1).astype(dtype)
    fast = qwyc.optimize(model, rows, alpha=0.05, repeats="independent")
    np.testing.assert_array_equal(fast.score_full(rows), fast.score_full(rows.astype(np.float32)))


def test_more_threads_than_there_can_be(fast):
    classifier, rows = fast
    many = np.tile(rows, (400, 1))
    np.testing.assert_array_equal(
        classifier.predict(many, threads=500), np.tile(classifier.predict(rows), 400)
    )
    assert len(classifier.predict(rows, threads=np.int64(2))) == len(rows)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f, X: f.predict(X, threads=2**31), "threads must be"),
        (lambda f, X: f.predict(X, threads=True), "threads must be"),
        (lambda f, X: qwyc.optimize(f.ensemble, X, alpha=0.1, seed=-1), "seed must be"),
        (lambda f, X: qwyc.optimize(f.ensemble, X, alpha=0.1, seed="a"), "seed must be"),
        (
            lambda f, X: qwyc.optimize(f.ensemble, X, alpha=0.1, threshold="0.5"),
            "threshold must be",
        ),
        (lambda f, X: qwyc.optimize(f.ensemble, X, alpha=0.1, threshold=True), "threshold must be"),
        (lambda f, X: qwyc.fit_policy(np.ones((3, 2)), alpha=0.1, seed=0.5), "seed must be"),
        (lambda f, X: qwyc.fit_policy([[1, 2], [3]], alpha=0.1), "same length"),
        (
            lambda f, X: qwyc.fit_policy(
                np.ones((2, 2)), alpha=0.1, order="greedy-mse", labels=[None, 1]
            ),
            "labels must be 0 and 1",
        ),
        (
            lambda f, X: qwyc.fit_policy(
                qwyc.ScoreMatrix(np.full((2, 1), np.nan), 0.0, 0.0, np.zeros(2)), alpha=0.1
            ),
            "scores must be finite",
        ),
        (lambda f, X: qwyc.Policy(["a"], [0], [0], 0.0, [1]), "must be numbers"),
        (lambda f, X: qwyc.Policy([0], [0], [0], "x", [1]), "threshold must be"),
        (lambda f, X: qwyc.Policy(0, 0, 0, 0.0, 1), "one entry per base model"),
        (lambda f, X: qwyc.Cascade([len], None), "a policy was expected"),
        (lambda f, X: callable_ensemble([len], divisor=0), "divisor must be"),
        (lambda f, X: callable_ensemble([len], classes=[1]), "two labels"),
        (
            lambda f, X: callable_ensemble([lambda X: X[:, 0], lambda X: X[:, :2]]).scores(
                np.ones((2, 3))
            ),
            "all must give the same",
        ),
    ],
)
def test_everything_else_is_one_clear_error(fast, call, message):
    with pytest.raises(qwyc.QwycError, match=message):
        call(*fast)


def test_lazy_frames_say_how(fast):
    import polars as pl

    with pytest.raises(qwyc.InputError, match="collect"):
        qwyc.optimize(fast[0].ensemble, pl.LazyFrame({"a": [1.0]}), alpha=0.1)


def test_a_probability_that_no_score_has(toy):
    X, y = toy
    model = xgboost.XGBClassifier(n_estimators=5).fit(X, y)
    with pytest.raises(qwyc.OptionError, match="pass threshold as a score"):
        qwyc.optimize(model, X, alpha=0.1, threshold=qwyc.Probability(1e-300))


def test_missing_values_that_could_be_codes_are_refused():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": pd.Categorical(rng.choice(list("xyz"), 300)), "b": rng.normal(size=300)})
    y = rng.integers(0, 2, 300)
    make = xgboost.XGBClassifier
    model = make(n_estimators=3, enable_categorical=True, missing=0.0).fit(X, y)
    with pytest.raises(qwyc.ModelError, match="could be a category's code"):
        qwyc.read_model(model)
    other = make(n_estimators=3, enable_categorical=True, missing=-9.0).fit(X, y)
    assert qwyc.read_model(other).n_models == 3


def test_constant_models_and_far_thresholds_are_no_trouble():
    F = np.zeros((300, 4))
    for threshold in (0.0, 1e300, -1e300):
        policy = qwyc.fit_policy(
            F, alpha=0.01, order="correlation", rule="stopping", threshold=threshold
        )
        assert (policy.apply(F).label == (threshold <= 0)).all()
