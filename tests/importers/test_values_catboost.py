"""Values and probabilities of CatBoost: bit for bit those of its own predict and predict_proba."""

import numpy as np
import pytest
from catboost import CatBoostClassifier, CatBoostRanker, CatBoostRegressor

import qwyc
from outputs import check_probabilities, check_values, made_rows

X, TARGET = made_rows(missing=0.0)
POSITIVE = np.exp(TARGET / 3)
FEW = {
    "iterations": 15,
    "depth": 4,
    "verbose": 0,
    "thread_count": 1,
    "allow_writing_files": False,
}

LOSSES = {
    "RMSE": TARGET,
    "MAE": TARGET,
    "Quantile:alpha=0.3": TARGET,
    "MAPE": POSITIVE,
    "Lq:q=3": TARGET,
    "Huber:delta=1": TARGET,
    "Expectile:alpha=0.3": TARGET,
    "LogCosh": TARGET,
    "Poisson": POSITIVE.round(),
    "Tweedie:variance_power=1.5": POSITIVE.round(),
    "MultiRMSE": np.column_stack([TARGET, POSITIVE]),
    "MultiQuantile:alpha=0.1,0.5,0.9": TARGET,
}


@pytest.mark.parametrize("loss", LOSSES)
def test_regressors(loss, tmp_path):
    model = CatBoostRegressor(loss_function=loss, **FEW).fit(X, LOSSES[loss])
    own = np.asarray(model.predict(X))
    check_values(model, X, own, tmp_path)
    model.save_model(tmp_path / "m.cbm")
    check_values(tmp_path / "m.cbm", X, own, tmp_path)


@pytest.mark.parametrize("loss", ["YetiRank", "QueryRMSE", "QuerySoftMax", "PairLogit"])
def test_rankers(loss, tmp_path):
    model = CatBoostRanker(loss_function=loss, **FEW)
    model.fit(X, (TARGET > 1).astype(int), group_id=np.arange(len(X)) // 30)
    check_values(model, X, model.predict(X), tmp_path)


@pytest.mark.parametrize("loss", ["Logloss", "MultiClass", "MultiClassOneVsAll"])
def test_probabilities(loss, tmp_path):
    labels = np.digitize(TARGET, [0] if loss == "Logloss" else [-2, -1, 0, 1, 2])
    model = CatBoostClassifier(loss_function=loss, **FEW).fit(X, labels)
    check_probabilities(model, X, model.predict_proba(X), tmp_path)


def test_other_objectives_are_refused():
    model = CatBoostRegressor(loss_function="RMSEWithUncertainty", **FEW).fit(X, TARGET)
    with pytest.raises(qwyc.ModelError, match="objective is RMSEWithUncertainty; supported are"):
        qwyc.read_model(model)
