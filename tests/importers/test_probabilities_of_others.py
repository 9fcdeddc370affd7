"""Probabilities of YDF, Treelite and ONNX: the library's own to the last bit, or refused."""

import numpy as np
import onnxruntime  # noqa: F401 - which reads what skl2onnx writes
import pandas as pd
import pytest
import skl2onnx
import treelite
import xgboost
import ydf
from sklearn.ensemble import RandomForestClassifier

import qwyc
from outputs import check_probabilities, made_rows

X, TARGET = made_rows(missing=0.0)
LABELS = (TARGET > 0).astype(int)


def test_treelite(tmp_path):
    booster = xgboost.XGBClassifier(n_estimators=10, max_depth=4).fit(X, LABELS).get_booster()
    model = treelite.frontend.from_xgboost(booster)
    positive = treelite.gtil.predict(model, X).reshape(-1)
    check_probabilities(model, X, np.column_stack([1 - positive, positive]), tmp_path)


def test_ydf():
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    learner = ydf.GradientBoostedTreesLearner(label="label", num_trees=10)
    model = learner.train(frame.assign(label=LABELS), verbose=0)
    ours = qwyc.read_model(model).predict_proba(frame)[:, 1]
    np.testing.assert_array_equal(ours, model.predict(frame))
    forest = ydf.RandomForestLearner(label="label", num_trees=10)
    with pytest.raises(qwyc.OptionError, match="to the last bit: use score_full"):
        qwyc.read_model(forest.train(frame.assign(label=LABELS), verbose=0)).predict_proba(frame)


def test_onnx_is_refused():
    forest = RandomForestClassifier(5, max_depth=4, random_state=0).fit(X, LABELS)
    model = skl2onnx.to_onnx(forest, X[:1], options={"zipmap": False})
    with pytest.raises(qwyc.OptionError, match="to the last bit: use score_full"):
        qwyc.read_model(model).predict_proba(X)
