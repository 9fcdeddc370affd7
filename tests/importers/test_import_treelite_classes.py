"""Treelite models of more than two classes as qwyc reads them against GTIL, Treelite's own reference."""

from __future__ import annotations

from itertools import pairwise

import lightgbm
import numpy as np
import pytest
import treelite
import xgboost
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)

import qwyc
from class_parity import check_classes, class_data, ties_of
from qwyc.importers import treelite as importer
from qwyc.target.ties import Ties
from trained import damaged, read_or_refuse

CLASSES = (2, 3, 7, 10, 100)


def xgb(**options):
    def make(X, y, trees):
        kinds = ["c" if j == 3 else "q" for j in range(X.shape[1])]
        matrix = xgboost.DMatrix(X, y, feature_types=kinds, enable_categorical=True)
        settings = {"objective": "multi:softprob", "num_class": y.max() + 1, "max_depth": 4}
        settings |= {"max_cat_to_onehot": 1, **options}
        return treelite.frontend.from_xgboost(xgboost.train(settings, matrix, trees))

    return make


def lgbm(**options):
    def make(X, y, trees):
        settings = {"objective": "multiclass", "num_class": y.max() + 1, "verbose": -1, **options}
        data = lightgbm.Dataset(X, y, categorical_feature=[3])
        return treelite.frontend.from_lightgbm(lightgbm.train(settings, data, trees))

    return make


def sklearn(estimator, count):
    def make(X, y, trees):
        rows = np.nan_to_num(X) if isinstance(estimator, GradientBoostingClassifier) else X
        return treelite.sklearn.import_model(estimator.set_params(**{count: trees}).fit(rows, y))

    return make


KINDS = {
    "xgboost": xgb(),
    "xgboost, a base": xgb(base_score=0.3),
    "xgboost, two trees at once": xgb(num_parallel_tree=2, subsample=0.5),
    "lightgbm": lgbm(),
    "lightgbm, one against all": lgbm(objective="multiclassova", sigmoid=0.7),
    "lightgbm random forest": lgbm(boosting="rf", bagging_fraction=0.5, bagging_freq=1),
}
SKLEARN = {
    "random forest": sklearn(RandomForestClassifier(random_state=0), "n_estimators"),
    "extra trees": sklearn(ExtraTreesClassifier(random_state=0), "n_estimators"),
    "gradient boosting": sklearn(GradientBoostingClassifier(), "n_estimators"),
    "hist gradient boosting": sklearn(HistGradientBoostingClassifier(), "max_iter"),
}


def scores_and_labels(model, rows):
    margin = treelite.gtil.predict(model, rows, pred_margin=True)[:, 0, :]
    return np.argmax(treelite.gtil.predict(model, rows)[:, 0, :], axis=1), margin


@pytest.mark.parametrize("K", CLASSES)
@pytest.mark.parametrize("kind", [*KINDS, *SKLEARN])
def test_scores_and_decisions(kind, K, tmp_path):
    if K == 2 and kind in SKLEARN:
        K = 4  # of two classes, these are models with one score, or of shares
    X, y = class_data(K, missing=0.1)
    model = (KINDS | SKLEARN)[kind](X, y, 2 if K == 100 else 8)
    model.serialize(tmp_path / "model.tl")
    rng = np.random.default_rng(0)
    odd = rng.choice([np.nan, np.inf, -np.inf, -0.5, 2.5, 1e9], X.shape)
    rows = np.where(rng.random(X.shape) < 0.1, odd, X)
    for block in (X.astype(np.float32), rows):
        # GTIL adds up in the type of its rows: it is asked in the model's.
        block = np.asarray(block, dtype=qwyc.read_model(model).schema.dtype)
        ensemble = check_classes(
            model, block, *scores_and_labels(model, block), tmp_path / "model.tl"
        )
    assert ensemble.classes.tolist() == list(range(K))


def test_leaves_with_vectors():
    X, y = class_data(5)
    options = {"multi_strategy": "multi_output_tree", "tree_method": "hist", "num_class": 5}
    booster = xgboost.train({"objective": "multi:softprob", **options}, xgboost.DMatrix(X, y), 8)
    model = treelite.frontend.from_xgboost(booster)
    rows = X.astype(np.float32)
    ensemble = check_classes(model, rows, *scores_and_labels(model, rows))
    assert ensemble.base_models.has_vectors
    assert ensemble.n_models == 8


def test_ties():
    X, y = class_data(4, n=800, coarse=True)
    model = SKLEARN["random forest"](X[:200], y[:200], 2)
    ensemble = check_classes(model, X, *scores_and_labels(model, X))
    assert ties_of(ensemble.score_full(X)) > 5


def built(leaves, real="float64", postprocessor="softmax", vectors=True, **options):
    """A tree for each threshold 0, 1, ... that adds one of these `leaves`, pairs of vectors; or, where not
    `vectors`, a tree for each class."""
    n, K = len(leaves), len(leaves[0][0])
    bases = options.pop("base_scores", [0.0] * K)
    function = treelite.model_builder.PostProcessorFunc(name=postprocessor, **options)
    builder = treelite.model_builder.ModelBuilder(
        threshold_type=real,
        leaf_output_type=real,
        metadata=treelite.model_builder.Metadata(
            num_feature=1,
            task_type="kMultiClf",
            average_tree_output=False,
            num_target=1,
            num_class=[K],
            leaf_vector_shape=(1, K) if vectors else (1, 1),
        ),
        tree_annotation=treelite.model_builder.TreeAnnotation(
            num_tree=n if vectors else n * K,
            target_id=[-1] * n if vectors else [0] * n * K,
            class_id=[-1] * n if vectors else list(range(K)) * n,
        ),
        postprocessor=function,
        base_scores=bases,
    )
    for i, pair in enumerate(leaves):
        for k in range(1 if vectors else K):
            builder.start_tree()
            builder.start_node(0)
            builder.numerical_test(
                feature_id=0,
                threshold=float(i),
                default_left=True,
                opname="<",
                left_child_key=1,
                right_child_key=2,
            )
            builder.end_node()
            for key, vector in zip((1, 2), pair, strict=True):
                builder.start_node(key)
                builder.leaf(list(vector) if vectors else vector[k])
                builder.end_node()
            builder.end_tree()
    return builder.commit()


@pytest.mark.parametrize("real", ["float32", "float64"])
@pytest.mark.parametrize("vectors", [True, False])
def test_scores_that_a_softmax_cannot_tell_apart(real, vectors):
    rng = np.random.default_rng(0)
    near = rng.choice([0.0, 1e-9, 3e-8, 6e-8, 1e-7, 3e-7], size=(400, 3))
    first = np.column_stack(
        [near + rng.choice([0.5, 1.5, 30.0, 1000.0], size=(400, 1)), -near[:, 0]]
    )
    leaves = [(np.zeros(4), np.zeros(4))]
    leaves += [(np.zeros(4), b - a) for a, b in pairwise(first)]
    model = built(leaves, real, vectors=vectors, base_scores=first[0].tolist())
    rows = np.arange(400.0).astype(real)[:, np.newaxis]
    labels, margin = scores_and_labels(model, rows)
    ensemble = check_classes(model, rows, labels, margin)
    assert ensemble.base_models.ties == Ties("softmax", "float32" if real == "float32" else "mixed")
    if real == "float64":
        assert (labels != np.argmax(margin, axis=1)).any()
    outputs = treelite.gtil.predict(model, rows)[:, 0, :]
    ours = [ensemble.base_models.ties.probabilities(scores) for scores in margin.astype(float)]
    np.testing.assert_array_equal(ours, outputs)


def test_sigmoids_that_are_1_or_0():
    leaves = [((-800.0, -790.0, -780.0), (41.0, 40.0, 39.0))]
    leaves += [((0.0, 0.0, 0.0), (-38.0, 0.0, -38.0))]
    model = built(leaves, postprocessor="multiclass_ova", sigmoid_alpha=1.0)
    rows = np.array([[-1.0], [0.5], [2.0]])
    labels, margin = scores_and_labels(model, rows)
    assert labels.tolist() == [0, 0, 1]
    check_classes(model, rows, labels, margin)


def test_what_is_refused(tmp_path):
    pair = [((1.0, 2.0, 3.0), (3.0, 2.0, 1.0))]
    with pytest.raises(qwyc.ModelError, match=r"'multiclass_ova' .*float32.*no decision"):
        qwyc.read_model(built(pair, "float32", postprocessor="multiclass_ova", sigmoid_alpha=1.0))
    X, y = class_data(3)
    several = RandomForestClassifier(2).fit(X, np.column_stack([y, y]))
    with pytest.raises(qwyc.ModelError, match="with 2 targets; supported are classifiers"):
        qwyc.read_model(treelite.sklearn.import_model(several))


@pytest.mark.parametrize("kind", ["xgboost", "random forest"])
def test_damaged_files_are_refused(kind, tmp_path):
    X, y = class_data(3, n=60)
    content = (KINDS | SKLEARN)[kind](X, y, 2).serialize_bytes()
    rng = np.random.default_rng(0)
    found = [
        read_or_refuse(importer, tmp_path / "model.tl", broken)
        for broken in damaged(content, rng, end=300)
    ]
    assert set(found) == {"read", "refused"}
