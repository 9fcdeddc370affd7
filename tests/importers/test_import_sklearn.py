"""scikit-learn's models as read decide every row as they do themselves, and score it to the bit."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import ensemble as sk
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from qwyc.errors import InputError, ModelError
from qwyc.importers.sklearn import is_live, live_labels, read_live
from qwyc.importers.sklearn.trees import _round_down
from sklearn_parity import NAN, around_thresholds, check, data, labels

FORESTS = [RandomForestClassifier, ExtraTreesClassifier]


# ---- forests --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize(
    "options",
    [
        {"n_estimators": 1},
        {"n_estimators": 30},
        {"n_estimators": 31, "max_depth": 3},
        {"n_estimators": 20, "class_weight": "balanced", "min_samples_leaf": 3},
        {"n_estimators": 20, "max_leaf_nodes": 9, "criterion": "entropy"},
        {"n_estimators": 20, "ccp_alpha": 0.005, "max_features": None},
        {"n_estimators": 10, "min_samples_leaf": 400},  # single leaves only
        {"n_estimators": 10, "class_weight": "balanced_subsample", "bootstrap": True},
    ],
    ids=str,
)
def test_forests(kind, options):
    X, y = data()
    model = kind(random_state=0, **options).fit(X[:400], y[:400])
    ensemble = check(model, X)
    assert ensemble.n_models == options["n_estimators"]
    assert ensemble.source.kind == kind.__name__
    assert ensemble.source.library == "scikit-learn"
    check(model, X.astype(np.float32))
    if len(ensemble.base_models.trees.feature):
        check(model, around_thresholds(ensemble, X))


@pytest.mark.parametrize("kind", FORESTS)
def test_forests_with_missing_values(kind):
    X, y = data(missing=0.15)
    model = kind(30, random_state=0).fit(X[:400], y[:400])
    assert check(model, X).schema.accepts_missing
    check(model, np.full((1, 5), NAN))
    # Missing only when predicting.
    model = kind(30, random_state=0).fit(data()[0][:400], y[:400])
    check(model, X)


@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e39])
def test_forests_refuse_what_scikit_learn_refuses(kind, value):
    X, y = data()
    model = kind(5, random_state=0).fit(X, y)
    bad = X[:3].copy()
    bad[1, 2] = value
    with pytest.raises(ValueError, match="Input X contains"), np.errstate(over="ignore"):
        model.predict(bad)
    with pytest.raises(InputError, match="row 1 of column 2"):
        read_live(model).score_full(bad)


@pytest.mark.parametrize("kind", FORESTS)
def test_forests_with_constraints_take_missing_values_or_not_as_scikit_learn_does(kind):
    X, y = data()
    model = kind(5, random_state=0, monotonic_cst=[1, 0, 0, 0, 0]).fit(X, y)
    check(model, X)
    X[1, 2] = NAN
    if model.estimators_[0]._support_missing_values(X):
        check(model, X)
    model.estimators_[0]._support_missing_values = lambda X: False  # as in older versions
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.predict(X)
    with pytest.raises(InputError, match="row 1 of column 2"):
        read_live(model).score_full(X)


def grid(n_columns: int = 4) -> Any:
    return np.array(np.meshgrid(*[[0.0, 1.0, 2.0]] * n_columns)).reshape(n_columns, -1).T


@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize("n_estimators", [2, 6, 12])
def test_forests_with_many_ties(kind, n_estimators):
    rng = np.random.default_rng(n_estimators)
    X = rng.integers(0, 3, (60, 4)).astype(float)
    y = rng.integers(0, 2, 60)
    ties = 0
    for seed in range(8):
        model = kind(n_estimators, random_state=seed, max_features=1).fit(X, y)
        ensemble = check(model, grid())
        proba, score = model.predict_proba(grid()), ensemble.score_full(grid())
        equal = proba[:, 0] == proba[:, 1]
        assert np.all(score[equal] == 0.5)
        assert np.all(labels(ensemble, score)[equal] == 0)
        ties += int(equal.sum())
    assert ties > 10


@pytest.mark.parametrize("kind", FORESTS)
def test_forests_with_ties_that_rounding_breaks(kind):
    # Shares of thirds and fifths, and every row once with either label: the sums are equal but for
    # their last bits, and those decide.
    X = np.repeat(grid(2), 6, axis=0)
    y = np.tile([0, 1, 0, 1, 0, 1], 9)
    moved = broken = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        weight = rng.choice([1, 3, 7, 0.1], 9).repeat(6)
        model = kind(2 + seed, random_state=seed, max_depth=2, bootstrap=False, max_features=1)
        model.fit(X, y, sample_weight=weight)
        ensemble = check(model, grid(2))
        proba, score = model.predict_proba(grid(2)), ensemble.score_full(grid(2))
        moved += int((score != proba[:, 1]).sum())
        near = np.abs(proba[:, 0] - proba[:, 1]) < 1e-12
        broken += int((near & (proba[:, 0] != proba[:, 1])).sum())
    assert broken > 10
    assert moved > 0  # comparing the positive share with 1/2 would not have done


@settings(max_examples=500, deadline=None)
@given(
    t=st.floats(allow_nan=False, allow_infinity=False),
    x=st.floats(width=32, allow_nan=False, allow_infinity=False),
    near=st.booleans(),
)
def test_thresholds_rounded_down_split_float32_rows_alike(t, x, near):
    if near and abs(t) < 3e38:
        x = float(np.float32(t))
    rounded = _round_down(np.array([t]))[0]
    assert rounded.dtype == np.float32
    for value in (
        np.float32(x),
        *(np.nextafter(np.float32(x), np.float32(s)) for s in (-1e38, 1e38)),
    ):
        assert (float(value) <= t) == (value <= rounded)


class Disorderly(ExtraTreesClassifier):
    """With several threads, the sums' last bits go the other way."""

    def predict(self, X):
        labels = super().predict(X)
        proba = self.predict_proba(X)
        near = np.abs(proba[:, 1] - proba[:, 0]) < 1e-12
        return labels if self.n_jobs == 1 else np.where(near, 1 - labels, labels)


def test_forests_with_several_threads_are_settled_in_tree_order():
    X, y = np.repeat(grid(2), 6, axis=0), np.tile([0, 1, 0, 1, 0, 1], 9)
    y[:6] = 1
    model = Disorderly(41, random_state=0, max_depth=2, n_jobs=2)
    model.fit(X, y, sample_weight=np.resize([1, 3, 7, 0.1], 9).repeat(6))
    ensemble = read_live(model)
    ours = labels(ensemble, ensemble.score_full(grid(2)))
    assert not np.array_equal(model.predict(grid(2)), ours)
    for form in (grid(2), pl.DataFrame(grid(2))):
        np.testing.assert_array_equal(live_labels(model, ensemble.sample(form)), ours)
    assert model.n_jobs == 2


# ---- gradient boosting ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"n_estimators": 1, "max_depth": 1},
        {"n_estimators": 60},
        {"loss": "exponential"},
        {"init": "zero", "learning_rate": 0.37},
        {"init": "zero", "loss": "exponential"},
        {"init": DummyClassifier(strategy="most_frequent")},
        {"subsample": 0.5, "max_leaf_nodes": 7, "max_depth": None},
        {"n_estimators": 100, "n_iter_no_change": 2},
        {"n_estimators": 30, "max_features": 2, "ccp_alpha": 0.01},
        {"n_estimators": 5, "min_samples_leaf": 250},  # single leaves only
    ],
    ids=str,
)
def test_gradient_boosting(options):
    X, y = data()
    model = GradientBoostingClassifier(random_state=0, **options).fit(X[:400], y[:400])
    ensemble = check(model, X)
    assert ensemble.n_models == len(model.estimators_)
    check(model, X.astype(np.float32))
    check(model, np.asfortranarray(X * 3))
    if len(ensemble.base_models.trees.feature):
        check(model, around_thresholds(ensemble, X))


def test_gradient_boosting_at_zero_is_positive():
    X, y = np.zeros((10, 2)), np.array(["no", "yes"] * 5)
    model = GradientBoostingClassifier(init="zero").fit(X, y)
    assert np.all(model.decision_function(X) == 0)
    check(model, X)
    assert np.all(model.predict(X) == "yes")
    for tree in model.estimators_[:, 0]:
        tree.tree_.value[...] = -0.0
    check(model, X)


def test_gradient_boosting_refuses_missing_values_and_infinities():
    X, y = data()
    model = GradientBoostingClassifier(n_estimators=3).fit(X, y)
    for value, word in [(NAN, "missing"), (np.inf, "infinit"), (-1e39, "infinit")]:
        bad = X[:3].copy()
        bad[2, 1] = value
        with pytest.raises(ValueError, match="Input X contains"), np.errstate(over="ignore"):
            model.predict(bad)
        with pytest.raises(InputError, match=f"{word}.*row 2 of column 1"):
            read_live(model).score_full(bad)


@pytest.mark.parametrize("init", [LogisticRegression(), DummyClassifier(strategy="uniform")])
def test_gradient_boosting_with_an_init_of_its_own_is_refused(init):
    X, y = data()
    model = GradientBoostingClassifier(n_estimators=3, init=init).fit(X, y)
    with pytest.raises(ModelError, match=f"init={type(init).__name__}.*init='zero'"):
        read_live(model)


# ---- classes, names, tables ------------------------------------------------------------------

KINDS = [
    RandomForestClassifier(6, random_state=0),
    ExtraTreesClassifier(6, random_state=0),
    GradientBoostingClassifier(n_estimators=6, random_state=0),
    HistGradientBoostingClassifier(max_iter=6, random_state=0),
]
kinds = pytest.mark.parametrize("model", KINDS, ids=lambda model: type(model).__name__)


@kinds
@pytest.mark.parametrize(
    "classes",
    [
        np.array([0, 1]),
        np.array([-5, 7], np.int8),
        np.array([1.0, 2.0]),
        np.array([False, True]),
        np.array(["bad", "good"]),
        np.array(["bad", "good"], object),
    ],
    ids=lambda classes: classes.dtype.str,
)
def test_classes_keep_their_type(model, classes):
    X, y = data(200)
    ensemble = check(model.fit(X, classes[y]), X)
    assert ensemble.classes.dtype == model.classes_.dtype
    np.testing.assert_array_equal(ensemble.classes, classes)


@kinds
def test_frames_of_numbers(model):
    X, y = data()
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d", "e"]).astype({"d": "int64"})
    ensemble = check(model.fit(frame, y), frame)
    assert ensemble.schema.names == ("a", "b", "c", "d", "e")
    assert ensemble.source.version.count(".") >= 1
    expected, own = ensemble.score_full(frame), model.predict(frame)
    polars = pl.from_pandas(frame)
    for form in (
        frame[["e", "d", "c", "b", "a"]],
        frame.astype({"d": "Int64"}),
        frame.rename(columns={"a": 0}).rename(columns={0: "a"}),
        polars,
        polars.with_columns(f=pl.lit("x")).select("f", "e", "a", "b", "d", "c"),
        polars.to_arrow(),
        polars.to_arrow().combine_chunks().to_batches()[0],
        X,
        np.ma.array(X),
        X.tolist(),
    ):
        np.testing.assert_array_equal(ensemble.score_full(form), expected)
        np.testing.assert_array_equal(live_labels(model, ensemble.sample(form)), own)
    # Trained on an array: columns by position, whatever they are called.
    ensemble = check(model.fit(X, y), X)
    for form in (frame, polars, polars.to_arrow()):
        np.testing.assert_array_equal(live_labels(model, ensemble.sample(form)), model.predict(X))


@kinds
def test_a_pickled_model_and_a_subclass_are_read_alike(model):
    X, y = data(200)
    ensemble = read_live(model.fit(X, y))
    kind = type("Own", (type(model),), {"__module__": "own"})
    own = kind(**model.get_params()).fit(X, y)
    for other in (pickle.loads(pickle.dumps(model)), own):
        assert is_live(other)
        assert read_live(other).digest == ensemble.digest


def test_arrays_are_sound_and_of_the_right_type():
    X, y = data(missing=0.1)
    ensemble = read_live(RandomForestClassifier(3, random_state=0).fit(X, y))
    t = ensemble.base_models.trees
    assert t.threshold.dtype == np.float32
    types = {"feature": "i4", "left": "i4", "right": "i4", "flags": "u1", "category_words": "u4"}
    types |= dict.fromkeys(("node_begin", "leaf_begin", "category_begin"), "i8")
    types |= dict.fromkeys(("leaf_value", "leaf_other"), "f8")
    for name, dtype in types.items():
        array = getattr(t, name)
        assert array.dtype == dtype, name
        assert array.flags.c_contiguous, name
    np.testing.assert_allclose(t.leaf_value + t.leaf_other, 1)


# ---- what is not supported -------------------------------------------------------------------


@kinds
def test_models_that_are_not_fitted(model):
    fresh = type(model)(**model.get_params())
    with pytest.raises(ModelError, match="not fitted; call fit"):
        read_live(fresh)


def test_one_class_and_several_outputs():
    X, y = data(200)
    with pytest.raises(ModelError, match="has one class, so there is nothing to decide"):
        read_live(RandomForestClassifier(3).fit(X, y * 0))
    with pytest.raises(ModelError, match="has 2 outputs"):
        read_live(ExtraTreesClassifier(3).fit(X, np.column_stack([y, 1 - y])))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (sk.AdaBoostRegressor(n_estimators=2), "not supported yet; .*weighted median"),
        (sk.VotingRegressor([("t", DecisionTreeRegressor())]), "one by one"),
        (sk.VotingClassifier([("t", DecisionTreeClassifier())]), "optimize takes it apart"),
        (sk.StackingClassifier([("t", DecisionTreeClassifier())]), "not supported yet"),
        (GridSearchCV(RandomForestClassifier(2), {"max_depth": [1, 2]}), "refit=True"),
        (LogisticRegression(), "LogisticRegression is not supported yet; .*RandomForest"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_estimators_are_refused(model, message):
    assert is_live(model)
    X, y = data(200)
    for candidate in (model, model.fit(X, y)):
        with pytest.raises(ModelError, match=message):
            read_live(candidate)


class Foreign(ClassifierMixin, BaseEstimator):
    """An estimator as other libraries have them."""


def test_what_is_not_scikit_learns_own():
    for other in (Foreign(), object(), "model.json", None, RandomForestClassifier, np.zeros(3)):
        assert not is_live(other)
