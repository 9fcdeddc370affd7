"""HistGradientBoostingClassifier as read, with and without categories, against the model itself."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier

from qwyc.errors import InputError, ModelError
from qwyc.importers.sklearn import live_labels, read_live
from qwyc.target.boundary import smallest_sum_above_zero
from sklearn_parity import NAN, around_thresholds, check, data


@pytest.mark.parametrize(
    "options",
    [
        {"max_iter": 1, "max_depth": 1},
        {"max_iter": 60},
        {"max_iter": 40, "max_leaf_nodes": 5, "class_weight": "balanced"},
        {"max_iter": 100, "early_stopping": True, "n_iter_no_change": 2},
        {"max_iter": 20, "max_bins": 8, "l2_regularization": 1.0},
        {"max_iter": 5, "min_samples_leaf": 300},  # single leaves only
    ],
    ids=str,
)
@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_hist_gradient_boosting(options, missing):
    X, y = data(missing=missing)
    model = HistGradientBoostingClassifier(random_state=0, **options).fit(X[:400], y[:400])
    ensemble = check(model, X)
    assert ensemble.n_models == model.n_iter_
    assert not ensemble.schema.categories
    check(model, X.astype(np.float32))
    check(model, np.full((1, 5), NAN))
    check(model, np.array([[np.inf, -np.inf, 1e300, NAN, 0.0]]))
    check(model, data(missing=0.3, seed=5)[0])
    if len(ensemble.base_models.trees.feature):
        check(model, around_thresholds(ensemble, X))


def test_hist_gradient_boosting_trained_on_infinities():
    rng = np.random.default_rng(0)
    X, y = data(2000)
    X[:, 0] += 2 * y
    X[rng.random(X.shape) < 0.2] = np.inf
    X[rng.random(X.shape) < 0.2] = -np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HistGradientBoostingClassifier(max_iter=20).fit(X, y)
    check(model, X)
    # A threshold that is NaN sends everything right but the missing, which go as they went.
    for (predictor,) in model._predictors[::3]:
        predictor.nodes["num_threshold"][0] = NAN
    ensemble = check(model, X)
    X[::2, :] = NAN
    X[::3, 1:3] = 0.5
    check(model, X)
    assert not np.isnan(ensemble.base_models.trees.threshold).any()


def test_hist_gradient_boosting_at_zero_is_negative():
    X, y = np.zeros((10, 2)), np.array(["no", "yes"] * 5)
    model = HistGradientBoostingClassifier(max_iter=3).fit(X, y)
    assert np.all(model.decision_function(X) == 0)
    ensemble = check(model, X)
    assert np.all(model.predict(X) == "no")
    assert ensemble.threshold >= np.finfo(np.float64).tiny  # no subnormal: may be flushed to zero


class Older(HistGradientBoostingClassifier):
    """Decides by rounded probabilities, as versions before 1.5 did."""

    def predict(self, X):
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]


@pytest.mark.parametrize("kind", [HistGradientBoostingClassifier, Older])
def test_hist_gradient_boosting_close_to_zero(kind):
    frame, y = mixed(200)
    model = kind(max_iter=1, max_depth=1, min_samples_leaf=5).fit(frame, y)
    ((predictor,),) = model._predictors
    decided = set()
    for score in [0.0, -0.0, 1e-320, 1e-300, 1e-17, 1e-16, 2e-16, 3e-16, 1e-15, -1e-17, -1e-15]:
        model._baseline_prediction[...] = score
        predictor.nodes["value"] = 0.0
        check(model, frame)
        decided.add((score, bool(model.predict(frame[:1])[0])))
    assert ((1e-17, True) in decided) == (kind is HistGradientBoostingClassifier)
    assert (1e-15, True) in decided


@settings(max_examples=300, deadline=None)
@given(
    values=st.lists(
        st.one_of(
            st.floats(-1e3, 1e3),
            st.sampled_from([0.0, 0.1, -0.1, 0.3, -0.3, 0.1 + 0.2, 1e-17, -1e-17, 5e-324]),
        ),
        min_size=1,
        max_size=6,
    ),
    picks=st.lists(st.integers(0, 5), max_size=12),
)
def test_no_sum_lies_between_zero_and_the_threshold(values, picks):
    threshold = smallest_sum_above_zero(np.array(values[1:]), values[0])
    assert threshold > 0
    total = values[0]
    for i in picks:
        total += values[i % len(values)]
        assert (total > 0) == (total >= threshold)


# ---- hist gradient boosting with categories --------------------------------------------------

CITIES = ["rome", "oslo", "lima", "cairo", "quito"]


def mixed(n: int = 800, seed: int = 0, missing: float = 0.1) -> tuple[pd.DataFrame, Any]:
    """Numbers and categories in turn, so that the trees' own order of columns is another one."""
    rng = np.random.default_rng(seed)
    city = rng.choice(CITIES, n)
    code = rng.choice([-3, 0, 7, 40, 41, 99], n)
    flag = rng.random(n) < 0.4
    x, z = rng.normal(size=n), rng.normal(size=n)
    logit = x + 2 * np.isin(city, ["oslo", "quito"]) - 1 + (code == 7) - (code == 99) + flag * z
    y = (logit + rng.normal(size=n) > 0).astype(int)
    gone = rng.random((n, 4)) < missing
    x[gone[:, 0]] = NAN
    frame = pd.DataFrame(
        {
            "x": x,
            "city": pd.Categorical(np.where(gone[:, 1], None, city.astype(object))),
            "z": z,
            "code": pd.Categorical(np.where(gone[:, 2], None, code.astype(object))),
            "flag": pd.Categorical(np.where(gone[:, 3], None, flag.astype(object))),
        }
    )
    return frame, y


def with_unseen(frame: pd.DataFrame) -> pd.DataFrame:
    city = frame["city"].astype(object)
    city.iloc[::7] = "paris"
    code = frame["code"].astype(object)
    code.iloc[::5] = 1234
    return frame.assign(city=city.astype("category"), code=code.astype("category"))


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_categories_from_pandas(missing):
    X, y = mixed(missing=missing)
    model = HistGradientBoostingClassifier(
        max_iter=40, categorical_features="from_dtype", min_samples_leaf=5
    ).fit(X[:500], y[:500])
    ensemble = check(model, X)
    assert ensemble.schema.names == ("x", "city", "z", "code", "flag")
    assert ensemble.schema.categories == {
        1: tuple(sorted(CITIES)),
        3: (-3, 0, 7, 40, 41, 99),
        4: (False, True),
    }
    check(model, with_unseen(X))
    check(model, mixed(seed=9, missing=0.4)[0])
    plain = X.assign(city=X["city"].astype("str"), code=X["code"].astype("float64"))
    check(model, plain)
    # Columns in another order, and more of them: scikit-learn would refuse.
    shuffled = X.assign(extra="?")[["flag", "extra", "z", "code", "x", "city"]]
    np.testing.assert_array_equal(ensemble.score_full(shuffled), ensemble.score_full(X))
    np.testing.assert_array_equal(live_labels(model, ensemble.sample(shuffled)), model.predict(X))
    with pytest.raises(InputError, match="'city' holds numbers"):
        ensemble.score_full(X.assign(city=X["city"].cat.codes))


def test_categories_in_polars_and_arrow_are_those_in_pandas():
    X, y = mixed()
    X = X.assign(code=X["code"].astype("float64"), flag=X["flag"].astype("boolean"))
    model = HistGradientBoostingClassifier(
        max_iter=40, categorical_features=["city", "code", "flag"], min_samples_leaf=5
    ).fit(X[:500], y[:500])
    for frame in (X, X.assign(city=with_unseen(X)["city"])):
        ensemble = check(model, frame)
        expected = ensemble.rows(frame)
        polars = pl.from_pandas(frame)
        for form in (polars, polars.cast({"city": pl.String}), polars.to_arrow()):
            np.testing.assert_array_equal(ensemble.rows(form), expected)
            np.testing.assert_array_equal(
                live_labels(model, ensemble.sample(form)), model.predict(frame)
            )


def test_categories_of_a_model_trained_on_polars():
    X, y = mixed()
    frame = pl.DataFrame(
        {
            "x": X["x"].to_numpy(),
            "city": pl.Series(X["city"].astype(object).where(X["city"].notna(), None).tolist()),
            "z": X["z"].to_numpy(),
        }
    ).cast({"city": pl.Categorical})
    model = HistGradientBoostingClassifier(max_iter=30, min_samples_leaf=5).fit(
        frame[:500], y[:500]
    )
    ensemble = check(model, frame)
    # To scikit-learn a Polars null is None, and None is a category like any other.
    assert ensemble.schema.categories == {1: (*sorted(CITIES), None)}
    assert ensemble.rows(frame)[:, 1].max() == len(CITIES)
    pandas = pd.DataFrame({"x": X["x"], "city": X["city"], "z": X["z"]})
    check(model, pandas)
    objects = pandas.assign(city=pd.Series(frame["city"].to_list(), dtype=object))
    check(model, objects)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, object])
def test_categories_from_arrays(dtype):
    X, y = mixed()
    columns = {name: X[name].astype("float64") for name in ("x", "z", "code", "flag")}
    X = np.column_stack([columns[name] for name in ("x", "code", "z", "flag")]).astype(dtype)
    model = HistGradientBoostingClassifier(
        max_iter=40, categorical_features=[1, 3], min_samples_leaf=5
    ).fit(X[:500], y[:500])
    ensemble = check(model, X)
    assert ensemble.schema.names is None
    assert ensemble.schema.arrays_hold_values
    assert ensemble.schema.categories == {1: (-3, 0, 7, 40, 41, 99), 3: (0, 1)}
    unseen = X.copy()
    unseen[::3, 1] = 8
    unseen[::4, 3] = -1
    unseen[::5, 1] = 40.5
    check(model, unseen)
    check(model, np.full((1, 4), NAN, dtype))
    if dtype == np.float64:
        check(model, X.astype(np.float32))
        check(model, np.nan_to_num(X).astype(np.int64))
        hidden = np.ma.masked_invalid(X)
        np.testing.assert_array_equal(ensemble.score_full(hidden), model.decision_function(X))
        np.testing.assert_array_equal(live_labels(model, ensemble.sample(hidden)), model.predict(X))
        whole = np.ma.array(np.nan_to_num(X).astype(np.int64), mask=np.isnan(X))
        expected = np.where(np.isnan(X), NAN, np.trunc(X))
        np.testing.assert_array_equal(
            live_labels(model, ensemble.sample(whole)), model.predict(expected)
        )


def test_categories_from_arrays_of_text():
    X, y = mixed()
    city = np.array([c if isinstance(c, str) else None for c in X["city"]], object)
    table = np.column_stack([city, X["x"].astype(object)])
    model = HistGradientBoostingClassifier(
        max_iter=20, categorical_features=[0], min_samples_leaf=5
    ).fit(table[:500], y[:500])
    table[::6, 0] = "paris"
    table[::7, 0] = NAN
    check(model, table)
    check(model, table.tolist())

    words = np.column_stack(
        [X["city"].astype("str").fillna("?"), X["flag"].astype("str").fillna("?")]
    )
    words = words.astype("U5")
    model = HistGradientBoostingClassifier(
        max_iter=20, categorical_features=[0, 1], min_samples_leaf=5
    ).fit(words[:500], y[:500])
    words[::6, 0] = "paris"
    check(model, words)


def test_two_hundred_categories():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=6000), rng.integers(0, 250, 6000)])
    y = (np.sin(X[:, 1] * 7) + 0.3 * X[:, 0] > 0).astype(int)
    model = HistGradientBoostingClassifier(
        max_iter=30, categorical_features=[1], min_samples_leaf=2
    )
    ensemble = check(model.fit(X[:4000], y[:4000]), X)
    words = np.diff(ensemble.base_models.trees.category_begin)
    assert set(words.tolist()) == {0, 8}
    assert ensemble.base_models.trees.category_words[7::8].any()


def test_categories_that_are_neither_text_nor_numbers_are_refused():
    X, y = mixed()
    days = pd.Categorical(pd.date_range("2020", periods=5)[np.arange(len(X)) % 5])
    model = HistGradientBoostingClassifier(max_iter=2).fit(X.assign(city=days), y)
    with pytest.raises(ModelError, match=r"column .* has the category.*text or numbers"):
        read_live(model)
