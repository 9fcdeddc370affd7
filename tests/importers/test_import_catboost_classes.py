"""CatBoost models of several classes, read from files and live objects, against CatBoost itself."""

from __future__ import annotations

import json

import catboost
import numpy as np
import pandas as pd
import pytest

import qwyc
from classes import assert_classes, labels, make_classes, odd_rows
from qwyc.errors import ModelError
from trained import as_float32, damaged, read_or_refuse, written

OPTIONS = {
    "iterations": 6,
    "depth": 4,
    "verbose": 0,
    "allow_writing_files": False,
    "thread_count": 1,
    "random_seed": 0,
}
LOSSES = ["MultiClass", "MultiClassOneVsAll"]
POLICIES = ["SymmetricTree", "Depthwise", "Lossguide"]
NAMES = np.array(["pear", "apple", "fig"] + [f"kind {i}" for i in range(97)])


def train(X, y, **options):
    options = {**OPTIONS, "loss_function": "MultiClass", **options}
    return catboost.CatBoostClassifier(**options).fit(X, y)


def raw_scores(model, X):
    return model.predict(X, prediction_type="RawFormulaVal")


def assert_model(model, X, ensemble=None):
    own = model.predict(X, prediction_type="Class").reshape(-1)
    ensemble = assert_classes(model, X, raw_scores(model, X), own, ensemble)
    assert ensemble.classes.dtype == own.dtype
    return ensemble


# ---- scores and decisions --------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("K", [2, 3, 7])
def test_scores_and_labels_are_those_of_catboost(K, loss, policy):
    X, y = make_classes(K)
    model = train(X, NAMES[y], loss_function=loss, grow_policy=policy)
    ensemble = assert_model(model, X)
    assert (ensemble.n_models, len(ensemble.classes)) == (6, K)
    rows = odd_rows(ensemble)
    for Z in (rows, as_float32(rows), np.asfortranarray(rows), rows[:1]):
        assert_model(model, Z, ensemble)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("K", [10, 100])
def test_many_classes(K, policy):
    X, y = make_classes(K)
    model = train(X, y, iterations=3, grow_policy=policy, nan_mode="Max")
    ensemble = assert_model(model, X)
    assert_model(model, odd_rows(ensemble), ensemble)
    assert ensemble.classes.tolist() == list(range(K))


@pytest.mark.parametrize(
    "names",
    [np.array([-3, 12, 5]), np.array([0.5, 2.5, 1.0]), np.array(["b", "ä", "a"]), [True, False]],
    ids=str,
)
def test_classes_are_what_they_were(names):
    X, y = make_classes(len(names))
    ensemble = assert_model(train(X, np.asarray(names)[y]), X)
    assert ensemble.classes.tolist() == sorted(np.asarray(names).tolist())


@pytest.mark.parametrize("policy", ["SymmetricTree", "Depthwise"])
def test_bias_and_scale(policy):
    X, y = make_classes(5)
    model = train(X, y, grow_policy=policy)
    rng = np.random.default_rng(0)
    for scale in (1, 0.25, -2, 0.3):
        model.set_scale_and_bias(scale, rng.normal(size=5).tolist())
        assert_model(model, X)


def test_a_model_that_is_no_classifier_object():
    X, y = make_classes(3)
    assert_model(catboost.CatBoost({**OPTIONS, "loss_function": "MultiClass"}).fit(X, y), X)


def test_early_stopping(tmp_path):
    X, y = make_classes(4)
    wrong = (y + (np.arange(len(y)) % 3 == 0)) % 4
    options = {**OPTIONS, "iterations": 200, "learning_rate": 0.7, "early_stopping_rounds": 5}
    model = catboost.CatBoostClassifier(**options, loss_function="MultiClass")
    model.fit(X, y, eval_set=(X, wrong))
    assert model.tree_count_ < 200
    assert assert_model(model, X).n_models == model.tree_count_ == model.best_iteration_ + 1


# ---- categories ------------------------------------------------------------------------------


def make_category_frame(rows=600):
    rng = np.random.default_rng(0)
    texts = np.array([*"pqrstu", *(f"a longer text, number {i}" for i in range(8)), "é"])
    a, k, i = (
        rng.normal(size=rows).round(1),
        rng.integers(0, len(texts), rows),
        rng.integers(0, 40, rows),
    )
    frame = pd.DataFrame({"a": np.where(rng.random(rows) < 0.1, np.nan, a), "k": texts[k], "i": i})
    return frame, labels(a + 2.0 * (k % 4) - (i % 3), 4)


@pytest.mark.parametrize("policy", ["SymmetricTree", "Depthwise"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"one_hot_max_size": 100},
        {"simple_ctr": ["Buckets", "Counter:Prior=0.3"]},
        {"simple_ctr": ["Borders:TargetBorderCount=3"]},
        {"simple_ctr": ["BinarizedTargetMeanValue"]},
    ],
    ids=str,
)
def test_categories(tmp_path, policy, options):
    frame, y = make_category_frame()
    model = train(
        frame,
        NAMES[y],
        cat_features=["k", "i"],
        max_ctr_complexity=1,
        grow_policy=policy,
        **options,
    )
    ensemble = assert_model(model, frame)
    assert ensemble.schema.categories[1]
    rng = np.random.default_rng(1)
    unseen = frame.assign(
        k=np.where(rng.random(len(frame)) < 0.3, "not seen", frame["k"]),
        i=np.where(rng.random(len(frame)) < 0.3, 999, frame["i"]),
    )
    assert_model(model, unseen, ensemble)
    pool = catboost.Pool(frame, NAMES[y], cat_features=["k", "i"])
    for kind in ("cbm", "json"):
        model.save_model(tmp_path / "m", format=kind, pool=pool)
        assert qwyc.read_model(tmp_path / "m").digest == ensemble.digest


# ---- classes without rows, ties --------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    "options", [{"classes_count": 6}, {"class_names": [0, 1, 2, 3, 4, 5]}], ids=str
)
def test_classes_that_no_row_has(tmp_path, loss, options):
    """CatBoost gives them -inf, so that they are never decided; they are not read."""
    X, y = make_classes(3)
    model = train(X, np.array([0, 1, 4])[y], loss_function=loss, **options)
    own = raw_scores(model, X)
    assert own.shape == (len(X), 6)
    assert np.isneginf(own[:, [2, 3, 5]]).all()
    ensemble = assert_classes(model, X, own[:, [0, 1, 4]], model.predict(X).reshape(-1))
    assert ensemble.classes.tolist() == [0, 1, 4]
    for kind in ("cbm", "json"):
        model.save_model(tmp_path / "m", format=kind)
        assert qwyc.read_model(tmp_path / "m").digest == ensemble.digest


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("nudge", [0.0, 2e-16, -2e-16])
def test_classes_whose_scores_are_equal_or_almost(loss, nudge):
    """CatBoost compares scores, not probabilities."""
    X, y = make_classes(4)
    model = train(X, y, loss_function=loss, iterations=12)
    leaves = model.get_leaf_values().reshape(-1, 4)
    leaves[:, 2] = leaves[:, 1] * (1 + nudge)
    model.set_leaf_values(leaves.ravel())
    ensemble = assert_model(model, X)
    rows = np.concatenate([X, odd_rows(ensemble, rows=2000)])
    assert_model(model, rows, ensemble)
    full = ensemble.score_full(rows)
    best, decided = full.argmax(axis=1), model.predict(rows).reshape(-1)
    tied = (full[:, 1] == full[:, 2]) & np.isin(best, [1, 2])
    assert tied.any()
    assert (decided[tied] == 1).all()  # the first of equal ones wins
    if nudge:
        assert (full[:, 1] != full[:, 2]).any()


def test_rows_with_equal_scores():
    X, y = make_classes(4)
    model = train(X, y, iterations=1)
    model.set_leaf_values(np.zeros(model.get_leaf_values().size))
    ensemble = assert_model(model, X)
    assert not ensemble.score_full(X).any()
    assert (model.predict(X) == 0).all()


# ---- files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
def test_files_and_live_models_are_the_same(tmp_path, policy):
    X, y = make_classes(5)
    model = train(X, NAMES[y], grow_policy=policy)
    ensemble = qwyc.read_model(model)
    for kind in ("cbm", "json"):
        model.save_model(tmp_path / "m", format=kind)
        read = qwyc.read_model(tmp_path / "m")
        assert read.digest == ensemble.digest
        assert read.classes.tolist() == sorted(NAMES[:5].tolist())
        loaded = qwyc.importers.load_live(tmp_path / "m")
        answer = loaded.predict_live(read.sample(X))
        np.testing.assert_array_equal(answer.labels, model.predict(X).reshape(-1))
        np.testing.assert_allclose(answer.scores, raw_scores(model, X), rtol=1e-12, atol=1e-12)


def _set(path, value):
    def apply(document):
        *parents, last = path
        for key in parents:
            document = document[key]
        document[last] = value

    return apply


DAMAGE = {
    "do not hold 3 numbers": ("SymmetricTree", _set(("oblivious_trees", 0, "leaf_values", -1), [])),
    "3 outputs and 2 biases": ("SymmetricTree", _set(("scale_and_bias",), [1, [0.0, 0.0]])),
    "different numbers of values": ("Depthwise", _set(("trees", 0), {"value": [1.0, 2.0]})),
    "the model has 2 classes": (
        "SymmetricTree",
        _set(("model_info", "class_params", "class_to_label"), [0, 1]),
    ),
    "a leaf value is not finite": (
        "SymmetricTree",
        _set(("oblivious_trees", 0, "leaf_values", 1), 1e300),
    ),
    "objective is MultiLogloss; supported are": (
        "SymmetricTree",
        _set(("model_info", "params", "loss_function", "type"), "MultiLogloss"),
    ),
    "objective is Logloss with 3 outputs": (
        "SymmetricTree",
        _set(("model_info", "params", "loss_function", "type"), "Logloss"),
    ),
}


@pytest.mark.parametrize("message", DAMAGE)
def test_damaged_documents(tmp_path, message):
    policy, damage = DAMAGE[message]
    X, y = make_classes(3)
    train(X, y, grow_policy=policy).save_model(tmp_path / "m", format="json")
    document = json.loads((tmp_path / "m").read_text())
    damage(document)
    if "do not hold" in message:
        document["oblivious_trees"][0]["leaf_values"].pop()
    path = written(tmp_path / "m.json", document)
    with pytest.raises(ModelError, match=message) as caught:
        qwyc.read_model(path)
    assert str(caught.value).startswith(str(path))


def test_damaged_files_are_read_or_refused(tmp_path):
    X, y = make_classes(3)
    rng = np.random.default_rng(0)
    for policy in ("SymmetricTree", "Depthwise"):
        model = train(X, y, iterations=2, depth=2, grow_policy=policy)
        model.save_model(tmp_path / "m.cbm")
        content = (tmp_path / "m.cbm").read_bytes()
        found = set()
        for copy in damaged(content, rng, cut=40, changed=160):
            found.add(read_or_refuse(qwyc.importers.catboost, tmp_path / "x.cbm", copy))
        assert found == {"read", "refused"}


def test_models_of_several_labels_or_without_an_objective_are_refused():
    X, y = make_classes(3)
    two = np.stack([y > 0, y > 1], axis=1).astype(int)
    with pytest.raises(ModelError, match="MultiLogloss; supported are Logloss"):
        qwyc.read_model(train(X, two, loss_function="MultiLogloss"))
    added = catboost.to_classifier(catboost.sum_models([train(X, y), train(X, y, depth=2)]))
    with pytest.raises(ModelError, match="objective is unknown; supported are"):
        qwyc.read_model(added)
