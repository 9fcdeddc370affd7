"""Tables whose columns are in another order: each library goes by name, by position, or refuses, and the
comparison with the model says where qwyc, which goes by name, would decide differently."""

import re

import catboost
import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xgboost
import ydf
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import qwyc
from commands import run
from trained import QUIET

ydf.verbose(0)
NAMES = list("abcd")
OTHER = list("dbac")  # "b" stays
NAME, POSITION, RAISES = "by name", "by position", "raises"


def light(trees=10):
    return lightgbm.LGBMClassifier(n_estimators=trees, **QUIET)


def xgb():
    return xgboost.XGBClassifier(n_estimators=10)


MODELS = {
    "LGBMClassifier": lambda X, y: light().fit(X, y),
    "LightGBM Booster": lambda X, y: light().fit(X, y).booster_,
    "XGBClassifier": lambda X, y: xgb().fit(X, y),
    "XGBoost Booster": lambda X, y: xgb().fit(X, y).get_booster(),
    "CatBoost": lambda X, y: catboost.CatBoostClassifier(
        iterations=10, verbose=0, allow_writing_files=False
    ).fit(X, y),
    "forest": lambda X, y: RandomForestClassifier(10, random_state=0).fit(X, y),
    "hist": lambda X, y: HistGradientBoostingClassifier(max_iter=10).fit(X, y),
    "boosting": lambda X, y: GradientBoostingClassifier(n_estimators=10).fit(X, y),
    "AdaBoost": lambda X, y: AdaBoostClassifier(n_estimators=10).fit(X, y),
    "bagging": lambda X, y: BaggingClassifier(n_estimators=5).fit(X, y),
    "voting": lambda X, y: VotingClassifier(
        [("a", GaussianNB()), ("b", LogisticRegression())], voting="soft"
    ).fit(X, y),
    "voting of LightGBM": lambda X, y: VotingClassifier(
        [("a", light(4)), ("b", light(6))], voting="soft"
    ).fit(X, y),
    "pipeline that passes through": lambda X, y: make_pipeline("passthrough", light()).fit(X, y),
    "YDF": lambda X, y: ydf.GradientBoostedTreesLearner(label="y", num_trees=10).train(
        X.assign(y=y)
    ),
}
BY_POSITION = dict.fromkeys(("pandas", "Polars", "Arrow"), POSITION)
BY_NAME = {"pandas": NAME, "Polars": NAME, "Arrow": RAISES}
CHECKED = dict.fromkeys(("pandas", "Polars", "Arrow"), RAISES)
# What each library does with each table; docs/models.md has the same.
DOES = {
    "LGBMClassifier": BY_POSITION,
    "LightGBM Booster": BY_POSITION,
    "XGBClassifier": {"pandas": RAISES, "Polars": POSITION, "Arrow": POSITION},
    "XGBoost Booster": {"pandas": RAISES, "Polars": POSITION, "Arrow": POSITION},
    "CatBoost": BY_NAME,
    "forest": CHECKED,
    "hist": CHECKED,
    "boosting": CHECKED,
    "AdaBoost": CHECKED,
    "bagging": CHECKED,
    "voting": CHECKED,
    "voting of LightGBM": BY_POSITION,
    "pipeline that passes through": BY_POSITION,
    "YDF": BY_NAME,
}
TABLES = {"pandas": lambda frame: frame, "Polars": pl.from_pandas, "Arrow": pa.Table.from_pandas}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(600, 4)), columns=NAMES)
    return X, (X["a"] - 2 * X["b"] + X["c"] * X["d"] > 0).astype(int)


def outputs(name, model, X):
    if name == "XGBoost Booster":
        return model.inplace_predict(X)
    return model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X)


def what_it_does(name, model, frame, table):
    try:
        found = outputs(name, model, TABLES[table](frame[OTHER]))
    except Exception:
        return RAISES
    if np.array_equal(found, outputs(name, model, frame)):
        return NAME
    renamed = frame[OTHER].set_axis(NAMES, axis=1)
    return POSITION if np.array_equal(found, outputs(name, model, renamed)) else "otherwise"


@pytest.mark.parametrize("name", MODELS)
def test_the_comparison_is_faithful_to_every_library(name, data):
    X, y = data
    model = MODELS[name](X, y)
    in_order = qwyc.optimize(model, X, alpha=0.2, progress=False)
    for table in TABLES:
        assert what_it_does(name, model, X, table) == DOES[name][table], table
        other = TABLES[table](X[OTHER])
        if DOES[name][table] == POSITION:
            with pytest.raises(qwyc.ParityError, match="by position") as caught:
                qwyc.optimize(model, other, alpha=0.2, progress=False)
            message = str(caught.value)
            assert "'d' in place of 'a', 'a' in place of 'c', 'c' in place of 'd'." in message
            as_frame = table != "Arrow" or "pipeline" in name  # which makes data frames of tables
            assert ("X[model." if as_frame else "X.select(model.") in message
        else:  # by name, or refused by the library: there is no other decision
            fast = qwyc.optimize(model, other, alpha=0.2, progress=False)
            np.testing.assert_array_equal(fast.predict(other), in_order.predict(X))


@pytest.mark.parametrize("name", ["LGBMClassifier", "LightGBM Booster"])
def test_the_error_has_the_way_out(name, data):
    X, y = data
    model = MODELS[name](X, y)
    with pytest.raises(qwyc.ParityError, match="LightGBM takes the columns") as caught:
        qwyc.optimize(model, X[OTHER], alpha=0.2, progress=False)
    way_out = re.search(r"model's order: (X\[.*\])$", str(caught.value))[1]
    ordered = eval(way_out, {"X": X[OTHER], "model": model})
    assert list(ordered) == NAMES
    qwyc.optimize(model, ordered, alpha=0.2, progress=False)


def test_verify_notices_too(data, tmp_path):
    X, y = data
    model = MODELS["LGBMClassifier"](X, y)
    model.booster_.save_model(tmp_path / "m.txt")
    fast = qwyc.optimize(model, X[:300], alpha=0.2, progress=False)
    X = X[300:]  # rows that it was not made from
    for own in (model, model.booster_, tmp_path / "m.txt"):
        assert "equal those" in qwyc.verify(fast, X, model=own).parity
        with pytest.raises(qwyc.ParityError, match="by position"):
            qwyc.verify(fast, X[OTHER], model=own)
    qwyc.verify(fast, X[OTHER])  # nothing is compared with LightGBM


def test_the_command_line_reads_files_by_name(data, tmp_path):
    X, y = data
    model = MODELS["LightGBM Booster"](X, y)
    model.save_model(tmp_path / "m.txt")
    qwyc.optimize(model, X, alpha=0, progress=False).save(tmp_path / "m.qwyc")
    X[OTHER].to_csv(tmp_path / "rows.csv", index=False)
    done = run("verify", "m.qwyc", "rows.csv", "--model", "m.txt", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"equal those" in done.stdout


def test_names_with_spaces(data):
    X, y = data
    spaced = X.rename(columns={"a": "the a"})
    model = MODELS["LGBMClassifier"](spaced, y)
    qwyc.optimize(model, spaced, alpha=0.2, progress=False)
    other = spaced[["d", "b", "the a", "c"]]
    with pytest.raises(qwyc.ParityError, match=r"X\[\['the a', 'b', 'c', 'd'\]\]"):
        qwyc.optimize(model, other, alpha=0.2, progress=False)


def test_a_column_that_no_tree_uses_counts_too(data):
    """LightGBM goes by position whether or not this sample shows it."""
    X, y = data
    constant = X.assign(e=1.0, f=2.0)
    model = MODELS["LGBMClassifier"](constant, y)
    swapped = constant[[*NAMES, "f", "e"]]
    np.testing.assert_array_equal(model.predict(swapped), model.predict(constant))
    with pytest.raises(qwyc.ParityError, match="'f' in place of 'e'"):
        qwyc.optimize(model, swapped, alpha=0.2, progress=False)


def test_more_columns_than_the_model_has(data, capfd):
    X, y = data
    wider = X.assign(e=1.0)[["e", *NAMES]]
    model = MODELS["LGBMClassifier"](X, y)
    qwyc.optimize(model, wider, alpha=0.2, progress=False)  # LightGBM refuses this table
    assert "LightGBM" not in capfd.readouterr().out
    model.set_params(predict_disable_shape_check=True)  # now it takes the first four columns
    with pytest.raises(qwyc.ParityError, match=r"'e' in place of 'a'.*by position"):
        qwyc.optimize(model, wider, alpha=0.2, progress=False)


def test_a_pipeline_that_compares_names_refuses_by_itself(data):
    X, y = data
    model = make_pipeline(StandardScaler(), light()).fit(X, y)
    with pytest.raises(qwyc.InputError, match="feature names should match"):
        qwyc.optimize(model, X[OTHER], alpha=0.2, progress=False)
