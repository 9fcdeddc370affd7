"""scikit-learn's models of more than two classes, read to the bit."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

import qwyc
from class_parity import NAMES, check_classes, class_data, ties_of
from qwyc.errors import ModelError, ParityError
from qwyc.importers import open_model
from qwyc.importers.sklearn import hist
from qwyc.target.ties import BY_SCORES, Ties
from sklearn_parity import around_thresholds

CLASSES = (3, 7, 10, 100)
STUMP = DecisionTreeClassifier(max_depth=3, random_state=0)


def few(K):
    return 3 if K == 100 else 20


KINDS = {
    "forest": lambda K: RandomForestClassifier(few(K), max_depth=6, random_state=0),
    "weighted": lambda K: RandomForestClassifier(
        few(K), class_weight="balanced_subsample", min_samples_leaf=3, random_state=0
    ),
    "extra trees": lambda K: ExtraTreesClassifier(few(K), random_state=0, n_jobs=2),
    "tree": lambda K: DecisionTreeClassifier(min_samples_leaf=4, random_state=0),
    "extra tree": lambda K: ExtraTreeClassifier(min_samples_leaf=4, random_state=0),
    "bagging": lambda K: BaggingClassifier(
        STUMP, few(K), max_features=0.6, max_samples=0.1, random_state=0
    ),
    "boosting": lambda K: GradientBoostingClassifier(n_estimators=few(K), random_state=0),
    "boosting from zero": lambda K: GradientBoostingClassifier(
        n_estimators=few(K), init="zero", learning_rate=0.3, random_state=0
    ),
    "hist": lambda K: HistGradientBoostingClassifier(max_iter=few(K), random_state=0),
    "AdaBoost": lambda K: AdaBoostClassifier(STUMP, n_estimators=few(K), random_state=0),
}


def own_scores(model, X):
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    single = copy.copy(model)
    if hasattr(model, "n_jobs"):
        single.n_jobs = 1
    return single.predict_proba(X)


@pytest.mark.parametrize("K", CLASSES)
@pytest.mark.parametrize("kind", KINDS)
def test_scores_and_decisions(kind, K):
    X, y = class_data(K)
    model = KINDS[kind](K).fit(X[:400], NAMES[y[:400]])
    assert len(model.classes_) == K
    ensemble = check_classes(model, X, model.predict(X), own_scores(model, X))
    assert ensemble.classes.tolist() == model.classes_.tolist()
    assert ensemble.n_models == len(
        getattr(model, "estimators_", getattr(model, "_predictors", "1"))
    )
    for rows in (X.astype(np.float32), around_thresholds(ensemble, X)):
        check_classes(model, rows, model.predict(rows), own_scores(model, rows))


@pytest.mark.parametrize("kind", ["forest", "extra trees", "bagging", "hist"])
def test_missing_values(kind):
    X, y = class_data(5, missing=0.2)
    model = KINDS[kind](5).fit(X[:400], y[:400])
    check_classes(model, X, model.predict(X), own_scores(model, X))


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("boosting", "hist")])
@pytest.mark.parametrize("trees", [2, 4])
def test_ties_go_where_predict_sends_them(kind, trees):
    X, y = class_data(4, n=800, coarse=True)
    model = KINDS[kind](4)
    if "n_estimators" in model.get_params():
        model.set_params(n_estimators=trees)
    model.fit(X[:200], y[:200])
    ensemble = check_classes(model, X, model.predict(X), own_scores(model, X))
    if kind in ("forest", "extra trees"):
        assert ties_of(ensemble.score_full(X)) > 5


def test_a_tree_that_missed_classes():
    X, y = class_data(6)
    model = BaggingClassifier(STUMP, 8, random_state=0).fit(X, y)
    model.estimators_[2] = DecisionTreeClassifier(max_depth=3).fit(X[y % 2 == 0], y[y % 2 == 0])
    check_classes(model, X, model.predict(X), model.predict_proba(X))


def test_categories_of_hist_gradient_boosting():
    X, y = class_data(5)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["d"] = pd.Series(np.array(["red", "green", "blue", "grey"])[X[:, 3].astype(int)])
    frame.loc[::7, "d"] = None
    frame["d"] = frame["d"].astype("category")
    model = HistGradientBoostingClassifier(
        max_iter=15, categorical_features=["d"], random_state=0
    ).fit(frame[:400], NAMES[y[:400]])
    ensemble = check_classes(model, frame, model.predict(frame), model.decision_function(frame))
    assert ensemble.schema.categories


def test_hist_gradient_boosting_decides_like_its_version(monkeypatch):
    X, y = class_data(3)
    model = HistGradientBoostingClassifier(max_iter=2).fit(X, y)
    expected = {2: BY_SCORES, 0: Ties("softmax", "float64")}
    for label, ties in expected.items():
        monkeypatch.setattr(hist, "_decided", lambda model, scores, label=label: label)
        assert qwyc.read_model(model).base_models.ties == ties


def test_pipelines_and_searches():
    X, y = class_data(4)
    model = make_pipeline(
        StandardScaler(),
        GridSearchCV(RandomForestClassifier(random_state=0), {"n_estimators": [3, 5]}, cv=2),
    ).fit(X[:400], NAMES[y[:400]])
    ensemble = check_classes(model, X, model.predict(X), model.predict_proba(X))
    assert "StandardScaler" in ensemble.description
    search = GridSearchCV(model[-1].estimator, {"max_depth": [2, 3]}, cv=2).fit(X, y)
    check_classes(search, X, search.predict(X), search.predict_proba(X))


@pytest.mark.parametrize("kind", ["forest", "boosting", "hist", "AdaBoost"])
def test_early_decisions(kind):
    X, y = class_data(4, n=1200)
    model = KINDS[kind](4).fit(X[:400], NAMES[y[:400]])
    ensemble = qwyc.read_model(model)
    path = qwyc.fit_path(ensemble.scores(X[400:800]))
    decisions = ensemble.decide(X[800:], ensemble.runner(path[0]))
    np.testing.assert_array_equal(
        decisions.label[decisions.complete], model.predict(X[800:])[decisions.complete]
    )
    assert set(decisions.label) <= set(NAMES)


def test_a_model_that_changed_is_refused():
    X, y = class_data(4)
    model = GradientBoostingClassifier(n_estimators=5).fit(X, y)
    source = open_model(model)
    model.estimators_ = model.estimators_[:4]
    sample = source.ensemble.sample(X)
    with pytest.raises(ParityError, match="uses only its first 4 of 5 rounds"):
        qwyc.check.parity.prove_parity(source, sample, source.ensemble.scores(sample))


def test_what_is_refused():
    X, y = class_data(3, n=100)
    tree = DecisionTreeClassifier(max_depth=2)
    for model in (
        VotingClassifier([("a", tree), ("b", tree)]),
        StackingClassifier([("a", tree)]),
        BaggingClassifier(LogisticRegression(), 3),
    ):
        with pytest.raises(ModelError, match="has 3 classes; qwyc runs it as Python callables"):
            open_model(model.fit(X, y))
    with pytest.raises(ModelError, match="starts from an estimator of its own"):
        open_model(GradientBoostingClassifier(n_estimators=2, init=tree).fit(X, y))
    with pytest.raises(ModelError, match="one class, so there is nothing to decide"):
        open_model(RandomForestClassifier(2).fit(X, np.zeros(100)))
