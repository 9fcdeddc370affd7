"""What qwyc makes, in MLflow: logged in a local store, loaded, and served over HTTP."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import xgboost

import qwyc

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory):
    import os

    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    import mlflow

    mlflow.set_tracking_uri(f"file://{tmp_path_factory.mktemp('mlflow')}/runs")
    return mlflow


@pytest.fixture(scope="module")
def trained():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(5000, 4)), columns=list("abcd"))
    X["count"] = rng.integers(0, 9, len(X))  # int64, which MLflow does not turn into a double
    y = (X.sum(axis=1) > 4).astype(int)
    model = xgboost.XGBClassifier(n_estimators=30, max_depth=3, n_jobs=1).fit(X[:2000], y[:2000])
    return model, X[2000:]


@pytest.fixture(scope="module")
def fast(trained):
    model, X = trained
    return qwyc.optimize(model, X, alpha=0.03, evaluation="quit", progress=False)


def test_a_logged_classifier(mlflow, trained, fast):
    import qwyc.mlflow

    _, X = trained
    with mlflow.start_run() as run:
        logged = qwyc.mlflow.log_model(fast, "fraud")
    metrics = mlflow.get_run(run.info.run_id).data.metrics
    assert metrics["qwyc_alpha"] == 0.03
    assert metrics["qwyc_rows"] == fast.certificate.rows
    assert metrics["qwyc_mean_base_models"] == fast.certificate.mean_models
    kept = mlflow.artifacts.load_dict(f"runs:/{run.info.run_id}/certificate.json")
    assert kept["certificate"]["sentence"] == str(fast.certificate)
    again = qwyc.mlflow.load_model(logged.model_uri)
    np.testing.assert_array_equal(again.decide(X).score, fast.decide(X).score)
    served = mlflow.pyfunc.load_model(logged.model_uri)
    assert served.metadata.signature.inputs.input_names() == list(X.columns)
    np.testing.assert_array_equal(served.predict(X), fast.predict(X))
    decided = served.predict(X, params={"output": "decisions"})
    np.testing.assert_array_equal(decided["steps"], fast.decide(X).steps)
    with pytest.raises(Exception, match="output is one of label, decisions, proba"):
        served.predict(X, params={"output": "score"})


def test_it_is_served_over_http(mlflow, trained, fast, tmp_path):
    from mlflow.pyfunc.scoring_server import init
    from starlette.testclient import TestClient

    import qwyc.mlflow

    _, X = trained
    qwyc.mlflow.save_model(fast, tmp_path / "model", input_example=X[:5])
    served = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    client = TestClient(init(served))
    rows = {"dataframe_split": X[:50].to_dict(orient="split")}
    answer = client.post("/invocations", json=rows)
    assert answer.status_code == 200, answer.text
    assert answer.json()["predictions"] == fast.predict(X[:50]).tolist()
    assert client.post("/invocations", json={"dataframe_records": [{"a": 1}]}).status_code == 400


def test_predictors_and_approximations(mlflow, trained, tmp_path):
    import qwyc.mlflow

    model, X = trained
    full = qwyc.read_model(model)
    near = qwyc.optimize(model, X, alpha=0.05, tolerance=0.1, progress=False)
    for name, made in (("full", full), ("near", near)):
        qwyc.mlflow.save_model(made, tmp_path / name)
        served = mlflow.pyfunc.load_model(str(tmp_path / name))
        found = served.predict(X, params={"output": "proba"})
        np.testing.assert_array_equal(found, made.predict_proba(X))
        assert type(qwyc.mlflow.load_model(str(tmp_path / name))) is type(made)


def test_other_objects_are_refused(mlflow, trained, tmp_path):
    import qwyc.mlflow

    with pytest.raises(qwyc.OptionError, match=r"got XGBClassifier: make one with qwyc\.optimize"):
        qwyc.mlflow.save_model(trained[0], tmp_path / "model")
    (tmp_path / "empty").mkdir()
    with pytest.raises(qwyc.OptionError, match="holds no qwyc model"):
        qwyc.mlflow.load_model(str(tmp_path / "empty"))


def test_qwyc_does_not_import_it():
    code = "import sys, qwyc, json; print(json.dumps('mlflow' in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) is False
