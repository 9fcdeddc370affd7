"""EarlyExitClassifier with more than two classes."""

import numpy as np
import pytest
import xgboost
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import qwyc


def data(n=9000, classes=4):
    X, y = make_classification(
        n, 12, n_informative=8, n_classes=classes, n_clusters_per_class=1, random_state=0
    )
    return X.astype(np.float32), np.array(["ant", "bee", "cat", "dog"])[y]


X, Y = data()
FIT, NEW = slice(0, 6000), slice(6000, 9000)


@pytest.fixture(scope="module")
def fitted():
    forest = RandomForestClassifier(60, max_depth=8, n_jobs=1)
    return qwyc.EarlyExitClassifier(forest, alpha=0.03, evaluation="quit").fit(X[FIT], Y[FIT])


def test_it_decides_like_its_estimator(fitted):
    full = fitted.estimator_.predict(X[NEW])
    found = fitted.predict(X[NEW])
    assert np.mean(found != full) <= 0.03
    assert fitted.classes_.tolist() == ["ant", "bee", "cat", "dog"]
    assert fitted.n_steps_ < 50
    decided = fitted.decide(X[NEW])
    assert decided.score.shape == (3000, 4)
    assert fitted.score(X[NEW], Y[NEW]) == np.mean(found == Y[NEW])
    assert [loss.name for loss in fitted.certificate_.classes] == fitted.classes_.tolist()


def test_the_decision_function_has_a_column_for_each_class(fitted):
    scores = fitted.decision_function(X[NEW])
    assert scores.shape == (3000, 4)
    full = fitted.estimator_.predict(X[NEW])
    np.testing.assert_array_equal(fitted.classes_[scores.argmax(axis=1)], full)
    assert fitted.predict_proba(X[NEW]).shape == (3000, 4)


def test_limits_by_class():
    forest = RandomForestClassifier(30, max_depth=8, n_jobs=1)
    limits = dict.fromkeys(["ant", "bee", "cat", "dog"], 0.05)
    made = qwyc.EarlyExitClassifier(forest, alpha=None, by_class=limits, holdout=0.5)
    made.fit(X[FIT], Y[FIT])
    full = made.estimator_.predict(X[NEW])
    differ = made.predict(X[NEW]) != full
    assert max(differ[full == label].mean() for label in limits) <= 0.05


def test_inside_pipelines_and_searches():
    inner = xgboost.XGBClassifier(n_estimators=15, max_depth=3, n_jobs=1)
    numbers = np.unique(Y, return_inverse=True)[1]
    made = qwyc.EarlyExitClassifier(inner, alpha=0.05, holdout=0.4)
    found = cross_val_score(made, X[FIT], numbers[FIT], cv=2)
    plain = cross_val_score(clone(inner), X[FIT], numbers[FIT], cv=2)
    assert found.min() > plain.min() - 0.1
    pipeline = make_pipeline(StandardScaler(), made).fit(X[FIT], numbers[FIT])
    assert set(pipeline.predict(X[NEW])) == {0, 1, 2, 3}
    assert pipeline[-1].decision_function(X[NEW]).shape == (3000, 4)


def test_labels_of_several_columns_are_refused():
    made = qwyc.EarlyExitClassifier(RandomForestClassifier(5))
    with pytest.raises(ValueError, match=r"1d|multilabel|one class per row"):
        made.fit(X[FIT], np.column_stack([Y[FIT] == "ant", Y[FIT] == "bee"]).astype(int))
