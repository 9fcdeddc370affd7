"""Probabilities of YDF, Treelite and ONNX: the library's own to the last bit, or refused."""

import json

import lightgbm
import numpy as np
import pandas as pd
import pytest
import skl2onnx
import treelite
import xgboost
import ydf
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

import qwyc
from outputs import check_probabilities, made_rows, onnx_outputs

X, TARGET = made_rows(missing=0.0)
LABELS = (TARGET > 0).astype(int)
CLASSES = np.digitize(TARGET, [-2, 0, 2])
FRAME = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])


def test_treelite(tmp_path):
    booster = xgboost.XGBClassifier(n_estimators=10, max_depth=4).fit(X, LABELS).get_booster()
    model = treelite.frontend.from_xgboost(booster)
    positive = treelite.gtil.predict(model, X).reshape(-1)
    check_probabilities(model, X, np.column_stack([1 - positive, positive]), tmp_path)


def treelite_classes():
    boosted = xgboost.XGBClassifier(n_estimators=6, max_depth=4).fit(X, CLASSES)
    yield treelite.frontend.from_xgboost(boosted.get_booster()), X
    wide = X.astype(np.float64)
    for objective in ("multiclass", "multiclassova"):
        model = lightgbm.LGBMClassifier(n_estimators=6, objective=objective, verbose=-1, n_jobs=1)
        yield treelite.frontend.from_lightgbm(model.fit(X, CLASSES).booster_), wide
    forest = RandomForestClassifier(7, max_depth=5, random_state=0)
    yield treelite.sklearn.import_model(forest.fit(X, CLASSES)), wide


def test_classes_of_treelite(tmp_path):
    for model, rows in treelite_classes():
        check_probabilities(model, rows, treelite.gtil.predict(model, rows)[:, 0], tmp_path)


def test_ydf():
    learner = ydf.GradientBoostedTreesLearner(label="label", num_trees=10)
    model = learner.train(FRAME.assign(label=LABELS), verbose=0)
    ours = qwyc.read_model(model).predict_proba(FRAME)[:, 1]
    np.testing.assert_array_equal(ours, model.predict(FRAME))


def test_scores_whose_exponentials_are_infinite():
    """Libraries differ in what they make of them."""
    learner = ydf.GradientBoostedTreesLearner(label="label", num_trees=3)
    model = learner.train(FRAME.assign(label=LABELS), verbose=0)
    booster = xgboost.XGBClassifier(n_estimators=3, base_score=1e-30).fit(X, LABELS).get_booster()
    for start in (-87.0, -88.5, -89.0, -95.0, -105.0, 95.0):
        low = ydf.deserialize_model(model.serialize())  # YDF keeps what it has made of a model
        low.set_initial_predictions([start])
        ours = qwyc.read_model(low).predict_proba(FRAME)[:, 1]
        np.testing.assert_array_equal(ours, low.predict(FRAME))
        document = json.loads(bytes(booster.save_raw("json")))
        trees = document["learner"]["gradient_booster"]["model"]["trees"]
        trees[0]["base_weights"] = [start] * len(trees[0]["base_weights"])
        leaf = np.array(trees[0]["left_children"]) < 0
        conditions = np.array(trees[0]["split_conditions"])
        trees[0]["split_conditions"] = np.where(leaf, start, conditions).tolist()
        steep = treelite.frontend.from_xgboost_json(json.dumps(document))
        ours = qwyc.read_model(steep).predict_proba(X)[:, 1]
        np.testing.assert_array_equal(ours, treelite.gtil.predict(steep, X).reshape(-1))


@pytest.mark.parametrize("learner", ["GradientBoostedTreesLearner", "RandomForestLearner"])
def test_classes_of_ydf(learner, tmp_path):
    learner = getattr(ydf, learner)(label="label", num_trees=12)
    model = learner.train(FRAME.assign(label=CLASSES.astype(str)), verbose=0)
    check_probabilities(model, FRAME, model.predict(FRAME), tmp_path)


@pytest.mark.parametrize("votes", [False, True])
def test_forests_of_ydf(votes, tmp_path):
    learner = ydf.RandomForestLearner(label="label", num_trees=37, winner_take_all=votes)
    model = learner.train(FRAME.assign(label=LABELS), verbose=0)
    positive = model.predict(FRAME)
    check_probabilities(model, FRAME, np.column_stack([1 - positive, positive]), tmp_path)


@pytest.mark.parametrize("labels", [LABELS, CLASSES], ids=["two", "several"])
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (RandomForestClassifier, "float32"),
        (RandomForestClassifier, "float64"),
        (GradientBoostingClassifier, "float32"),  # ONNX Runtime takes no other of these
    ],
)
def test_onnx(kind, dtype, labels, tmp_path):
    classifier = kind(n_estimators=7, max_depth=4, random_state=0).fit(X, labels)
    rows = X.astype(dtype)
    model = skl2onnx.to_onnx(classifier, rows[:1], options={"zipmap": False})
    own = onnx_outputs(model, rows)[1]
    check_probabilities(model, rows, own.astype(np.float32), tmp_path)
