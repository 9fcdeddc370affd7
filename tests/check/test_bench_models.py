"""`qwyc bench` of models that are evaluated in full: that they run and that values are compared; never how
fast."""

import json

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import sklearn.ensemble
import xgboost

import qwyc
from commands import run
from qwyc.check.benchmark import FULL, bench
from qwyc.errors import ModelError, OptionError, ParityError


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Models of values and of classes in files, predictors in files, and rows."""
    folder = tmp_path_factory.mktemp("bench")
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(900, 4)), columns=list("abcd"))
    y = (X["a"] + X["b"] * X["c"]).to_numpy()
    small, light = {"n_estimators": 9, "n_jobs": 1}, {"n_estimators": 9, "verbose": -1, "n_jobs": 1}
    boosted = xgboost.XGBRegressor(**small).fit(X, y)
    boosted.save_model(folder / "values.ubj")
    qwyc.read_model(boosted).save(folder / "values.qwyc")
    xgboost.XGBRegressor(**small, max_depth=1).fit(X, y).save_model(folder / "other.ubj")
    targets = xgboost.XGBRegressor(**small).fit(X, np.column_stack([y, -y]))
    targets.save_model(folder / "targets.ubj")
    xgboost.XGBClassifier(**small).fit(X, y > 0).save_model(folder / "classes.ubj")
    counts = lightgbm.LGBMRegressor(**light, objective="poisson").fit(X, np.abs(y))
    counts.booster_.save_model(folder / "counts.txt")
    kinds = {"iterations": 9, "verbose": False, "allow_writing_files": False, "thread_count": 1}
    catboost.CatBoostRegressor(**kinds).fit(X, y).save_model(str(folder / "values.cbm"))
    forest = sklearn.ensemble.IsolationForest(n_estimators=9, random_state=0).fit(X)
    qwyc.read_model(forest).save(folder / "forest.qwyc")
    X[:600].to_csv(folder / "new.csv", index=False)
    return folder


@pytest.mark.parametrize(
    ("file", "library"),
    [
        ("values.ubj", "XGBoost"),
        ("targets.ubj", "XGBoost"),
        ("classes.ubj", "XGBoost"),
        ("counts.txt", "LightGBM"),
        ("values.cbm", "CatBoost"),
    ],
)
def test_models_are_timed_beside_their_library(saved, file, library):
    model, X = qwyc.read_model(saved / file), pd.read_csv(saved / "new.csv")
    found = bench(model, X, source=saved / file, seconds=0.002, sizes=(1, 100))
    assert {(line.contestant, line.batch) for line in found.lines} == {
        (name, batch) for name in (library, FULL) for batch in (1, 100)
    }
    assert found.source == library
    assert found.mean_models is None
    assert "Every row is evaluated in full" in found.summary()
    assert f"{library} gives all 600 rows the same." in found.summary()


def test_another_model_is_refused(saved):
    model, X = qwyc.load(saved / "values.qwyc"), pd.read_csv(saved / "new.csv")
    with pytest.raises(ParityError, match=r"values of .*other\.ubj are not the model's: row 0 has"):
        bench(model, X, source=saved / "other.ubj", seconds=0.001)
    with pytest.raises(ParityError, match=r"of shape \(600, 2\); expected \(600,\)"):
        bench(model, X, source=saved / "targets.ubj", seconds=0.001)
    with pytest.raises(ModelError, match="a model of lightgbm; the classifier was made from one"):
        bench(model, X, source=saved / "counts.txt", seconds=0.001)
    code = qwyc.read_model([lambda X: X[:, 0], lambda X: X[:, 1]])
    with pytest.raises(OptionError, match="are not timed"):
        bench(code, X)


@pytest.mark.parametrize("file", ["values.ubj", "forest.qwyc"])
def test_the_command(saved, file):
    """The library of a model file is compared with; a file of ours stands alone without --model."""
    done = run("bench", file, "new.csv", "--json", "--seconds", "0.002", cwd=saved)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["source"] == ("XGBoost" if file == "values.ubj" else None)
    assert found["disagreements"] is None
    assert found["rows"] == 600


def test_the_command_prints_a_table(saved):
    done = run(
        "bench", "values.qwyc", "new.csv", "--model", "values.ubj", "--seconds", "0.002", cwd=saved
    )
    assert done.returncode == 0, done.stderr
    for words in (FULL, "XGBoost", "p99", "evaluated in full: 9 base models", "rows the same"):
        assert words in done.stdout.decode()
