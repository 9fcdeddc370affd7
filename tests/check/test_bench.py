"""Timing, `qwyc bench`, and the benchmark suite: that they run and check answers; never how fast."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost

import qwyc
from qwyc.check.benchmark import FULL, QUITTING, bench, line
from qwyc.errors import InputError, ModelError, OptionError, ParityError
from qwyc.runtime.timing import CALLS_FOR_P99, Contestant, Timing, batches, interleave

ROOT = Path(__file__).parents[2]


# ---- timing -------------------------------------------------------------------------------------


def test_contestants_take_turns():
    calls = []
    contestants = {
        name: Contestant(lambda rows, name=name: calls.append((name, rows)), [1, 2, 3], rows=4)
        for name in "ab"
    }
    timings = interleave(contestants, seconds=0.003)
    changes = sum(x[0] != y[0] for x, y in pairwise(calls))
    assert changes >= 4
    assert {rows for _, rows in calls} == {1, 2, 3}
    assert [timing.rows for timing in timings.values()] == [4, 4]
    assert all(timing.calls >= 3 for timing in timings.values())


def test_one_that_is_very_slow_is_called_once():
    clock = iter(range(0, 1000, 10))
    slow = {"slow": Contestant(lambda rows: None, [0])}
    timings = interleave(slow, seconds=3, patience=8, clock=lambda: float(next(clock)))
    assert timings["slow"].seconds.tolist() == [10.0]


def test_figures_of_a_timing():
    timing = Timing(np.arange(1.0, 1002.0) / 1e6, rows=2)
    assert timing.microseconds == pytest.approx(501 / 2)
    assert timing.rows_per_second == pytest.approx(2e6 / 501)
    assert timing.percentile(99) == pytest.approx(991)
    assert Timing(np.ones(CALLS_FOR_P99 - 1), rows=1).percentile(99) is None


def test_batches_are_parts_of_the_rows():
    X = np.arange(20).reshape(10, 2)
    assert [part.tolist() for part in batches(X, 4)] == [X[:4].tolist(), X[4:8].tolist()]
    assert [len(part) for part in batches(X, 50)] == [10]


# ---- a classifier on its owner's rows -----------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """An XGBoost model, its classifier, rows, and a LightGBM model that is not its own."""
    folder = tmp_path_factory.mktemp("bench")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(9000, 5)), columns=list("abcde"))
    y = (X["a"] + X["b"] * X["c"] > 0).astype(int)
    model = xgboost.XGBClassifier(n_estimators=40, max_depth=4).fit(X[:3000], y[:3000])
    model.save_model(folder / "m.ubj")
    other = xgboost.XGBClassifier(n_estimators=40, max_depth=1).fit(X[:3000], y[:3000])
    other.save_model(folder / "other.ubj")
    light = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1).fit(X[:3000], y[:3000])
    light.booster_.save_model(folder / "m.txt")
    qwyc.optimize(model, X[3000:6000], alpha=0.02, progress=False).save(folder / "m.qwyc")
    qwyc.optimize(light, X[3000:6000], alpha=0.02, progress=False).save(folder / "l.qwyc")
    X[6000:].to_csv(folder / "new.csv", index=False)
    X[6000:].drop(columns="c").to_csv(folder / "short.csv", index=False)
    X[:0].to_csv(folder / "empty.csv", index=False)
    return folder


def test_quitting_full_and_the_source_are_timed_and_compared(saved):
    fast = qwyc.load(saved / "m.qwyc")
    X = pd.read_csv(saved / "new.csv")
    found = bench(fast, X, source=saved / "m.ubj", seconds=0.005, sizes=(1, 16, 100_000))
    assert {(line.contestant, line.batch) for line in found.lines} == {
        (name, batch) for name in ("XGBoost", FULL, QUITTING) for batch in (1, 16, 3000)
    }
    decisions = fast.decide(X)
    full = fast.score_full(X) >= fast.policy.threshold
    assert found.disagreements == (decisions.label != full).sum()
    assert found.mean_models == decisions.steps.mean()
    assert found.rows == 3000
    assert all(line.microseconds > 0 and line.calls >= 3 for line in found.lines)
    assert {"processor", "cores", "python", "qwyc"} <= set(found.machine)


def test_lightgbm_is_a_source_too(saved):
    X = pd.read_csv(saved / "new.csv")
    fast = qwyc.load(saved / "l.qwyc")
    found = bench(fast, X, source=saved / "m.txt", seconds=0.001, sizes=(1000,), threads=2)
    assert [line.contestant for line in found.lines] == ["LightGBM", FULL, QUITTING]
    assert found.threads == 2


def test_another_model_is_refused(saved):
    fast, X = qwyc.load(saved / "m.qwyc"), pd.read_csv(saved / "new.csv")
    with pytest.raises(
        ParityError, match=r"[\d,]+ of 3,000 rows differ.* not made from .*other.ubj"
    ):
        bench(fast, X, source=saved / "other.ubj", seconds=0.001)
    with pytest.raises(
        ModelError, match="a model of lightgbm; the classifier was made from one of"
    ):
        bench(fast, X, source=saved / "m.txt", seconds=0.001)


def test_options_are_checked(saved):
    fast, X = qwyc.load(saved / "m.qwyc"), pd.read_csv(saved / "new.csv")
    with pytest.raises(OptionError, match="seconds"):
        bench(fast, X, seconds=0)
    with pytest.raises(OptionError, match="batch size"):
        bench(fast, X, sizes=(0,))
    with pytest.raises(InputError, match="no rows"):
        bench(fast, X[:0])


def run(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-c", "from qwyc.cli import main; main()", "bench", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
    )


def test_the_command_prints_a_table(saved):
    done = run("m.qwyc", "new.csv", "--model", "m.ubj", "--seconds", "0.005", cwd=saved)
    assert done.returncode == 0, done.stderr
    for words in (QUITTING, FULL, "XGBoost", "p99", "base models per row", "differ from the full"):
        assert words in done.stdout


def test_the_command_prints_json(saved):
    done = run("m.qwyc", "new.csv", "--json", "--seconds", "0.005", cwd=saved)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["rows"] == 3000
    assert {line["contestant"] for line in found["lines"]} == {FULL, QUITTING}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.qwyc", "new.csv"], "none.qwyc: No such file"),
        (["m.qwyc", "none.csv"], "none.csv: no such file"),
        (["m.qwyc", "short.csv"], "'c'"),
        (["m.qwyc", "empty.csv"], "no rows"),
        (["m.qwyc", "new.csv", "--model", "none.ubj"], "none.ubj"),
        (["m.qwyc", "new.csv", "--model", "other.ubj"], "not made from other.ubj.\n"),
        (["m.qwyc", "new.csv", "--threads", "0"], "threads"),
        (["m.qwyc", "new.csv", "--seconds", "-1"], "seconds"),
    ],
)
def test_the_command_says_what_is_wrong(saved, arguments, message):
    done = run(*arguments, cwd=saved)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


# ---- the suite ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite")
    parts = ["xgboost", "lightgbm", "catboost", "forest", "growth"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--tiny", "--output", str(folder), "--only", *parts],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"QWYC_BENCH_CACHE": str(folder / "cache")},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, folder


def test_the_suite_prints_what_it_ran_on_and_the_targets(suite):
    printed, _ = suite
    for words in (
        "Command: python -m benchmarks --tiny",
        "processor",
        "LightGBM pred_early_stop",
        "at least 40x",
        "under 0.5 µs",
        "at most 0.5%",
        "How cost grows with features",
    ):
        assert words in printed


def test_the_suite_names_whoever_is_left_out(suite):
    printed, _ = suite
    try:
        import catboost  # noqa: F401
    except ImportError:
        assert "catboost: left out: not installed" in printed
    assert "Random forest, 20 trees" in printed


def test_the_suite_writes_a_page_a_picture_and_figures(suite):
    _, folder = suite
    assert (folder / "bench.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "report.md").read_text()
    assert "## Against the targets" in page
    cases = pd.read_csv(folder / "cases.csv")
    own = cases[cases.contestant.isin([FULL, "XGBoost", "LightGBM", "scikit-learn"])]
    assert set(own.differ) == {0}
    early = cases[cases.contestant == "LightGBM pred_early_stop"]
    quitting = cases[(cases.contestant == QUITTING) & (cases.case == "lightgbm")]
    assert early.differ.max() <= quitting.differ.max()
    assert set(pd.read_csv(folder / "growth.csv").axis) == {"trees", "depth", "features"}


@pytest.fixture
def case(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setenv("QWYC_BENCH_CACHE", str(tmp_path))
    from benchmarks.cases import xgboost_case
    from benchmarks.sizes import TINY

    return xgboost_case(replace(TINY, trees=5))


def test_a_wrong_answer_stops_the_suite(case):
    from benchmarks import contest, peers

    right = peers.xgboost(case.trained, 1)
    assert contest.check(right, case) == 0
    wrong = replace(right, batch=lambda rows: 1 - right.batch(rows))
    with pytest.raises(contest.WrongAnswer, match="16281 test rows unlike the model"):
        contest.check(wrong, case)
    assert contest.check(replace(wrong, name="another", single=None), case) == len(case.test)
    alone = replace(right, single=lambda row: 1 - right.single(row))
    with pytest.raises(contest.WrongAnswer, match="50 of 50 rows one by one"):
        contest.check(alone, case)


def test_a_target_is_met_or_missed(case):
    from benchmarks.contest import Result
    from benchmarks.headline import headline
    from benchmarks.sizes import TINY

    def timing(microseconds, rows):
        return Timing(np.full(300, microseconds * rows / 1e6), rows)

    result = Result("xgboost", "", "XGBoost", test_rows=1000, mean_models=3.0)
    for name, time in ((QUITTING, 0.4), (FULL, 10.0), ("XGBoost", 55.0), ("Treelite GTIL", 9.0)):
        result.differ[name] = 4 if name == QUITTING else 0
        result.lines.setdefault(1, []).extend(
            line(name, batch, timing(time, batch)) for batch in (1, 2000)
        )
    absent = {"catboost": "not installed"}
    found = {figure.what: figure for figure in headline({"xgboost": result}, TINY, absent)}
    batch = "xgboost, batch of 2,000: "
    assert found[batch + "quitting, against XGBoost"].met is True
    assert found[batch + "quitting, fastest of the others, against Treelite GTIL"].met is False
    assert found[batch + "in full, against XGBoost"].found == "5.5x"
    assert found["xgboost, single row from Python: quitting, median"].met is True
    assert found["xgboost: test decisions that quitting changes"].found == "0.40%"
    assert found["classes, single row from Python: quitting, median"].met is None
    assert found["catboost, batch of 2,000: in full, against CatBoost"].met is None
    assert found["catboost, batch of 2,000: in full, against CatBoost"].remark == "not installed"

    found = {figure.what: figure for figure in headline({"classes": result}, TINY, {})}
    assert found["classes, batch of 2,000: in full, against XGBoost"].met is False
    assert found[f"classes, batch of 2,000: quitting, against {FULL}"].found == "25.0x"
    assert found["classes, single row from Python: quitting, median"].target == "under 3 µs"

    result.differ[QUITTING] = 6  # of 1,000: more than is allowed, so speed does not count
    result.left_out["tl2cgen"] = "not installed"  # who knows how fast it would have been
    found = {figure.what: figure for figure in headline({"xgboost": result}, TINY, {})}
    assert found[batch + "quitting, against XGBoost"].met is False
    assert found[batch + "quitting, fastest of the others, against Treelite GTIL"].met is None
