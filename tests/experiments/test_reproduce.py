"""The paper's experiments: the quick version of all of them end to end, and what can go wrong."""

import csv
import io
import re
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

import qwyc
from qwyc.runtime import output as outputs
from qwyc_experiments.paper import curves, data, reproduce, setting
from qwyc_experiments.paper.experiments import EXPERIMENTS, GROUPS

RNG = np.random.default_rng(0)
PAPER = [name for name, experiment in EXPERIMENTS.items() if experiment.number]
PICTURES = {f"differences-{name}.png" for name in PAPER}
PICTURES |= {"accuracy.png", "histograms.png", "optimism.png", "rivals.png"}
FILES = {"points.csv", "report.md"} | PICTURES


@pytest.fixture(scope="module")
def all_runs(tmp_path_factory):
    """(folder, what was printed, outcomes) of the quick run of everything, without data files."""
    folder = tmp_path_factory.mktemp("run") / "not" / "yet"
    console = Console(record=True, width=120, file=io.StringIO())
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("QWYC_DATA", raising=False)
        patch.setattr(data, "BESIDE", folder)
        outcomes = reproduce.run("all", folder, quick=True, console=console)
    return folder, console.export_text(), outcomes


@pytest.fixture(scope="module")
def rows(all_runs):
    with open(all_runs[0] / "points.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_writes_every_file_and_keeps_its_state(all_runs):
    folder, printed, _ = all_runs
    assert {path.name for path in folder.iterdir() if path.is_file()} == FILES
    assert list((folder / "state").glob("*.pickle"))
    for name in FILES:
        assert name in printed
        assert (folder / name).stat().st_size > 500
        if name.endswith("png"):
            assert (folder / name).read_bytes().startswith(b"\x89PNG")
    assert "QWYC*" in printed


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_method_is_there(rows, name):
    orders = ["natural", "random", "individual-mse", "greedy-mse"]
    expected = {curves.OURS, curves.QWYC, curves.SMALLER, curves.FAN_JOINT, curves.JOINT_FAN}
    expected |= {(rule, order) for rule in ("algorithm-2", "fan") for order in orders}
    expected |= {("algorithm-2", "accuracy"), ("full", "natural")}
    rivals = {
        "lightgbm": {curves.MARGIN, curves.MARGIN_10},
        "forest": {curves.BEST_VOTES, curves.BAYES_VOTES},
    }
    expected |= rivals.get(EXPERIMENTS[name].family, set())
    mine = [row for row in rows if row["experiment"] == name]
    assert {(row["method"], row["order"]) for row in mine} == expected
    assert {row["seed"] for row in mine if row["order"] == "random"} == {"0", "1"}
    assert all(row["bin_width"] for row in mine if row["method"] == "fan")


def test_numbers_are_consistent(rows, all_runs):
    for row in rows:
        T = all_runs[2][row["experiment"]].results.n_models
        for part in ("in_sample", "test"):
            assert 1 <= float(row[f"{part}_mean_base_models"]) <= T
            assert 0 <= float(row[f"{part}_disagreement"]) <= 1
            assert 0.3 < float(row[f"{part}_accuracy"]) <= 1
        if row["knob"] == "alpha":
            assert float(row["in_sample_disagreement"]) <= float(row["knob_value"])
            if float(row["knob_value"]) == 0:
                assert float(row["in_sample_disagreement"]) == 0
        if row["knob"] == "base models":
            assert row["test_mean_base_models"] == row["knob_value"]
        if row["method"] == "full":
            assert float(row["test_disagreement"]) == 0


def test_filters_only_quit_negative(all_runs):
    for name, outcome in all_runs[2].items():
        results = outcome.results
        for point in results.points:
            assert point.steps.min() >= 1
            assert point.steps.max() <= results.n_models
            if point.method == "smaller":
                continue
            quits = point.steps < results.n_models
            if EXPERIMENTS[name].quit == "negative":
                assert not point.label[quits].any()
            assert np.array_equal(point.label[~quits], results.positive[~quits])


def test_means_are_those_of_the_rows(all_runs):
    for outcome in all_runs[2].values():
        results = outcome.results
        for point in results.points:
            assert point.test.models == pytest.approx(point.steps.mean())
            assert point.test.differ == pytest.approx(np.mean(point.label != results.positive))
            assert point.test.accuracy == pytest.approx(np.mean(point.label == results.truth))


def test_times_and_promises_are_there(all_runs):
    for name, outcome in all_runs[2].items():
        chosen = setting.setting_for(EXPERIMENTS[name], quick=True)
        keys = {timed.key for timed in outcome.timed}
        assert {None, curves.QWYC, curves.OURS, curves.FAN_STAR} <= keys
        assert all(len(timed.microseconds) == chosen.runs for timed in outcome.timed)
        assert all((timed.microseconds > 0).all() for timed in outcome.timed)
        for promised in outcome.promised:
            assert promised.broken <= promised.above <= promised.splits
            assert promised.splits <= chosen.splits
            assert 0 <= promised.differ <= promised.worst
            assert 1 <= promised.models <= outcome.results.n_models


def test_the_page_has_every_table_and_picture(all_runs):
    text = (all_runs[0] / "report.md").read_text()
    for name in PICTURES:
        assert f"({name})" in text
    for experiment in EXPERIMENTS.values():
        assert experiment.title in text
    for words in (
        "made-up rows in place of UCI Covertype",
        "stand-in",
        "quick run on reduced sizes",
        "237",
        "2.7x",
        "1.3x",
    ):
        assert words in text
    for line in text.splitlines():
        if line.startswith("|"):
            assert not re.search(r"\b(nan|inf)(x|%|\b)", line)
    widths = [line.count("|") for line in text.splitlines() if line.startswith("|")]
    assert min(widths) >= 3


def test_a_second_run_computes_nothing(all_runs, monkeypatch, tmp_path):
    def fail(*_, **__):
        raise AssertionError("a stage was computed again")

    monkeypatch.delenv("QWYC_DATA", raising=False)
    monkeypatch.setattr(data, "BESIDE", tmp_path)
    monkeypatch.setattr("qwyc_experiments.paper.compute.prepare", fail)
    reproduce.run(
        "rw1", tmp_path, quick=True, console=Console(quiet=True), state=all_runs[0] / "state"
    )
    first, second = (
        [line for line in (folder / "points.csv").read_text().splitlines() if "rw1" in line]
        for folder in (all_runs[0], tmp_path)
    )
    assert first == second


def test_a_stopped_run_goes_on(monkeypatch, tmp_path):
    def stop(*_, **__):
        raise KeyboardInterrupt

    console, state = Console(quiet=True), tmp_path / "state"
    with monkeypatch.context() as patch:
        patch.setattr("qwyc_experiments.paper.compute.promised", stop)
        with pytest.raises(KeyboardInterrupt):
            reproduce.run("rw1", tmp_path, quick=True, console=console)
    assert not (tmp_path / "report.md").exists()
    kept = {path.name: path.stat().st_mtime_ns for path in state.iterdir()}
    assert len(kept) > 5
    reproduce.run("rw1", tmp_path, quick=True, console=console)
    assert (tmp_path / "report.md").exists()
    assert {name: (state / name).stat().st_mtime_ns for name in kept} == kept


def test_groups_name_experiments():
    assert set(GROUPS["all"]) == set(EXPERIMENTS)
    assert {name for names in GROUPS.values() for name in names} == set(EXPERIMENTS)


def test_curves_interpolate_in_log_base_models():
    def point(knob, models, differ):
        found = curves.Measured(models, differ, 0.9)
        steps, label = np.ones(4, dtype=np.int16), np.zeros(4, dtype=bool)
        return curves.Point("qwyc", "joint", knob, None, None, found, found, steps, label)

    curve = curves.Curve([point(0.0, 100, 0.002), point(0.1, 25, 0.006)])
    assert curve.models_at(0.004) == pytest.approx(50)
    assert curve.models_at(0.001) is None
    assert curve.models_at(0.02) == pytest.approx(25)
    assert curve.at_models("differ", 50) == pytest.approx(0.004)
    assert curve.at_models("differ", 101) is None


def test_intervals_of_ratios():
    one = curves.interval(2.0, np.linspace(1, 3, 201), np.ones(201))
    assert (one.low, one.high) == (pytest.approx(1.05), pytest.approx(2.95))
    never = np.full(200, np.inf)
    assert curves.interval(np.inf, never, np.ones(200)).low == np.inf
    assert curves.interval(0.0, np.ones(200), never).high == 0.0
    assert curves.interval(1.0, never, never) == curves.Interval(1.0, 0.0, np.inf)


# --- what can go wrong ------------------------------------------------------------------------


def test_data_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("QWYC_DATA", str(tmp_path))
    with pytest.raises(qwyc.InputError, match=r"nomao_train\.parquet.*QWYC_DATA"):
        reproduce.run("nomao", tmp_path / "out", quick=True, console=Console(quiet=True))
    assert not (tmp_path / "out").exists()


def test_no_file_and_no_network(monkeypatch, tmp_path):
    import sklearn.datasets

    def fetch(**_):
        raise OSError("no network")

    monkeypatch.delenv("QWYC_DATA", raising=False)
    monkeypatch.setattr(data, "BESIDE", tmp_path)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    with pytest.raises(qwyc.InputError, match=r"no network.*QWYC_DATA"):
        data.load("nomao", None)


def test_openml_is_split_in_80_and_20(monkeypatch, tmp_path):
    import sklearn.datasets
    from sklearn.utils import Bunch

    values = RNG.normal(size=(100, 3))
    target = np.array(["1", "2"])[(values[:, 0] > 0).astype(int)]
    bunch = Bunch(data=values, target=target, feature_names=["V1", "V2", "V3"])
    monkeypatch.delenv("QWYC_DATA", raising=False)
    monkeypatch.setattr(data, "BESIDE", tmp_path)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **_: bunch)
    loaded = data.load("nomao", None)
    assert (loaded.X.shape, loaded.X_test.shape) == ((80, 3), (20, 3))
    assert np.array_equal(loaded.y, loaded.X[:, 0] > 0)
    assert loaded.validation.sum() == 16


def test_nomao_files(monkeypatch, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name, label in (("nomao_train", [0, 1, 1]), ("nomao_test", [1, 0, 1])):
        table = {"a": [1.0, None, 3.0], "b": ["n", "s", None], "label": pa.array(label, pa.int8())}
        pq.write_table(pa.table(table), tmp_path / f"{name}.parquet")
    monkeypatch.setenv("QWYC_DATA", str(tmp_path))
    loaded = data.load("nomao", None)
    assert loaded.types == ("q", "c")
    expected = np.array([[1, 0], [np.nan, 1], [3, np.nan]], dtype=np.float32)
    np.testing.assert_array_equal(loaded.X, expected)
    (tmp_path / "nomao_test.parquet").write_text("not parquet")
    with pytest.raises(qwyc.InputError, match=r"cannot read .*nomao_test"):
        data.load("nomao", None)


WITHOUT_EXPERIMENTS = """
import sys
sys.modules["qwyc_experiments"] = None
sys.argv = ["qwyc", "reproduce", "adult"]
from _qwyc_command import main
main()
"""


def test_the_command_says_what_to_install_where_the_experiments_are_missing(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXPERIMENTS], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "pip install" in done.stderr
    assert "qwyc_experiments" in done.stderr
    assert not list(tmp_path.iterdir())


def test_wrong_name_and_wrong_folder(tmp_path):
    console = Console(quiet=True)
    with pytest.raises(qwyc.OptionError, match="adult, nomao, rw1"):
        reproduce.run("iris", tmp_path, quick=True, console=console)
    (tmp_path / "file").write_text("")
    with pytest.raises(qwyc.ArtifactError, match="cannot write"):
        reproduce.run("adult", tmp_path / "file", quick=True, console=console)


def test_nothing_is_left_of_a_failed_write(monkeypatch, tmp_path):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(outputs.os, "replace", fail)
    with pytest.raises(qwyc.ArtifactError, match="No space"):
        reproduce.write(tmp_path / "out", {"a": b"1", "b": b"2"})
    assert not list((tmp_path / "out").iterdir())
