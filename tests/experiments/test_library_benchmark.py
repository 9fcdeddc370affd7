"""The benchmark of the C library runs, and refuses wrong answers."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from exported import with_random_policy
from forests import random_ensemble, random_rows
from library import built

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks are not installed

from benchmarks.contest import WrongAnswer  # noqa: E402
from benchmarks.library import measure  # noqa: E402


def test_every_line_is_printed(tmp_path):
    built()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "benchmarks.library", "--tiny"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        env=os.environ | {"QWYC_BENCH_CACHE": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    for way in ("quitting", "in full"):
        assert f"| 20 trees, {way} | " in done.stdout
        for name in ("libqwyc", "Python", "exported C"):
            assert f"| {name}, {way} | " in done.stdout


def test_wrong_answers_are_refused(tmp_path, monkeypatch):
    built()
    ensemble = random_ensemble(1, dtype="float32")
    rows = random_rows(1, ensemble, 200)
    fast = with_random_policy(ensemble, rows)
    first, load, wall, one, many, size = measure(tmp_path / "right", fast, rows, 0.0)
    assert min(first, load, wall, one, many) > 0
    assert size == (tmp_path / "right" / "model.qwyc").stat().st_size
    monkeypatch.setattr(type(fast), "predict", lambda self, X: np.full(len(X), -1))
    with pytest.raises(WrongAnswer, match="libqwyc decides 400 rows differently"):
        measure(tmp_path / "wrong", fast, rows, 0.0)


@pytest.mark.slow
def test_peers_give_the_same_answers(tmp_path):
    built()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "benchmarks.library_peers", "--tiny"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        env=os.environ | {"QWYC_BENCH_CACHE": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    for name in (
        "libqwyc, quitting",
        "exported C, in full",
        "XGBoost",
        "TL2cgen",
        "LightGBM",
        "ONNX",
    ):
        assert f"| {name}" in done.stdout
