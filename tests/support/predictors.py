"""Models that are evaluated in full, one of each kind of output, and what their libraries give."""

import lightgbm
import numpy as np
import pandas as pd
import sklearn.ensemble
import xgboost

import qwyc

COLUMNS = ["a", "b", "c", "d"]


def rows(n, seed=0):
    """n rows of four columns, float32 numbers that every library takes as they are, and an id."""
    drawn = np.random.default_rng(seed).normal(size=(n, 4)).round(3).astype(np.float32)
    frame = pd.DataFrame(drawn, columns=COLUMNS)
    frame.insert(0, "id", np.arange(n))
    return frame


def models():
    """Live models by name, trained on the columns of `rows`."""
    X = rows(400, seed=1)[COLUMNS]
    y = (X["a"] + X["b"] * X["c"]).to_numpy(np.float64)
    text = np.array(["low", "mid", "high"])[np.digitize(y, [-0.5, 0.5])]
    small = {"n_estimators": 9, "max_depth": 3, "n_jobs": 1}
    return {
        "values float64": lightgbm.LGBMRegressor(n_estimators=9, n_jobs=1, verbose=-1).fit(X, y),
        "values float32": xgboost.XGBRegressor(**small).fit(X, y),
        "two targets": xgboost.XGBRegressor(**small).fit(X, np.column_stack([y, -2 * y])),
        "two classes": xgboost.XGBClassifier(**small).fit(X, y > 0),
        "three classes": lightgbm.LGBMClassifier(n_estimators=9, n_jobs=1, verbose=-1).fit(X, text),
        "forest": sklearn.ensemble.RandomForestClassifier(9, max_depth=4).fit(X, text == "mid"),
        "isolation": sklearn.ensemble.IsolationForest(n_estimators=9, random_state=0).fit(X),
    }


def expected(name, live, frame):
    """The columns that a model adds with `proba=True`, by name, from its own library."""
    X, columns = frame[COLUMNS], {}
    if name in ("two classes", "three classes", "forest", "isolation"):
        columns["label"] = np.asarray(live.predict(X))
    if name == "isolation":
        columns["value"] = live.score_samples(X)
    elif "label" not in columns:
        values = live.predict(X)
        names = ["value"] if values.ndim == 1 else [f"value_{i}" for i in range(values.shape[1])]
        columns |= dict(zip(names, values.reshape(len(X), -1).T, strict=True))
    else:
        shares = live.predict_proba(X)
        labels = live.classes_.tolist() if name != "two classes" else [0, 1]
        columns |= {f"proba_{label}": shares[:, k] for k, label in enumerate(labels)}
    return columns


def has_proba(name):
    return name in ("two classes", "three classes", "forest")


def read(live):
    return qwyc.read_model(live)
