"""Experiments that nothing else tests run from the command line, on few trees."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-m", "qwyc_experiments.optimism", "--trees", "20"], "differ, test rows"),
        (
            ["-m", "qwyc_experiments.shared_parts", "--seeds", "1", "--only", "20 lattices"],
            "shared out",
        ),
    ],
)
def test_it_runs(arguments, words, tmp_path):
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert words in done.stdout
