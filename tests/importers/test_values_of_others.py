"""Values of YDF, Treelite and ONNX: regressions, rankings and isolation forests, to the last bit."""

from functools import partial

import lightgbm
import numpy as np
import pandas as pd
import pytest
import skl2onnx
import treelite
import xgboost
import ydf
from onnx import helper
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    IsolationForest,
    RandomForestRegressor,
)

import qwyc
from onnx_graphs import N_COLUMNS, ensemble_5
from outputs import check_values, made_rows, onnx_outputs

X, TARGET = made_rows(missing=0.0)
POSITIVE = np.exp(TARGET / 3)
WIDE = X.astype(np.float64)
FRAME = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])]).assign(
    c=np.where(X[:, 2] > 0.3, "a", np.where(X[:, 3] > 0, "b", "d"))
)


def check_frame(model, frame, folder):
    """YDF takes rows by name."""
    own, ours = model.predict(frame), qwyc.read_model(model)
    found = ours.predict(frame)
    assert found.dtype == own.dtype
    np.testing.assert_array_equal(found, own)
    assert [ours.predict_one(frame.iloc[i]) for i in range(5)] == own[:5].tolist()
    ours.save(folder / "saved.qwyc")
    np.testing.assert_array_equal(qwyc.load(folder / "saved.qwyc").predict(frame), own)


@pytest.mark.parametrize("loss", ["SQUARED_ERROR", "MEAN_AVERAGE_ERROR", "POISSON"])
def test_boosted_regressions_of_ydf(loss, tmp_path):
    learner = ydf.GradientBoostedTreesLearner(
        label="y", task=ydf.Task.REGRESSION, num_trees=12, loss=loss
    )
    check_frame(learner.train(FRAME.assign(y=POSITIVE), verbose=0), FRAME, tmp_path)


def test_deep_boosted_regressions_of_ydf(tmp_path):
    """Trees of more than 64 leaves are evaluated by another engine, which adds in another order."""
    learner = ydf.GradientBoostedTreesLearner(
        label="y", task=ydf.Task.REGRESSION, num_trees=8, max_depth=12, min_examples=1
    )
    check_frame(learner.train(FRAME.assign(y=TARGET), verbose=0), FRAME, tmp_path)


@pytest.mark.parametrize(
    "learner",
    [partial(ydf.RandomForestLearner, num_trees=30), ydf.CartLearner],
    ids=["forest", "tree"],
)
def test_forests_of_ydf(learner, tmp_path):
    learner = learner(label="y", task=ydf.Task.REGRESSION)
    check_frame(learner.train(FRAME.head(300).assign(y=TARGET[:300]), verbose=0), FRAME, tmp_path)


@pytest.mark.parametrize("loss", ["LAMBDA_MART_NDCG", "XE_NDCG_MART"])
def test_rankings_of_ydf(loss, tmp_path):
    learner = ydf.GradientBoostedTreesLearner(
        label="y", task=ydf.Task.RANKING, ranking_group="g", num_trees=12, loss=loss
    )
    rows = FRAME.assign(y=np.clip(POSITIVE, 0, 4).round(), g=(np.arange(len(X)) // 30).astype(str))
    check_frame(learner.train(rows, verbose=0), rows, tmp_path)


def test_isolation_forests_of_ydf(tmp_path):
    learner = ydf.IsolationForestLearner(num_trees=25)
    check_frame(learner.train(FRAME, verbose=0), FRAME, tmp_path)


def test_other_tasks_of_ydf_are_refused():
    learner = ydf.RandomForestLearner(
        label="y",
        task=ydf.Task.NUMERICAL_UPLIFT,
        uplift_treatment="t",
        num_trees=2,
        honest=False,
    )
    rows = FRAME.assign(y=TARGET, t=np.where(X[:, 0] > 0, "1", "2"))
    with pytest.raises(qwyc.ModelError, match="task is NUMERICAL_UPLIFT"):
        qwyc.read_model(learner.train(rows, verbose=0))


# ---- Treelite --------------------------------------------------------------------------------


def of_xgboost(**options):
    model = xgboost.XGBRegressor(n_estimators=7, max_depth=4, **options)
    target = POSITIVE / 10 if options.get("objective") == "reg:logistic" else POSITIVE
    return treelite.frontend.from_xgboost(model.fit(X, np.clip(target, 0, 1)).get_booster()), X


def of_lightgbm(**options):
    model = lightgbm.LGBMRegressor(n_estimators=7, verbose=-1, n_jobs=1, **options)
    return treelite.frontend.from_lightgbm(model.fit(X, POSITIVE).booster_), WIDE


def of_sklearn(estimator, target=TARGET):
    return treelite.sklearn.import_model(estimator.fit(X, target)), WIDE


def ranker():
    model = xgboost.XGBRanker(n_estimators=7, max_depth=4)
    model.fit(X, np.clip(POSITIVE, 0, 4).round(), qid=np.arange(len(X)) // 30)
    return treelite.frontend.from_xgboost(model.get_booster()), X


TREELITE = {
    "float32": of_xgboost,
    "float32 exponential": lambda: of_xgboost(objective="count:poisson"),
    "float32 sigmoid": lambda: of_xgboost(objective="reg:logistic"),
    "ranker": ranker,
    "float64": of_lightgbm,
    "float64 exponential": lambda: of_lightgbm(objective="poisson"),
    "signed square": lambda: of_lightgbm(reg_sqrt=True),
    "average": lambda: of_sklearn(ExtraTreesRegressor(7, max_depth=5, random_state=0)),
    "boosting": lambda: of_sklearn(GradientBoostingRegressor(n_estimators=7)),
    "isolation forest": lambda: of_sklearn(IsolationForest(n_estimators=20, random_state=0)),
    "targets": lambda: of_sklearn(
        RandomForestRegressor(7, max_depth=5, random_state=0), np.column_stack([TARGET, POSITIVE])
    ),
}


@pytest.mark.parametrize("name", TREELITE)
def test_treelite(name, tmp_path):
    model, rows = TREELITE[name]()
    own = treelite.gtil.predict(model, rows)
    check_values(model, rows, own.reshape(own.shape[:2]).squeeze(), tmp_path)
    model.serialize(tmp_path / "model.tl")
    check_values(tmp_path / "model.tl", rows, own.reshape(own.shape[:2]).squeeze(), tmp_path)


# ---- ONNX ------------------------------------------------------------------------------------


def exported(estimator, target=TARGET):
    return skl2onnx.to_onnx(estimator.fit(X, target), X[:1])


def changed(model, **attributes):
    """The same graph, whose trees have other attributes."""
    (trees,) = (node for node in model.graph.node if node.op_type.startswith("TreeEnsemble"))
    for name, value in attributes.items():
        for old in [a for a in trees.attribute if a.name == name]:
            trees.attribute.remove(old)
        trees.attribute.append(helper.make_attribute(name, value))
    return model


def forest(**options):
    return RandomForestRegressor(9, max_depth=5, random_state=0, **options)


def of_targets(**attributes):
    return changed(exported(forest(), np.column_stack([TARGET, POSITIVE, -TARGET])), **attributes)


ONNX = {
    "sum": lambda: exported(GradientBoostingRegressor(n_estimators=7)),
    "forest": lambda: exported(forest()),
    "average": lambda: changed(exported(forest()), aggregate_function="AVERAGE"),
    "base": lambda: changed(exported(forest()), base_values=[0.3]),
    "one softmax": lambda: changed(exported(forest()), post_transform="SOFTMAX"),
    "targets": of_targets,
    "average of targets": lambda: of_targets(aggregate_function="AVERAGE"),
    "bases of targets": lambda: of_targets(base_values=[0.1, -0.7, 0.3]),
    "logistic": lambda: of_targets(post_transform="LOGISTIC"),
    "softmax": lambda: of_targets(post_transform="SOFTMAX"),
}


@pytest.mark.parametrize("name", ONNX)
def test_onnx(name, tmp_path):
    model = ONNX[name]()
    own = onnx_outputs(model, X)[0]
    check_values(model, X, own.squeeze(), tmp_path)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    check_values(tmp_path / "model.onnx", X, own.squeeze(), tmp_path)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("aggregate", [0, 1])
def test_the_newer_operator_of_onnx(aggregate, wide, tmp_path):
    model = ensemble_5(0, sigmoid=False, aggregate=aggregate, wide=wide)
    rows = np.random.default_rng(1).normal(size=(300, N_COLUMNS)).round(1)
    rows = rows.astype(np.float64 if wide else np.float32)
    check_values(model, rows, onnx_outputs(model, rows)[0].squeeze(), tmp_path)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"aggregate_function": "MIN"}, "neither added up nor averaged"),
        ({"aggregate_function": "MAX"}, "neither added up nor averaged"),
        ({"post_transform": "PROBIT"}, "post_transform PROBIT"),
        ({"aggregate_function": "AVERAGE", "base_values": [0.3]}, "are averaged, and base values"),
    ],
)
def test_other_graphs_are_refused(attributes, message):
    with pytest.raises(qwyc.ModelError, match=message):
        qwyc.read_model(changed(exported(forest()), **attributes))
