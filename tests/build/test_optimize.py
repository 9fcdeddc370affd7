"""The whole path on UCI Adult, for every kind of model: read, optimise, decide, save, load."""

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xgboost
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)

import qwyc
from qwyc.model import native

FIT_ROWS = 4000
XGB = {"n_estimators": 60, "max_depth": 5, "n_jobs": 2}
LGB = {"n_estimators": 60, "verbose": -1, "n_jobs": 2}


def xgboost_frame(data):
    frame, y, _, _ = data["frames"]
    return xgboost.XGBClassifier(**XGB, enable_categorical=True).fit(frame, y), "frames"


def xgboost_arrays(data):
    codes, y, _, _ = data["codes"]
    return xgboost.XGBClassifier(**XGB).fit(codes, y), "codes"


def xgboost_booster(data):
    codes, y, _, _ = data["codes"]
    params = {"objective": "binary:logistic", "max_depth": 5}
    return xgboost.train(params, xgboost.DMatrix(codes, y), 60), "codes"


def lightgbm_frame(data):
    frame, y, _, _ = data["frames"]
    return lightgbm.LGBMClassifier(**LGB).fit(frame, np.where(y, "rich", "poor")), "frames"


def lightgbm_booster(data):
    frame, y, _, _ = data["frames"]
    params = {"objective": "binary", "verbose": -1, "num_threads": 2}
    return lightgbm.train(params, lightgbm.Dataset(frame, y), 60), "frames"


def hist_gradient_boosting(data):
    frame, y, _, _ = data["frames"]
    model = HistGradientBoostingClassifier(max_iter=60, categorical_features="from_dtype")
    return model.fit(frame, y), "frames"


def random_forest(data):
    codes, y, _, _ = data["codes"]
    return RandomForestClassifier(40, max_depth=12, random_state=0).fit(codes, y), "codes"


def extra_trees(data):
    codes, y, _, _ = data["filled"]
    return ExtraTreesClassifier(40, min_samples_leaf=3, random_state=0).fit(codes, y == 1), "filled"


def gradient_boosting(data):
    codes, y, _, _ = data["filled"]
    model = GradientBoostingClassifier(n_estimators=40, max_depth=4, subsample=0.2, random_state=0)
    return model.fit(codes, y), "filled"


KINDS = [
    xgboost_frame,
    xgboost_arrays,
    xgboost_booster,
    lightgbm_frame,
    lightgbm_booster,
    hist_gradient_boosting,
    random_forest,
    extra_trees,
    gradient_boosting,
]


@pytest.fixture(scope="module")
def data(adult, adult_codes):
    X, y, X_test, y_test = adult_codes
    filled = (np.nan_to_num(X, nan=-1), y, np.nan_to_num(X_test, nan=-1), y_test)
    return {"frames": adult, "codes": adult_codes, "filled": filled}


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.__name__)
def optimised(request, data):
    model, form = request.param(data)
    X, _, X_test, _ = data[form]
    fast = qwyc.optimize(model, X[:FIT_ROWS], alpha=0.01)
    return model, fast, X[:FIT_ROWS], X_test


def own_labels(model, X):
    if isinstance(model, xgboost.Booster):
        return (model.inplace_predict(X) > 0.5).astype(int)
    if isinstance(model, lightgbm.Booster):
        return (model.predict(X) > 0.5).astype(int)
    return model.predict(X)


def test_in_full_every_row_is_decided_as_the_source_decides_it(optimised):
    model, fast, _, X_test = optimised
    full = fast.score_full(X_test) >= fast.ensemble.threshold
    np.testing.assert_array_equal(
        fast.ensemble.classes[full.astype(int)], own_labels(model, X_test)
    )


def test_quitting_is_certified_and_saves_work(optimised):
    model, fast, _, X_test = optimised
    certificate = fast.certificate
    assert (certificate.how, certificate.confidence, certificate.alpha) == ("held-out", 0.95, 0.01)
    assert certificate.upper_bound <= 0.01
    assert (certificate.rows, certificate.fit_rows) == (2000, 2000)
    decisions = fast.decide(X_test)
    assert decisions.steps.mean() < 0.8 * fast.policy.n_models
    assert np.mean(decisions.label != own_labels(model, X_test)) < 0.02
    np.testing.assert_array_equal(decisions.label, fast.predict(X_test))
    full = fast.score_full(X_test)
    np.testing.assert_array_equal(decisions.score[decisions.complete], full[decisions.complete])


def test_the_published_procedure_keeps_alpha_in_the_sample(data):
    model, _ = xgboost_arrays(data)
    X = data["codes"][0][:FIT_ROWS]
    for method in ("joint", "natural"):
        fast = qwyc.optimize(model, X, alpha=0.005, method=method)
        assert np.mean(fast.predict(X) != model.predict(X)) <= 0.005
        assert fast.certificate.observed <= 0.005
        assert (fast.certificate.how, fast.certificate.confidence) == ("in-sample", None)
        with pytest.raises(qwyc.OptionError, match="only one policy"):
            fast.at(alpha=0.01)


def test_labels_have_the_sources_type(optimised):
    model, fast, X, _ = optimised
    assert fast.predict(X).dtype == own_labels(model, X).dtype


def test_saved_and_loaded_it_decides_the_same(optimised, tmp_path):
    _, fast, _, X_test = optimised
    fast.save(tmp_path / "m.qwyc")
    again = qwyc.load(tmp_path / "m.qwyc")
    np.testing.assert_array_equal(again.predict(X_test), fast.predict(X_test))
    assert again.certificate == fast.certificate
    bolder, bolder_again = fast.at(alpha=0.05), again.at(alpha=0.05)
    np.testing.assert_array_equal(bolder.policy.lower, bolder_again.policy.lower)
    assert bolder.certificate == bolder_again.certificate
    assert bolder.certificate.mean_models <= fast.certificate.mean_models
    fast.save(tmp_path / "twice.qwyc")
    assert (tmp_path / "twice.qwyc").read_bytes() == (tmp_path / "m.qwyc").read_bytes()


def test_other_tables_and_arrays_give_the_same_decisions(optimised):
    _, fast, _, X_test = optimised
    expected = fast.decide(X_test).score
    if isinstance(X_test, pd.DataFrame):
        shuffled = X_test[X_test.columns[::-1]].assign(extra="ignored")
        forms = [pl.from_pandas(X_test), pa.Table.from_pandas(X_test), shuffled]
    else:
        padded = np.zeros((2 * len(X_test), X_test.shape[1] + 3), dtype=np.float64)
        padded[::2, 1:-2] = X_test
        forms = [X_test.astype(np.float64), np.asfortranarray(X_test), padded[::2, 1:-2]]
    for form in forms:
        np.testing.assert_array_equal(fast.decide(form).score, expected)
        assert len(fast.predict(form[:0])) == 0


def test_the_filter_gives_accepted_rows_their_full_score(data):
    model, _ = xgboost_arrays(data)
    X, _, X_test, _ = data["codes"]
    costs = np.ones(qwyc.read_model(model).n_models)  # given: whether it pays in time is not asked
    fast = qwyc.optimize(model, X[:FIT_ROWS], alpha=0.01, quit="negative", costs=costs)
    decisions, full = fast.decide(X_test), fast.score_full(X_test)
    assert fast.policy.quit == "negative"
    assert decisions.complete[decisions.label == 1].all()
    assert not decisions.complete[decisions.label == 0].all()
    np.testing.assert_array_equal(decisions.score[decisions.label == 1], full[decisions.label == 1])


def test_a_threshold_of_ones_own(data):
    model, _ = xgboost_arrays(data)
    X, _, _, _ = data["codes"]
    fast = qwyc.optimize(model, X[:FIT_ROWS], alpha=0.0, threshold=1.5)
    margin = model.predict(X[:FIT_ROWS], output_margin=True)
    np.testing.assert_array_equal(fast.predict(X[:FIT_ROWS]), margin >= 1.5)


def test_the_same_inputs_give_the_same_bytes_on_any_number_of_threads(data, tmp_path):
    model, _ = xgboost_arrays(data)
    X = data["codes"][0][:FIT_ROWS]
    contents = set()
    for threads in (1, 2, 3):
        qwyc.optimize(model, X, alpha=0.01, threads=threads).save(tmp_path / "m.qwyc")
        contents.add((tmp_path / "m.qwyc").read_bytes())
    assert len(contents) == 1


def test_files_and_live_models_are_read_alike(data, tmp_path):
    model, _ = xgboost_frame(data)
    for name in ("m.json", "m.ubj"):
        model.save_model(tmp_path / name)
        assert qwyc.read_model(tmp_path / name).digest == qwyc.read_model(model).digest
    booster, _ = lightgbm_booster(data)
    booster.save_model(tmp_path / "m.txt")
    assert qwyc.read_model(str(tmp_path / "m.txt")).digest == qwyc.read_model(booster).digest


def test_a_model_that_does_not_decide_as_read_is_refused(toy):
    X, y = toy

    class Contrary(xgboost.XGBClassifier):
        def predict(self, X, **options):
            labels = super().predict(X, **options)
            labels[7] = 1 - labels[7]
            return labels

    model = Contrary(n_estimators=5).fit(X, y)
    with pytest.raises(qwyc.ParityError, match=r"row 7 of X.*1 of 600 rows differ"):
        qwyc.optimize(model, X, alpha=0.01)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"alpha": 2}, qwyc.OptionError, "alpha is a share"),
        ({"alpha": 0.01, "confidence": 95}, qwyc.OptionError, "confidence is a probability"),
        ({"alpha": 0.01, "confidence": "high"}, qwyc.OptionError, "confidence must be a number"),
        ({"alpha": {"negative": 0.1}}, qwyc.OptionError, "needs both"),
        ({"alpha": {"negative": 0.1, "positive": 0}}, qwyc.OptionError, "above 0 for both"),
        (
            {"alpha": {"negative": 0.1, "positive": 0.1}, "method": "joint"},
            qwyc.OptionError,
            "needs method='auto'",
        ),
        ({"alpha": 0.1, "groups": [1, 2]}, qwyc.OptionError, "600 values, one per row"),
        (
            {"alpha": 0.1, "groups": [1], "method": "joint"},
            qwyc.OptionError,
            "groups can only be used with",
        ),
        ({"alpha": 0.01, "method": "magic"}, qwyc.OptionError, "method must be one of 'auto'"),
        ({"alpha": 0.01, "quit": "late"}, qwyc.OptionError, "quit must be one of"),
        ({"alpha": 0.01, "costs": [1]}, qwyc.OptionError, "one per base model"),
        ({"alpha": 0.01, "threshold": "half"}, qwyc.OptionError, "threshold must be"),
        ({"alpha": 0.01, "threshold": 10**400}, qwyc.OptionError, "threshold must be a finite"),
        ({"alpha": np.complex128(0.01)}, qwyc.OptionError, "alpha must be a number"),
        ({"alpha": 0.01, "confidence": np.complex64(0.9)}, qwyc.OptionError, "confidence must be"),
    ],
)
def test_wrong_options(toy, options, error, message):
    X, y = toy
    model = xgboost.XGBClassifier(n_estimators=5).fit(X, y)
    with pytest.raises(error, match=message):
        qwyc.optimize(model, X, **options)


def test_wrong_rows(toy):
    X, y = toy
    model = xgboost.XGBClassifier(n_estimators=5).fit(X, y)
    with pytest.raises(qwyc.InputError, match="no rows"):
        qwyc.optimize(model, X[:0], alpha=0.01)
    fast = qwyc.optimize(model, X, alpha=0.05)
    with pytest.raises(qwyc.InputError, match=r"5 columns.* 6"):
        fast.predict(X[:, :5])
    assert fast.predict(np.full_like(X, np.nan)).shape == (600,)


def test_wrong_models(tmp_path):
    with pytest.raises(qwyc.ModelError, match="No such file"):
        qwyc.read_model(tmp_path / "none.json")
    (tmp_path / "notes.txt").write_text("dear diary")
    with pytest.raises(qwyc.ModelError, match="not a model file") as caught:
        qwyc.read_model(tmp_path / "notes.txt")
    assert "XGBoost (.json, .ubj)" in str(caught.value)
    assert "Classifier" not in str(caught.value)  # classes of Python are no help with a file
    (tmp_path / "m.pkl").write_bytes(b"\x80\x04.")
    with pytest.raises(qwyc.ModelError, match="pickle"):
        qwyc.read_model(tmp_path / "m.pkl")
    with pytest.raises(qwyc.ModelError, match=r"builtins\.dict; supported are"):
        qwyc.read_model({})
    with pytest.raises(qwyc.ModelError, match="list of base models is empty"):
        qwyc.optimize([], np.zeros((5, 2)), alpha=0.01)
    with pytest.raises(qwyc.OptionError, match="base model 1 cannot be called"):
        qwyc.optimize([len, 3], np.zeros((5, 2)), alpha=0.01)


@pytest.mark.parametrize("what", ["trees", "callables"])
def test_every_stage_reports_how_far_it_is(toy, monkeypatch, what):
    X, y = toy
    model = xgboost.XGBClassifier(n_estimators=5).fit(X, y)
    if what == "callables":
        model = [lambda rows, j=j: rows[:, j] for j in range(5)]
    monkeypatch.setattr(native, "BLOCK", 500)  # 100 rows of 5 trees
    seen = {}
    fast = qwyc.optimize(
        model,
        X,
        alpha=0.05,
        progress=lambda what, done, of: seen.setdefault(what, []).append((done, of)),
    )
    assert [name for name in seen if name.startswith(("Eval", "Find", "Cert"))] == [
        "Evaluating every base model",
        "Finding the order",
        "Certifying",
    ]
    for name in ("Evaluating every base model", "Fitting thresholds", "Certifying"):
        done, of = zip(*seen[name], strict=True)
        assert (done[0], done[-1]) == (0, of[0])
        assert sorted(done) == list(done)
        assert len(done) > 5
        assert set(of) == {of[0]}
    if what == "trees":
        whole = qwyc.read_model(model)
        monkeypatch.undo()
        np.testing.assert_array_equal(fast.score_full(X), whole.scores(X).full)


def test_a_classifier_introduces_itself(toy, tmp_path):
    X, y = toy
    model = xgboost.XGBClassifier(n_estimators=20).fit(X, y)
    new = np.random.default_rng(1).normal(size=X.shape).astype(np.float32)
    fast = qwyc.optimize(model, new, alpha=0.05)
    text = str(fast)
    assert len(text.splitlines()) == 5
    for words in ("20 trees", "xgboost", "6 features", "base models per row", "95% confidence"):
        assert words in text
    fast.save(tmp_path / "m.qwyc")
    with pytest.raises(qwyc.ModelError, match=r"qwyc\.load"):
        qwyc.read_model(tmp_path / "m.qwyc")
