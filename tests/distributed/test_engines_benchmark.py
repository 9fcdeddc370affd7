"""The benchmark over the engines runs, small and untimed, and its answers are right."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


def test_every_engine_gives_the_right_sums(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- measured: begin -->\nold\n<!-- measured: end -->\nafter\n")
    command = f"-m benchmarks.engines --rows 20000 --rounds 1 --document {page} --output"
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
        for took in engine["took"].values():
            assert all(way["cpu"] > 0 for way in took.values())
    page = (tmp_path / "engines.md").read_text()
    assert "quitting against XGBoost" in page
    assert "### Numbers" in page
    assert "### Text" in page
    document = (tmp_path / "page.md").read_text()
    assert document.startswith("before\n<!-- measured: begin -->")
    assert document.endswith("<!-- measured: end -->\nafter\n")
    assert page in document
