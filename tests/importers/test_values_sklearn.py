"""Values and probabilities of scikit-learn: bit for bit those of its own predict and predict_proba."""

import warnings

import numpy as np
import pytest
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeRegressor,
)

import qwyc
from outputs import check_probabilities, check_values, made_rows

X, TARGET = made_rows(missing=0.0)
POSITIVE = np.exp(TARGET / 3)
SMALL = {"max_depth": 5, "random_state": 0}

REGRESSORS = [
    RandomForestRegressor(10, **SMALL),
    ExtraTreesRegressor(10, **SMALL),
    DecisionTreeRegressor(**SMALL),
    ExtraTreeRegressor(**SMALL),
    BaggingRegressor(DecisionTreeRegressor(**SMALL), 8, max_features=0.6, random_state=0),
    *(
        GradientBoostingRegressor(n_estimators=10, loss=loss, random_state=0)
        for loss in ("squared_error", "absolute_error", "huber", "quantile")
    ),
]


@pytest.mark.parametrize("model", REGRESSORS, ids=str)
def test_regressors(model, tmp_path):
    model.fit(X, TARGET)
    check_values(model, X, model.predict(X), tmp_path)


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor])
def test_several_values(kind, tmp_path):
    model = kind(10, **SMALL).fit(X, np.column_stack([TARGET, POSITIVE]))
    check_values(model, X, model.predict(X), tmp_path)


@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "gamma", "poisson", "quantile"]
)
def test_histograms(loss, tmp_path):
    rows, target = made_rows()[0].astype(np.float64), TARGET
    if loss in ("gamma", "poisson"):
        target = POSITIVE
    model = HistGradientBoostingRegressor(max_iter=10, loss=loss, quantile=0.3).fit(rows, target)
    check_values(model, rows, model.predict(rows), tmp_path)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(10, **SMALL),
        ExtraTreesClassifier(10, **SMALL),
        DecisionTreeClassifier(**SMALL),
        BaggingClassifier(DecisionTreeClassifier(**SMALL), 8, random_state=0),
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=10, random_state=0),
        GradientBoostingClassifier(n_estimators=5, random_state=0),
        HistGradientBoostingClassifier(max_iter=5),
    ],
    ids=lambda model: type(model).__name__,
)
def test_probabilities(model, n_classes, tmp_path):
    edges = np.quantile(TARGET, np.linspace(0, 1, n_classes + 1)[1:-1])
    model.fit(X, np.digitize(TARGET, edges))
    check_values(model, X, model.predict(X), tmp_path)
    check_probabilities(model, X, model.predict_proba(X), tmp_path)


def test_probabilities_of_the_exponential_loss(tmp_path):
    model = GradientBoostingClassifier(n_estimators=5, loss="exponential").fit(X, TARGET > 0)
    check_probabilities(model, X, model.predict_proba(X), tmp_path)


@pytest.mark.parametrize("options", [{}, {"contamination": 0.1}, {"max_features": 0.5}], ids=str)
def test_isolation_forests(options, tmp_path):
    model = IsolationForest(n_estimators=50, random_state=0, **options).fit(X)
    check_values(model, X, model.predict(X), tmp_path)
    predictor = qwyc.read_model(model)
    np.testing.assert_array_equal(predictor.score_samples(X), model.score_samples(X))
    assert set(model.predict(X)) == {-1, 1}


def test_isolation_forests_quit_early():
    model = IsolationForest(n_estimators=100, random_state=0, contamination=0.1).fit(X[:300])
    with pytest.warns(qwyc.QwycWarning, match="may be decided differently"):
        fast = qwyc.optimize(model, X[300:], alpha=0.05, evaluation="quit")
    assert fast.certificate.mean_models < 50
    np.testing.assert_array_equal(fast.full().predict(X), model.predict(X))


def test_what_is_no_sum_is_refused_by_name():
    model = AdaBoostRegressor(n_estimators=3, random_state=0).fit(X, TARGET)
    with pytest.raises(qwyc.ModelError, match=r"AdaBoostRegressor.*weighted median"):
        qwyc.read_model(model)
    forest = RandomForestRegressor(5, **SMALL).fit(X, TARGET)
    with pytest.raises(qwyc.OptionError, match="isolation forests"):
        qwyc.read_model(forest).score_samples(X)


def test_a_predict_of_its_own_is_warned_of():
    class Doubled(RandomForestRegressor):
        def predict(self, X):
            return 2 * super().predict(X)

    model = Doubled(n_estimators=3, random_state=0).fit(X, TARGET)
    with pytest.warns(qwyc.QwycWarning, match="Doubled has its own predict, which is not read"):
        found = qwyc.read_model(model)
    np.testing.assert_array_equal(2 * found.predict(X), model.predict(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error", qwyc.QwycWarning)
        qwyc.read_model(RandomForestRegressor(n_estimators=3, random_state=0).fit(X, TARGET))


def test_outputs_are_not_called_classes():
    both = RandomForestRegressor(n_estimators=3, random_state=0).fit(
        X, np.column_stack([TARGET, TARGET])
    )
    assert "3 trees for 2 outputs" in repr(qwyc.read_model(both))
