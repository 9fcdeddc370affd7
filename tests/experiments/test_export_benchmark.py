"""The benchmark of exported C runs, and refuses wrong answers."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks are not installed

from benchmarks.contest import WrongAnswer  # noqa: E402
from benchmarks.export import exported, measured, timed  # noqa: E402

from exported import with_random_policy  # noqa: E402
from forests import random_ensemble, random_rows  # noqa: E402


def test_every_line_is_printed(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "benchmarks.export", "--tiny"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        env=os.environ | {"QWYC_BENCH_CACHE": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    for name in (
        "exported C, quitting",
        "exported C, quitting, small form",
        "exported C, in full",
        "exported C, in full, small form",
        "`predict_one` in Python, quitting",
        "`predict_one` in Python, in full",
    ):
        assert f"| {name} | " in done.stdout
    assert "TL2cgen" in done.stdout


def test_wrong_answers_are_refused(tmp_path):
    ensemble = random_ensemble(1, dtype="float32")
    rows = random_rows(1, ensemble, 200)
    fast = with_random_policy(ensemble, rows)
    built = exported(tmp_path / "model", fast, False, "cc")
    expected = fast.predict(rows)
    assert timed(built, rows, 0.0, expected, "it") > 0
    with pytest.raises(WrongAnswer, match="it decides 200 of 200 rows differently"):
        timed(built, rows, 0.0, 1 - expected, "it")
    assert built.size > 1000
    assert np.isfinite(built.seconds)
    with pytest.raises(WrongAnswer, match="the compiler failed"):
        measured(["cc", tmp_path / "none.c"])
