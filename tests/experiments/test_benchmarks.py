"""Experiments run, untimed and small, and check their own answers (benchmarks: test_bench.py)."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["experiments/optimism.py", "--trees", "20"], "differ, test rows"),
    ],
)
def test_it_runs(arguments, words):
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert words in done.stdout
