"""Files that the user has no permission to read or write. Root drops its capabilities first."""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xgboost

import qwyc

CHILD = """
import json, os, sys
from commands import run
os.chdir(sys.argv[1])
for command in json.loads(sys.argv[2]):
    done = run(*command)
    print(json.dumps([done.returncode, done.stdout.decode(), done.stderr.decode()]))
"""
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2  # as in linux/prctl.h


def drop_capabilities():
    """In a child process: make the permissions of files hold for root too."""
    if os.geteuid() == 0:
        for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
            assert ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0


COMMANDS = [
    (["predict", "m.qwyc", "secret.csv"], "secret.csv"),
    (["predict", "m.qwyc", "secret.parquet"], "secret.parquet"),
    (["predict", "m.qwyc", "closed/rows.csv"], "cannot read closed/rows.csv: Permission denied"),
    (["predict", "secret.qwyc", "rows.csv"], "secret.qwyc"),
    (["predict", "m.qwyc", "rows.csv", "-o", "locked/out.csv"], "permission to write there"),
    (["predict", "m.qwyc", "rows.csv", "-o", "locked/old.csv"], "permission to write there"),
    (["predict", "m.qwyc", "rows.csv", "-o", "closed/out.csv"], "cannot write closed/out.csv: "),
    (["optimize", "secret.json", "rows.csv", "-o", "/dev/shm/q"], "secret.json"),
    (["optimize", "model.json", "secret.csv", "-o", "/dev/shm/q"], "secret.csv"),
    (["optimize", "model.json", "rows.csv", "-o", "locked/q.qwyc"], "permission to write there"),
    (
        ["optimize", "model.json", "rows.csv", "--costs", "secret.csv", "-o", "/dev/shm/q"],
        "secret.csv",
    ),
    (["verify", "secret.qwyc", "rows.csv"], "secret.qwyc"),
    (["verify", "m.qwyc", "secret.csv"], "secret.csv"),
    (["verify", "m.qwyc", "rows.csv", "--model", "secret.json"], "secret.json"),
    (["inspect", "secret.qwyc"], "secret.qwyc"),
    (["inspect", "closed/m.qwyc"], "cannot read closed/m.qwyc: Permission denied"),
    (["bench", "m.qwyc", "secret.csv"], "secret.csv"),
    (["bench", "m.qwyc", "rows.csv", "--model", "secret.json"], "secret.json"),
    (["demo", "-o", "locked/demo.qwyc"], "permission to write there"),
    (["demo", "-o", "/dev/shm/q", "--picture", "locked/demo.png"], "permission to write there"),
    (["reproduce", "adult", "-o", "locked/run"], "no right to write there"),
    (["reproduce", "adult", "-o", "closed/run"], "cannot write into closed/run"),
]


@pytest.fixture(scope="module")
def results():
    """Exit code, standard output and standard error of each command, by its arguments."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1500, 2)), columns=["a", "b"])
    model = xgboost.XGBClassifier(n_estimators=5).fit(X[:500], X["a"][:500] > 0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("secret.qwyc", "m.qwyc"):
            qwyc.optimize(model, X[500:], alpha=0.05, progress=False).save(folder / part)
        for part in ("secret.json", "model.json"):
            model.save_model(folder / part)
        for part in ("secret.csv", "rows.csv"):
            X.to_csv(folder / part, index=False)
        X.to_parquet(folder / "secret.parquet")
        (folder / "locked").mkdir()
        (folder / "locked" / "old.csv").write_text("old")
        (folder / "closed").mkdir()
        for path in folder.iterdir():
            path.chmod(0o000 if path.name.startswith("secret") else 0o755)
        (folder / "locked" / "old.csv").chmod(0o444)
        (folder / "locked").chmod(0o555)
        (folder / "closed").chmod(0o000)
        folder.chmod(0o755)
        commands = json.dumps([command for command, _ in COMMANDS])
        done = subprocess.run(
            [sys.executable, "-c", CHILD, name, commands],
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1] / "support")},
            capture_output=True,
            text=True,
            preexec_fn=drop_capabilities,
        )
        assert done.returncode == 0, done.stderr
        assert (folder / "locked" / "old.csv").read_text() == "old"
        (folder / "closed").chmod(0o755)
        (folder / "locked").chmod(0o755)
        assert os.listdir(folder / "closed") == []
        assert os.listdir(folder / "locked") == ["old.csv"]
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {" ".join(c): line for (c, _), line in zip(COMMANDS, lines, strict=True)}


@pytest.mark.parametrize(
    ("command", "message"), COMMANDS, ids=[" ".join(command) for command, _ in COMMANDS]
)
def test_one_line_and_exit_code_2(results, command, message):
    code, out, error = results[" ".join(command)]
    assert code == 2, error
    assert out == ""
    assert error.startswith("qwyc: ")
    assert error.count("\n") == 1
    assert message in error
    if message.startswith("secret"):
        assert "is not readable" in error or "Permission denied" in error  # by Typer, or by us
