"""ONNX classifiers of more than two classes as qwyc reads them against ONNX Runtime on one thread."""

from __future__ import annotations

from dataclasses import replace

import lightgbm
import numpy as np
import onnx
import onnxmltools
import onnxruntime
import pytest
import xgboost
from onnx import helper
from onnxmltools.convert.common.data_types import FloatTensorType
from skl2onnx import to_onnx
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier

import qwyc
from class_parity import NAMES, check_classes, class_data, ties_of
from onnx_graphs import N_COLUMNS, classifier
from qwyc import importers
from qwyc.check.parity import prove_parity
from qwyc.importers import onnx as importer
from trained import damaged, read_or_refuse

CLASSES = (3, 7, 10, 100)
ALL = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT")


def run(model, rows):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {session.get_inputs()[0].name: rows})


def without_transform(model):
    """A copy whose trees give the scores themselves, and its outputs are those of the trees."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    (trees,) = (node for node in copy.graph.node if node.op_type == "TreeEnsembleClassifier")
    kept = [a for a in trees.attribute if a.name != "post_transform"]
    del trees.attribute[:]
    trees.attribute.extend([*kept, helper.make_attribute("post_transform", "NONE")])
    del copy.graph.node[:]
    copy.graph.node.append(trees)
    first = copy.graph.output[0]
    first.name = trees.output[0]
    del copy.graph.output[1:]
    scores = helper.make_tensor_value_info(trees.output[1], onnx.TensorProto.FLOAT, [None, None])
    copy.graph.output.append(scores)
    return copy


def check(model, rows, path=None):
    """Scores to the bit; of float64 models, to what ONNX Runtime rounds them to."""
    if path is not None:
        onnx.save(model, path)
    labels, scores = run(without_transform(model), rows)
    np.testing.assert_array_equal(labels, run(model, rows)[0])
    if rows.dtype == np.float64:
        full = qwyc.read_model(model).score_full(rows)
        np.testing.assert_array_equal(full.astype(np.float32), scores)
        scores = full
    return check_classes(model, rows, labels, scores, path)


def rows_for(seed, n=300, dtype=np.float32):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, N_COLUMNS)).round(1)
    odd = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40]
    return np.where(rng.random(rows.shape) < 0.15, rng.choice(odd, rows.shape), rows).astype(dtype)


@pytest.mark.parametrize("K", CLASSES)
@pytest.mark.parametrize("by_tree", [True, False])
@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC"])
@pytest.mark.parametrize("wide", [False, True])
def test_random_trees(K, by_tree, transform, wide, tmp_path):
    for seed, based in enumerate((False, True)):
        rng, trees = np.random.default_rng(seed), 2 * K + 1 if by_tree else 5
        model = classifier(
            seed,
            classes=range(K),
            labels=NAMES[:K].tolist() if based else list(range(5, 5 + K)),
            base=rng.normal(size=K).round(3).tolist() if based else (),
            by_tree=by_tree,
            n_trees=trees,
            transform=transform,
            modes=ALL,
            wide=wide,
            depth=3,
        )
        rows = rows_for(seed, dtype=np.float64 if wide else np.float32)
        ensemble = check(model, rows, tmp_path / "model.onnx")
        assert ensemble.base_models.has_vectors != by_tree
        assert ensemble.n_models == (3 if by_tree else trees)
        check(model, rows[:1])  # ONNX Runtime has code of its own for one row


CONVERTED = {
    "random forest": lambda K: RandomForestClassifier(3 if K == 100 else 12, random_state=0),
    "extra trees": lambda K: ExtraTreesClassifier(3 if K == 100 else 12, random_state=0),
    "gradient boosting": lambda K: GradientBoostingClassifier(n_estimators=2 if K == 100 else 9),
    "decision tree": lambda K: DecisionTreeClassifier(min_samples_leaf=3),
}


@pytest.mark.parametrize("K", CLASSES)
@pytest.mark.parametrize("kind", CONVERTED)
def test_models_of_scikit_learn(kind, K, tmp_path):
    X, y = class_data(K)
    X = X.astype(np.float32)
    trained = CONVERTED[kind](K).fit(X, NAMES[y])
    for zipmap in (True, False):
        model = to_onnx(trained, X[:1], options={"zipmap": zipmap})
        ensemble = check(model, X, tmp_path / "model.onnx")
    assert ensemble.classes.tolist() == trained.classes_.tolist()


@pytest.mark.parametrize("K", CLASSES)
def test_models_of_xgboost_and_lightgbm(K, tmp_path):
    X, y = class_data(K)
    X = X.astype(np.float32)
    inputs = {"initial_types": [("rows", FloatTensorType([None, X.shape[1]]))]}
    trees = 2 if K == 100 else 8
    booster = xgboost.XGBClassifier(n_estimators=trees, max_depth=4).fit(X, y)
    ensemble = check(onnxmltools.convert_xgboost(booster, **inputs), X, tmp_path / "x.onnx")
    assert ensemble.n_models == trees
    grown = lightgbm.LGBMClassifier(n_estimators=trees, verbose=-1).fit(X, y)
    for zipmap in (True, False):
        model = onnxmltools.convert_lightgbm(grown, **inputs, zipmap=zipmap)
        assert check(model, X, tmp_path / "l.onnx").n_models == trees


def test_ties():
    X, y = class_data(4, n=800, coarse=True)
    X = X.astype(np.float32)
    model = to_onnx(RandomForestClassifier(2, random_state=0).fit(X[:200], y[:200]), X[:1])
    ensemble = check(model, X)
    assert ties_of(ensemble.score_full(X)) > 5


def test_weights_that_are_left_out():
    rows = rows_for(0)
    # Positive ones: a class without weights loses anyway.
    options = {"classes": range(3), "labels": (0, 1, 2), "depth": 0, "n_trees": 12}
    votes = classifier(0, positive=True, kept=0.99, **(options | {"depth": 2, "n_trees": 5}))
    check(votes, rows)
    # Others: with base values every class has a score.
    check(classifier(1, kept=0.3, base=(0.1, 0.2, -0.3), **(options | {"depth": 2})), rows)
    with pytest.raises(qwyc.ModelError, match="has no weight in some leaves of every tree"):
        qwyc.read_model(classifier(1, kept=0.3, **(options | {"depth": 2, "n_trees": 2})))


def test_another_model_is_found_out():
    X, y = class_data(3)
    X = X.astype(np.float32)
    for kind in ("random forest", "gradient boosting"):
        model = to_onnx(CONVERTED[kind](3).fit(X, y), X[:1])
        own = importers.open_model(model)
        if kind == "random forest":
            vectors = own.ensemble.base_models.leaf_vector + np.array([0.0, 0.001, 0.0])
            models = replace(own.ensemble.base_models, leaf_vector=vectors)
        else:
            models = replace(own.ensemble.base_models, start=np.array([0.0, 0.001, 0.0]))
        other = replace(own.ensemble, base_models=models)
        source = importers.OpenModel(other, own.predict_live)
        sample = other.sample(X)
        with pytest.raises(qwyc.ParityError, match="600 of 600 rows differ"):
            prove_parity(source, sample, other.scores(sample))


def test_what_is_refused():
    three = {"labels": (0, 1, 2)}
    for model, message in (
        (classifier(0, classes=range(3), base=(0.1, 0.2), **three), "2 base values for 3 classes"),
        (classifier(0, classes=range(4), **three), "class that is not one of 3"),
    ):
        with pytest.raises(qwyc.ModelError, match=message):
            qwyc.read_model(model)


def test_damaged_files_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    content = classifier(0, classes=range(3), labels=(0, 1, 2), n_trees=3).SerializeToString()
    path = tmp_path / "model.onnx"
    assert read_or_refuse(importer, path, content) == "read"
    found = {read_or_refuse(importer, path, bad) for bad in damaged(content, rng)}
    assert "refused" in found
    assert found <= {"read", "refused"}
