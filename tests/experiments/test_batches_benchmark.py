"""The benchmark of rows per call runs, and refuses wrong answers."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks are not installed

from benchmarks.batches.__main__ import check, check_library  # noqa: E402
from benchmarks.batches.cases import Case  # noqa: E402
from benchmarks.contest import WrongAnswer  # noqa: E402


def run(folder, *arguments):
    environment = {name: value for name, value in os.environ.items() if name != "QWYC_DATA"}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "benchmarks.batches", *arguments, "--output", str(folder)],
        capture_output=True, text=True, cwd=ROOT, check=False,
        env=environment | {"QWYC_BENCH_CACHE": str(folder)},
    )  # fmt: skip


def test_two_installations_take_turns_at_every_size(tmp_path):
    done = run(tmp_path, "--quick", "--against", sys.executable)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert [found["name"] for found in report["results"]] == ["adult-xgboost", "made-up-29"]
    for found in report["results"]:
        assert list(found["times"]) == ["1", "1, predict_one", "16", "2,000"]
        for times in found["times"].values():
            assert set(times) == {
                f"{name} {way}" for name in ("before", "after") for way in ("quitting", "full")
            }
            assert all(0 < time["least"] <= time["median"] for time in times.values())
        assert 1 <= found["mean_models"] < found["n_models"] == 20
    assert "| quitting, before | after | times as fast |" in (tmp_path / "report.md").read_text()


def test_the_other_installation_makes_the_classifiers(tmp_path):
    options = ["--quick", "--against", sys.executable, "--older-makes"]
    done = run(tmp_path, *options, "--only", "made-up-29", "--sizes", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = json.loads((tmp_path / "report.json").read_text())["results"]
    assert 1 <= found["mean_models"] < found["n_models"] == 20
    assert {path.suffix for path in tmp_path.glob("*-by-*")} == {".full", ".qwyc"}


def test_columns_of_doubles_and_a_choice_of_sizes(tmp_path):
    options = "--quick --only made-up-29 --sizes 3 predict_one --layout columns --dtype float64"
    done = run(tmp_path, *options.split())
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = json.loads((tmp_path / "report.json").read_text())["results"]
    assert list(found["times"]) == ["3", "1, predict_one"]
    assert set(found["times"]["3"]) == {"after quitting", "after full"}


def test_cases_without_their_data_are_left_out(tmp_path):
    done = run(tmp_path, "--only", "nomao")
    assert done.returncode == 0, done.stderr
    assert "UCI Nomao" in done.stdout
    assert "left out: there is no nomao_train.parquet" in done.stdout


def test_an_unknown_case_is_named(tmp_path):
    done = run(tmp_path, "--only", "nobody")
    assert done.returncode == 2
    assert "no case is called nobody; there are adult-xgboost" in done.stderr


# ---- wrong answers ----------------------------------------------------------------------------


@pytest.fixture
def case(tmp_path):
    score = np.array([-1.0, 2.0, 3.0])
    rows = np.zeros((3, 2), dtype=np.float32)
    return Case("made up", "", tmp_path / "none.qwyc", None, 3, rows, score >= 0, score)


def answers(case):
    both = {"label": case.own.astype(int), "score": case.score}
    found = {
        f"{way} {name}": value.copy()
        for way in ("quitting", "full")
        for name, value in both.items()
    }
    complete, steps = np.array([False, True, True]), np.array([1, 5, 5])
    for way in ("quitting", "full"):
        found |= {f"{way} complete": complete, f"{way} steps": steps}
    return found


class Answers:
    """In place of the process of an installation."""

    def __init__(self, found, wrong=()):
        self.found, self.wrong = found, wrong

    def ask(self, do, **request):
        if do == "open":
            return {"n_models": 5}
        np.savez(request["to"], **self.found)
        return {"wrong": list(self.wrong)}


CHOSEN = SimpleNamespace(layout="rows", dtype="float32")


def test_equal_answers_pass(case, tmp_path):
    same = {name: Answers(answers(case)) for name in ("before", "after")}
    result = check(case, same, [1], CHOSEN, tmp_path)
    assert (result.n_models, result.differ) == (5, 0)
    assert result.mean_models == pytest.approx(11 / 3)


@pytest.mark.parametrize("what", ["label", "steps", "score", "complete"])
def test_installations_that_differ_are_refused(case, tmp_path, what):
    other = answers(case)
    other[f"quitting {what}"] = other[f"quitting {what}"].copy()
    other[f"quitting {what}"][0] += 1
    both = {"before": Answers(other), "after": Answers(answers(case))}
    with pytest.raises(WrongAnswer, match=f"after and before differ in quitting {what}"):
        check(case, both, [1], CHOSEN, tmp_path)


def test_sizes_that_differ_are_refused(case, tmp_path):
    one = {"after": Answers(answers(case), ["full, 16 rows per call"])}
    with pytest.raises(WrongAnswer, match="unlike one batch of all rows: full, 16 rows per call"):
        check(case, one, [1], CHOSEN, tmp_path)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("full label", "1 full decisions are unlike the library's"),
        ("full score", "full scores are unlike the library's"),
        ("quitting label", "all base models have another label"),
        ("quitting score", "all base models have another score"),
    ],
)
def test_answers_unlike_the_librarys_are_refused(case, what, words):
    check_library(case, answers(case))
    wrong = answers(case)
    wrong[what][1] = 0
    with pytest.raises(WrongAnswer, match=words):
        check_library(case, wrong)
