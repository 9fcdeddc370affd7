"""LightGBM models of several classes, read from files and live objects, against LightGBM itself."""

from __future__ import annotations

import re

import lightgbm as lgb
import numpy as np
import pytest

import qwyc
from classes import assert_classes, make_class_frame, make_classes, odd_rows
from qwyc.errors import ModelError
from trained import QUIET, as_float32, as_text, permuted, written

SMALL = {"n_estimators": 6, "num_leaves": 6, "min_child_samples": 3, **QUIET}
OVA = {"objective": "multiclassova"}
FOREST = {"boosting_type": "rf", "subsample": 0.6, "subsample_freq": 1}
SETTINGS = {
    "plain": {},
    "one against all": OVA,
    "sigmoid": {**OVA, "sigmoid": 0.3},
    "forest": FOREST,
    "forest, one against all": {**FOREST, **OVA},
    "dart": {"boosting_type": "dart", "drop_rate": 0.4},
    "zero is missing": {"zero_as_missing": True},
    "nothing is missing": {"use_missing": False},
    "single leaves": {"min_child_samples": 10**6},
    "from nothing": {"boost_from_average": False},
}
NAMES = np.array(["pear", "apple", "fig"] + [f"kind {i}" for i in range(97)])


def classifier(K, setting="plain", names=NAMES, **options):
    X, y = make_classes(K)
    model = lgb.LGBMClassifier(**{**SMALL, **SETTINGS[setting], **options})
    return model.fit(X, names[y], categorical_feature=[2, 3]), X


def raw_scores(model, X):
    """LightGBM's own, but averaged for random forests, as on the way to probabilities."""
    booster = model if isinstance(model, lgb.Booster) else model.booster_
    text = booster.model_to_string()
    rounds = text.count("\nTree=") // booster.num_model_per_iteration()
    return model.predict(X, raw_score=True) / (rounds if "\naverage_output\n" in text else 1)


def assert_classifier(model, X, ensemble=None):
    own = model.predict(X)
    ensemble = assert_classes(model, X, raw_scores(model, X), own, ensemble)
    assert ensemble.classes.dtype == own.dtype
    return ensemble


def assert_booster(booster, X, ensemble=None):
    own = booster.predict(X).argmax(axis=1)
    return assert_classes(booster, X, raw_scores(booster, X), own, ensemble)


# ---- scores and decisions --------------------------------------------------------------------


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("K", [2, 3, 7])
def test_scores_and_labels_are_the_models_own(K, setting):
    objective = SETTINGS[setting].get("objective", "multiclass")
    model, X = classifier(K, setting, objective=objective, num_class=K)
    ensemble = assert_classifier(model, X)
    assert sorted(ensemble.classes.tolist()) == sorted(NAMES[:K].tolist())
    assert ensemble.n_models == (1 if setting == "single leaves" else 6)
    rows = odd_rows(ensemble)
    booster = qwyc.read_model(model.booster_)
    for Z in (rows, as_float32(rows), np.asfortranarray(rows), rows[:1]):
        assert_classifier(model, Z, ensemble)
        assert_booster(model.booster_, Z, booster)


@pytest.mark.parametrize("objective", ["multiclass", "multiclassova"])
@pytest.mark.parametrize("K", [10, 100])
def test_many_classes(K, objective):
    model, X = classifier(K, objective=objective, n_estimators=3)
    ensemble = assert_classifier(model, X)
    assert_classifier(model, odd_rows(ensemble), ensemble)
    assert len(ensemble.classes) == K


def test_classes_are_numbers_as_they_were():
    model, X = classifier(4, names=np.array([-3, 12, 5, 7]))
    assert assert_classifier(model, X).classes.tolist() == [-3, 5, 7, 12]
    model, X = classifier(3, names=np.array([8.0, 2.0, 1.0]))
    assert assert_classifier(model, X).classes.tolist() == [1.0, 2.0, 8.0]


def test_pandas_categories():
    frame, y = make_class_frame(4)
    model = lgb.LGBMClassifier(**SMALL).fit(frame, NAMES[y])
    ensemble = assert_classifier(model, frame)
    assert set(ensemble.schema.categories) == {1, 3, 4}
    own = model.predict(frame, raw_score=True)
    for same in (permuted(frame), as_text(frame)):
        np.testing.assert_array_equal(ensemble.score_full(same), own)


def test_early_stopping(tmp_path):
    X, y = make_classes(4)
    wrong = (y + (np.arange(len(y)) % 3 == 0)) % 4
    for options in ({}, OVA):
        model = lgb.LGBMClassifier(**{**SMALL, "n_estimators": 80, "learning_rate": 0.6}, **options)
        stop = lgb.early_stopping(3, verbose=False)
        model.fit(X, y, eval_set=[(X, wrong)], callbacks=[stop])
        assert model.best_iteration_ < 80
        assert assert_classifier(model, X).n_models == model.best_iteration_
        assert assert_booster(model.booster_, X).n_models == model.best_iteration_
        model.booster_.save_model(tmp_path / "m.txt")
        assert qwyc.read_model(tmp_path / "m.txt").digest == qwyc.read_model(model.booster_).digest
        parameters = {"objective": "multiclass", "num_class": 4, "learning_rate": 0.6, **QUIET}
        rows, other = lgb.Dataset(X, y), lgb.Dataset(X, wrong)
        booster = lgb.train(
            {**parameters, **options},
            rows,
            80,
            valid_sets=[other],
            callbacks=[stop],
            keep_training_booster=True,
        )
        assert booster.best_iteration < booster.current_iteration()
        assert assert_booster(booster, X).n_models == booster.best_iteration


@pytest.mark.parametrize("objective", ["multiclass", "multiclassova"])
def test_classes_that_no_row_has(objective):
    X, y = make_classes(3)
    y = np.where(y == 2, 4, y)  # of classes 0 to 5, those with rows are 0, 1 and 4
    booster = lgb.train({"objective": objective, "num_class": 6, **QUIET}, lgb.Dataset(X, y), 4)
    ensemble = assert_booster(booster, X)
    assert (len(ensemble.classes), ensemble.n_models) == (6, 4)


# ---- ties ------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["multiclass", "multiclassova"])
def test_rows_with_equal_scores(objective):
    X, _ = make_classes(4)
    options = {"objective": objective, "num_class": 4, "min_data_in_leaf": 10**6, **QUIET}
    booster = lgb.train(options, lgb.Dataset(X, np.arange(len(X)) % 4), 2)  # nothing to learn
    own = raw_scores(booster, X)
    assert (own.max(axis=1) == own.min(axis=1)).all()
    assert_booster(booster, X)


@pytest.mark.parametrize("setting", ["plain", "sigmoid"])
@pytest.mark.parametrize("K", [3, 10, 100])
def test_probabilities_that_decide_ties_are_lightgbms_own(K, setting):
    model, X = classifier(K, setting, n_estimators=3)
    ties = qwyc.read_model(model).target.ties
    scores, own = model.predict(X, raw_score=True), model.predict_proba(X)
    np.testing.assert_array_equal([ties.probabilities(row) for row in scores], own)


def twins(tmp_path, objective, nudge, scale):
    """A model in which class 2 has the trees of class 1, its leaves larger by the factor 1 + nudge; and all
    leaves times `scale`."""
    X, y = make_classes(4)
    options = {"objective": objective, "num_class": 4, "num_leaves": 9, **QUIET}
    text = lgb.train(options, lgb.Dataset(X, y), 12).model_to_string()
    head, *trees = text.split("\nTree=")
    trees[-1], end, tail = trees[-1].partition("\nend of trees")

    def scaled(tree, factor):
        values = re.search(r"^leaf_value=(.*)$", tree, re.MULTILINE)[1]
        changed = " ".join(repr(float(value) * factor) for value in values.split())
        return tree.replace(f"leaf_value={values}", f"leaf_value={changed}")

    for i, tree in enumerate(trees):
        number, lines = tree.split("\n", 1)
        if i % 4 == 2:
            lines, factor = trees[i - 1].split("\n", 1)[1], 1 + nudge
        else:
            factor = scale
        trees[i] = scaled(f"{number}\n{lines}", factor)
    head = re.sub(r"\ntree_sizes=.*", "", head)  # the trees have other sizes now
    path = written(tmp_path / "twins.txt", "\nTree=".join([head, *trees]) + end + tail)
    return path, lgb.Booster(model_file=path), X


@pytest.mark.parametrize(
    ("objective", "nudge", "scale"),
    [
        ("multiclass", 0.0, 1.0),
        ("multiclass", 3e-16, 1.0),
        ("multiclass", 1e-12, 1.0),
        ("multiclassova", 0.0, 1.0),
        ("multiclassova", 3e-16, 1.0),
        ("multiclassova", 1e-3, -40.0),  # probabilities of 1
        ("multiclassova", 1e-3, 2e4),  # probabilities of 0
    ],
)
def test_classes_whose_scores_are_equal_or_almost(tmp_path, objective, nudge, scale):
    path, booster, X = twins(tmp_path, objective, nudge, scale)
    rows = np.concatenate([X, odd_rows(qwyc.read_model(path), rows=2000)])
    own, labels = booster.predict(rows, raw_score=True), booster.predict(rows).argmax(axis=1)
    assert_classes(path, rows, own, labels)
    assert np.isin(labels, [1, 2]).any()
    if nudge == 0:
        assert not (labels == 2).any()  # the first of equal ones wins
    elif nudge < 1e-13 or scale != 1:  # some of which probabilities cannot tell apart
        assert (own.argmax(axis=1) != labels).any()


# ---- files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["plain", "sigmoid", "forest", "dart"])
def test_files_and_live_models_are_the_same(tmp_path, setting):
    model, X = classifier(5, setting)
    model.booster_.save_model(tmp_path / "m.txt")
    ensemble = qwyc.read_model(tmp_path / "m.txt")
    assert ensemble.digest == qwyc.read_model(model.booster_).digest
    assert ensemble.classes.tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(ensemble.score_full(X), qwyc.read_model(model).score_full(X))
    assert_booster(qwyc.importers.load_live(tmp_path / "m.txt").model, X, ensemble)


def test_damaged_and_other_models_are_refused(tmp_path):
    model, X = classifier(3)
    text = model.booster_.model_to_string()
    last = text.rindex("\nTree=")
    no_sizes = re.sub(r"\ntree_sizes=.*", "", text[:last] + text[text.index("\nend of trees") :])
    damage = {
        "17 trees, which do not make whole rounds of 3": no_sizes,
        "multiclass with 4 classes and 3 trees": text.replace("num_class=3", "num_class=4", 1),
        "regression with 3 classes": text.replace("objective=multiclass", "objective=regression"),
        "a leaf value is not finite": re.sub(r"leaf_value=\S+", "leaf_value=inf", text, count=1),
    }
    for message, damaged in damage.items():
        path = written(tmp_path / "m.txt", damaged)
        with pytest.raises(ModelError, match=message) as caught:
            qwyc.read_model(path)
        assert str(caught.value).startswith(str(path))
    linear = lgb.LGBMClassifier(**SMALL, linear_tree=True).fit(X[:, :1], make_classes(3)[1])
    with pytest.raises(ModelError, match="linear_tree"):
        qwyc.read_model(linear)
    y = make_classes(2)[1]
    more = lgb.LGBMClassifier(**SMALL, objective="multiclass", num_class=5).fit(X, y)
    with pytest.raises(
        ModelError, match="fitted on 2 classes and decides among 5; train it without"
    ):
        qwyc.read_model(more)
    assert_booster(more.booster_, X)
