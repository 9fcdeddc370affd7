"""Bagging and AdaBoost of decision trees, and single trees, read as trees."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

import qwyc
from qwyc.importers.sklearn import read_live
from sklearn_parity import around_thresholds, check, data

STUMP = DecisionTreeClassifier(max_depth=1)
MODELS = {
    "bagging": BaggingClassifier(n_estimators=10, random_state=0),
    "bagging, deep enough for ties": BaggingClassifier(n_estimators=4, random_state=0),
    "bagging of extra trees": BaggingClassifier(
        ExtraTreeClassifier(max_depth=3), 12, random_state=0
    ),
    "bagging on some columns": BaggingClassifier(
        n_estimators=9, max_features=0.6, bootstrap_features=True, random_state=0
    ),
    "bagging of one row each": BaggingClassifier(n_estimators=9, max_samples=1, random_state=0),
    "bagging of one tree": BaggingClassifier(n_estimators=1, random_state=0),
    "bagging of weighted classes": BaggingClassifier(
        DecisionTreeClassifier(max_depth=4, class_weight={0: 1, 1: 3}), 6, random_state=0
    ),
    "bagging, pruned to a leaf": BaggingClassifier(
        DecisionTreeClassifier(ccp_alpha=0.4), 5, random_state=0
    ),
    "one decision tree": DecisionTreeClassifier(max_depth=5),
    "one extra tree": ExtraTreeClassifier(max_depth=5),
    "AdaBoost": AdaBoostClassifier(n_estimators=30, random_state=0),
    "AdaBoost of trees": AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=12),
    "AdaBoost, one tree": AdaBoostClassifier(STUMP, n_estimators=1),
    "AdaBoost, slow": AdaBoostClassifier(STUMP, n_estimators=9, learning_rate=0.01),
}


@pytest.mark.parametrize("classes", [(0, 1), ("no", "yes")], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_scores_are_those_of_scikit_learn(name, classes):
    X, y = data()
    model = MODELS[name].fit(X, np.array(classes)[y])
    ensemble = check(model, X)
    if len(ensemble.base_models.trees.feature):
        check(model, around_thresholds(ensemble, X))
        check(model, around_thresholds(ensemble, X).astype(np.float32))
    assert ensemble.n_models == len(getattr(model, "estimators_", [model]))


def test_missing_values_where_the_trees_take_them():
    X, y = data(missing=0.1)
    model = BaggingClassifier(n_estimators=8, max_features=0.5, random_state=0).fit(X, y)
    check(model, X)
    with pytest.raises(qwyc.InputError, match="infinity"):
        qwyc.read_model(model).score_full(np.full((1, 5), np.inf))
    boosted = AdaBoostClassifier(n_estimators=5).fit(*data())
    with pytest.raises(qwyc.InputError, match="missing value"):
        qwyc.read_model(boosted).score_full(X)


def test_threads_do_not_change_the_answer():
    X, y = data()
    model = BaggingClassifier(n_estimators=10, random_state=0, n_jobs=2).fit(X, y)
    fast = qwyc.optimize(model, X, alpha=0)
    model.n_jobs = 1
    np.testing.assert_array_equal(fast.predict(X), model.predict(X))


def test_trees_are_read_as_trees_and_saved(tmp_path):
    X, y = data(n=2000)
    for model in (BaggingClassifier(n_estimators=20), AdaBoostClassifier(n_estimators=20)):
        fast = qwyc.optimize(model.fit(X, y), X, alpha=0.05)
        fast.save(tmp_path / "m.qwyc")
        again = qwyc.load(tmp_path / "m.qwyc")
        np.testing.assert_array_equal(again.score_full(X), fast.score_full(X))
        assert again.ensemble.source.kind == type(model).__name__


def test_what_is_refused():
    X, y = data()
    bayes = BaggingClassifier(GaussianNB(), 5).fit(X, y)
    with pytest.raises(qwyc.ModelError, match=r"one of GaussianNB.*qwyc\.optimize takes it apart"):
        read_live(bayes)  # as trees; `read_model` takes it apart into callables
    assert qwyc.read_model(bayes).has_code
    with pytest.raises(qwyc.ModelError, match="3 classes"):
        qwyc.read_model(BaggingClassifier(GaussianNB(), 3).fit(X, np.arange(len(X)) % 3))
    old = AdaBoostClassifier(n_estimators=3).fit(X, y)
    old.algorithm = "SAMME.R"
    with pytest.raises(qwyc.ModelError, match=r"SAMME\.R"):
        qwyc.read_model(old)
    weightless = AdaBoostClassifier(n_estimators=3).fit(X, y)
    weightless.estimator_weights_[:] = 0.0
    with pytest.raises(qwyc.ModelError, match=r"add up to 0\.0"):
        qwyc.read_model(weightless)
