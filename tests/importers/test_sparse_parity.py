"""Sparse rows: every library's own answers on its own sparse input, bit for bit, through `read_model`, and
through `optimize`, which asks the live model about the sparse rows."""

from __future__ import annotations

import catboost
import lightgbm
import numpy as np
import pytest
import treelite
import xgboost
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import qwyc
from qwyc.check.parity import compare_with_model
from qwyc.errors import ParityError, RowsError
from sparse_matrices import matrix, target

WIDTH = 60
BOOSTED = {"n_estimators": 20, "n_jobs": 1}
LIGHT = BOOSTED | {"verbose": -1}
QUIET = {"iterations": 20, "verbose": 0, "thread_count": 1, "allow_writing_files": False}

# Name: a model, and the number of classes.
MODELS = {
    "xgboost": (lambda: xgboost.XGBClassifier(**BOOSTED), 2),
    "xgboost, 3 classes": (lambda: xgboost.XGBClassifier(**BOOSTED), 3),
    "xgboost, missing=0": (lambda: xgboost.XGBClassifier(missing=0.0, **BOOSTED), 2),
    "xgboost, missing=-0.125": (lambda: xgboost.XGBClassifier(missing=-0.125, **BOOSTED), 2),
    "xgboost, dart": (lambda: xgboost.XGBClassifier(booster="dart", **BOOSTED), 2),
    "lightgbm": (lambda: lightgbm.LGBMClassifier(**LIGHT), 2),
    "lightgbm, 3 classes": (lambda: lightgbm.LGBMClassifier(**LIGHT), 3),
    "lightgbm, zero": (lambda: lightgbm.LGBMClassifier(zero_as_missing=True, **LIGHT), 2),
    "lightgbm, not missing": (lambda: lightgbm.LGBMClassifier(use_missing=False, **LIGHT), 2),
    "catboost": (lambda: catboost.CatBoostClassifier(**QUIET), 2),
    "catboost, 3 classes": (lambda: catboost.CatBoostClassifier(**QUIET), 3),
    "random forest": (lambda: RandomForestClassifier(12, random_state=0), 2),
    "random forest, threads": (lambda: RandomForestClassifier(12, random_state=0, n_jobs=2), 3),
    "extra trees": (lambda: ExtraTreesClassifier(12, random_state=0), 3),
    "gradient boosting": (lambda: GradientBoostingClassifier(n_estimators=12, random_state=0), 2),
    "bagging": (
        lambda: BaggingClassifier(
            DecisionTreeClassifier(max_depth=5), n_estimators=8, max_features=0.5, random_state=0
        ),
        2,
    ),
    "AdaBoost": (
        lambda: AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=8), 2,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def rows():
    return matrix(900, WIDTH, seed=1, dtype=np.float64)


@pytest.fixture(scope="module")
def sample():
    return matrix(2500, WIDTH, seed=2, dtype=np.float64)


def scores_of(model, X):
    """The library's own scores."""
    if isinstance(model, xgboost.XGBClassifier):
        return model.predict(X, output_margin=True)
    if isinstance(model, lightgbm.LGBMClassifier):
        return model.predict(X, raw_score=True)
    if isinstance(model, catboost.CatBoostClassifier):
        return model.predict(X, prediction_type="RawFormulaVal")
    return model.predict_proba(X)


@pytest.mark.parametrize("name", MODELS)
def test_the_answers_are_the_library_s_own(name, rows, sample):
    make, classes = MODELS[name]
    model = make().fit(rows, target(rows, classes))
    read = qwyc.read_model(model)
    by_shares = hasattr(model, "estimators_")
    for X in (rows, sample, sample.astype(np.float32)):
        own = scores_of(model, X)
        found = read.predict_proba(X) if by_shares else read.score_full(X).astype(own.dtype)
        np.testing.assert_array_equal(found, own)
        np.testing.assert_array_equal(read.predict(X), np.asarray(model.predict(X)).reshape(-1))
    fast = qwyc.optimize(model, sample, alpha=0.2, evaluation="quit")  # raises where they differ
    np.testing.assert_array_equal(fast.full().predict(rows), read.predict(rows))
    np.testing.assert_array_equal(fast.predict_proba(rows), read.predict_proba(rows))


def with_special_values(X):
    X, rng = X.copy(), np.random.default_rng(0)
    for value in (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 1e39):
        X.data[rng.random(X.nnz) < 0.03] = value
    return X


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "lightgbm, zero", "catboost"])
def test_special_values_are_taken_as_the_library_takes_them(name, rows, sample):
    make, classes = MODELS[name]
    model = make().fit(rows, target(rows, classes))
    X = with_special_values(sample)
    if name.startswith("xgboost"):
        own = model.get_booster().inplace_predict(X, predict_type="margin")
    else:
        own = scores_of(model, X)
    np.testing.assert_array_equal(qwyc.read_model(model).score_full(X).astype(own.dtype), own)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.bool_])
@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "catboost", "random forest"])
def test_integers_and_booleans(name, dtype, rows, sample):
    X = (8 * rows).astype(dtype)
    model = MODELS[name][0]().fit(X.astype(np.float32), target(rows))
    own = scores_of(model, X.astype(np.float64) if name == "lightgbm" else X)  # which refuses them
    read = qwyc.read_model(model)
    if name == "random forest":
        np.testing.assert_array_equal(read.predict_proba(X), own)
    else:
        np.testing.assert_array_equal(read.score_full(X).astype(own.dtype), own)
    qwyc.optimize(model, (8 * sample).astype(dtype), alpha=0.2)


def test_boosters_files_and_treelite(rows, sample, tmp_path):
    y = target(rows)
    booster = MODELS["xgboost"][0]().fit(rows, y).get_booster()
    booster.save_model(tmp_path / "x.json")
    own = booster.predict(xgboost.DMatrix(sample), output_margin=True)
    for model in (booster, tmp_path / "x.json"):
        found = qwyc.read_model(model).score_full(sample).astype(np.float32)
        np.testing.assert_array_equal(found, own)
    light = MODELS["lightgbm"][0]().fit(rows, y).booster_
    light.save_model(tmp_path / "l.txt")
    own = light.predict(sample, raw_score=True)
    for model in (light, tmp_path / "l.txt"):
        np.testing.assert_array_equal(qwyc.read_model(model).score_full(sample), own)
    for model in (
        treelite.frontend.from_xgboost(booster),
        treelite.frontend.from_lightgbm(light),
    ):
        read = qwyc.read_model(model)
        given = sample.astype(read.schema.dtype)
        own = treelite.gtil.predict(model, given, pred_margin=True)[:, 0, 0]
        np.testing.assert_array_equal(read.score_full(given).astype(own.dtype), own)
        qwyc.optimize(model, sample, alpha=0.2)
    for model in (booster, light):
        fast = qwyc.optimize(model, sample, alpha=0.2)
        assert "equal those of" in compare_with_model(model, rows, fast.ensemble)


def test_values_and_anomalies(rows, sample):
    value = np.asarray(rows.sum(axis=1)).ravel()
    for model in (
        GradientBoostingRegressor(n_estimators=8).fit(rows, value),
        lightgbm.LGBMRegressor(**LIGHT).fit(rows, value),
        xgboost.XGBRegressor(**BOOSTED).fit(rows, value),
    ):
        np.testing.assert_array_equal(qwyc.read_model(model).predict(sample), model.predict(sample))
    forest = IsolationForest(n_estimators=20, random_state=0).fit(rows)
    read = qwyc.read_model(forest)
    np.testing.assert_array_equal(read.predict(sample), forest.predict(sample))
    np.testing.assert_array_equal(read.score_samples(sample), forest.score_samples(sample))


def test_the_live_model_is_asked_about_sparse_rows(rows, sample):
    """XGBoost decides the dense rows otherwise: zeros are not missing."""
    model = MODELS["xgboost"][0]().fit(rows, target(rows))
    assert (model.predict(sample) != model.predict(sample.toarray())).any()

    class AsDense(xgboost.XGBClassifier):
        def predict(self, X, **options):
            return super().predict(X.toarray() if hasattr(X, "toarray") else X, **options)

    asked = AsDense(**BOOSTED).fit(rows, target(rows))
    with pytest.raises(ParityError, match=r"row .* of X"):
        qwyc.optimize(asked, sample, alpha=0.2)
    twice = sample.copy()  # entries of the same place: XGBoost would take the last one
    twice.data, twice.indices = np.repeat(sample.data / 2, 2), np.repeat(sample.indices, 2)
    twice.indptr = 2 * sample.indptr
    twice.has_canonical_format = False
    qwyc.optimize(model, twice, alpha=0.2)


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "random forest"])
def test_bytes_that_libraries_do_not_read_are_converted_for_them(name, rows, sample):
    """XGBoost ends the process where indptr has another byte order."""
    model = MODELS[name][0]().fit(rows, target(rows))
    expected = qwyc.read_model(model).score_full(sample)
    for part, dtype in (("indptr", ">i4"), ("indptr", "i8"), ("indices", ">i4"), ("data", ">f4")):
        other = sample.copy()
        setattr(other, part, getattr(sample, part).astype(dtype))
        made = qwyc.optimize(model, other, alpha=0.2, progress=False)
        np.testing.assert_array_equal(made.score_full(other), expected)


def test_what_scikit_learn_refuses_is_refused(rows):
    y = target(rows)
    forest = qwyc.read_model(RandomForestClassifier(3).fit(rows, y))
    for value, words in ((np.nan, "a missing value"), (np.inf, "infinity"), (1e39, "infinity, or")):
        X = rows.copy()
        entry = X.indptr[11] + 2
        X.data[entry] = value
        place = f"row 11 of column {X.indices[entry]}"
        with pytest.raises(RowsError, match=f"X has {words}.* in {place}; sparse rows"):
            forest.predict(X)
        with pytest.raises(RowsError, match="sparse rows"):
            forest.predict(X.tocsc())
    hist = HistGradientBoostingClassifier(max_iter=3).fit(rows.toarray(), y)
    with pytest.raises(RowsError, match=r"sparse.*dense rows: pass X.toarray\(\)"):
        qwyc.read_model(hist).predict(rows)


WORDS = np.array([f"word{i}" for i in range(120)])


def texts(n, seed):
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, len(WORDS), (n, 9))
    return [" ".join(row) for row in WORDS[chosen]], (chosen < 40).sum(axis=1) > 3


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "catboost", "random forest", "hist"])
def test_pipelines_of_text(name):
    X, y = texts(700, 0)
    final = HistGradientBoostingClassifier(max_iter=5) if name == "hist" else MODELS[name][0]()
    steps = [TfidfVectorizer(), final]
    if name == "hist":
        with pytest.raises(TypeError, match="dense"):
            make_pipeline(*steps).fit(X, y)
        return
    model = make_pipeline(*steps).fit(X, y.astype(int))
    fresh, _ = texts(2500, 1)
    fast = qwyc.optimize(model, fresh, alpha=0.2)
    others, _ = texts(500, 2)
    np.testing.assert_array_equal(fast.full().predict(others), model.predict(others))
    np.testing.assert_array_equal(fast.predict_proba(others), model.predict_proba(others))
    rows = model[:-1].transform(others)
    alone = fast.without_transform()
    np.testing.assert_array_equal(alone.decide(rows).score, fast.decide(others).score)


def test_pipelines_of_one_hot_columns():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, (3000, 4)).astype(str)
    y = (X[:, 0].astype(int) + X[:, 1].astype(int) > 30).astype(int)
    for name in ("xgboost", "lightgbm"):
        model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), MODELS[name][0]())
        model.fit(X[:1000], y[:1000])
        fast = qwyc.optimize(model, X[1000:], alpha=0.2, repeats="independent")
        np.testing.assert_array_equal(fast.full().predict(X), model.predict(X))
