"""The benchmark of data frames runs, and refuses wrong answers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks are not installed

from benchmarks.contest import WrongAnswer  # noqa: E402
from benchmarks.frames.__main__ import compare  # noqa: E402
from benchmarks.frames.worker import FLOAT_FORMS, TEXT_FORMS  # noqa: E402


def run(folder, *arguments):
    environment = {name: value for name, value in os.environ.items() if name != "QWYC_DATA"}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "benchmarks.frames", *arguments, "--output", str(folder)],
        capture_output=True, text=True, cwd=ROOT, check=False,
        env=environment | {"QWYC_BENCH_CACHE": str(folder)},
    )  # fmt: skip


def test_every_library_and_kind_of_frame(tmp_path):
    done = run(tmp_path, "--quick")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    names = [
        "floats-xgboost",
        *(f"adult-{x}" for x in ("lightgbm", "xgboost", "catboost", "sklearn")),
    ]
    assert [found["name"] for found in report["results"]] == names
    for found in report["results"]:
        assert found["refused"] == {}
        assert list(found["times"]) == ["1", "300"]
        forms = FLOAT_FORMS if found["name"].startswith("floats") else TEXT_FORMS
        if found["name"] in ("adult-catboost", "adult-sklearn"):
            forms = forms[1:]
        for by_form in found["times"].values():
            assert tuple(by_form) == forms
            for form, times in by_form.items():
                ways = {"after quitting", "after full", "after library"}
                assert set(times) == (ways - {"after library"} if form == "NumPy array" else ways)
                assert all(0 < time["least"] <= time["median"] for time in times.values())
    assert "| times the array's |" in (tmp_path / "report.md").read_text()


def test_two_installations_take_turns(tmp_path):
    options = ["--quick", "--only", "floats-xgboost", "--sizes", "3", "--against", sys.executable]
    done = run(tmp_path, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = json.loads((tmp_path / "report.json").read_text())["results"]
    assert {"before quitting", "after quitting"} <= set(found["times"]["3"]["Polars"])
    assert "| before | times as fast |" in (tmp_path / "report.md").read_text()


def test_cases_without_their_data_are_left_out(tmp_path):
    done = run(tmp_path, "--only", "census-lightgbm")
    assert done.returncode == 0, done.stderr
    assert "left out: there is no census_income_kdd_train.parquet" in done.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--only", "nobody"], "no case is called nobody; there are floats-xgboost"),
        (["--sizes", "0"], "sizes are numbers of rows, at least 1"),
    ],
)
def test_wrong_options_are_named(tmp_path, options, words):
    done = run(tmp_path, *options)
    assert done.returncode == 2
    assert words in done.stderr


def answers(**changed):
    found = {
        "after": {
            "Arrow | quitting": np.array([0, 1, 1, 1]),
            "Arrow | full": np.array([0, 1, 1, 0]),
            "Arrow | library": np.array([0, 1, 1, 0]),
            "Polars | quitting": np.array([0, 1, 1, 1]),
        }
    }
    found["before"] = found["after"] | {
        key.replace("_", " | "): value for key, value in changed.items()
    }
    return found


def test_equal_answers_pass():
    assert compare("case", answers()) == 0.25


@pytest.mark.parametrize(
    "what", ["Arrow_quitting", "Arrow_full", "Arrow_library", "Polars_quitting"]
)
def test_answers_that_differ_are_refused(what):
    with pytest.raises(WrongAnswer, match=r"case: .* differ in 1 rows"):
        compare("case", answers(**{what: np.array([1, 1, 1, int("quitting" in what)])}))


def test_no_answers_are_refused():
    with pytest.raises(WrongAnswer, match="no kind of frame is taken"):
        compare("case", {"after": {}})
