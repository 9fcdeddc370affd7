"""The examples of serving run as they stand: FastAPI, MLServer, and pipelines in files."""

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import qwyc

SERVING = Path(__file__).parents[2] / "examples" / "serving"


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(5000, 4)), columns=list("abcd"))
    y = np.where(X["a"] + X["b"] * X["c"] > 0.3, "yes", "no")
    model = RandomForestClassifier(n_estimators=20, max_depth=6, random_state=0)
    return model.fit(X[:2000], y[:2000]), X[2000:], y[2000:]


@pytest.mark.slow
def test_fastapi(made, tmp_path, monkeypatch):
    from starlette.testclient import TestClient

    model, X, _ = made
    fast = qwyc.optimize(model, X, alpha=0.02, evaluation="quit", progress=False)
    fast.save(tmp_path / "model.qwyc")
    monkeypatch.setenv("QWYC_FILE", str(tmp_path / "model.qwyc"))
    monkeypatch.setenv("QWYC_RATE", "1")
    spec = importlib.util.spec_from_file_location("app", SERVING / "app.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    client = TestClient(module.app)
    rows = X[:30].to_dict(orient="records")
    labels = [client.post("/predict", json=row).json()["label"] for row in rows]
    assert labels == fast.predict(X[:30]).tolist()
    wrong = client.post("/predict", json={"a": 1.0})
    assert wrong.status_code == 422
    assert "'b'" in wrong.json()["detail"]
    metrics = client.get("/metrics").text
    assert "qwyc_rows_total 30" in metrics
    assert "qwyc_alarm 0" in metrics


MLSERVER_NEEDS = ("mlserver>=1.6", "narwhals", "typer", "rich")


@pytest.mark.slow
def test_mlserver(tmp_path):
    """A server of its own, in an environment of its own: MLServer pins older libraries."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 4)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0.3).astype(int)
    model = xgboost.XGBClassifier(n_estimators=30, max_depth=3, n_jobs=1).fit(X[:1500], y[:1500])
    fast = qwyc.optimize(model, X[1500:], alpha=0.03, evaluation="quit", progress=False)
    folder = tmp_path / "server"
    shutil.copytree(SERVING / "mlserver", folder)
    fast.save(folder / "model.qwyc")
    http, grpc, metrics = (free_port() for _ in range(3))
    ports = {"http_port": http, "grpc_port": grpc, "metrics_port": metrics}
    settings = {"parallel_workers": 0, "host": "127.0.0.1", **ports}
    (folder / "settings.json").write_text(json.dumps(settings))
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", *MLSERVER_NEEDS], check=True)
    library = tmp_path / "library"
    library.mkdir()
    shutil.copytree(Path(qwyc.__file__).parent, library / "qwyc")
    shutil.copy(qwyc._native.__file__, library / "qwyc")
    environment = os.environ | {"PYTHONPATH": f"{library}{os.pathsep}{folder}"}
    log = (tmp_path / "log").open("w+")
    command = [tmp_path / "venv" / "bin" / "mlserver", "start", "."]
    server = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        base = f"http://127.0.0.1:{http}/v2"
        ready = wait_for(f"{base}/models/classifier/ready", server)
        log.seek(0)
        assert ready, log.read()[-3000:]
        tensor = {"name": "rows", "shape": [50, 4], "datatype": "FP32"}
        request = {"inputs": [tensor | {"data": X[1500:1550].reshape(-1).tolist()}]}
        answer = post(f"{base}/models/classifier/infer", request)
        outputs = {output["name"]: output["data"] for output in answer["outputs"]}
        want = fast.decide(X[1500:1550])
        assert outputs["label"] == want.label.tolist()
        assert outputs["steps"] == want.steps.tolist()
        assert outputs["score"] == want.score.tolist()
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            server.kill()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(address, server):
    for _ in range(300):
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            if server.poll() is not None:
                return False
            time.sleep(0.2)
    return False


def post(address, content):
    data, kind = json.dumps(content).encode(), {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(address, data, kind), timeout=60) as answer:
        return json.load(answer)


@pytest.fixture(scope="module")
def pipeline(made):
    _, X, y = made
    forest = RandomForestClassifier(n_estimators=20, max_depth=6, random_state=0)
    quitting = qwyc.EarlyExitClassifier(forest, alpha=0.05, evaluation="quit")
    return make_pipeline(StandardScaler(), quitting).fit(X, y), X


def test_a_whole_pipeline_travels_by_joblib(pipeline, tmp_path):
    fitted, X = pipeline
    joblib.dump(fitted, tmp_path / "pipeline.joblib")
    again = joblib.load(tmp_path / "pipeline.joblib")
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert str(again[-1].certificate_) == str(fitted[-1].certificate_)
    assert again[-1].decide(fitted[:-1].transform(X)).steps.mean() < 20


@pytest.mark.slow
def test_a_whole_pipeline_travels_by_skops(pipeline, tmp_path):
    import skops.io

    fitted, X = pipeline
    skops.io.dump(fitted, tmp_path / "pipeline.skops")
    unknown = skops.io.get_untrusted_types(file=tmp_path / "pipeline.skops")
    assert all(name.startswith(("qwyc.", "sklearn.")) for name in unknown), unknown
    again = skops.io.load(tmp_path / "pipeline.skops", trusted=unknown)
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert str(again[-1].certificate_) == str(fitted[-1].certificate_)
