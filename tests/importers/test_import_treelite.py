"""Treelite models as qwyc reads them against GTIL, Treelite's own reference: scores bit for bit."""

from __future__ import annotations

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
    RandomForestRegressor,
)

import qwyc
from proving import prove_parity
from qwyc.importers import treelite as importer
from trained import damaged, read_or_refuse

CATEGORICAL = [2]


def with_categories(X, y):
    kinds = ["c" if j in CATEGORICAL else "q" for j in range(X.shape[1])]
    matrix = xgboost.DMatrix(X, y, feature_types=kinds, enable_categorical=True)
    return xgboost.train({"objective": "binary:logistic", "max_cat_to_onehot": 1}, matrix, 12)


def xgb(**options):
    def make(X, y):
        model = xgboost.XGBClassifier(n_estimators=12, max_depth=4, **options).fit(X, y)
        return treelite.frontend.from_xgboost(model.get_booster())

    return make


def lgbm(**options):
    def make(X, y):
        model = lightgbm.LGBMClassifier(n_estimators=12, verbose=-1, **options)
        model.fit(X, y, categorical_feature=CATEGORICAL)
        return treelite.frontend.from_lightgbm(model.booster_)

    return make


def sklearn(estimator):
    def make(X, y):
        rows = np.nan_to_num(X) if isinstance(estimator, GradientBoostingClassifier) else X
        return treelite.sklearn.import_model(estimator.fit(rows, y))

    return make


KINDS = {
    "xgboost": xgb(),
    "xgboost, one stump": xgb(max_leaves=2, num_parallel_tree=1),
    "xgboost dart": xgb(booster="dart", rate_drop=0.3),
    "xgboost hinge": xgb(objective="binary:hinge"),
    "xgboost categories": lambda X, y: treelite.frontend.from_xgboost(with_categories(X, y)),
    "lightgbm": lgbm(),
    "lightgbm, another sigmoid": lgbm(sigmoid=0.7),
    "lightgbm random forest": lgbm(boosting_type="rf", subsample=0.5, subsample_freq=1),
    "random forest": sklearn(RandomForestClassifier(12, random_state=0)),
    "extra trees": sklearn(ExtraTreesClassifier(12, random_state=0)),
    "gradient boosting": sklearn(GradientBoostingClassifier(n_estimators=12)),
    "hist gradient boosting": sklearn(HistGradientBoostingClassifier(max_iter=12)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_gtil(kind, data, tmp_path):
    X, y = data
    model = KINDS[kind](X, y)
    rng = np.random.default_rng(0)
    odd = [np.nan, np.inf, -np.inf, -0.5, 2.5, 2.0**24, 1e9, -3.0]
    rows = np.where(rng.random(X.shape) < 0.1, rng.choice(odd, X.shape), X)
    ensemble = qwyc.read_model(model)
    for block in (rows, rows.astype(np.float32)):
        score = ensemble.score_full(block)
        margin = treelite.gtil.predict(model, block, pred_margin=True)[:, 0, :]
        if margin.shape[1] == 1:
            np.testing.assert_array_equal(score, margin[:, 0])
            positive = treelite.gtil.predict(model, block)[:, 0, 0] > 0.5
        else:
            far = np.abs(margin[:, 1] - 0.5) > 1e-15
            np.testing.assert_array_equal(score[far], margin[far, 1])
            positive = margin[:, 1] > margin[:, 0]
        np.testing.assert_array_equal(score >= ensemble.threshold, positive)
        assert prove_parity(model, block, ensemble, score, ensemble.threshold)
    model.serialize(tmp_path / "m.tl")
    assert qwyc.read_model(tmp_path / "m.tl").digest == ensemble.digest
    assert ensemble.source.library == "treelite"


def test_optimize_proves_and_saves(data, tmp_path):
    X, y = data
    model = KINDS["lightgbm"](X, y)
    fast = qwyc.optimize(model, X, alpha=0)
    fast.save(tmp_path / "c.qwyc")
    model.serialize(tmp_path / "m.tl")
    found = qwyc.verify(qwyc.load(tmp_path / "c.qwyc"), X, model=tmp_path / "m.tl")
    assert found.passed
    assert "as treelite itself gives them" in found.parity


def built(operator, tests, postprocessor="sigmoid"):
    """One tree of a numeric split, then leaves; built node by node."""
    builder = treelite.model_builder.ModelBuilder(
        threshold_type="float32",
        leaf_output_type="float32",
        metadata=treelite.model_builder.Metadata(
            num_feature=1,
            task_type="kBinaryClf",
            average_tree_output=False,
            num_target=1,
            num_class=[1],
            leaf_vector_shape=(1, 1),
        ),
        tree_annotation=treelite.model_builder.TreeAnnotation(
            num_tree=len(tests), target_id=[0] * len(tests), class_id=[0] * len(tests)
        ),
        postprocessor=treelite.model_builder.PostProcessorFunc(name=postprocessor),
        base_scores=[0.1],
    )
    for threshold, default_left in tests:
        builder.start_tree()
        builder.start_node(0)
        builder.numerical_test(
            feature_id=0,
            threshold=threshold,
            default_left=default_left,
            opname=operator,
            left_child_key=1,
            right_child_key=2,
        )
        builder.end_node()
        for key, value in ((1, 1.0), (2, -0.7)):
            builder.start_node(key)
            builder.leaf(value)
            builder.end_node()
        builder.end_tree()
    return builder.commit()


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_every_comparison(operator):
    tests = [(0.0, True), (1.5, False), (-2.0, True)]
    mixed = treelite.Model.concatenate([built(operator, tests), built("<", tests[:1])])
    rows = np.array([[np.nan], [np.inf], [-np.inf], [0.0], [-0.0], [1.5], [-2.0], [1e-40], [7]])
    rows = np.concatenate([rows, np.nextafter(rows.astype("f4"), np.float32(9))], dtype="f4")
    for model in (built(operator, tests), mixed):
        np.testing.assert_array_equal(
            qwyc.read_model(model).score_full(rows),
            treelite.gtil.predict(model, rows, pred_margin=True)[:, 0, 0],
        )


def test_what_is_refused(data, tmp_path):
    X, y = data
    with pytest.raises(qwyc.ModelError, match="'=='"):
        qwyc.read_model(built("==", [(1.0, True)]))
    with pytest.raises(qwyc.ModelError, match="'identity'"):
        qwyc.read_model(built("<", [(1.0, True)], postprocessor="identity"))
    forest = treelite.sklearn.import_model(RandomForestRegressor(2).fit(np.nan_to_num(X), y))
    with pytest.raises(qwyc.QwycError, match="values"):
        qwyc.optimize(forest, X, alpha=0.1)
    path = tmp_path / "m.tl"
    KINDS["xgboost"](X, y).serialize(path)
    path.write_bytes(b"\x03" + path.read_bytes()[1:])
    with pytest.raises(qwyc.ModelError, match="checkpoint is of Treelite 3"):
        qwyc.read_model(path)


@pytest.mark.parametrize("kind", ["xgboost categories", "random forest"])
def test_damaged_files_are_refused_or_sound(kind, data, tmp_path):
    X, y = data
    path = tmp_path / "m.tl"
    KINDS[kind](X[:80], y[:80]).serialize(path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    outcomes = {read_or_refuse(importer, path, bad) for bad in damaged(content, rng)}
    assert outcomes <= {"read", "refused"}
