"""Trained models of three classes, with rows as data sets of other engines hold them."""

import numpy as np
import pandas as pd
import xgboost
from sklearn.ensemble import RandomForestClassifier

import qwyc
from trained import make_frame

ADDED = ("label", "steps", "score_0", "score_1", "score_2", "complete")
ODD_LABELS = ["it's", "low", 'the "high" one']
ROUNDS = 30


def three_kinds(frame, seed):
    """Labels 0, 1 and 2, which two columns and the colour tell with some noise."""
    colour = frame["the colour"].astype(object).isin(["red", "blue"])
    noise = np.random.default_rng(seed).normal(size=len(frame))
    signal = frame["a"].fillna(0) + colour + (frame["count"] > 40) + noise / 3
    return np.digitize(signal, [0.2, 1.2])


def fitted_model():
    """An XGBoost model with categories and missing values, and a classifier made from it."""
    frame, _ = make_frame(rows=6000)
    model = xgboost.XGBClassifier(
        n_estimators=ROUNDS, max_depth=3, enable_categorical=True, n_jobs=1
    )
    model.fit(frame[:2000], three_kinds(frame, 0)[:2000])
    return model, qwyc.optimize(model, frame[2000:], alpha=0.03, progress=False, evaluation="quit")


def rows_as_text(n, seed=5):
    """Text as text and a number for each row; no categories, which only pandas has."""
    frame, _ = make_frame(seed=seed, rows=n)
    for name in ("the colour", "constant"):
        frame[name] = frame[name].astype(object).where(frame[name].notna(), None)
    frame["size"] = frame["size"].astype(int)
    frame.insert(0, "id", np.arange(n))
    return frame.assign(note="kept as it is")


def forest_of(labels):
    """A classifier over a forest of three classes that have these labels, and rows of its columns."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(5000, 3)), columns=["u", "v", "w"])
    kinds = np.digitize(frame["u"] + frame["v"] * frame["w"], [-0.5, 0.5])
    forest = RandomForestClassifier(20, max_depth=4, random_state=0, n_jobs=1)
    forest.fit(frame[:2000], np.array(labels, dtype=object)[kinds[:2000]])
    fast = qwyc.optimize(forest, frame[2000:4000], alpha=0.05, progress=False)
    new = frame[4000:].reset_index(drop=True)
    return fast, new.assign(id=np.arange(len(new)))


def decision_columns(decisions, labels):
    """Decisions as lists, by the name of their column."""
    scores = {f"score_{label}": decisions.score[:, k] for k, label in enumerate(labels)}
    columns = {"label": decisions.label, "steps": decisions.steps, **scores}
    return {name: a.tolist() for name, a in (columns | {"complete": decisions.complete}).items()}
