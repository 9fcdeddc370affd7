"""Proof of parity: an ensemble that differs from its model is refused, with a row and a likely reason."""

from dataclasses import replace

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.naive_bayes import GaussianNB

import qwyc
from forests import changed
from proving import prove_parity
from qwyc import importers
from qwyc.check import parity
from qwyc.model.trees import NodeFlag
from trained import make_data, make_frame

MODELS = {
    "xgboost": xgboost.XGBClassifier(n_estimators=12, max_depth=3),
    "dart": xgboost.XGBClassifier(n_estimators=12, booster="dart", rate_drop=0.3),
    "lightgbm": lightgbm.LGBMClassifier(n_estimators=12, verbose=-1),
    "lightgbm rf": lightgbm.LGBMClassifier(
        n_estimators=12, verbose=-1, boosting_type="rf", subsample=0.5, subsample_freq=1
    ),
    "catboost": catboost.CatBoostClassifier(iterations=12, verbose=0, allow_writing_files=False),
    "forest": RandomForestClassifier(12, random_state=0, n_jobs=2),
    "boosting": GradientBoostingClassifier(n_estimators=12),
    "hist": HistGradientBoostingClassifier(max_iter=12),
    "bagging": BaggingClassifier(n_estimators=12),
    "AdaBoost": AdaBoostClassifier(n_estimators=12),
}


@pytest.fixture(scope="module")
def data():
    return make_data(missing=0.0)


@pytest.mark.parametrize("name", MODELS)
def test_a_score_that_is_off_is_refused_even_where_decisions_are_not(name, data):
    X, y = data
    model = MODELS[name].fit(X, y)
    ensemble = qwyc.read_model(model)
    full = ensemble.score_full(X)
    assert prove_parity(model, X, ensemble, full, ensemble.threshold)
    off = full.copy()
    far = int(np.argmax(np.abs(full - ensemble.threshold)))
    off[far] += 1e-6
    with pytest.raises(qwyc.ParityError, match=rf"row {far} of X.*1 of 600 rows differ, 0 of them"):
        prove_parity(model, X, ensemble, off, ensemble.threshold)


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "catboost", "forest", "hist"])
def test_what_is_masked_is_missing(name, data):
    X, y = data
    hidden = np.ma.masked_array(X, mask=np.random.default_rng(0).random(X.shape) < 0.2)
    model = MODELS[name].fit(X, y)
    ensemble = qwyc.read_model(model)
    full = ensemble.score_full(hidden)
    assert prove_parity(model, hidden, ensemble, full, ensemble.threshold)


def test_no_model_no_proof(data, tmp_path):
    X, _ = data
    ensemble = qwyc.read_model(models := [lambda rows: rows[:, 0]])
    assert not prove_parity(models, X, ensemble, X[:, 0], 0.0)


def test_the_message_has_row_scores_and_decisions(data):
    X, y = data
    model = xgboost.XGBClassifier(n_estimators=12).fit(X, np.where(y, "yes", "no") == "yes")
    ensemble = qwyc.read_model(model)
    full = ensemble.score_full(X)
    row = int(np.argmin(full))
    wrong = full.copy()
    wrong[row] = 5.0
    with pytest.raises(qwyc.ParityError) as caught:
        prove_parity(model, X, ensemble, wrong, ensemble.threshold)
    text = str(caught.value)
    for words in (
        f"row {row} of X",
        f"(score {float(full[row])})",
        "(score 5.0)",
        "1 of them in their decision",
    ):
        assert words in text


def reason(model, X, ensemble):
    full = ensemble.score_full(X)
    with pytest.raises(qwyc.ParityError) as caught:
        prove_parity(model, X, ensemble, full, ensemble.threshold)
    return str(caught.value).partition("Likely reason: ")[2]


def test_likely_reasons(data):
    X, y = data
    model = xgboost.XGBClassifier(n_estimators=12, max_depth=3).fit(X, y)
    ensemble = qwyc.read_model(model)
    few = xgboost.XGBClassifier(n_estimators=5, max_depth=3).fit(X, y)
    assert "first 5 of 12 trees" in reason(few, X, ensemble)
    shifted = changed(ensemble, base=ensemble.base_models.start + 0.5)
    assert "adds -0.5 to every score" in reason(model, X, shifted)
    slightly = changed(ensemble, base=ensemble.base_models.start + 1e-6)
    assert "another order or precision" in reason(model, X, slightly)
    holes = make_data()[0]
    as_read = ensemble.base_models.trees
    trees = replace(as_read, flags=as_read.flags ^ 1)
    assert "rows have missing values (columns " in reason(
        model, holes, changed(ensemble, trees=trees)
    )
    assert "a rule of its own" in reason(model, X, replace(ensemble, threshold=1.0))
    mirrored = replace(as_read, left=as_read.right, right=as_read.left)
    assert "not known" in reason(model, X, changed(ensemble, trees=mirrored))
    frame, labels = make_frame()
    model = lightgbm.LGBMClassifier(n_estimators=12, verbose=-1).fit(frame, labels)
    ensemble = qwyc.read_model(model)
    as_read = ensemble.base_models.trees
    inverted = replace(as_read, flags=as_read.flags ^ NodeFlag.IN_SET_LEFT)
    text = reason(model, frame, changed(ensemble, trees=inverted))
    assert "category codes (columns 'the_colour'" in text


def test_base_models_are_compared_by_their_decisions(data):
    X, y = data
    model = VotingClassifier([("a", GaussianNB()), ("b", GaussianNB())]).fit(X, y)
    ensemble = qwyc.read_model(model)
    full = ensemble.score_full(X)
    with pytest.raises(qwyc.ParityError, match="do not add up"):
        prove_parity(model, X, ensemble, -full, ensemble.threshold)


# ---- ties --------------------------------------------------------------------------------------


def compare_with_ties(ours, theirs, tolerance, threshold=0.5, ties=True):
    """Prove parity with a model that has these scores and decides by them."""
    ensemble = replace(qwyc.read_model([lambda rows: rows[:, 0]]), threshold=threshold)
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    answer = importers.Predictions((theirs >= threshold).astype(int), theirs, tolerance, ties=ties)
    source = importers.OpenModel(replace(ensemble, classes=np.array([0, 1])), lambda sample: answer)
    sample = source.ensemble.sample(np.zeros((len(ours), 1)))
    scores = qwyc.ScoreMatrix(np.empty((len(ours), 0)), 0.0, threshold, ours)
    return parity.prove_parity(source, sample, scores)


def test_rows_that_rounding_decides_are_a_warning():
    theirs = [0.2, 0.5, 0.8, 0.5, 0.5 - 4e-6]
    ours = [0.2, 0.5 - 2e-6, 0.8, 0.5, 0.5 + 2e-6]
    with pytest.warns(
        qwyc.QwycWarning, match=r"2 of 5 rows have .* the threshold, 0\.5,.*\(row 1, 4 of X\)"
    ):
        assert compare_with_ties(ours, theirs, 1e-5)
    with pytest.warns(qwyc.QwycWarning, match=r"1 of 2 rows has .*row 1 of X"):
        assert compare_with_ties(ours[:2], theirs[:2], 1e-5)


def test_rows_past_the_tolerance_are_refused():
    near, far = 0.5 - 5e-6, 0.5 - 2e-5
    with pytest.raises(qwyc.ParityError, match="1 of 1 rows differ, 1 of them in their decision"):
        compare_with_ties([near], [0.5], 1e-6)
    with pytest.raises(qwyc.ParityError, match="1 of them in their decision"):
        compare_with_ties([far], [0.5], 1e-5)
    with pytest.raises(qwyc.ParityError, match="0 of them in their decision"):
        compare_with_ties([0.7], [0.7 + 2e-5], 1e-5)


def test_what_a_library_adds_up_may_be_larger_than_its_score():
    ours, theirs = np.array([3.0, 700.0]), np.array([3.0 + 1e-3, 700.0 + 1e-3])
    answer = importers.Predictions(np.array([1, 1]), theirs, 1e-5, absolute=2e-3)
    source = importers.OpenModel(
        replace(qwyc.read_model([len]), classes=np.array([0, 1])), lambda sample: answer
    )
    sample = source.ensemble.sample(np.zeros((2, 1)))
    scores = qwyc.ScoreMatrix(np.empty((2, 0)), 0.0, 0.0, ours)
    assert parity.prove_parity(source, sample, scores)
    further = replace(scores, full=ours - np.array([0.0, 0.1]))  # 0.1 is more than 1e-5 of 700
    with pytest.raises(qwyc.ParityError, match="1 of 2 rows differ"):
        parity.prove_parity(source, sample, further)


def test_unless_a_library_says_so_every_decision_counts():
    for tolerance in (0.0, 1e-12):
        with pytest.raises(qwyc.ParityError, match="1 of them in their decision"):
            compare_with_ties([np.nextafter(0.5, 0)], [0.5], tolerance, ties=False)


# ---- verify with a model ---------------------------------------------------------------------


def saved_models(folder, X, y):
    for name in ("xgboost", "dart", "lightgbm", "catboost"):
        model = MODELS[name].fit(X, y)
        path = folder / f"{name}.model"
        if name == "lightgbm":
            model.booster_.save_model(str(path))
        elif name == "catboost":
            model.save_model(str(path))
        else:
            path = folder / f"{name}.ubj"
            model.save_model(str(path))
        yield name, model, path


def test_verify_compares_with_the_model_s_file(data, tmp_path):
    X, y = data
    for _, model, path in saved_models(tmp_path, X, y):
        fast = qwyc.optimize(model, X, alpha=0)
        found = qwyc.verify(fast, X, model=path)
        assert "All 600 full decisions and scores equal" in found.parity
        assert "itself gives them" in str(found)
        assert qwyc.verify(fast, X, model=model).parity is not None


def test_verify_refuses_another_model(data, tmp_path):
    X, y = data
    (_, model, _), (_, _, other), *_ = saved_models(tmp_path, X, y)
    fast = qwyc.optimize(model, X, alpha=0)
    with pytest.raises(qwyc.ParityError, match=r"was not made from .*dart"):
        qwyc.verify(fast, X, model=other)
    with pytest.raises(qwyc.ModelError, match="cannot read"):
        qwyc.verify(fast, X, model=tmp_path / "none.json")


def test_verify_refuses_what_has_no_scores_to_compare(data):
    X, y = data
    fast = qwyc.optimize(MODELS["forest"].fit(X, y), X, alpha=0)
    voting = VotingClassifier([("a", GaussianNB()), ("b", GaussianNB())]).fit(X, y)
    for other in (voting, [lambda rows: rows[:, 0]]):
        with pytest.raises(qwyc.ModelError, match="Python callables cannot be compared with"):
            qwyc.verify(fast, X, model=other)


def test_verify_without_the_library_reads_the_file_again(data, tmp_path, monkeypatch):
    X, y = data
    name, model, path = next(iter(saved_models(tmp_path, X, y)))
    fast = qwyc.optimize(model, X, alpha=0)

    def absent(path):
        raise ImportError(name=name)

    monkeypatch.setattr(importers.xgboost, "load", absent)
    assert "xgboost is not installed" in qwyc.verify(fast, X, model=path).parity


def test_rows_that_the_model_itself_fails_on(data):
    X, y = data
    model = xgboost.XGBClassifier(n_estimators=3, missing=None).fit(X, y)  # trains, cannot predict
    with pytest.raises(qwyc.InputError, match="own predict fails on X") as caught:
        qwyc.optimize(model, X, alpha=0.05)
    assert "Stack trace" not in str(caught.value)
