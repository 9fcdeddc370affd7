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
    "LogLinQuantile:alpha=0.3": POSITIVE,
    "RMSEWithUncertainty": TARGET,
    "SurvivalAft:dist=Normal": np.column_stack([POSITIVE, np.where(TARGET > 0, -1, POSITIVE)]),
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


@pytest.mark.parametrize("scale", [0.3, -1.7, 1e-3])
@pytest.mark.parametrize("loss", ["RMSE", "MultiRMSE", "Logloss", "MultiClass"])
def test_scales_that_are_no_powers_of_two(loss, scale, tmp_path):
    several = loss.startswith("Multi")
    bias = [0.123456789, -0.7, 0.2] if several else 0.123456789
    if "RMSE" in loss:
        target = np.column_stack([TARGET, POSITIVE, -TARGET]) if several else TARGET
        model = CatBoostRegressor(loss_function=loss, **FEW).fit(X, target)
        model.set_scale_and_bias(scale, bias)
        check_values(model, X, model.predict(X), tmp_path)
        return
    labels = np.digitize(TARGET, [-1, 1] if several else [0])
    model = CatBoostClassifier(loss_function=loss, **FEW).fit(X, labels)
    model.set_scale_and_bias(scale, bias)
    check_probabilities(model, X, model.predict_proba(X), tmp_path)
    ours = qwyc.read_model(model)
    own = model.predict(X, prediction_type="RawFormulaVal")
    np.testing.assert_array_equal(ours.score_full(X), own)
    np.testing.assert_array_equal(ours.predict(X), model.predict(X).reshape(-1))
    fast = qwyc.optimize(model, X, alpha=0)  # which proves parity, and quits by bounds
    np.testing.assert_array_equal(fast.predict(X), model.predict(X).reshape(-1))
    if loss == "Logloss":
        with pytest.raises(qwyc.ModelError, match=r"multiplies its sum by .* no form in C"):
            fast.export_c(tmp_path / "scaled")


def test_other_objectives_are_refused():
    model = CatBoostRanker(loss_function="GroupQuantile:alpha=0.3", **FEW)
    model.fit(X, TARGET, group_id=np.arange(len(X)) // 30)
    with pytest.raises(qwyc.ModelError, match="objective is GroupQuantile; supported are"):
        qwyc.read_model(model)
    zero = CatBoostRegressor(**FEW).fit(X, TARGET)
    zero.set_scale_and_bias(0.0, 1.0)
    with pytest.raises(qwyc.ModelError, match="multiplies its sum by 0, which leaves nothing"):
        qwyc.read_model(zero)
