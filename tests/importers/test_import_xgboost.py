"""XGBoost models, read from files and live objects, against XGBoost itself: bit for bit."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost as xgb

import qwyc
from qwyc.errors import InputError, ModelError
from qwyc.importers import xgboost as importer
from qwyc.target import boundary
from trained import (
    COLOURS,
    SIZES,
    as_float32,
    as_text,
    make_data,
    make_frame,
    permuted,
    written,
    xgboost_document,
)

N_FEATURES = 6


def special_rows(ensemble, rng, rows=500):
    """Rows of everything that is hard: thresholds, their neighbours, float64 values that round to
    them in float32, infinities, NaN, zeros, values past float32."""
    t = ensemble.base_models.trees.threshold
    t = t if t.size else np.zeros(1, np.float32)
    wide = t.astype(np.float64)
    gap = np.spacing(t).astype(np.float64)
    values = [
        wide,
        np.nextafter(t, np.float32(np.inf)),
        np.nextafter(t, np.float32(-np.inf)),
        wide - np.abs(gap) / 8,  # below the threshold, but on it as float32
        wide + np.abs(gap) / 8,
        wide - np.abs(gap) / 2,
        rng.normal(size=t.size),
    ]
    pool = np.concatenate(values)
    X = rng.choice(pool, size=(rows, ensemble.schema.n_features))
    odd = rng.random(X.shape)
    X[odd < 0.15] = np.nan
    for i, value in enumerate([np.inf, -np.inf, 0.0, -0.0, 1e300, -1e300, 1e-46, 5e-324, -999.0]):
        X[(odd > 0.2 + i / 40) & (odd < 0.2 + (i + 1) / 40)] = value
    return X


def assert_same(model, X, ensemble=None):
    """Scores and labels of the classifier `model` and of what was read from it are the same."""
    ensemble = ensemble or qwyc.read_model(model)
    scores = ensemble.score_full(X)
    np.testing.assert_array_equal(scores, model.predict(X, output_margin=True).astype(np.float64))
    theirs = model.predict(X)
    ours = ensemble.classes[(scores >= ensemble.threshold).astype(int)]
    np.testing.assert_array_equal(ours, theirs)
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(importer.live_labels(model, ensemble.sample(X)), theirs)


# ---- scores and decisions --------------------------------------------------------------------

SETTINGS = {
    "plain": {},
    "one tree": {"n_estimators": 1},
    "deep": {"max_depth": 14, "n_estimators": 20},
    "leaf-wise": {"grow_policy": "lossguide", "max_leaves": 25, "max_depth": 0},
    "exact": {"tree_method": "exact"},
    "pruned": {"gamma": 4.0, "tree_method": "exact", "max_depth": 8},  # has deleted nodes
    "approx": {"tree_method": "approx"},
    "weighted": {"scale_pos_weight": 5.0},
    "base score": {"base_score": 0.123},
    "base score 0.5": {"base_score": 0.5},
    "single leaves": {"gamma": 1e9, "n_estimators": 3},
    "forest": {"num_parallel_tree": 4, "subsample": 0.5, "n_estimators": 5},
    "stumps": {"max_depth": 1},
    "reg:logistic": {"objective": "reg:logistic"},
    "logitraw": {"objective": "binary:logitraw"},
    "logitraw base": {"objective": "binary:logitraw", "base_score": -0.3},
    "hinge": {"objective": "binary:hinge"},
    "dart": {"booster": "dart", "rate_drop": 0.3},
    "dart forest": {"booster": "dart", "rate_drop": 0.3, "num_parallel_tree": 3, "subsample": 0.6},
    "dart logitraw": {"booster": "dart", "rate_drop": 0.5, "objective": "binary:logitraw"},
    "dart hinge": {"booster": "dart", "one_drop": True, "objective": "binary:hinge"},
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_scores_and_labels_are_the_classifiers_own(setting):
    for seed in range(2):
        X, y = make_data(seed)
        options = {"n_estimators": 30, "random_state": seed, **SETTINGS[setting]}
        model = xgb.XGBClassifier(**options).fit(X, y)
        ensemble = qwyc.read_model(model)
        rows = special_rows(ensemble, np.random.default_rng(seed))
        for Z in (X, rows, as_float32(rows), np.asfortranarray(rows), rows[:1]):
            assert_same(model, Z, ensemble)


@pytest.mark.parametrize("setting", ["plain", "logitraw", "hinge", "dart", "dart forest"])
def test_scores_and_labels_are_the_boosters_own(setting):
    X, y = make_data(3)
    parameters = {"objective": "binary:logistic", **SETTINGS[setting], "seed": 1}
    booster = xgb.train(parameters, xgb.DMatrix(X, y), 30)
    ensemble = qwyc.read_model(booster)
    rows = special_rows(ensemble, np.random.default_rng(0))
    rows[np.isinf(as_float32(rows))] = 7.0  # Booster.predict refuses infinities
    scores = ensemble.score_full(rows)
    matrix = xgb.DMatrix(rows)
    np.testing.assert_array_equal(scores, booster.predict(matrix, output_margin=True))
    labels = np.where(booster.predict(matrix) > 0.5, 1, 0)
    np.testing.assert_array_equal(scores >= ensemble.threshold, labels == 1)
    np.testing.assert_array_equal(importer.live_labels(booster, ensemble.sample(rows)), labels)
    rows[::3, 0] = np.inf  # but inplace_predict does not
    labels = ensemble.classes[(ensemble.score_full(rows) >= ensemble.threshold).astype(int)]
    np.testing.assert_array_equal(importer.live_labels(booster, ensemble.sample(rows)), labels)


def test_a_thousand_trees():
    X, y = make_data(4)
    model = xgb.XGBClassifier(n_estimators=1000, max_depth=3, learning_rate=0.03).fit(X, y)
    ensemble = qwyc.read_model(model)
    assert ensemble.n_models == 1000
    assert_same(model, special_rows(ensemble, np.random.default_rng(0)), ensemble)


def test_random_forest_classifier():
    X, y = make_data(5)
    model = xgb.XGBRFClassifier(n_estimators=20, random_state=2).fit(X, y)
    ensemble = qwyc.read_model(model)
    assert ensemble.n_models == 20
    assert_same(model, special_rows(ensemble, np.random.default_rng(0)), ensemble)


def test_custom_objective_of_a_classifier():
    def logistic(y_true, margin):
        p = 1 / (1 + np.exp(-margin))
        return p - y_true, np.maximum(p * (1 - p), 1e-6)

    model = xgb.XGBClassifier(n_estimators=5, objective=logistic).fit(*make_data(6))
    assert_same(model, make_data(7)[0])


def test_missing_value_other_than_nan():
    X, y = make_data(8, missing=0.0)
    holes = np.random.default_rng(0).random(X.shape) < 0.2
    for missing in (-999.0, 0.1):  # 0.1 is not a float32
        filled = np.where(holes, missing, X)
        model = xgb.XGBClassifier(n_estimators=10, missing=missing).fit(filled, y)
        ensemble = qwyc.read_model(model)
        rows = special_rows(ensemble, np.random.default_rng(1))
        rows[np.random.default_rng(2).random(rows.shape) < 0.2] = missing
        assert_same(model, rows, ensemble)
        assert_same(model, as_float32(rows), ensemble)
        default_of_nan = xgb.XGBClassifier(n_estimators=10).fit(filled, y)
        assert qwyc.read_model(default_of_nan).schema.missing != ensemble.schema.missing


# ---- the boundary between the classes --------------------------------------------------------


def floats_around(value, count=2000):
    middle = int(np.float32(value).view(np.int32))
    if middle < count:  # next to zero: cross it
        up = np.arange(count, dtype=np.int32).view(np.float32)
        return np.concatenate([-up, up])
    return np.arange(middle - count, middle + count, dtype=np.int32).view(np.float32)


@pytest.mark.parametrize(
    "objective", ["binary:logistic", "reg:logistic", "binary:logitraw", "binary:hinge"]
)
def test_threshold_is_exactly_where_the_decision_turns(data, objective):
    X, y = data
    model = xgb.XGBClassifier(
        n_estimators=1, max_depth=1, learning_rate=0.0, objective=objective
    ).fit(X, y)
    threshold = qwyc.read_model(model).threshold
    rng = np.random.default_rng(0)
    wide = rng.normal(size=5000) * 10.0 ** rng.uniform(-20, 3, 5000)
    extremes = [np.inf, -np.inf, 0.0, -0.0, 3e38, -3e38, 88.7, -88.7, -104.0]
    margins = np.concatenate([floats_around(threshold), wide, extremes]).astype(np.float32)
    labels = model.predict(np.zeros((len(margins), N_FEATURES)), base_margin=margins)
    np.testing.assert_array_equal(labels == 1, margins >= threshold)
    assert {0, 1} == set(labels[: len(floats_around(threshold))])


@pytest.mark.parametrize("objective", ["binary:logistic", "reg:logistic", "binary:logitraw"])
def test_base_margin_of_any_base_score(small_xgboost, objective):
    doc = xgboost_document(small_xgboost)
    doc["learner"]["objective"]["name"] = objective
    rng = np.random.default_rng(0)
    scores = np.concatenate(
        [rng.random(150), 10.0 ** rng.uniform(-9, -1, 50), 1 - 10.0 ** rng.uniform(-7, -1, 50)]
    )
    for p in [0.0, 1.0, 0.5, 1e-6, 1e-7, *scores]:
        doc["learner"]["learner_model_param"]["base_score"] = f"[{float(np.float32(p))!r}]"
        booster = xgb.Booster()
        booster.load_model(bytearray(json.dumps(doc).encode()))
        ours = qwyc.read_model(booster).score_full(np.zeros((1, N_FEATURES)))
        theirs = booster.inplace_predict(np.zeros((1, N_FEATURES)), predict_type="margin")
        np.testing.assert_array_equal(ours, theirs)


def test_smallest_positive_finds_every_boundary():
    for dtype in (np.float32, np.float64):
        tiny = float(np.finfo(dtype).smallest_subnormal)
        for value in (-1e30, -1.5, -tiny, tiny, 3 * tiny, 1.0, 1e-20, 1e30):
            expected = float(dtype(value))
            found = boundary.smallest_positive(lambda x, v=expected: x >= v, dtype)
            assert found == expected
        with pytest.raises(ValueError, match="same for every score"):
            boundary.smallest_positive(lambda x: False, dtype)


# ---- categories ------------------------------------------------------------------------------

CATEGORICAL_SETTINGS = {
    "sets": {"max_cat_to_onehot": 1},
    "one-hot": {"max_cat_to_onehot": 100},
    "dart": {"booster": "dart", "rate_drop": 0.4},
}


@pytest.mark.parametrize("setting", CATEGORICAL_SETTINGS)
def test_pandas_categories(setting):
    frame, y = make_frame()
    options = {"n_estimators": 20, "enable_categorical": True, **CATEGORICAL_SETTINGS[setting]}
    model = xgb.XGBClassifier(**options).fit(frame, y)
    ensemble = qwyc.read_model(model)
    assert ensemble.schema.names == tuple(frame.columns)
    assert ensemble.schema.categories == {1: COLOURS, 3: ("only",), 4: SIZES}
    other = make_frame(1)[0]
    assert_same(model, other, ensemble)
    assert_same(model, permuted(other), ensemble)
    fewer = other[other["the colour"].isin(COLOURS[2:5])]
    colour = fewer["the colour"].cat.remove_unused_categories()
    assert_same(model, fewer.assign(**{"the colour": colour}), ensemble)


def test_unseen_categories_are_refused():
    frame, y = make_frame()
    model = xgb.XGBClassifier(n_estimators=3, enable_categorical=True).fit(frame, y)
    ensemble = qwyc.read_model(model)
    strange = frame.assign(**{"the colour": pd.Categorical(["zinc"] * len(frame))})
    with pytest.raises(ValueError, match="not in the training set"):  # as XGBoost does
        model.predict(strange)
    with pytest.raises(InputError, match="'zinc'"):
        ensemble.score_full(strange)


@pytest.mark.parametrize("one_hot", [1, 100])
def test_category_codes_in_arrays(one_hot):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 70, 800).astype(float)
    X = np.column_stack([rng.normal(size=800), codes])
    X[rng.random(X.shape) < 0.1] = np.nan
    y = ((codes % 3 == 0) + rng.normal(size=800) / 3 > 0.5).astype(int)
    model = xgb.XGBClassifier(
        n_estimators=20,
        feature_types=["q", "c"],
        enable_categorical=True,
        max_cat_to_onehot=one_hot,
    ).fit(X, y)
    ensemble = qwyc.read_model(model)
    assert ensemble.schema.categories == {}
    assert (ensemble.base_models.trees.flags & 2).any()
    odd = [-1, -0.5, -0.999, -1e9, 0.5, 1.9, 31, 32, 63, 64, 69.5, 70, 96, 1000, np.nan, np.inf]
    odd += [-np.inf, 2**24 - 1, 2**24, 2**24 + 1, 2**31, 2**32 + 3, 1e30, 16777215.9, -0.0]
    rows = np.column_stack([np.zeros(len(odd)), odd])
    assert_same(model, rows, ensemble)
    assert_same(model, rows.astype(np.float32), ensemble)
    assert_same(model, np.column_stack([np.zeros(80), np.arange(80)]), ensemble)
    with pytest.raises(InputError, match="codes"):
        ensemble.score_full(pd.DataFrame({"a": [0.0], "b": pd.Categorical(["x"])}))


def test_names_beyond_ascii_are_not_guessed():
    frame, y = make_frame()
    names = {"red": "röd", "blue": "blå"}
    frame["the colour"] = frame["the colour"].cat.rename_categories(names)
    model = xgb.XGBClassifier(n_estimators=3, enable_categorical=True).fit(frame, y)
    ensemble = qwyc.read_model(model)
    assert list(ensemble.schema.categories) == [3, 4]
    with pytest.raises(InputError, match="the colour"):
        ensemble.score_full(frame)


def test_labels_of_other_tables():
    frame, y = make_frame()
    model = xgb.XGBClassifier(n_estimators=5, enable_categorical=True).fit(frame, y)
    ensemble = qwyc.read_model(model)
    expected = model.predict(frame)
    text = as_text(frame)
    tables = {
        "reordered": frame[list(frame.columns[::-1])],
        "wider": frame.assign(more=1.0),
        "text": text,
        "polars": pl.from_dict({name: text[name].to_list() for name in text}),
        "codes": ensemble.rows(frame),
        "lists": ensemble.rows(frame).tolist(),
    }
    for table in tables.values():
        for live in (model, model.get_booster()):
            np.testing.assert_array_equal(
                importer.live_labels(live, ensemble.sample(table)), expected
            )


# ---- which trees count -----------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"num_parallel_tree": 3, "subsample": 0.5}])
@pytest.mark.parametrize("booster", ["gbtree", "dart"])
def test_best_iteration(tmp_path, options, booster):
    X, y = make_data(9)
    X_eval, y_eval = make_data(10)
    model = xgb.XGBClassifier(
        n_estimators=60, learning_rate=0.9, early_stopping_rounds=8, booster=booster, **options
    ).fit(X, y, eval_set=[(X_eval, y_eval)], verbose=False)
    per_iteration = options.get("num_parallel_tree", 1)
    rounds = model.get_booster().num_boosted_rounds()
    assert model.best_iteration + 1 < rounds
    ensemble = qwyc.read_model(model)
    assert ensemble.n_models == (model.best_iteration + 1) * per_iteration
    assert_same(model, X_eval, ensemble)

    # The Booster uses every tree, in the file that it saves as well.
    whole = qwyc.read_model(model.get_booster())
    assert whole.n_models == rounds * per_iteration
    margin = model.get_booster().predict(xgb.DMatrix(X_eval), output_margin=True)
    np.testing.assert_array_equal(whole.score_full(X_eval), margin)
    for suffix in ("json", "ubj"):
        model.save_model(tmp_path / f"classifier.{suffix}")
        assert qwyc.read_model(tmp_path / f"classifier.{suffix}").digest == ensemble.digest
        model.get_booster().save_model(tmp_path / f"booster.{suffix}")
        assert qwyc.read_model(tmp_path / f"booster.{suffix}").digest == whole.digest


def test_a_best_iteration_that_is_not_there(tmp_path, small_xgboost):
    doc = xgboost_document(small_xgboost)
    doc["learner"]["attributes"] = {"scikit_learn": "{}", "best_iteration": "5"}
    with pytest.raises(ModelError, match="best iteration is 5"):
        qwyc.read_model(written(tmp_path / "m.json", doc))
    doc["learner"]["attributes"]["best_iteration"] = "4"
    assert qwyc.read_model(written(tmp_path / "m.json", doc)).n_models == 5
