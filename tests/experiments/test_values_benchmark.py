"""The benchmark of models of values runs, untimed, and checks its answers."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def values(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setenv("QWYC_BENCH_CACHE", str(tmp_path))
    from benchmarks import values

    return values


def without_compilers(values, case):
    """A case without TL2cgen, which takes long to compile even small models."""
    kept = [one for one in case.contestants if not one.__name__.startswith("tl2cgen")]
    return replace(case, contestants=kept)


@pytest.mark.parametrize("name", ["regressor", "ranker", "isolation-100"])
def test_everyone_is_checked_and_timed(values, name):
    from benchmarks.sizes import TINY

    sizes = replace(TINY, trees=5, rows=200, batches=(1, 200), seconds=1e-3, small_seconds=1e-3)
    found = values.run_case(without_compilers(values, values.CASES[name](sizes)), sizes)
    assert {line.batch for line in found.lines} == {1, 200}
    assert found.differ[values.FULL] == 0
    assert not found.left_out
    assert {"Treelite GTIL", "ONNX Runtime", values.FULL} <= set(found.differ)
    header, rows = found.table()
    assert len(header) == len(rows[0]) == 5
    assert f"| {values.FULL} " in values.page([found])


def test_a_wrong_answer_stops_it(values, monkeypatch):
    from benchmarks.contest import WrongAnswer
    from benchmarks.sizes import TINY

    sizes = replace(TINY, trees=5, rows=200, batches=(1, 200), seconds=1e-3, small_seconds=1e-3)
    case = without_compilers(values, values.CASES["regressor"](sizes))
    right, close, far = (values.ours(case.trained) for _ in range(3))
    close = replace(close, name="close", positive=lambda v: values.flat(v) + 1e-6)
    far = replace(far, name="far", positive=lambda v: values.flat(v) * 2 + 1)
    case = replace(case, contestants=(case.contestants[0], lambda _: close, lambda _: far))
    found = values.run_case(case, sizes)
    assert found.differ["close"] == pytest.approx(1e-6, rel=0.1)
    assert "its values of 100% of the rows differ, by up to" in found.left_out["far"]
    wrong = replace(right, batch=lambda rows: np.nextafter(right.batch(rows), np.float32(9)))
    monkeypatch.setattr(values, "ours", lambda _: wrong)
    with pytest.raises(WrongAnswer, match="qwyc's values differ from the library's"):
        values.run_case(case, sizes)


@pytest.mark.slow
def test_the_command(tmp_path):
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "benchmarks.values",
            "--tiny",
            "--page",
            tmp_path / "v.md",
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"QWYC_BENCH_CACHE": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for words in (
        "Regression: XGBoost",
        "Ranking: LightGBM",
        "IsolationForest",
        "processor",
    ):
        assert words in done.stdout
    # TL2cgen is in the extra "bench" only: it is timed, or the benchmark says that it is not installed.
    assert "TL2cgen" in done.stdout or "No module named 'tl2cgen'" in done.stdout
    assert (tmp_path / "v.md").read_text().count("| qwyc, full") == 4
