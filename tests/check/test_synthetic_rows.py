"""alpha=0 without rows: the live model is asked on rows made from its own thresholds."""

import warnings

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import qwyc
from forests import changed, random_ensemble
from kinds import KINDS
from lattices import random_lattices
from qwyc.check.parity import prove_parity_without_rows
from qwyc.check.synthetic import ROWS, synthetic_samples
from qwyc.importers import OpenModel, open_model
from qwyc.importers.live import Predictions
from qwyc.model.trees import Summation
from trained import QUIET, make_data, make_frame

pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


def light(**options):
    return lightgbm.LGBMClassifier(n_estimators=40, **QUIET, **options)


def refused(model, match="a row made from the model's thresholds"):
    with pytest.raises(qwyc.ParityError, match=match):
        qwyc.optimize(model, alpha=0)


@pytest.fixture(scope="module")
def data():
    return make_data(missing=0.0)


# ---- models that do not decide as their trees do -----------------------------------------------


@pytest.mark.parametrize("value", [True, "true", "True", "+", 1])
def test_lightgbm_that_stops_early_is_refused(value, data):
    """As an option of the classifier: `Booster.predict` does not look at its own params."""
    early = {"pred_early_stop_margin": 0.5, "pred_early_stop_freq": 2}
    model = light().fit(*data).set_params(pred_early_stop=value, **early)
    with pytest.raises(qwyc.ModelError, match="pred_early_stop"):
        qwyc.optimize(model, alpha=0)


class StopsEarly(lightgbm.LGBMClassifier):
    """Passes LightGBM's own early stopping to every call."""

    def predict(self, X, **options):
        early = {"pred_early_stop": "+", "pred_early_stop_margin": 0.5, "pred_early_stop_freq": 2}
        return super().predict(X, **(options | early))


def test_early_stopping_that_no_option_shows_is_noticed(data):
    X, y = data
    model = StopsEarly(n_estimators=40, **QUIET).fit(X, y)
    refused(model)
    with pytest.raises(qwyc.ParityError, match=r"row .* of X"):
        qwyc.optimize(model, X, alpha=0)


def test_a_booster_does_not_look_at_early_stopping_in_its_params(data):
    X, y = data
    booster = light().fit(X, y).booster_
    scores = booster.predict(X, raw_score=True)
    early = {"pred_early_stop_margin": 0.5, "pred_early_stop_freq": 2}
    booster.params.update(pred_early_stop=True, **early)
    np.testing.assert_array_equal(booster.predict(X, raw_score=True), scores)
    qwyc.optimize(booster, alpha=0)


def overriding(kind, threshold):
    """A class whose `predict` decides at another probability."""

    class Overridden(kind):
        def predict(self, X, **options):
            if options:  # scores, as they are
                return super().predict(X, **options)
            return (self.predict_proba(X)[:, 1] > threshold).astype(int)

    return Overridden


@pytest.mark.parametrize("threshold", [0.3, 0.48, 0.9])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (lightgbm.LGBMClassifier, {"n_estimators": 20, **QUIET}),
        (xgboost.XGBClassifier, {"n_estimators": 20}),
        (RandomForestClassifier, {"n_estimators": 20, "random_state": 0}),
        (GradientBoostingClassifier, {"n_estimators": 20}),
        (HistGradientBoostingClassifier, {"max_iter": 20}),
        (AdaBoostClassifier, {"n_estimators": 20}),
    ],
)
def test_a_predict_that_is_overridden_is_noticed(kind, options, threshold, data):
    X, y = data
    qwyc.optimize(kind(**options).fit(X, y), alpha=0)
    model = overriding(kind, threshold)(**options).fit(X, y)
    if (
        kind is HistGradientBoostingClassifier and threshold > 0.5
    ):  # its own predict was asked for it
        np.testing.assert_array_equal(qwyc.optimize(model, alpha=0).predict(X), model.predict(X))
        return
    refused(model)


def test_a_catboost_predict_that_is_overridden_is_noticed(data):
    class Overridden(catboost.CatBoostClassifier):
        def predict(self, data, prediction_type="Class", **options):
            found = super().predict(data, prediction_type=prediction_type, **options)
            return 1 - found if prediction_type == "Class" else found

    model = Overridden(iterations=20, verbose=0, allow_writing_files=False)
    refused(model.fit(*data))


def test_fewer_trees_are_noticed(data):
    class Few(xgboost.XGBClassifier):
        def predict(self, X, **options):
            return super().predict(X, **(options | {"iteration_range": (0, 5)}))

    refused(Few(n_estimators=20).fit(*data), match="uses only its first 5 of 20 trees")


def test_a_base_margin_is_noticed(data):
    class Shifted(xgboost.XGBClassifier):
        def predict(self, X, **options):
            return super().predict(X, base_margin=np.full(len(X), 0.25), **options)

    refused(Shifted(n_estimators=20).fit(*data))


def test_a_booster_that_changed_after_training_is_read_as_it_is(data):
    X, y = data
    model = light().fit(X, y)
    booster = lightgbm.Booster(model_str=model.booster_.model_to_string())
    booster.best_iteration = 7  # predict and the text stop there
    fast = qwyc.optimize(booster, alpha=0)
    assert fast.ensemble.n_models == 7
    np.testing.assert_array_equal(fast.score_full(X), booster.predict(X, raw_score=True))


# ---- no false alarm ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in KINDS if "Pipeline" not in name])
def test_models_that_are_read_exactly_pass(name):
    kind = KINDS[name]
    for seed in range(2):
        X, y = make_data(seed, rows=200, missing=0.0)
        source = open_model(kind.fit(X, y, 8, False))
        assert prove_parity_without_rows(source, seed)


@pytest.mark.parametrize("name", ["LightGBM gbdt", "XGBoost gbtree", "hist gradient boosting"])
def test_categories_and_missing_values(name):
    frame, y = make_frame()
    if name == "hist gradient boosting":
        model = HistGradientBoostingClassifier(max_iter=10, categorical_features="from_dtype")
        model.fit(frame, y)
    elif name == "XGBoost gbtree":
        model = xgboost.XGBClassifier(n_estimators=10, enable_categorical=True).fit(frame, y)
    else:
        model = light().fit(frame, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", qwyc.QwycWarning)
        assert prove_parity_without_rows(open_model(model), 0)
    sample = next(synthetic_samples(qwyc.read_model(model), 0))
    names = [str(name) for name in sample.given.columns]
    colour = sample.given[names[1]]
    assert colour.isna().any()
    assert colour.nunique() >= 5
    if name != "XGBoost gbtree":  # which refuses them
        assert any("unseen" in str(value) for value in colour.unique())


def test_a_number_that_means_missing(data):
    X, y = data
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, -999.0, X)
    model = xgboost.XGBClassifier(n_estimators=10, missing=-999.0).fit(X, y)
    assert prove_parity_without_rows(open_model(model), 0)
    sample = next(synthetic_samples(qwyc.read_model(model), 0))
    assert (sample.given == -999.0).any()


# ---- the rows ----------------------------------------------------------------------------------


@pytest.mark.parametrize("summation", list(Summation))
def test_rows_lie_at_thresholds_and_on_both_sides(summation):
    ensemble = random_ensemble(5, summation=summation, n_trees=20)
    rows = next(synthetic_samples(ensemble, 0)).rows
    assert rows.shape == (ROWS, ensemble.schema.n_features)
    assert rows.dtype == ensemble.schema.dtype
    trees = ensemble.base_models.trees
    at = 0
    for feature, threshold in zip(trees.feature, trees.threshold, strict=True):
        low, high = (np.nextafter(threshold, threshold.dtype.type(end)) for end in (-9e9, 9e9))
        column = rows[:, feature]
        at += (column == threshold).any() and (column == low).any() and (column == high).any()
    assert at > len(trees.feature) / 3
    assert np.isnan(rows).any()
    assert np.isinf(rows).any()
    assert (rows == 0).any()
    full = ensemble.score_full(rows)
    assert len(np.unique(full >= ensemble.threshold)) == 2
    np.testing.assert_array_equal(next(synthetic_samples(ensemble, 0)).rows, rows)  # seeded
    assert not np.array_equal(next(synthetic_samples(ensemble, 1)).rows, rows, equal_nan=True)


def test_rows_have_high_and_low_scores_and_some_close_to_the_threshold():
    ensemble = random_ensemble(8, summation=Summation.FLOAT64, n_trees=30)
    score = ensemble.score_full(next(synthetic_samples(ensemble, 0)).rows)
    random, high, low, close = score.reshape(4, -1)
    assert high.mean() > random.mean() > low.mean()
    assert np.abs(close - ensemble.threshold).mean() < np.abs(random - ensemble.threshold).mean()


def test_values_that_the_library_refuses_are_left_out(data):
    model = GradientBoostingClassifier(n_estimators=5).fit(*data)
    rows = next(synthetic_samples(qwyc.read_model(model), 0)).rows
    assert np.isfinite(rows).all()


# ---- where nothing is compared -----------------------------------------------------------------


def test_nothing_is_made_for_pipelines_lattices_and_callables(data):
    pipeline = make_pipeline(StandardScaler(), light()).fit(*data)
    callables = qwyc.read_model([lambda rows: rows[:, 0]])
    for ensemble in (qwyc.read_model(pipeline), callables, random_lattices(0)):
        assert not list(synthetic_samples(ensemble, 0))
    assert not prove_parity_without_rows(open_model(pipeline), 0)
    qwyc.optimize(pipeline, alpha=0)


def test_a_model_that_takes_no_made_rows_gives_a_warning(data):
    model = light().fit(*data).set_params(pred_early_stop=0)  # LightGBM takes "-" or False only
    with pytest.warns(qwyc.QwycWarning, match="nothing was compared with the model itself"):
        qwyc.optimize(model, alpha=0)


def test_special_values_that_a_model_refuses_are_tried_without():
    ensemble = random_ensemble(2, n_trees=5, summation=Summation.FLOAT64_LATE)
    asked = []

    def predict(sample):
        asked.append(sample)
        if not np.isfinite(sample.rows).all():
            raise qwyc.InputError("no infinities, please")
        full = ensemble.score_full(sample)
        return Predictions((full >= ensemble.threshold).astype(int), full)

    assert prove_parity_without_rows(OpenModel(ensemble, predict), 0)
    assert len(asked) == 2
    wrong = changed(ensemble, base=ensemble.base_models.start + 1.0)
    with pytest.raises(qwyc.ParityError, match="adds -1 to every score"):
        prove_parity_without_rows(OpenModel(wrong, predict), 0)


def test_files_have_no_live_model(data, tmp_path):
    model = light().fit(*data)
    model.booster_.save_model(tmp_path / "m.txt")
    assert not prove_parity_without_rows(open_model(tmp_path / "m.txt"), 0)


def test_frames_with_names_are_no_problem(data):
    X, y = data
    frame = pd.DataFrame(X, columns=[f"c {j}" for j in range(X.shape[1])])
    for model in (light(), xgboost.XGBClassifier(n_estimators=5), RandomForestClassifier(5)):
        assert prove_parity_without_rows(open_model(model.fit(frame, y)), 0)
