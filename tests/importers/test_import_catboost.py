"""CatBoost models as qwyc reads them against CatBoost itself: every score bit for bit."""

from __future__ import annotations

import json

import catboost
import numpy as np
import pandas as pd
import polars as pl
import pytest

import qwyc
from qwyc.importers import catboost as importer
from sklearn_parity import around_thresholds
from trained import as_float32, damaged, make_data, read_or_refuse

OPTIONS = {"verbose": 0, "allow_writing_files": False, "thread_count": 1, "random_seed": 0}


def train(X, y, **options):
    return catboost.CatBoostClassifier(**{"iterations": 20, **OPTIONS, **options}).fit(X, y)


def rows_for(ensemble, X, seed=0):
    """Rows on and beside borders, with NaN, infinities and numbers past float32."""
    rng = np.random.default_rng(seed)
    rows = (
        np.concatenate([X, around_thresholds(ensemble, X)])
        if len(ensemble.base_models.trees.feature)
        else X
    )
    odd = [np.nan, np.inf, -np.inf, 1e39, -1e39, 0.0, -0.0, 3e-39]
    return np.where(rng.random(rows.shape) < 0.05, rng.choice(odd, rows.shape), rows)


def check(model, X, seed=0):
    ensemble = qwyc.read_model(model)
    rows = rows_for(ensemble, X, seed)
    for block in (rows, as_float32(rows), np.asfortranarray(rows), rows[:1], rows[3:9]):
        score = ensemble.score_full(block)
        np.testing.assert_array_equal(score, model.predict(block, prediction_type="RawFormulaVal"))
        labels = ensemble.classes[(score >= ensemble.threshold).astype(int)]
        expected = model.predict(block, prediction_type="Class")
        np.testing.assert_array_equal(labels, expected)
        assert labels.dtype == expected.dtype
    return ensemble


@pytest.mark.parametrize("policy", ["SymmetricTree", "Depthwise", "Lossguide"])
@pytest.mark.parametrize("nan_mode", ["Min", "Max"])
@pytest.mark.parametrize("depth", [1, 4, 10])
def test_scores_are_those_of_catboost(data, policy, nan_mode, depth):
    X, y = data
    check(train(X, y, grow_policy=policy, nan_mode=nan_mode, depth=depth), X)


@pytest.mark.parametrize(
    "options",
    [
        {"iterations": 1},
        {"boost_from_average": True},
        {"auto_class_weights": "Balanced"},
        {"loss_function": "CrossEntropy"},
        {"loss_function": "Focal:focal_alpha=0.5;focal_gamma=2.0"},
        {"monotone_constraints": [1, 0, 0, 0, 0, 0]},
        {"model_shrink_rate": 0.2},
        {"bootstrap_type": "Bernoulli", "subsample": 0.5, "rsm": 0.5},
        {"leaf_estimation_iterations": 5, "l2_leaf_reg": 0},
        {"border_count": 254, "iterations": 60},
    ],
    ids=str,
)
def test_training_options(data, options):
    X, y = data
    check(train(X, y, **options), X)


def test_columns_without_missing_values_take_them_all_the_same():
    X, y = make_data(missing=0.0)
    check(train(X, y), X)


def test_infinities_in_training(data):
    X, y = data
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.05, np.inf, X)
    check(train(X, y), X)


def test_a_tree_without_splits(data):
    X, y = data
    options = {"grow_policy": "Lossguide", "min_data_in_leaf": 10**6, "iterations": 3}
    ensemble = check(train(X, y, boost_from_average=True, **options), X)
    assert ensemble.base_models.trees.feature.size == 0
    assert ensemble.n_models == 3


@pytest.mark.parametrize("labels", [("no", "yes"), (-1, 7), (0.5, 1.5), (False, True)])
def test_class_labels(data, labels):
    X, y = data
    ensemble = check(train(X, np.array(labels)[y]), X)
    assert ensemble.classes.tolist() == list(labels)


@pytest.mark.parametrize("probability", [0.5, 0.3, 0.987654321])
def test_the_model_s_own_probability_threshold(data, probability):
    X, y = data
    model = train(X, y)
    model.set_probability_threshold(probability)
    check(model, X)


@pytest.mark.parametrize("scale", [2.0, 0.25, -4.0, 0.3])
def test_a_scale(data, scale):
    model = train(*data)
    model.set_scale_and_bias(scale, 0.1)
    check(model, data[0])


def test_best_iteration(data):
    X, y = data
    model = catboost.CatBoostClassifier(iterations=200, learning_rate=0.5, **OPTIONS)
    model.fit(X[:300], y[:300], eval_set=(X[300:], y[300:]), early_stopping_rounds=5)
    assert check(model, X).n_models == model.tree_count_ < 200


def test_a_plain_catboost_with_a_binary_objective(data):
    X, y = data
    model = catboost.CatBoost({"loss_function": "Logloss", "iterations": 9, **OPTIONS}).fit(X, y)
    assert check(model, X).n_models == 9


@pytest.mark.parametrize("policy", ["SymmetricTree", "Lossguide"])
def test_files_hold_the_same_model(data, tmp_path, policy):
    X, y = data
    model = train(X, np.where(y, "yes", "no"), grow_policy=policy, boost_from_average=True)
    live = qwyc.read_model(model)
    for kind in ("cbm", "json"):
        model.save_model(str(tmp_path / kind), format=kind)
        read = qwyc.read_model(tmp_path / kind)
        assert read.digest == live.digest
        assert read.source == live.source
    assert live.source.library == "catboost"
    assert live.source.version == catboost.__version__


def test_models_that_were_added_up(data):
    X, y = data
    parts = [train(X, y, random_seed=i) for i in range(2)]
    both = catboost.sum_models(parts, weights=[0.5, 0.7])
    with pytest.raises(qwyc.ModelError, match="objective is unknown"):
        qwyc.read_model(both)
    assert check(catboost.to_classifier(both), X).n_models == both.tree_count_


def test_overlapping_lists_in_a_file_do_not_multiply(tmp_path):
    # 4,000 features, all with the same 4,000 borders: 64 MB from a file of 50 KB.
    n = 4000
    borders = np.arange(n, dtype="<f4").tobytes()
    vtable = np.array([12, 8, 0, 0, 0, 4], dtype="<u2").tobytes()  # the feature's field 3 at 4
    trees_vtable = np.array([16, 8, *[0] * 5, 4], dtype="<u2").tobytes()  # field 5 at 4
    core_vtable = np.array([8, 8, 0, 4], dtype="<u2").tobytes()
    table = 4 + len(core_vtable)
    trees_at = table + 8 + len(trees_vtable)
    list_at = trees_at + 8
    feature_at = list_at + 4 + 4 * n + len(vtable)
    parts = [
        np.uint32(table),
        core_vtable,
        np.int32(len(core_vtable)),
        np.uint32(trees_at - table - 4),
    ]
    parts += [
        trees_vtable,
        np.int32(len(trees_vtable)),
        np.uint32(list_at - trees_at - 4),
        np.uint32(n),
    ]
    parts += [np.uint32(feature_at - list_at - 4 - 4 * i) for i in range(n)]
    parts += [vtable, np.int32(len(vtable)), np.uint32(4), np.uint32(n), borders]
    content = b"".join(p if isinstance(p, bytes) else p.tobytes() for p in parts)
    (tmp_path / "m.cbm").write_bytes(b"CBM1" + np.uint32(len(content)).tobytes() + content)
    with pytest.raises(qwyc.ModelError, match="lists overlap"):
        qwyc.read_model(tmp_path / "m.cbm")


def test_rows_that_are_no_table(data):
    X, y = data
    with pytest.raises(qwyc.InputError, match=r"X \(Pool\) is not a table"):
        qwyc.optimize(train(X, y), catboost.Pool(X), alpha=0)


def test_names_and_tables(data):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = train(frame, y)
    ensemble = qwyc.read_model(model)
    assert ensemble.schema.names == tuple("abcdef")
    expected = model.predict(frame, prediction_type="RawFormulaVal")
    for table in (frame[list("fedcba")], pl.DataFrame(X, schema=list("abcdef"))):
        np.testing.assert_array_equal(ensemble.score_full(table), expected)
        fast = qwyc.optimize(model, table, alpha=0)
        np.testing.assert_array_equal(fast.predict(table), model.predict(frame))


def test_quits_and_files(data, tmp_path):
    X, y = data
    model = train(X, y, iterations=40, boost_from_average=True)
    fast = qwyc.optimize(model, np.tile(X, (4, 1)), alpha=0.05)
    fast.save(tmp_path / "c.qwyc")
    again = qwyc.load(tmp_path / "c.qwyc")
    np.testing.assert_array_equal(again.predict(X), fast.predict(X))
    np.testing.assert_array_equal(
        again.score_full(X), model.predict(X, prediction_type="RawFormulaVal")
    )


def test_columns_that_the_trees_do_not_look_at_may_hold_text(data):
    X, y = data
    frame = pd.DataFrame(X[:, :2], columns=list("ab")).assign(c="same")
    model = train(frame, y, cat_features=["c"])
    np.testing.assert_array_equal(
        qwyc.read_model(model).score_full(frame),
        model.predict(frame, prediction_type="RawFormulaVal"),
    )


# ---- refused ---------------------------------------------------------------------------------


def test_other_kinds_of_model_are_refused(data):
    X, y = data
    with pytest.raises(qwyc.ModelError, match="not fitted"):
        qwyc.read_model(catboost.CatBoostClassifier())
    with pytest.raises(qwyc.ModelError, match="this is not a model"):
        qwyc.read_model(catboost.Pool(X, y))


def test_texts_and_embeddings_are_refused_by_name(data):
    X, y = data
    words = np.where(y, "good fine nice", "bad poor awful")
    frame = pd.DataFrame({"a": X[:, 0], "review": words})
    with pytest.raises(qwyc.ModelError, match=r"text features \('review'\)"):
        qwyc.read_model(train(frame, y, text_features=["review"]))
    vectors = list(np.stack([y, 1 - y, y], axis=1).astype(float))
    frame = pd.DataFrame({"a": X[:, 0], "place": vectors})
    with pytest.raises(qwyc.ModelError, match=r"embedding features \('place'\)"):
        qwyc.read_model(train(frame, y, embedding_features=["place"]))


# ---- damaged files ---------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["SymmetricTree", "Lossguide"])
def test_damaged_files_are_refused_or_sound(data, tmp_path, policy):
    X, y = data
    model = train(X, y, iterations=3, depth=3, grow_policy=policy)
    rng = np.random.default_rng(0)
    for kind in ("cbm", "json"):
        path = tmp_path / f"m.{kind}"
        model.save_model(str(path), format=kind)
        content = path.read_bytes()
        outcomes = {read_or_refuse(importer, path, bad) for bad in damaged(content, rng)}
        assert outcomes <= {"read", "refused"}


def test_foreign_documents(tmp_path):
    path = tmp_path / "m.json"
    for content in (
        b"CBM1",
        b"CBM1\xff\xff\xff\xff" + b"\0" * 40,
        b"CBM1\x28\0\0\0" + b"\0" * 40,
        b'{"features_info": 3}',
        b'{"model_info": {}, "features_info": {}, "oblivious_trees": []}',
        json.dumps({"features_info": {}, "oblivious_trees": [{"splits": [], "leaf_values": 3}]}),
    ):
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(qwyc.ModelError, match=r"m\.json"):
            qwyc.read_model(path)
