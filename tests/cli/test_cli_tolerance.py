"""The command line with a tolerance: optimize, predict, verify and inspect; others refuse the file."""

import io
import json

import numpy as np
import pandas as pd
import pytest
import xgboost

import qwyc
from support.commands import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tolerance")
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(6000, 4)), columns=list("abcd"))
    y = 2 * X["a"] + X["b"] * X["c"]
    some = slice(0, 1500)
    options = {"n_estimators": 30, "n_jobs": 1}
    xgboost.XGBRegressor(**options).fit(X[some], y[some]).save_model(path / "values.ubj")
    xgboost.XGBClassifier(**options).fit(X[some], y[some] > 1).save_model(path / "classes.ubj")
    X[1500:4500].to_csv(path / "sample.csv", index=False)
    X[4500:].to_csv(path / "new.csv", index=False)
    return path


@pytest.mark.parametrize(("kind", "tolerance"), [("values", 0.5), ("classes", 0.1)])
def test_files_with_a_tolerance(folder, kind, tolerance):
    made, sample, new = (folder / name for name in (f"{kind}.qwyc", "sample.csv", "new.csv"))
    options = ["--tolerance", tolerance, "--alpha", 0.02, "--evaluation", "quit", "-o", made]
    done = run("optimize", folder / f"{kind}.ubj", sample, *options)
    assert done.returncode == 0, done.stderr
    assert f"off by more than {tolerance}" in done.stdout.decode()
    done = run("predict", made, new)
    assert done.returncode == 0, done.stderr
    found = pd.read_csv(io.BytesIO(done.stdout))
    decided = qwyc.load(made).decide(pd.read_csv(new))
    names = ["value"] if kind == "values" else ["label", "proba_1"]
    assert list(found) == [*names, "steps", "complete"]
    np.testing.assert_allclose(found[names[-1]], decided.score, rtol=1e-12)
    np.testing.assert_array_equal(found["steps"], decided.steps)
    done = run("verify", made, new, "--alpha", 0.1, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["tolerance"] == tolerance
    done = run("inspect", made)
    assert done.returncode == 0
    assert b"other alphas" in done.stdout
    for command in (["report", made], ["bench", made, new]):
        done = run(*command)
        assert done.returncode == 2
        assert b"FILE was made with --tolerance" in done.stderr
    done = run("predict", made, new, "--unseen", "flag")
    assert done.returncode == 2
    assert b"--unseen" in done.stderr
