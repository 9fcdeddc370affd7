"""Training rows are recognised by the counts in the trees, and new rows are not taken for them."""

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import treelite
import xgboost
import ydf
from scipy import stats
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier

import qwyc
from qwyc.check import training_rows
from qwyc.check.leaf_cells import LEAST_SHARE, Cells
from qwyc.check.training_rows import chi_square_tail, closeness

N = 2000
QUIET = {"verbose": -1, "n_jobs": 1}
MODELS = {
    "xgboost": xgboost.XGBClassifier(n_estimators=40, n_jobs=1),
    "xgboost, subsample": xgboost.XGBClassifier(n_estimators=40, subsample=0.8, n_jobs=1),
    "lightgbm": lightgbm.LGBMClassifier(n_estimators=40, **QUIET),
    "lightgbm, bagging": lightgbm.LGBMClassifier(
        n_estimators=60, subsample=0.7, subsample_freq=1, **QUIET
    ),
    "catboost": catboost.CatBoostClassifier(
        iterations=40, verbose=0, thread_count=1, allow_writing_files=False
    ),
    "catboost, lossguide": catboost.CatBoostClassifier(
        iterations=40, grow_policy="Lossguide", verbose=0, thread_count=1, allow_writing_files=False
    ),
    "forest": RandomForestClassifier(40, random_state=0),
    "extra trees": ExtraTreesClassifier(40, random_state=0),
    "gradient boosting": GradientBoostingClassifier(n_estimators=40, random_state=0),
    "hist": HistGradientBoostingClassifier(max_iter=40, random_state=0),
    "bagging": BaggingClassifier(n_estimators=30, random_state=0),
    "ada": AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=30, random_state=0),
    "one tree": DecisionTreeClassifier(min_samples_leaf=20, random_state=0),
}
# Whose trees see all training rows: half of the rows are recognised as well.
WITHOUT_BAGGING = [
    *("xgboost", "lightgbm", "catboost", "catboost, lossguide", "extra trees"),
    "hist",
]


def draw(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8)).astype(np.float32)
    X[:, 7] = rng.integers(4, size=n)
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * X[:, 7] + rng.normal(size=n) > 0.4
    return X, y.astype(int)


X, Y = draw(N, 0)
NEW, _ = draw(6 * N, 1)


@pytest.fixture(scope="module")
def models():
    return {name: model.fit(X, Y) for name, model in MODELS.items()}


def look(model, rows):
    ensemble = qwyc.read_model(model)
    sample = ensemble.sample(rows)
    return closeness(sample, ensemble.scores(sample))


@pytest.mark.parametrize("name", MODELS)
def test_training_rows_are_recognised_in_any_order(name, models):
    seen = look(models[name], X[np.random.default_rng(2).permutation(N)])
    assert seen.is_training
    assert seen.ratio < 0.7


@pytest.mark.parametrize("name", WITHOUT_BAGGING)
def test_half_of_the_training_rows_are_recognised(name, models):
    assert look(models[name], X[::2]).is_training


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n", [600, N, 6 * N])
def test_new_rows_are_not_taken_for_training_rows(name, n, models):
    seen = look(models[name], NEW[:n])
    assert seen is None or seen.p_value > 1e-3


def test_training_rows_several_times_are_recognised(models):
    assert look(models["lightgbm"], np.tile(X, (3, 1))).is_training


def test_most_rows_of_a_mixture_are_recognised(models):
    mixed = np.concatenate([X[:1600], NEW[:400]])
    assert look(models["lightgbm"], mixed).is_training


def test_rows_that_have_drifted_are_far_from_the_training_rows(models):
    seen = look(models["lightgbm"], NEW[:N] + np.float32(0.3))
    assert seen.ratio > 3
    assert not seen.is_training


def test_small_samples_show_nothing(models):
    assert look(models["lightgbm"], X[:300]) is None
    assert look(models["lightgbm"], X[:50]) is None


def test_blocks_of_rows_add_up(models, monkeypatch):
    whole = [look(models[name], NEW[:N]) for name in ("xgboost", "lightgbm")]
    monkeypatch.setattr(training_rows, "BLOCK", 333)
    for name, seen in zip(("xgboost", "lightgbm"), whole, strict=True):
        again = look(models[name], NEW[:N])
        assert again.dimensions == seen.dimensions
        assert again.ratio == pytest.approx(seen.ratio, rel=1e-6)


@pytest.mark.parametrize("learner", [ydf.GradientBoostedTreesLearner, ydf.RandomForestLearner])
def test_ydf(learner):
    def frame(rows):
        return pd.DataFrame(rows, columns=[f"c{j}" for j in range(8)])

    model = learner(label="y", num_trees=40, num_threads=1).train(frame(X).assign(y=Y), verbose=0)
    assert look(model, frame(X)).is_training
    assert not look(model, frame(NEW[:N])).is_training


def test_treelite_keeps_the_counts_of_lightgbm(models):
    model = treelite.frontend.from_lightgbm(models["lightgbm"].booster_)
    assert look(model, X).is_training
    assert not look(model, NEW[:N]).is_training


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "catboost"])
def test_files_of_models_have_the_same_evidence(name, models, tmp_path):
    path = tmp_path / "model.json"
    if name == "lightgbm":
        models[name].booster_.save_model(path)
    elif name == "catboost":
        models[name].save_model(str(path), format="json")
    else:
        models[name].save_model(path)
    assert look(path, X).is_training
    assert not look(path, NEW[:N]).is_training


def test_weights_of_rows_prove_nothing_false():
    """Leaves then hold weights, which are no counts."""
    weight = np.random.default_rng(3).random(N) / N
    model = xgboost.XGBClassifier(n_estimators=40, n_jobs=1).fit(X, Y, sample_weight=weight)
    for rows in (NEW[:N], NEW):
        seen = look(model, rows)
        assert seen is None or not seen.is_training


def test_models_without_counts():
    ensemble = qwyc.read_model(MODELS["lightgbm"].fit(X, Y))
    fast = qwyc.optimize(ensemble, NEW, alpha=0.02, progress=False)
    assert fast.certificate.doubts == ()
    callables = [lambda rows: rows[:, 0], lambda rows: rows[:, 1]]
    assert qwyc.optimize(callables, X, alpha=0.02, progress=False).certificate.doubts == ()


def test_counts_are_no_part_of_the_model(models, tmp_path):
    ensemble = qwyc.read_model(models["forest"])
    assert len(ensemble.base_models.trees.leaf_weight)
    assert "leaf_weight" not in ensemble.base_models.tensors()
    fast = qwyc.optimize(ensemble, NEW, alpha=0.02, progress=False)
    fast.save(tmp_path / "m.qwyc")
    again = qwyc.load(tmp_path / "m.qwyc").ensemble
    assert again.digest == ensemble.digest
    assert look(again, X) is None


@pytest.mark.parametrize("name", ["forest", "xgboost", "catboost, lossguide", "one tree"])
def test_cells_hold_the_training_rows_that_they_say(name, models):
    ensemble = qwyc.read_model(models[name])
    cells = Cells.of(ensemble.base_models, N)
    assert cells.begin[-1] == len(cells.shares) <= 640
    np.testing.assert_allclose(np.add.reduceat(cells.shares, cells.begin[:-1]), 1)
    assert cells.shares.min() > LEAST_SHARE * 0.9
    if name in ("catboost, lossguide", "one tree"):  # which see every row, once
        counted = sum(np.bincount(row, minlength=len(cells.shares)) for row in cells.of_rows(X, 1))
        np.testing.assert_allclose(counted / N, cells.shares)


@pytest.mark.parametrize("freedom", [1, 7.5, 100, 600])
def test_the_tail_of_the_chi_square_distribution(freedom):
    for ratio in (0.0, 0.01, 0.3, 0.8, 1.0, 1.5, 4.0):
        expected = stats.chi2.cdf(ratio * freedom, freedom)
        assert chi_square_tail(ratio * freedom, freedom) == pytest.approx(expected, rel=1e-9)


# ---- what users see --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["forest", "xgboost"])
def test_optimizing_on_training_rows_warns_and_promises_nothing(name, models, tmp_path):
    with pytest.warns(qwyc.TrainingRowsWarning, match="pass rows that the model has not seen"):
        fast = qwyc.optimize(models[name], X, alpha=0.05, progress=False)
    assert str(fast.certificate).startswith(
        "No promise for new rows: the rows, or many of them, are"
    )
    assert fast.certificate.upper_bound is None
    fast.save(tmp_path / "m.qwyc")
    assert qwyc.load(tmp_path / "m.qwyc").certificate == fast.certificate
    assert fast.at(alpha=0.1).certificate.doubts == fast.certificate.doubts
    # Nothing is wrong with its policies: other rows certify one of them.
    again = qwyc.recertify(fast, NEW)
    assert again.certificate.doubts == ()
    assert again.certificate.holds
    certified = qwyc.optimize(models[name], NEW, alpha=0.05, progress=False)
    with pytest.warns(qwyc.TrainingRowsWarning):
        certified = qwyc.recertify(certified, X)
    assert certified.certificate.doubts == fast.certificate.doubts


def test_a_proof_needs_no_new_rows(models, recwarn):
    fast = qwyc.optimize(models["forest"], X, alpha=0, progress=False)
    assert fast.certificate.how == "proven"
    assert not [w for w in recwarn if issubclass(w.category, qwyc.TrainingRowsWarning)]
