"""libqwyc against Python: probabilities, values, outputs within a tolerance, and codes of categories."""

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.ensemble import HistGradientBoostingClassifier

import predictors
import qwyc
from library import (
    APPROXIMATION,
    CATEGORY,
    PREDICTOR,
    UNSUPPORTED,
    LibraryError,
    Loaded,
)
from qwyc.files import classifier_file
from qwyc.rows.categories import codes_of_values

LIVE = predictors.models()


def loaded(model):
    return Loaded.of_bytes(classifier_file.model_to_bytes(model))


@pytest.mark.parametrize("name", LIVE)
def test_models_that_are_evaluated_in_full(name):
    python = qwyc.read_model(LIVE[name])
    model, K = loaded(python), python.base_models.n_scores
    frame = predictors.rows(500, seed=3)[predictors.COLUMNS]
    rows = frame.to_numpy(np.float32)
    assert model.number("kind_of") == PREDICTOR
    assert model.text("certificate") is None
    np.testing.assert_array_equal(
        model.decide_full(rows, threads=2)[1], python.score_full(rows).reshape(-1, K)
    )
    if python.has_classes:
        label, steps, _ = model.decide(rows)
        np.testing.assert_array_equal(python.classes.take(label), python.predict(rows))
        assert (steps == python.n_models).all()
        with pytest.raises(LibraryError, match="model of classes"):
            model.output("values", rows, K)
    else:
        values = model.output("values", rows, K)
        np.testing.assert_array_equal(values, python.predict(rows).reshape(-1, K))
        with pytest.raises(LibraryError, match="use qwyc_values") as error:
            model.decide(rows)
        assert error.value.status == UNSUPPORTED
    if predictors.has_proba(name):
        found = model.output("probabilities", rows, len(python.classes), threads=2)
        np.testing.assert_array_equal(found, python.predict_proba(rows))
    else:
        with pytest.raises(LibraryError) as error:
            model.output("probabilities", rows, max(len(python.classes), 1))
        assert error.value.status == UNSUPPORTED


def regression(seed=0):
    X = np.random.default_rng(seed).normal(size=(6000, 5)).astype(np.float32)
    return X, 3 * X[:, 0] + X[:, 1] * X[:, 2]


@pytest.mark.parametrize("kind", ["value", "probability"])
def test_outputs_within_a_tolerance(kind):
    X, y = regression()
    if kind == "value":
        model = lightgbm.LGBMRegressor(n_estimators=60, num_leaves=15, n_jobs=1, verbose=-1)
        fast = qwyc.optimize(
            model.fit(X[:2000], y[:2000]), X[2000:], tolerance=1.0, alpha=0.05, evaluation="quit"
        )
    else:
        model = xgboost.XGBClassifier(n_estimators=60, max_depth=3, n_jobs=1)
        model.fit(X[:2000], y[:2000] > 0)
        fast = qwyc.optimize(model, X[2000:], tolerance=0.05, alpha=0.05, evaluation="quit")
    model = Loaded.of_bytes(classifier_file.to_bytes(fast))
    assert model.number("kind_of") == APPROXIMATION
    assert model.number("tolerance") == fast.tolerance
    rows = regression(seed=1)[0]
    rows[::7, 0] = np.nan
    expected = fast.decide(rows)
    assert expected.steps.min() < fast.policy.n_models
    for label, steps, score in (model.decide(rows, threads=2), model.decide_each(rows)):
        np.testing.assert_array_equal(steps, expected.steps)
        np.testing.assert_array_equal(score[:, 0], expected.score)
        if kind == "value":
            assert (label == -1).all()
        else:
            np.testing.assert_array_equal(label, expected.label)


def table():
    rng = np.random.default_rng(0)
    text = rng.choice(["red", "green", "blüe", ""], 800)
    frame = pd.DataFrame({"x": rng.normal(size=800), "colour": pd.Categorical(text)})
    frame["size"] = pd.Categorical(rng.choice([1, 5, 7], 800))
    return frame, (frame["x"] + (text == "red") > 0.3).to_numpy()


LIBRARIES = {
    "lightgbm": lambda X, y: lightgbm.LGBMClassifier(n_estimators=9, verbose=-1).fit(X, y),
    "scikit-learn": lambda X, y: HistGradientBoostingClassifier(
        max_iter=9, categorical_features="from_dtype"
    ).fit(X, y),
}


@pytest.mark.parametrize("name", LIBRARIES)
def test_codes_of_categories_are_those_of_python(name):
    frame, y = table()
    python = qwyc.read_model(LIBRARIES[name](frame, y))
    model, schema = loaded(python), python.schema
    asked = {1: ["red", "green", "blüe", "", "unknown", None], 2: [1, 5, 7, 5.0, 6, 0.5, -3]}
    for feature, values in asked.items():
        expected = codes_of_values(values, schema.categories[feature], schema.unseen)
        for value, code in zip(values, expected, strict=True):
            if np.isinf(code):
                with pytest.raises(LibraryError, match="not among the categories") as error:
                    model.code_of(feature, value)
                assert error.value.status == CATEGORY
            else:
                np.testing.assert_equal(model.code_of(feature, value), code)
    for feature, value in ((1, 3), (1, 0.5), (2, "red")):
        with pytest.raises(LibraryError, match="the model was trained on categories") as error:
            model.code_of(feature, value)
        assert error.value.status == CATEGORY
    with pytest.raises(LibraryError, match="not a column of categories"):
        model.code_of(0, "red")
    # A row that is encoded by the library is decided as the table is.
    some = frame.head(50)
    rows = np.array([[x, model.code_of(1, c), model.code_of(2, s)] for x, c, s in some.to_numpy()])
    label, _, score = model.decide(rows)
    np.testing.assert_array_equal(python.classes.take(label), python.predict(some))
    np.testing.assert_array_equal(score[:, 0], python.score_full(some))
