"""Experiments that nothing else tests run from the command line, on few trees."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-m", "qwyc_experiments.optimism", "--trees", "20"], "differ, test rows"),
        (
            ["-m", "qwyc_experiments.shared_parts", "--seeds", "1", "--only", "20 lattices"],
            "shared out",
        ),
        (
            [
                "-m",
                "qwyc_experiments.monitoring",
                "--streams",
                "2",
                "--changes",
                "2",
                "--rows",
                "102000",
            ],
            "rate from alpha / 2 to 3 alpha",
        ),
    ],
)
def test_it_runs(arguments, words, tmp_path):
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert words in done.stdout


def test_the_benchmark_of_the_monitor_checks_its_answers(tmp_path):
    root = Path(__file__).parents[2]
    environment = os.environ | {"QWYC_BENCH_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.monitor", "--tiny"],
        capture_output=True, text=True, cwd=root, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "predict_one" in done.stdout


def test_the_benchmark_of_sparse_rows_checks_its_answers(tmp_path):
    root = Path(__file__).parents[2]
    environment = os.environ | {"QWYC_BENCH_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.sparse", "--tiny"],
        capture_output=True, text=True, cwd=root, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Quitting takes") == 2


def test_the_benchmark_of_seven_classes_checks_its_answers(tmp_path):
    root = Path(__file__).parents[2]
    environment = os.environ | {"QWYC_BENCH_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.classes", "--tiny"],
        capture_output=True, text=True, cwd=root, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "7 classes" in done.stdout
    assert "Quitting is" in done.stdout
