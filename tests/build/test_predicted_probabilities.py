"""`Probability(p)` where p is a probability that the model predicts: decided as `predict_proba >= p`, to
the last bit, by every model that has probabilities."""

import warnings

import catboost
import lightgbm
import numpy as np
import onnxruntime
import pandas as pd
import pytest
import treelite
import xgboost
import ydf
from skl2onnx import to_onnx
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import qwyc
from onnx_graphs import classifier, ensemble_5
from qwyc.files.parts import read_link
from qwyc.importers import open_model
from qwyc.model.link import Link
from qwyc.model.trees import Summation

ydf.verbose(0)
NAMES = list("abcd")


def make_rows(seed, rows=1500):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4)).round(2).astype(np.float32)
    y = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=rows) > 0
    return X, y.astype(int)


def light(**options):
    return lightgbm.LGBMClassifier(n_estimators=25, verbose=-1, n_jobs=1, **options)


def cat(**options):
    return catboost.CatBoostClassifier(
        iterations=25, verbose=0, allow_writing_files=False, **options
    )


# Steep models have probabilities next to 0 and 1, where a logistic function loses its last bits.
MODELS = {
    "XGBoost": lambda: xgboost.XGBClassifier(n_estimators=25),
    "XGBoost steep": lambda: xgboost.XGBClassifier(n_estimators=25, learning_rate=1.5, max_depth=4),
    "XGBoost dart": lambda: xgboost.XGBClassifier(n_estimators=15, booster="dart", rate_drop=0.3),
    "XGBoost rf": lambda: xgboost.XGBRFClassifier(n_estimators=15),
    "LightGBM": light,
    "LightGBM steep": lambda: light(learning_rate=0.8),
    "LightGBM sigmoid": lambda: light(sigmoid=0.7),
    "LightGBM rf": lambda: light(boosting_type="rf", subsample=0.5, subsample_freq=1),
    "LightGBM cross_entropy": lambda: light(objective="cross_entropy"),
    "CatBoost": cat,
    "CatBoost steep": lambda: cat(learning_rate=1.0),
    "CatBoost depthwise": lambda: cat(grow_policy="Depthwise"),
    "forest": lambda: RandomForestClassifier(15, n_jobs=1, random_state=0),
    "shallow forest": lambda: RandomForestClassifier(15, max_depth=3, n_jobs=1, random_state=0),
    "extra trees": lambda: ExtraTreesClassifier(15, max_depth=5, n_jobs=1, random_state=0),
    "tree": lambda: DecisionTreeClassifier(max_depth=6),
    "bagging": lambda: BaggingClassifier(
        DecisionTreeClassifier(max_depth=4), n_estimators=9, random_state=0
    ),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=25),
    "steep boosting": lambda: GradientBoostingClassifier(n_estimators=25, learning_rate=0.9),
    "exponential boosting": lambda: GradientBoostingClassifier(
        n_estimators=25, loss="exponential", learning_rate=1.5
    ),
    "hist": lambda: HistGradientBoostingClassifier(max_iter=25),
    "steep hist": lambda: HistGradientBoostingClassifier(max_iter=25, learning_rate=0.9),
    "AdaBoost": lambda: AdaBoostClassifier(n_estimators=25, random_state=0),
    "AdaBoost of trees": lambda: AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=3), n_estimators=25, random_state=0
    ),
    "AdaBoost steep": lambda: AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=5), n_estimators=25, learning_rate=6.0, random_state=0
    ),
}


def distinct(p, most=150):
    """Some probabilities between 0 and 1 that are predicted."""
    inside = np.unique(p[(p > 0) & (p < 1)]).astype(np.float64)
    return inside[:: max(1, len(inside) // most)]


def assert_decided_at(source, X, p):
    """Every threshold that is a predicted probability, and its neighbours, decide as `p >= threshold`."""
    predicted = distinct(p)
    assert len(predicted) > 3
    for at in predicted:
        for value in (np.nextafter(at, 0), at, np.nextafter(at, 1)):
            if not 0 < value < 1:
                continue
            ensemble = source.for_probability(float(value)).ensemble
            score = ensemble.score_full(X)
            threshold = ensemble.link.score_among(score, float(value))
            np.testing.assert_array_equal(score >= threshold, p >= value, err_msg=repr(value))


@pytest.mark.parametrize("name", MODELS)
def test_every_predicted_probability_decides_to_the_last_bit(name):
    X, y = make_rows(0)
    model = MODELS[name]().fit(X, y)
    assert_decided_at(open_model(model), X, model.predict_proba(X)[:, 1])


@pytest.mark.parametrize("name", ["XGBoost", "LightGBM", "LightGBM rf"])
def test_boosters(name):
    X, y = make_rows(1)
    model = MODELS[name]().fit(X, y)
    if name == "XGBoost":
        booster = model.get_booster()
        p = booster.predict(xgboost.DMatrix(X))
    else:
        booster = model.booster_
        p = booster.predict(X)
    assert_decided_at(open_model(booster), X, p)


@pytest.mark.parametrize(
    "learner", [ydf.GradientBoostedTreesLearner, ydf.RandomForestLearner, ydf.CartLearner]
)
def test_ydf(learner):
    X, y = make_rows(2)
    frame = pd.DataFrame(X, columns=NAMES)
    options = {} if learner is ydf.CartLearner else {"num_trees": 15}
    model = learner(label="y", **options).train(frame.assign(y=y))
    assert_decided_at(open_model(model), frame, model.predict(frame))


@pytest.mark.parametrize("name", ["XGBoost", "LightGBM", "forest", "boosting", "hist"])
def test_treelite(name):
    X, y = make_rows(3)
    trained = MODELS[name]().fit(X, y)
    if name == "XGBoost":
        model = treelite.frontend.from_xgboost(trained.get_booster())
    elif name == "LightGBM":
        model = treelite.frontend.from_lightgbm(trained.booster_)
    else:
        model = treelite.sklearn.import_model(trained)
    assert_decided_at(open_model(model), X, treelite.gtil.predict(model, X)[:, 0, -1])


def run_onnx(model, rows):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, {session.get_inputs()[0].name: rows})[1][:, 1]


@pytest.mark.parametrize("name", ["forest", "tree", "boosting", "steep boosting"])
def test_converted_to_onnx(name):
    X, y = make_rows(4)
    model = to_onnx(MODELS[name]().fit(X, y), X[:1], options={"zipmap": False})
    assert_decided_at(open_model(model), X, run_onnx(model, X))


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("classes", [(0,), (1,), (0, 1)])
def test_onnx_in_float32_and_float64(transform, wide, classes):
    positive = transform == "NONE"
    if positive and len(classes) == 2:
        return  # scores, which are no probabilities
    X = make_rows(5)[0].astype(np.float64 if wide else np.float32)
    model = classifier(1, classes=classes, positive=positive, transform=transform, wide=wide)
    assert_decided_at(open_model(model), X, run_onnx(model, X))


def test_probabilities_that_are_not_known_to_the_last_bit_are_refused():
    ensemble = qwyc.read_model(ensemble_5(0))
    with pytest.raises(qwyc.OptionError, match=r"not known to the last bit.*threshold as a score"):
        ensemble.link.score_at(0.25)


@pytest.mark.parametrize("kind", ["voting", "stacking", "AdaBoost", "bagging"])
def test_base_models_that_are_code_have_no_probabilities(kind):
    X, y = make_rows(6)
    pair = [("a", GaussianNB()), ("b", LogisticRegression())]
    model = {
        "voting": VotingClassifier(pair, voting="soft"),
        "stacking": StackingClassifier(pair),
        "AdaBoost": AdaBoostClassifier(GaussianNB(), n_estimators=3),
        "bagging": BaggingClassifier(GaussianNB(), n_estimators=3),
    }[kind].fit(X, y)
    with pytest.raises(qwyc.OptionError, match="gives no probabilities"):
        qwyc.optimize(model, X, alpha=0.1, threshold=qwyc.Probability(0.3))


@pytest.mark.parametrize("name", ["AdaBoost of trees", "shallow forest", "LightGBM"])
def test_optimize_decides_as_predict_proba(name, tmp_path):
    X, y = make_rows(7)
    model = MODELS[name]().fit(X, y)
    p = model.predict_proba(X)[:, 1]
    for at in distinct(p, 8):
        threshold = qwyc.Probability(float(at))
        fast = qwyc.optimize(model, X, alpha=0, threshold=threshold, progress=False)
        np.testing.assert_array_equal(fast.predict(X) == 1, p >= at)
    fast.save(tmp_path / "m.qwyc")
    again = qwyc.load(tmp_path / "m.qwyc")
    assert again.ensemble.link == fast.ensemble.link
    np.testing.assert_array_equal(again.predict(X) == 1, p >= at)


# ---- shares next to one half -----------------------------------------------------------------


def forest_with_ties():
    """A forest whose leaves have shares of thirds, sixths and tenths, rows, their probabilities, and those
    of the probabilities that are 1/2 but for their last bits. Some rows are decided by those."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (3000, 6)).astype(np.float32)
    model = RandomForestClassifier(12, max_depth=3, n_jobs=1, random_state=0)
    model.fit(X[:200], rng.integers(0, 2, 200))
    for _ in range(100):
        for tree in model.estimators_:
            thirds_to_tenths = [1 / 3, 1 / 6, 0.1, 0.3, 0.7, 0.9, 5 / 6, 2 / 3]
            share = rng.choice(thirds_to_tenths, len(tree.tree_.value))
            tree.tree_.value[:, 0, 1] = share
            tree.tree_.value[:, 0, 0] = 1 - share
        negative, positive = model.predict_proba(X).T
        if ((positive > negative) != (positive > 0.5)).any():
            return model, X, positive, np.unique(positive[np.abs(positive - 0.5) < 1e-12])
    raise AssertionError("no row is decided by its last bits")


def test_next_to_one_half_the_share_decides():
    model, X, p, close = forest_with_ties()
    source = open_model(model)
    wrong = 0
    around = np.concatenate([close, np.nextafter(close, 0), np.nextafter(close, 1), [0.5]])
    for at in np.unique(around):
        ensemble = source.for_probability(float(at)).ensemble
        assert ensemble.base_models.summation == Summation.FLOAT64
        np.testing.assert_array_equal(ensemble.score_full(X), p)
        np.testing.assert_array_equal(ensemble.score_full(X) >= at, p >= at)
        wrong += ((source.ensemble.score_full(X) >= at) != (p >= at)).any()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", qwyc.QwycWarning)
            chosen = qwyc.Probability(float(at))
            fast = qwyc.optimize(model, X, alpha=0, threshold=chosen, progress=False)
        np.testing.assert_array_equal(fast.predict(X) == 1, p >= at)
        assert "equal those" in qwyc.verify(fast, X, model=model).parity
    assert wrong  # the score that decides between the shares would not do


def test_far_from_one_half_nothing_changes():
    X, y = make_rows(8)
    source = open_model(MODELS["forest"]().fit(X, y))
    assert source.for_probability(0.4) is source
    assert source.for_probability(0.5).ensemble.digest != source.ensemble.digest
    boosted = open_model(MODELS["LightGBM"]().fit(X, y))
    assert boosted.for_probability(0.5) is boosted


# ---- links -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["softmax", "mirrored", "approximate"])
def test_files_keep_the_form_of_a_link(form):
    link = Link("logistic", dtype="float32", form=form)
    assert read_link(link.facts()) == link


def test_a_probability_too_small_for_a_double_s_logistic():
    link = Link("logistic")
    at = link.score_at(1e-306)
    assert link.probability(at) >= 1e-306 > link.probability(np.nextafter(at, -np.inf))
    assert link.probability(-1e6) == 0.0
