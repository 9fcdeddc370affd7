"""Values and probabilities of XGBoost: bit for bit those of its own predict and predict_proba."""

import numpy as np
import pytest
import xgboost

from outputs import check_probabilities, check_values, made_rows

X, TARGET = made_rows()
POSITIVE = np.exp(TARGET / 3)
FEW = {"n_estimators": 20, "max_depth": 4, "n_jobs": 1}

TARGETS = {
    "reg:squarederror": TARGET,
    "reg:squaredlogerror": POSITIVE,
    "reg:absoluteerror": TARGET,
    "reg:pseudohubererror": TARGET,
    "reg:quantileerror": TARGET,
    "count:poisson": POSITIVE.round(),
    "reg:gamma": POSITIVE,
    "reg:tweedie": POSITIVE.round(),
    "reg:logistic": 1 / (1 + np.exp(-TARGET)),
    "survival:cox": np.arange(len(X)) % 97 + 1.0,
}


@pytest.mark.parametrize("objective", TARGETS)
def test_regressors(objective, tmp_path):
    more = {"quantile_alpha": 0.3} if "quantile" in objective else {}
    model = xgboost.XGBRegressor(objective=objective, **FEW, **more).fit(X, TARGETS[objective])
    check_values(model, X, model.predict(X), tmp_path)
    model.save_model(tmp_path / "m.json")  # which says that it is a regressor
    check_values(tmp_path / "m.json", X, model.predict(X), tmp_path)


@pytest.mark.parametrize(
    "options",
    [
        {"objective": "reg:quantileerror", "quantile_alpha": [0.1, 0.5, 0.9]},
        {"multi_strategy": "multi_output_tree"},
        {},
    ],
)
def test_several_values(options, tmp_path):
    target = TARGET if "objective" in options else np.column_stack([TARGET, POSITIVE])
    model = xgboost.XGBRegressor(**FEW, **options).fit(X, target)
    assert model.predict(X).ndim == 2
    check_values(model, X, model.predict(X), tmp_path)


def test_dart_forests_and_the_best_iteration(tmp_path):
    dart = xgboost.XGBRegressor(booster="dart", rate_drop=0.3, **FEW).fit(X, TARGET)
    check_values(dart, X, dart.predict(X), tmp_path)
    forest = xgboost.XGBRFRegressor(n_estimators=10).fit(X, TARGET)
    check_values(forest, X, forest.predict(X), tmp_path)
    noise = TARGET + np.random.default_rng(3).normal(size=len(X))
    stops = xgboost.XGBRegressor(n_estimators=300, early_stopping_rounds=2, max_depth=4)
    stops.fit(X[:800], noise[:800], eval_set=[(X[800:], noise[800:])], verbose=False)
    assert stops.best_iteration < 250
    check_values(stops, X, stops.predict(X), tmp_path)


@pytest.mark.parametrize("objective", ["rank:pairwise", "rank:ndcg", "rank:map"])
def test_rankers(objective, tmp_path):
    model = xgboost.XGBRanker(objective=objective, **FEW)
    model.fit(X, (TARGET > 1).astype(int), qid=np.arange(len(X)) // 30)
    check_values(model, X, model.predict(X), tmp_path)


def test_survival_times(tmp_path):
    rows = xgboost.DMatrix(X)
    rows.set_float_info("label_lower_bound", POSITIVE)
    rows.set_float_info("label_upper_bound", POSITIVE * 1.5)
    booster = xgboost.train({"objective": "survival:aft", "max_depth": 4}, rows, 20)
    check_values(booster, X, booster.predict(xgboost.DMatrix(X)), tmp_path)


@pytest.mark.parametrize("objective", ["binary:logistic", "binary:logitraw", "binary:hinge"])
def test_two_classes(objective, tmp_path):
    model = xgboost.XGBClassifier(objective=objective, **FEW).fit(X, TARGET > 0)
    check_values(model, X, model.predict(X), tmp_path)
    check_probabilities(model, X, model.predict_proba(X), tmp_path)


@pytest.mark.parametrize("objective", ["multi:softprob", "multi:softmax"])
def test_several_classes(objective, tmp_path):
    model = xgboost.XGBClassifier(objective=objective, **FEW).fit(X, np.digitize(TARGET, [-1, 1]))
    check_values(model, X, model.predict(X), tmp_path)
    check_probabilities(model, X, model.predict_proba(X), tmp_path)
