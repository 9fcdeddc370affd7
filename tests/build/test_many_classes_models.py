"""Trained models of more than two classes, from the model to its file and back."""

import json

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

import qwyc
from commands import run

X, Y = make_classification(
    14_000, 12, n_informative=8, n_classes=4, n_clusters_per_class=1, random_state=0
)
X, LABELS = X.astype(np.float32), np.array(["ant", "bee", "cat", "dog"])[Y]
TRAIN, SAMPLE, NEW = slice(0, 3000), slice(3000, 8000), slice(8000, 14_000)

MODELS = {
    "xgboost": (xgboost.XGBClassifier(n_estimators=25, max_depth=4, n_jobs=1), Y),
    "lightgbm": (lightgbm.LGBMClassifier(n_estimators=25, verbose=-1, n_jobs=1), LABELS),
    "one against the rest": (
        lightgbm.LGBMClassifier(n_estimators=25, objective="multiclassova", verbose=-1, n_jobs=1),
        LABELS,
    ),
    "forest": (RandomForestClassifier(60, max_depth=8, n_jobs=1, random_state=0), LABELS),
    "histograms": (HistGradientBoostingClassifier(max_iter=25, random_state=0), LABELS),
}


@pytest.fixture(scope="module", params=MODELS)
def made(request):
    model, labels = MODELS[request.param]
    model.fit(X[TRAIN], labels[TRAIN])
    fast = qwyc.optimize(model, X[SAMPLE], alpha=0.02, evaluation="quit")
    return fast, model


def test_rows_quit_and_decide_like_the_model(made):
    fast, model = made
    own = model.predict(X[NEW])
    decided = fast.decide(X[NEW])
    assert np.mean(decided.label != own) <= 0.02
    assert decided.label.dtype == own.dtype
    assert decided.steps.mean() < 0.8 * fast.policy.n_models
    np.testing.assert_array_equal(fast.full().predict(X[NEW]), own)
    np.testing.assert_array_equal(fast.full().decide(X[NEW]).score, fast.score_full(X[NEW]))


def test_verify_compares_with_the_model(made):
    fast, model = made
    found = qwyc.verify(fast, X[NEW], alpha=0.1, model=model)
    assert found.passed
    assert "All 6,000 full decisions and scores equal those of" in found.parity


def test_the_file_decides_the_same(made, tmp_path):
    fast, _ = made
    fast.save(tmp_path / "model.qwyc")
    again = qwyc.load(tmp_path / "model.qwyc")
    a, b = fast.decide(X[NEW]), again.decide(X[NEW])
    for name in ("label", "steps", "score", "complete"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_zero_is_proven_or_refused(made):
    fast, model = made
    if fast.ensemble.base_models.ties.kind == "sigmoid":
        with pytest.raises(qwyc.OptionError, match="cannot be proven for this model"):
            qwyc.optimize(model, alpha=0)
        return
    proven = qwyc.optimize(model, alpha=0, evaluation="quit")
    np.testing.assert_array_equal(proven.predict(X), model.predict(X))
    assert proven.decide(X).steps.mean() < proven.policy.n_models


def test_commands_from_the_model_file_on(tmp_path):
    model = xgboost.XGBClassifier(n_estimators=20, max_depth=3, n_jobs=1).fit(X[TRAIN], Y[TRAIN])
    model.save_model(tmp_path / "model.json")
    header = ",".join(f"f{j}" for j in range(X.shape[1]))
    for name, rows in (("sample", SAMPLE), ("new", NEW)):
        np.savetxt(tmp_path / f"{name}.csv", X[rows], delimiter=",", header=header, comments="")
    arguments = ("model.json", "sample.csv", "-o", "m.qwyc", "--alpha", "0.02")
    done = run("optimize", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    check = ("m.qwyc", "new.csv", "--alpha", "0.1", "--model", "model.json", "--json")
    done = run("verify", *check, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "full decisions and scores equal those of" in json.loads(done.stdout)["parity"]
    done = run(
        "bench", "m.qwyc", "new.csv", "--model", "model.json", "--seconds", "0.01", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "XGBoost" in done.stdout.decode()
