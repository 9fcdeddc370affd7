"""`qwyc.Predictor` where scikit-learn takes a fitted estimator."""

import subprocess
import sys
import warnings

import lightgbm
import numpy as np
import pandas as pd
import pytest
import sklearn.ensemble
from sklearn.base import clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.metrics import get_scorer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

import qwyc

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(200, 4)), columns=list("abcd"))
Y = (X["a"] + X["b"] * X["c"] + RNG.normal(size=200) / 3).to_numpy()
LABELS = np.array(["no", "yes"])[(Y > 0).astype(int)]
SMALL = {"n_estimators": 9, "n_jobs": 1, "verbose": -1}


@pytest.fixture(scope="module")
def regressor():
    return lightgbm.LGBMRegressor(**SMALL).fit(X, Y)


@pytest.fixture(scope="module")
def classifier():
    return lightgbm.LGBMClassifier(**SMALL).fit(X, LABELS)


def test_attributes(regressor, classifier):
    values, classes = qwyc.read_model(regressor), qwyc.read_model(classifier)
    assert classes.classes_.tolist() == classifier.classes_.tolist()
    assert not hasattr(values, "classes_")
    assert classes.n_features_in_ == 4
    assert classes.feature_names_in_.tolist() == list("abcd")
    plain = qwyc.read_model(lightgbm.LGBMRegressor(**SMALL).fit(X.to_numpy(), Y))
    assert plain.n_features_in_ == 4
    assert not hasattr(plain, "feature_names_in_")
    piped = qwyc.read_model(
        make_pipeline(StandardScaler(), lightgbm.LGBMRegressor(**SMALL)).fit(X, Y)
    )
    assert not hasattr(piped, "n_features_in_")
    for model in (values, classes, plain, piped):
        check_is_fitted(model)
        assert model.fit(X, Y) is model
        assert clone(model) is model


def test_kinds(regressor, classifier):
    forest = sklearn.ensemble.IsolationForest(n_estimators=5, random_state=0).fit(X)
    kinds = (is_regressor, is_classifier, is_outlier_detector)
    for kind, live in zip(kinds, (regressor, classifier, forest), strict=True):
        model = qwyc.read_model(live)
        assert [each(model) for each in kinds] == [each is kind for each in kinds]
    with pytest.raises(qwyc.OptionError, match="has no score: use score_samples"):
        model.score(X, np.ones(200))


def test_score_is_that_of_the_source(regressor, classifier):
    weight = RNG.random(200)
    for live, y in ((regressor, Y), (classifier, LABELS)):
        model = qwyc.read_model(live)
        assert model.score(X, y) == pytest.approx(live.score(X, y), rel=1e-12)
        assert model.score(X, y, weight) == pytest.approx(live.score(X, y, weight), rel=1e-12)
    several = sklearn.ensemble.RandomForestRegressor(5).fit(X, np.column_stack([Y, Y**2]))
    y = np.column_stack([Y[::-1], np.ones(200)])  # a column of one value
    assert qwyc.read_model(several).score(X, y) == pytest.approx(several.score(X, y), rel=1e-12)
    with pytest.raises(qwyc.OptionError, match=r"y must have the shape \(200, 2\); got \(7,\)"):
        qwyc.read_model(several).score(X, Y[:7])


def test_scorers(regressor, classifier):
    for live, y, names in (
        (regressor, Y, ("r2", "neg_mean_squared_error", "neg_max_error")),
        (classifier, LABELS, ("roc_auc", "neg_log_loss", "accuracy")),
    ):
        for name in names:
            scorer = get_scorer(name)
            ours = scorer(qwyc.read_model(live), X, y)
            assert ours == scorer(live, X, y), name


def test_inspection_and_validation(regressor, classifier):
    for live, y in ((regressor, Y), (classifier, LABELS)):
        model = qwyc.read_model(live)
        ours, theirs = (
            permutation_importance(each, X, y, n_repeats=2, random_state=0).importances
            for each in (model, live)
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
        scores = cross_val_score(model, X, y, cv=2)  # on the same model: fit has no effect
        assert len(scores) == 2
        curve = partial_dependence(model, X, ["a"], method="brute", grid_resolution=5)
        want = partial_dependence(live, X, ["a"], method="brute", grid_resolution=5)
        np.testing.assert_array_equal(curve["average"], want["average"])


def test_pipelines_and_calibration():
    scaler = StandardScaler().set_output(transform="pandas").fit(X)
    scaled = scaler.transform(X)
    model = qwyc.read_model(lightgbm.LGBMRegressor(**SMALL).fit(scaled, Y))
    line = make_pipeline(scaler, model)
    check_is_fitted(line)
    np.testing.assert_array_equal(line.predict(X), model.predict(scaled))
    assert clone(line)[-1] is model
    found, forest = [], sklearn.ensemble.RandomForestClassifier(9, max_depth=3).fit(X, LABELS)
    for live in (forest, qwyc.read_model(forest)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            calibrated = CalibratedClassifierCV(FrozenEstimator(live), cv=2).fit(X, LABELS)
            found.append(calibrated.predict_proba(X))
    np.testing.assert_array_equal(*found)


def test_scikit_learn_is_not_imported_before_it_asks(regressor, tmp_path):
    regressor.booster_.save_model(tmp_path / "m.txt")
    code = (
        "import sys, numpy as np, qwyc; model = qwyc.read_model(sys.argv[1]); "
        "model.score(np.zeros((3, 4)), np.arange(3)); assert model.n_features_in_ == 4; "
        "assert 'sklearn' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "m.txt")], check=True)
