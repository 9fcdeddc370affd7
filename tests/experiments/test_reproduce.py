"""The paper's experiments: the small version end to end."""

import csv
import io
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

import qwyc
from qwyc.runtime import output as outputs
from qwyc_experiments.paper import data, reproduce

FILES = {"points.csv", "accuracy.png", "differences.png", "histograms.png", "report.md"}


@pytest.fixture(scope="module")
def adult_run(tmp_path_factory):
    """(folder, what was printed) of the reduced run."""
    folder = tmp_path_factory.mktemp("run") / "not" / "yet"
    console = Console(record=True, width=120, file=io.StringIO())
    reproduce.run("adult", folder, reduced=True, console=console)
    return folder, console.export_text()


@pytest.fixture(scope="module")
def rows(adult_run):
    with open(adult_run[0] / "points.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_writes_every_file_and_nothing_else(adult_run):
    folder, printed = adult_run
    assert {path.name for path in folder.iterdir()} == FILES
    for name in FILES:
        assert name in printed
        assert (folder / name).stat().st_size > 500
        if name.endswith("png"):
            assert (folder / name).read_bytes().startswith(b"\x89PNG")
    assert "learning rate" in printed
    assert "QWYC*" in printed


def test_every_method_is_there(rows):
    orders = ["natural", "random", "individual-mse", "greedy-mse"]
    expected = {("qwyc", "joint"), ("smaller", "natural"), ("full", "natural")}
    expected |= {(rule, order) for rule in ("algorithm-2", "fan") for order in orders}
    assert {(row["method"], row["order"]) for row in rows} == expected
    assert {row["seed"] for row in rows if row["order"] == "random"} == {"0", "1"}
    assert all(row["bin_width"] for row in rows if row["method"] == "fan")


def test_numbers_are_consistent(rows):
    T = 40
    for row in rows:
        for part in ("in_sample", "test"):
            assert 1 <= float(row[f"{part}_mean_base_models"]) <= T
            assert 0 <= float(row[f"{part}_disagreement"]) <= 1
            assert 0.5 < float(row[f"{part}_accuracy"]) <= 1
        if row["knob"] == "alpha":
            assert float(row["in_sample_disagreement"]) <= float(row["knob_value"])
        if row["knob"] == "trees":
            assert row["test_mean_base_models"] == row["knob_value"]
        if row["method"] == "full":
            assert float(row["test_disagreement"]) == 0


def test_alpha_0_has_no_disagreement_in_sample(rows):
    zero = [row for row in rows if row["knob"] == "alpha" and float(row["knob_value"]) == 0]
    assert len(zero) == 6  # joint, three fixed orders, two random
    assert all(float(row["in_sample_disagreement"]) == 0 for row in zero)


def test_report_judges_every_claim_and_shows_both_kinds_of_rows(adult_run):
    text = (adult_run[0] / "report.md").read_text()
    for i in range(1, 10):
        assert f"\n{i}. " in text
    assert "fitted rows against test rows" in text
    assert "nan" not in text


# --- what can go wrong ------------------------------------------------------------------------


def test_data_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("QWYC_DATA", str(tmp_path))
    with pytest.raises(qwyc.InputError, match=r"nomao_train\.parquet.*QWYC_DATA"):
        reproduce.run("nomao", tmp_path / "out", reduced=True, console=Console(quiet=True))
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

    values = np.random.default_rng(0).normal(size=(100, 3))
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
    with pytest.raises(qwyc.OptionError, match="adult, nomao"):
        reproduce.run("iris", tmp_path, reduced=True, console=console)
    (tmp_path / "file").write_text("")
    with pytest.raises(qwyc.ArtifactError, match="cannot write"):
        reproduce.run("adult", tmp_path / "file", reduced=True, console=console)


def test_nothing_is_left_of_a_failed_write(monkeypatch, tmp_path):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(outputs.os, "replace", fail)
    with pytest.raises(qwyc.ArtifactError, match="No space"):
        reproduce.write(tmp_path / "out", {"a": b"1", "b": b"2"})
    assert not list((tmp_path / "out").iterdir())
