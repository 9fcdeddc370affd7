"""scikit-learn pipelines that end in an ensemble of any library."""

from __future__ import annotations

import pickle

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xgboost
from sklearn.compose import make_column_transformer
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

import qwyc
from trained import make_data

FINAL = {
    "xgboost": xgboost.XGBClassifier(n_estimators=12, max_depth=3),
    "lightgbm": lightgbm.LGBMClassifier(n_estimators=12, verbose=-1),
    "catboost": catboost.CatBoostClassifier(iterations=12, verbose=0, allow_writing_files=False),
    "forest": RandomForestClassifier(12, random_state=0),
    "bagging": BaggingClassifier(n_estimators=12, random_state=0),
}


@pytest.fixture(scope="module")
def table():
    X, y = make_data()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["k"] = np.random.default_rng(0).choice(["x", "y", "z"], len(frame))
    return frame, y | (frame["k"] == "x").to_numpy()


def encoder(sparse):
    return make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=sparse), ["k"]),
        (SimpleImputer(), list("abcdef")),
        sparse_threshold=1.0 if sparse else 0.0,
    )


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", FINAL)
def test_decisions_are_those_of_the_pipeline(name, sparse, table):
    X, y = table
    model = make_pipeline(encoder(sparse), FINAL[name]).fit(X, y)
    fast = qwyc.optimize(model, X, alpha=0)
    new = X.assign(k="unseen")
    np.testing.assert_array_equal(fast.predict(new), model.predict(new))
    assert fast.ensemble.n_models == 12
    assert "behind ColumnTransformer" in str(fast)
    again = pickle.loads(pickle.dumps(fast))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_file_holds_the_trees_and_no_code(table, tmp_path):
    X, y = table
    model = make_pipeline(encoder(False), StandardScaler(), FINAL["lightgbm"]).fit(X, y)
    fast = qwyc.optimize(model, X, alpha=0)
    with pytest.raises(qwyc.ArtifactError, match=r"ColumnTransformer, StandardScaler.*are code"):
        fast.save(tmp_path / "m.qwyc")
    assert not list(tmp_path.iterdir())
    fast.without_transform().save(tmp_path / "m.qwyc")
    rows = model[:-1].transform(X)
    np.testing.assert_array_equal(qwyc.load(tmp_path / "m.qwyc").predict(rows), fast.predict(X))
    plain = qwyc.optimize(FINAL["lightgbm"], rows, alpha=0)
    assert plain.without_transform() is plain


def test_ensembles_of_anything_at_the_end(table):
    X, y = table
    voting = VotingClassifier([("a", GaussianNB()), ("b", LogisticRegression())], voting="soft")
    model = make_pipeline(encoder(False), StandardScaler(), voting).fit(X, y)
    fast = qwyc.optimize(model, X, alpha=0.05, method="joint")
    full = fast.score_full(X) >= fast.policy.threshold
    np.testing.assert_array_equal(fast.ensemble.classes[full.astype(int)], model.predict(X))


def test_a_pipeline_of_one_step(table):
    X, y = make_data()
    model = make_pipeline(FINAL["lightgbm"]).fit(X, y)
    np.testing.assert_array_equal(qwyc.optimize(model, X, alpha=0).predict(X), model.predict(X))


def test_what_is_refused(table):
    X, y = table
    model = make_pipeline(encoder(False), FINAL["forest"]).fit(X, y)
    fast = qwyc.optimize(model, X, alpha=0)
    with pytest.raises(qwyc.InputError, match=r"own steps cannot take X.*"):
        fast.predict(X.drop(columns="k"))
    with pytest.raises(qwyc.ModelError, match="LogisticRegression is not supported"):
        qwyc.read_model(make_pipeline(StandardScaler(), LogisticRegression()))
    with pytest.raises(qwyc.ModelError, match="passthrough"):
        qwyc.read_model(make_pipeline(StandardScaler(), "passthrough"))


@pytest.mark.parametrize("name", ["xgboost", "forest"])
def test_a_pipeline_in_a_pipeline(name, table):
    """Its sparse rows stay sparse until the ensemble: XGBoost takes what they leave out for missing."""
    X, y = table
    model = make_pipeline(encoder(True), make_pipeline(MaxAbsScaler(), FINAL[name])).fit(X, y)
    fast = qwyc.optimize(model, X, alpha=0)
    np.testing.assert_array_equal(fast.predict(X), model.predict(X))
    assert "behind ColumnTransformer, MaxAbsScaler" in str(fast)


def test_arrow_tables_are_taken_as_data_frames(table):
    X, y = table[0].fillna(0), table[1]
    voting = VotingClassifier([("a", GaussianNB()), ("b", GaussianNB())], voting="soft")
    for model, frame in (
        (make_pipeline(encoder(False), FINAL["forest"]), X),
        (make_pipeline(encoder(False), voting), X),
        (voting, X.drop(columns="k")),
    ):
        model.fit(frame, y)
        rows = pa.Table.from_pandas(frame)
        for form in (rows, rows.to_batches()[0]):
            fast = qwyc.optimize(model, form, alpha=0.05)
            full = fast.score_full(form) >= fast.policy.threshold
            np.testing.assert_array_equal(full, model.predict(frame))


def test_searches_and_frozen_estimators_are_looked_into(table):
    X, y = table
    inner = GridSearchCV(FINAL["forest"], {"max_depth": [2, 4]}, cv=2)
    search = GridSearchCV(make_pipeline(encoder(False), inner), {}, cv=2).fit(X, y)
    for model in (search, FrozenEstimator(search)):
        fast = qwyc.optimize(model, X, alpha=0)
        np.testing.assert_array_equal(fast.predict(X), model.predict(X))
    with pytest.raises(qwyc.ModelError, match="fit it, with refit=True"):
        qwyc.read_model(GridSearchCV(FINAL["forest"], {}))
