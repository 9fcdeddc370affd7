"""The benchmark over the engines runs, small and untimed, and its answers are right."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


def test_every_engine_gives_the_right_sums(tmp_path):
    command = "-m benchmarks.engines --rows 20000 --rounds 1 --output"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *command.split(), str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads((tmp_path / "engines.json").read_text())
    assert [e["title"].split()[0] for e in found["engines"]] == ["Spark", "Ray", "Dask"]
    for engine in found["engines"]:
        assert 1 <= engine["loads"] == engine["processes"] <= 2  # once by each worker
    assert "quitting against XGBoost" in (tmp_path / "engines.md").read_text()
