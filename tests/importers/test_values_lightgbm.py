"""Values and probabilities of LightGBM: bit for bit those of its own predict and predict_proba."""

import lightgbm
import numpy as np
import pytest

import qwyc
from outputs import check_probabilities, check_values, made_rows

X, TARGET = made_rows()
X = X.astype(np.float64)
POSITIVE = np.exp(TARGET / 3)
SHARE = 1 / (1 + np.exp(-TARGET))
FEW = {"n_estimators": 20, "verbosity": -1, "n_jobs": 1}

TARGETS = {
    "regression": TARGET,
    "regression_l1": TARGET,
    "huber": TARGET,
    "fair": TARGET,
    "quantile": TARGET,
    "mape": POSITIVE,
    "poisson": POSITIVE.round(),
    "gamma": POSITIVE,
    "tweedie": POSITIVE.round(),
    "cross_entropy": SHARE,
    "cross_entropy_lambda": SHARE,
}


@pytest.mark.parametrize("objective", TARGETS)
def test_regressors(objective, tmp_path):
    model = lightgbm.LGBMRegressor(objective=objective, **FEW).fit(X, TARGETS[objective])
    check_values(model, X, model.predict(X), tmp_path)
    if objective != "cross_entropy":  # of which a file does not say whether it decides
        model.booster_.save_model(tmp_path / "m.txt")
        check_values(tmp_path / "m.txt", X, model.predict(X), tmp_path)


@pytest.mark.parametrize(
    "options",
    [
        {"reg_sqrt": True},
        {"boosting_type": "dart"},
        {"boosting_type": "rf", "subsample": 0.6, "subsample_freq": 1},
        {"objective": lambda own, found: (found - own, np.ones_like(own))},
    ],
    ids=["square roots", "dart", "rf", "own objective"],
)
def test_other_ways_to_train(options, tmp_path):
    model = lightgbm.LGBMRegressor(**FEW, **options).fit(X, TARGET)
    check_values(model, X, model.predict(X), tmp_path)


@pytest.mark.parametrize("objective", ["lambdarank", "rank_xendcg"])
def test_rankers(objective, tmp_path):
    model = lightgbm.LGBMRanker(objective=objective, **FEW)
    model.fit(X, (TARGET > 1).astype(int), group=np.full(len(X) // 30, 30))
    check_values(model, X, model.predict(X), tmp_path)


@pytest.mark.parametrize("objective", ["binary", "multiclass", "multiclassova"])
def test_probabilities(objective, tmp_path):
    labels = np.digitize(TARGET, [0] if objective == "binary" else [-1, 1])
    model = lightgbm.LGBMClassifier(objective=objective, **FEW).fit(X, labels)
    check_values(model, X, model.predict(X), tmp_path)
    check_probabilities(model, X, model.predict_proba(X), tmp_path)


def test_a_file_without_the_line_that_ends_the_trees(tmp_path):
    text = lightgbm.train(
        {"verbosity": -1, "objective": "regression"}, lightgbm.Dataset(X, TARGET), 5
    ).model_to_string()
    text = text.replace("version=v4", "version=v2")
    path = tmp_path / "old.txt"
    path.write_text(text[: text.index("\nend of trees")] + "\n")
    check_values(path, X, lightgbm.Booster(model_file=path).predict(X), tmp_path)
    path.write_text(text[: text.index("\nend of trees") - 200])
    with pytest.raises(qwyc.ModelError, match="cut off before its end"):
        qwyc.read_model(path)


def test_a_regressor_is_told_how_it_is_evaluated():
    model = lightgbm.LGBMRegressor(**FEW).fit(X, TARGET)
    with pytest.raises(qwyc.OptionError, match=r"gives values.*read_model\(model\)\.predict"):
        qwyc.optimize(model, X, alpha=0.01)
    with pytest.raises(qwyc.OptionError, match="not probabilities"):
        qwyc.read_model(model).predict_proba(X)
