"""LightGBM models, read from files and live objects, against LightGBM itself: bit for bit."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import qwyc
from qwyc.errors import InputError
from qwyc.importers import lightgbm as importer
from trained import (
    QUIET,
    SIZES,
    as_float32,
    as_text,
    make_data,
    make_frame,
    permuted,
)

ZERO = float(np.float32(1e-35))  # LightGBM's own idea of zero


def special_rows(ensemble, rng, rows=500):
    """Rows of everything that is hard: thresholds and their neighbours, zeros of all sizes, codes
    that are negative, fractional or out of range, infinities, NaN."""
    t = ensemble.base_models.trees.threshold
    t = t if t.size else np.zeros(1)
    pool = np.concatenate(
        [t, np.nextafter(t, np.inf), np.nextafter(t, -np.inf), rng.normal(size=9)]
    )
    X = rng.choice(pool, size=(rows, ensemble.schema.n_features))
    zeros = [0.0, -0.0, ZERO, -ZERO, ZERO / 2, -ZERO / 2, 5e-324, 1e-40, -1e-40]
    zeros += [np.nextafter(ZERO, 1), np.nextafter(-ZERO, -1)]
    codes = [-0.5, -0.999, -1.0, -1.5, 0.5, 7.9, 28, 31, 32, 39, 39.9, 40, 63, 64, 1000]
    huge = [2**24 - 1, 2**24, 2**31 - 1, 2**31 - 0.5, 2**31, 2**32 + 7, 1e18, 1e300, -1e300]
    odd = [*zeros, *codes, *huge, np.inf, -np.inf, np.nan, np.nan, np.nan]
    replaced = rng.random(X.shape) < 0.5
    X[replaced] = rng.choice(odd, size=replaced.sum())
    return X


def raw_score(model, X):
    """LightGBM's own, but averaged for random forests: theirs are averaged only on the way to
    probabilities."""
    booster = model if isinstance(model, lgb.Booster) else model.booster_
    text = booster.model_to_string()
    return model.predict(X, raw_score=True) / (
        text.count("\nTree=") if "\naverage_output\n" in text else 1
    )


def assert_same(model, X, ensemble=None):
    """Scores and labels of `model` and of what was read from it are the same."""
    ensemble = ensemble or qwyc.read_model(model)
    scores = ensemble.score_full(X)
    np.testing.assert_array_equal(scores, raw_score(model, X))
    theirs = model.predict(X)
    if isinstance(model, lgb.Booster):
        theirs = np.where(theirs > 0.5, 1, 0)
    ours = ensemble.classes[(scores >= ensemble.threshold).astype(int)]
    np.testing.assert_array_equal(ours, theirs)
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(importer.live_labels(model, ensemble.sample(X)), theirs)


# ---- scores and decisions --------------------------------------------------------------------

SETTINGS = {
    "plain": {},
    "one tree": {"n_estimators": 1},
    "deep": {"num_leaves": 200, "min_child_samples": 1, "min_child_weight": 0.0},
    "stumps": {"num_leaves": 2},
    "single leaves": {"min_child_samples": 10**6},
    "zero is missing": {"zero_as_missing": True},
    "nothing is missing": {"use_missing": False},
    "nothing is missing, zeros": {"use_missing": False, "zero_as_missing": True},
    "sets": {"max_cat_to_onehot": 1, "min_data_per_group": 1, "cat_smooth": 1.0},
    "one-hot": {"max_cat_to_onehot": 100},
    "forest": {"boosting_type": "rf", "subsample": 0.6, "subsample_freq": 1},
    "dart": {"boosting_type": "dart", "drop_rate": 0.4},
    "extra trees": {"extra_trees": True},
    "weighted": {"scale_pos_weight": 5.0},
    "unbalanced": {"is_unbalance": True},
    "from nothing": {"boost_from_average": False},
    "sigmoid": {"sigmoid": 0.7},
    "cross entropy": {"objective": "cross_entropy"},
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_scores_and_labels_are_the_classifiers_own(setting):
    for seed, missing, categorical in [(0, 0.1, [2, 3]), (1, 0.0, [2, 3]), (2, 0.1, [])]:
        X, y = make_data(seed, missing=missing)
        options = {"n_estimators": 20, "random_state": seed, **QUIET, **SETTINGS[setting]}
        model = lgb.LGBMClassifier(**options).fit(X, y, categorical_feature=categorical)
        ensemble = qwyc.read_model(model)
        rows = special_rows(ensemble, np.random.default_rng(seed))
        for Z in (X, rows, as_float32(rows), np.asfortranarray(rows), rows[:1]):
            assert_same(model, Z, ensemble)


def test_random_models():
    """Anything goes, in any combination."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = make_data(seed, rows=300, missing=rng.choice([0.0, 0.1]))
        parameters = {
            "objective": "binary",
            "boosting": str(rng.choice(["gbdt", "dart"])),
            "num_leaves": int(rng.integers(2, 40)),
            "min_data_in_leaf": int(rng.integers(1, 15)),
            "use_missing": bool(rng.random() < 0.7),
            "zero_as_missing": bool(rng.random() < 0.4),
            "max_cat_to_onehot": int(rng.choice([1, 4, 64])),
            "min_data_per_group": int(rng.choice([1, 50])),
            "sigmoid": float(rng.choice([1.0, 2.5, 0.1234567])),
            "seed": seed,
            "verbose": -1,
            "num_threads": 1,
        }
        categorical = [2, 3] if rng.random() < 0.7 else []
        data = lgb.Dataset(X, y, categorical_feature=categorical)
        booster = lgb.train(parameters, data, int(rng.integers(1, 20)))
        ensemble = qwyc.read_model(booster)
        assert_same(booster, special_rows(ensemble, rng, 200), ensemble)


def test_averages_are_what_probabilities_come_from(data):
    X, y = data
    model = lgb.LGBMClassifier(n_estimators=9, **SETTINGS["forest"], **QUIET).fit(X, y)
    scores = qwyc.read_model(model).score_full(X)
    np.testing.assert_allclose(1 / (1 + np.exp(-scores)), model.predict_proba(X)[:, 1], rtol=1e-12)


def test_a_thousand_trees(data):
    X, y = data
    model = lgb.LGBMClassifier(n_estimators=1000, learning_rate=0.02, num_leaves=8, **QUIET)
    ensemble = qwyc.read_model(model.fit(X, y))
    assert ensemble.n_models == 1000
    assert_same(model, special_rows(ensemble, np.random.default_rng(0)), ensemble)


def test_tiny_numbers_are_zero():
    """LightGBM rounds |x| <= 1e-35 to 0 before it compares, also with thresholds of that size."""
    values = np.array([-1.0, -3 * ZERO, 0.0, 3 * ZERO, 1.0])
    X = np.repeat(values, 40)[:, None]
    for negative in (values < 0, values <= 0):
        y = np.repeat(negative, 40).astype(int)
        model = lgb.LGBMClassifier(n_estimators=3, min_child_samples=1, **QUIET).fit(X, y)
        near = np.array([0.0, 5e-324, 1e-40, ZERO / 2, ZERO, np.nextafter(ZERO, 1), 2 * ZERO])
        rows = np.concatenate([near, -near])[:, None]
        assert_same(model, rows)


def test_string_and_other_classes(data):
    X, y = data
    for classes in (["no", "yes"], [-1, 1], [False, True]):
        labels = np.array(classes)[y]
        model = lgb.LGBMClassifier(n_estimators=3, **QUIET).fit(X, labels)
        ensemble = qwyc.read_model(model)
        np.testing.assert_array_equal(ensemble.classes, classes)
        assert_same(model, X, ensemble)
        np.testing.assert_array_equal(qwyc.read_model(model.booster_).classes, [0, 1])


@pytest.mark.parametrize("sigmoid", [1.0, 0.7, 2.5, 0.1234567, 100.0])
@pytest.mark.parametrize("average", [False, True])
def test_threshold_is_exactly_where_the_decision_turns(sigmoid, average):
    """A tree with one leaf per score, so that LightGBM decides about scores of our choice."""
    x = np.arange(512.0)
    parameters = {"objective": "binary", "min_data_in_leaf": 1, "min_data_in_bin": 1}
    parameters |= {"num_leaves": 512, "max_bin": 1024, "min_sum_hessian_in_leaf": 0.0}
    parameters |= {"sigmoid": sigmoid, "verbose": -1, "num_threads": 1}
    if average:
        parameters |= {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.99}
    label = np.random.default_rng(0).integers(0, 2, 512)
    trained = lgb.train(parameters, lgb.Dataset(x[:, None], label), 1)
    threshold = qwyc.read_model(trained).threshold
    text = trained.model_to_string()
    n_leaves = int(text.split("num_leaves=")[1].split("\n")[0])
    assert n_leaves > 90
    middle = int(np.float64(threshold).view(np.int64))
    steps = np.arange(n_leaves) - n_leaves // 2
    near = (middle + steps).view(np.float64)
    far = near * np.sign(steps) * 10.0 ** (np.abs(steps) / 3)
    for scores in (near, np.clip(far, -1e300, 1e300)):
        before, after = text.split("leaf_value=")
        values = " ".join(repr(float(score)) for score in scores)
        booster = lgb.Booster(
            model_str=before + "leaf_value=" + values + "\n" + after.split("\n", 1)[1],
        )
        ensemble = qwyc.read_model(booster)
        labels = booster.predict(x[:, None], num_threads=1) > 0.5
        np.testing.assert_array_equal(ensemble.score_full(x[:, None]) >= threshold, labels)
        assert set(labels) == {True, False}
        proba = booster.predict(x[:, None], num_threads=1)
        argmax = np.vstack((1.0 - proba, proba)).T.argmax(axis=1)  # as LGBMClassifier does
        np.testing.assert_array_equal(argmax == 1, labels)


def test_early_stopping(tmp_path):
    X, y = make_data(3)
    X_eval, y_eval = make_data(4)
    for boosting in ("gbdt", "rf"):
        parameters = {"objective": "binary", "boosting": boosting, "learning_rate": 0.5}
        parameters |= {"bagging_fraction": 0.5, "bagging_freq": 1}
        parameters |= {"verbose": -1, "num_threads": 1}
        data = lgb.Dataset(X, y)
        booster = lgb.train(
            parameters,
            data,
            80,
            valid_sets=[lgb.Dataset(X_eval, y_eval, reference=data)],
            callbacks=[lgb.early_stopping(5, verbose=False)],
            keep_training_booster=True,  # otherwise it forgets the other trees
        )
        assert 0 < booster.best_iteration < booster.current_iteration()
        ensemble = qwyc.read_model(booster)
        assert ensemble.n_models == booster.best_iteration
        assert_same(booster, X_eval, ensemble)
        booster.save_model(tmp_path / "m.txt")  # writes the best iterations only
        assert qwyc.read_model(tmp_path / "m.txt").digest == ensemble.digest

        model = lgb.LGBMClassifier(
            boosting_type=boosting, n_estimators=80, subsample=0.5, subsample_freq=1, **QUIET
        )
        stop = lgb.early_stopping(5, verbose=False)
        model.fit(X, y, eval_X=X_eval, eval_y=y_eval, callbacks=[stop])
        assert qwyc.read_model(model).n_models == model.best_iteration_ < 80
        assert_same(model, X_eval)


# ---- categories ------------------------------------------------------------------------------

COLOURS = ("red", "green", "blå", "yellow", "a b", "")


def fit_frame(frame, y, **options):
    options = {"n_estimators": 20, "min_data_per_group": 5, "cat_smooth": 1.0, **QUIET, **options}
    return lgb.LGBMClassifier(**options).fit(frame, y)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("options", [{}, {"max_cat_to_onehot": 100}])
def test_pandas_categories(options):
    frame, y = make_frame(colours=COLOURS)
    model = fit_frame(frame, y, **options)
    ensemble = qwyc.read_model(model)
    assert ensemble.schema.names == ("a", "the_colour", "flag", "constant", "size", "count")
    assert ensemble.schema.categories == {1: COLOURS, 3: ("only",), 4: SIZES}
    other = make_frame(1, colours=COLOURS)[0]
    assert_same(model, other, ensemble)
    assert_same(model, permuted(other), ensemble)
    # A category that was not there in training counts as missing.
    strange = other.assign(
        **{
            "the colour": other["the colour"].cat.rename_categories({"red": "zinc"}),
            "size": other["size"].cat.rename_categories({7: 8}),
        }
    )
    assert_same(model, strange, ensemble)
    # Plain arrays hold codes.
    assert_same(model, ensemble.rows(strange), ensemble)
    assert_same(model, special_rows(ensemble, np.random.default_rng(0)), ensemble)


def test_categories_beside_columns_without_use():
    """The column of one category is not in use either, but the model lists it as categorical."""
    frame, y = make_frame(colours=COLOURS)
    frame.insert(2, "one", 1.0)
    frame["two"] = 2.0
    model = fit_frame(frame, y)
    ensemble = qwyc.read_model(model)
    assert ensemble.schema.categories == {1: COLOURS, 4: ("only",), 5: SIZES}
    assert_same(model, frame, ensemble)


def test_ordered_categories():
    """Their values are in the model, but they are numbers to it."""
    frame, y = make_frame(colours=COLOURS)
    ordered = pd.Categorical(
        np.random.default_rng(5).choice(["low", "mid", "high"], len(frame)),
        categories=["low", "mid", "high"],
        ordered=True,
    )
    wide = frame.drop(columns=["flag"]).assign(level=ordered)
    wide = wide[["a", "the colour", "level", "constant", "size", "count"]]
    model = fit_frame(wide, np.where(np.isin(ordered, ["mid"]), y, 0))
    ensemble = qwyc.read_model(model)
    assert ensemble.schema.categories[2] == ("low", "mid", "high")
    assert len(ensemble.schema.categories) == 4
    assert_same(model, wide, ensemble)
    # With a second column that may have been the ordered one, nothing is guessed.
    wide.insert(3, "bit", np.arange(len(wide)) % 2)
    ensemble = qwyc.read_model(fit_frame(wide, y))
    assert ensemble.schema.categories == {}
    with pytest.raises(InputError, match="the colour"):
        ensemble.score_full(wide)


def test_category_values_that_cannot_be_matched():
    rng = np.random.default_rng(0)
    frame, y = make_frame(colours=COLOURS)
    # An integer column is categorical too: two kinds of codes, one list of values.
    frame = pd.DataFrame(
        {"code": rng.integers(0, 30, len(frame)), "the_colour": frame["the colour"]}
    )
    model = lgb.LGBMClassifier(n_estimators=3, **QUIET)
    model.fit(frame, y, categorical_feature=["code", "the_colour"])
    assert qwyc.read_model(model).schema.categories == {}


def test_labels_of_other_tables():
    frame, y = make_frame(colours=COLOURS)
    model = fit_frame(frame, y)
    ensemble = qwyc.read_model(model)
    expected = model.predict(frame)
    text = as_text(frame)
    renamed = frame.rename(columns={"the colour": "the_colour"})
    tables = {
        "reordered": renamed[list(renamed.columns[::-1])],
        "wider": renamed.assign(more=1.0),
        "text": text,
        "polars": pl.from_dict({name: text[name].to_list() for name in text}),
        "codes": ensemble.rows(frame),
        "lists": ensemble.rows(frame).tolist(),
    }
    for table in tables.values():
        np.testing.assert_array_equal(importer.live_labels(model, ensemble.sample(table)), expected)
