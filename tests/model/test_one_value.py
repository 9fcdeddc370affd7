"""One row of a model of values: what its own library gives, in every form that a row may have."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import lightgbm
import numpy as np
import pytest
import sklearn.ensemble
import xgboost

import qwyc
from qwyc import _native

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 5)).astype(np.float32)
Y = np.exp(X[:, 0]) + X[:, 1] * X[:, 2] / 9
SMALL = {"n_estimators": 40, "max_depth": 4, "n_jobs": 1}
LIGHT = {"n_estimators": 40, "n_jobs": 1, "verbose": -1}


def light(**options):
    return lightgbm.LGBMRegressor(**LIGHT, **options).fit(X, np.abs(Y))


def boosted(**options):
    return xgboost.XGBRegressor(**SMALL, **options).fit(X, np.abs(Y))


MODELS = {
    "identity, float64": light,
    "identity, float32": boosted,
    "exponential": lambda: light(objective="poisson"),
    "exponential, float32": lambda: boosted(objective="count:poisson"),
    "signed square": lambda: light(reg_sqrt=True),
    "logistic": lambda: lightgbm.LGBMRegressor(**LIGHT, objective="cross_entropy").fit(X, Y > 1),
    "mean": lambda: sklearn.ensemble.RandomForestRegressor(9, max_depth=9).fit(X, Y),
    "numpy exponential": lambda: sklearn.ensemble.HistGradientBoostingRegressor(
        loss="poisson", max_iter=9
    ).fit(X, np.abs(Y)),
    "several": lambda: xgboost.XGBRegressor(**SMALL).fit(X, np.column_stack([Y, -Y, Y * Y])),
    "several means": lambda: sklearn.ensemble.ExtraTreesRegressor(9, max_depth=5).fit(
        X, np.column_stack([Y, -Y])
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_one_row_is_evaluated_as_in_a_batch(name):
    live = MODELS[name]()
    model, new = qwyc.read_model(live), np.concatenate([X[:60], X[:60] * 3])
    one, want = model.predict_one, live.predict(new).tolist()
    native = _native.ClassOneValue if name.startswith("several") else _native.OneValue
    assert isinstance(one.__self__, native)
    for form in (
        lambda row: row,
        lambda row: row.astype(np.float64),
        lambda row: np.repeat(row, 2)[::2],
        lambda row: row.tolist(),
        lambda row: tuple(row.tolist()),
        lambda row: row.astype(object),
    ):
        assert [one(form(row)) for row in new] == want
    assert type(one(new[0])) is (list if name.startswith("several") else float)
    assert one(new[:1].tolist()[0]) == want[0]
    for wrong in (X[0, :4], X, "row", None):
        with pytest.raises(qwyc.InputError):
            one(wrong)


def test_missing_values_and_those_that_are_refused():
    row = X[0].copy()
    row[2] = np.nan
    live = light()
    assert qwyc.read_model(live).predict_one(row) == live.predict(row[None])[0]
    strict = qwyc.read_model(sklearn.ensemble.GradientBoostingRegressor(n_estimators=5).fit(X, Y))
    for value in (np.nan, np.inf):
        row[2] = value
        with pytest.raises(qwyc.InputError):
            strict.predict_one(row)


def test_names_and_pipelines_take_the_way_of_tables():
    import pandas as pd
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    frame = pd.DataFrame(X, columns=list("abcde"))
    live = lightgbm.LGBMRegressor(**LIGHT).fit(frame, Y)
    one, want = qwyc.read_model(live).predict_one, live.predict(frame[:5]).tolist()
    assert [one(frame.iloc[i]) for i in range(5)] == want
    assert [one(frame.iloc[i].to_dict()) for i in range(5)] == want
    assert [one(frame[i : i + 1]) for i in range(5)] == want
    scaled = make_pipeline(StandardScaler(), lightgbm.LGBMRegressor(**LIGHT)).fit(X, Y)
    assert qwyc.read_model(scaled).predict_one(X[0]) == scaled.predict(X[:1])[0]


def test_threads_and_garbage():
    model = qwyc.read_model(boosted())
    want, one = model.predict(X).tolist(), model.predict_one
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, X)) == want
    gone = weakref.ref(model)
    del model, one
    gc.collect()
    assert gone() is None
