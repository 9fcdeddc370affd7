"""XGBoost models of several classes, read from files and live objects, against XGBoost itself."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost as xgb
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import qwyc
from classes import assert_classes, make_class_frame, make_classes, odd_rows
from qwyc.errors import ModelError
from trained import as_float32, permuted, written, xgboost_document

SMALL = {"n_estimators": 6, "max_depth": 3, "n_jobs": 1}
SETTINGS = {
    "plain": {},
    "softmax": {"objective": "multi:softmax"},
    "deep": {"max_depth": 9},
    "base score": {"base_score": 0.7},
    "single leaves": {"gamma": 1e9},
    "forest": {"num_parallel_tree": 3, "subsample": 0.5},
    "dart": {"booster": "dart", "rate_drop": 0.5},
    "dart base score": {"booster": "dart", "rate_drop": 0.5, "base_score": 0.37},
    "dart forest": {"booster": "dart", "rate_drop": 0.5, "num_parallel_tree": 2, "subsample": 0.6},
    "vectors": {"multi_strategy": "multi_output_tree"},
    "vectors softmax": {"multi_strategy": "multi_output_tree", "objective": "multi:softmax"},
    "vectors forest": {
        "multi_strategy": "multi_output_tree",
        "num_parallel_tree": 2,
        "subsample": 0.5,
    },
}


def classifier(K, setting="plain", seed=0, **options):
    X, y = make_classes(K, seed)
    return xgb.XGBClassifier(**{**SMALL, **SETTINGS[setting], **options}).fit(X, y), X


def assert_classifier(model, X, ensemble=None):
    own = model.predict(X)
    ensemble = assert_classes(model, X, model.predict(X, output_margin=True), own, ensemble)
    assert ensemble.classes.dtype == own.dtype
    return ensemble


def booster_labels(booster, matrix):
    outputs = booster.predict(matrix)
    return outputs.argmax(axis=1) if outputs.ndim == 2 else outputs


# ---- scores and decisions --------------------------------------------------------------------


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("K", [3, 7])
def test_scores_and_labels_are_the_classifiers_own(K, setting):
    model, X = classifier(K, setting)
    ensemble = assert_classifier(model, X)
    rounds = 6 * SETTINGS[setting].get("num_parallel_tree", 1)
    assert (ensemble.n_models, len(ensemble.classes)) == (rounds, K)
    rows = odd_rows(ensemble)
    for Z in (rows, as_float32(rows), np.asfortranarray(rows), rows[:1]):
        assert_classifier(model, Z, ensemble)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("K", [2, 3])
def test_scores_and_labels_are_the_boosters_own(K, setting):
    X, y = make_classes(K)
    options = {"objective": "multi:softprob", "num_class": K, **SETTINGS[setting]}
    booster = xgb.train(options, xgb.DMatrix(X, y), 6)
    ensemble = qwyc.read_model(booster)
    for Z in (X, odd_rows(ensemble, infinities=False)):
        matrix = xgb.DMatrix(Z)
        own = booster.predict(matrix, output_margin=True)
        assert_classes(booster, Z, own, booster_labels(booster, matrix), ensemble)


@pytest.mark.parametrize(("K", "setting"), [(10, "plain"), (100, "plain"), (100, "vectors")])
def test_many_classes(K, setting):
    model, X = classifier(K, setting, n_estimators=3, max_depth=2)
    ensemble = assert_classifier(model, X)
    assert_classifier(model, odd_rows(ensemble), ensemble)
    assert ensemble.classes.tolist() == list(range(K))


def test_the_random_forest_classifier():
    X, y = make_classes(5)
    model = xgb.XGBRFClassifier(n_estimators=12, random_state=2, n_jobs=1).fit(X, y)
    assert assert_classifier(model, X).n_models == 12


def test_two_classes_with_a_score_each():
    """XGBClassifier.predict says for each class of multi:softprob whether it exceeds 0.5."""
    model, X = classifier(2, objective="multi:softprob", num_class=2)
    assert model.predict(X).shape == (len(X), 2)
    own = model.predict_proba(X).argmax(axis=1)
    assert_classes(model, X, model.predict(X, output_margin=True), own)
    model, X = classifier(2, "softmax", num_class=2)
    assert_classifier(model, X)


@pytest.mark.parametrize("setting", ["plain", "softmax", "dart"])
def test_categories(setting):
    frame, y = make_class_frame(4)
    options = {**SMALL, **SETTINGS[setting], "enable_categorical": True}
    model = xgb.XGBClassifier(**options).fit(frame, y)
    ensemble = assert_classifier(model, frame)
    assert set(ensemble.schema.categories) == {1, 3, 4}
    np.testing.assert_array_equal(
        ensemble.score_full(permuted(frame)), model.predict(frame, output_margin=True)
    )


def test_tables_and_pipelines():
    X, y = make_classes(3)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = xgb.XGBClassifier(**SMALL).fit(frame, y)
    own, labels = model.predict(frame, output_margin=True), model.predict(frame)
    for table in (frame, pl.from_pandas(frame)):
        assert_classes(model, table, own, labels)
    np.testing.assert_array_equal(qwyc.read_model(model).score_full(frame[list("fedcba")]), own)
    scaled = make_pipeline(StandardScaler(), xgb.XGBClassifier(**SMALL)).fit(X, y)
    own = scaled[-1].predict(scaled[0].transform(X), output_margin=True)
    assert_classes(scaled, X, own, scaled.predict(X))


def test_a_value_that_is_missing():
    X, y = make_classes(3)
    X[np.isnan(X)] = -999.0
    model = xgb.XGBClassifier(**SMALL, missing=-999.0).fit(X, y)
    assert_classifier(model, X)


@pytest.mark.parametrize("setting", ["plain", "forest", "dart", "vectors", "vectors forest"])
def test_early_stopping(tmp_path, setting):
    X, y = make_classes(4)
    wrong = (y + (np.arange(len(y)) % 3 == 0)) % 4
    model = xgb.XGBClassifier(
        **{**SMALL, **SETTINGS[setting], "n_estimators": 60, "learning_rate": 0.8},
        early_stopping_rounds=3,
    ).fit(X, y, eval_set=[(X, wrong)], verbose=False)
    rounds = model.get_booster().num_boosted_rounds()
    used = model.best_iteration + 1
    assert used < rounds or setting == "dart"
    parallel = SETTINGS[setting].get("num_parallel_tree", 1)
    assert assert_classifier(model, X).n_models == used * parallel
    booster = model.get_booster()
    matrix = xgb.DMatrix(X)
    own = booster.predict(matrix, output_margin=True)
    ensemble = assert_classes(booster, X, own, booster_labels(booster, matrix))
    assert ensemble.n_models == rounds * parallel  # a Booster takes all
    # Old files do not say where iterations begin.
    model.save_model(tmp_path / "m.json")
    document = json.loads((tmp_path / "m.json").read_text())
    learner = document["learner"]["gradient_booster"]
    learner.get("gbtree", learner)["model"].pop("iteration_indptr")
    path = written(tmp_path / "old.json", document)
    assert qwyc.read_model(path).digest == qwyc.read_model(model).digest


def test_classes_that_no_row_has():
    X, y = make_classes(3)
    y = np.where(y == 2, 4, y)  # of classes 0 to 5, those with rows are 0, 1 and 4
    for strategy in ("one_output_per_tree", "multi_output_tree"):
        options = {"objective": "multi:softprob", "num_class": 6, "multi_strategy": strategy}
        booster = xgb.train(options, xgb.DMatrix(X, y), 4)
        own = booster.predict(xgb.DMatrix(X), output_margin=True)
        ensemble = assert_classes(booster, X, own, booster_labels(booster, xgb.DMatrix(X)))
        assert len(ensemble.classes) == 6


# ---- ties ------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["multi:softprob", "multi:softmax"])
def test_rows_with_equal_scores(objective):
    X, _ = make_classes(4)
    options = {"objective": objective, "num_class": 4, "gamma": 1e9, "base_score": 0.5}
    booster = xgb.train(options, xgb.DMatrix(X, np.arange(len(X)) % 4), 2)  # nothing to learn
    matrix = xgb.DMatrix(X)
    own = booster.predict(matrix, output_margin=True)
    assert (own.max(axis=1) == own.min(axis=1)).any()
    assert_classes(booster, X, own, booster_labels(booster, matrix))


@pytest.mark.parametrize("K", [2, 3, 10, 100])
def test_probabilities_that_decide_ties_are_xgboosts_own(K):
    X, y = make_classes(K)
    options = {"objective": "multi:softprob", "num_class": K, "gamma": 1e9}
    booster = xgb.train(options, xgb.DMatrix(X, y), 1)
    rng = np.random.default_rng(0)
    best = rng.normal(size=(400, 1)) * 10.0 ** rng.integers(-2, 3, (400, 1))
    gap = 10.0 ** rng.integers(-9, 2, (400, K)) * rng.integers(0, 2, (400, K))
    matrix = xgb.DMatrix(np.zeros((400, 6)), base_margin=(best - gap).astype(np.float32))
    margins = booster.predict(matrix, output_margin=True).astype(np.float64)
    own = booster.predict(matrix)
    assert (own.argmax(axis=1) != margins.argmax(axis=1)).any()
    ties = qwyc.read_model(booster).target.ties
    np.testing.assert_array_equal([ties.probabilities(row) for row in margins], own)
    np.testing.assert_array_equal(ties.decide(margins), own.argmax(axis=1))


def twins(tmp_path, objective, nudge):
    """A model in which class 2 has the trees of class 1, its leaves larger by the factor 1 + nudge."""
    X, y = make_classes(4)
    booster = xgb.train({"objective": objective, "num_class": 4}, xgb.DMatrix(X, y), 12)
    document = xgboost_document(booster)
    model = document["learner"]["gradient_booster"]["model"]
    for i in range(1, len(model["trees"]), 4):
        copy = json.loads(json.dumps(model["trees"][i]))
        copy["id"] = i + 1
        copy["split_conditions"] = [
            value * (1 + nudge) if left < 0 else value
            for value, left in zip(copy["split_conditions"], copy["left_children"], strict=True)
        ]
        model["trees"][i + 1] = copy
    parameters = document["learner"]["learner_model_param"]
    parameters["base_score"] = "[1E-1,2E-1,2E-1,1E-1]"
    path = written(tmp_path / "twins.json", document)
    return path, xgb.Booster(model_file=path), X


@pytest.mark.parametrize("objective", ["multi:softprob", "multi:softmax"])
@pytest.mark.parametrize("nudge", [0.0, 6e-8, 3e-7])
def test_classes_whose_scores_are_equal_or_almost(tmp_path, objective, nudge):
    path, booster, X = twins(tmp_path, objective, nudge)
    rows = np.concatenate([X, odd_rows(qwyc.read_model(path), infinities=False, rows=3000)])
    matrix = xgb.DMatrix(rows)
    own, labels = booster.predict(matrix, output_margin=True), booster_labels(booster, matrix)
    assert_classes(path, rows, own, labels)
    won = np.isin(labels, [1, 2])
    assert won.any()
    if nudge == 0:
        assert not (labels == 2).any()  # the first of equal ones wins
    elif objective == "multi:softprob":  # some of which float32 probabilities cannot tell apart
        assert (own.argmax(axis=1) != labels).any()


# ---- files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["plain", "softmax", "forest", "dart", "vectors"])
def test_files_and_live_models_are_the_same(tmp_path, setting):
    model, X = classifier(5, setting)
    live = qwyc.read_model(model)
    for name in ("m.json", "m.ubj"):
        model.save_model(tmp_path / name)
        assert qwyc.read_model(tmp_path / name).digest == live.digest
        loaded = qwyc.importers.load_live(tmp_path / name).model
        assert_classifier(loaded, X, live)
        model.get_booster().save_model(tmp_path / name)
        booster = qwyc.read_model(model.get_booster())
        if setting == "softmax":  # a Booster's file does not say that a classifier had it
            assert booster.classes.dtype == np.int64
        ensemble = qwyc.read_model(tmp_path / name)
        np.testing.assert_array_equal(ensemble.score_full(X), live.score_full(X))


def test_leaves_of_older_versions(tmp_path):
    """Up to version 3.1, vectors are in base_weights alone."""
    model, X = classifier(3, "vectors")
    document = xgboost_document(model)
    for tree in document["learner"]["gradient_booster"]["model"]["trees"]:
        tree.pop("leaf_weights")
    ensemble = qwyc.read_model(written(tmp_path / "m.json", document))
    np.testing.assert_array_equal(ensemble.score_full(X), model.predict(X, output_margin=True))


def test_one_base_score_for_all_classes(tmp_path):
    model, X = classifier(3)
    document = xgboost_document(model)
    document["learner"]["learner_model_param"]["base_score"] = "5E-1"  # before version 3.1
    ensemble = qwyc.read_model(written(tmp_path / "m.json", document))
    assert ensemble.base_models.base.tolist() == [0.5, 0.5, 0.5]
    booster = xgb.Booster(model_file=tmp_path / "m.json")
    own = booster.predict(xgb.DMatrix(X), output_margin=True)
    np.testing.assert_array_equal(ensemble.score_full(X), own)


def _set(path, value):
    def apply(document):
        *parents, last = path
        for key in parents:
            document = document[key]
        document[last] = value

    return apply


MODEL = ("learner", "gradient_booster", "model")
TREE = (*MODEL, "trees", 1)
PARAMETERS = ("learner", "learner_model_param")
DAMAGE = {
    "an output outside 0 to 2": ("plain", _set((*MODEL, "tree_info", 0), 3)),
    "3 base scores for 5 outputs": ("plain", _set((*PARAMETERS, "num_class"), "5")),
    "2 base scores for 3 outputs": ("plain", _set((*PARAMETERS, "base_score"), "[1E-1,2E-1]")),
    "base must be finite": ("plain", _set((*PARAMETERS, "base_score"), "[1E-1,NaN,2E-1]")),
    "multi:softprob with 0 classes": ("plain", _set((*PARAMETERS, "num_class"), "0")),
    "count:poisson with 3 classes": (
        "plain",
        _set(("learner", "objective", "name"), "count:poisson"),
    ),
    "vectors of different sizes": ("vectors", _set((*TREE, "tree_param", "size_leaf_vector"), "2")),
    "not have 3 numbers each": ("vectors", _set((*TREE, "leaf_weights"), [0.5, 0.5])),
    "18 trees but outputs of 2": ("plain", _set((*MODEL, "tree_info"), [0, 1])),
    "a leaf value is not finite": ("vectors", _set((*TREE, "leaf_weights", 0), 1e300)),
}


@pytest.mark.parametrize("message", DAMAGE)
def test_damaged_documents(tmp_path, message):
    setting, damage = DAMAGE[message]
    document = xgboost_document(classifier(3, setting)[0])
    damage(document)
    path = written(tmp_path / "m.json", document)
    with pytest.raises(ModelError, match=message) as caught:
        qwyc.read_model(path)
    assert str(caught.value).startswith(str(path))


def test_several_targets_are_refused():
    X, y = make_classes(4)
    two = np.column_stack([y > 1, y % 2]).astype(int)
    for model in (xgb.XGBClassifier(**SMALL), xgb.XGBClassifier(**SMALL, **SETTINGS["vectors"])):
        with pytest.raises(ModelError, match="with 2 targets; supported are"):
            qwyc.read_model(model.fit(X, two))
