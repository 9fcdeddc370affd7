"""Commands on a filter for one class, from a file to a file."""

import csv
import io
import json

import numpy as np
import pytest

import qwyc
from commands import run
from many_classes import class_ensemble, full_labels, rows_of

LABELS = ["ant", "bee\nfly", "cat"]
NAMES = tuple("uvwxyz")
THREE = class_ensemble(3, classes=LABELS, names=NAMES)
ROWS = {"sample": rows_of(6000), "new": rows_of(8000, seed=2)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A classifier, from which the model is read again, rows in files, and a filter."""
    folder = tmp_path_factory.mktemp("filter")
    qwyc.optimize(THREE, alpha=0).save(folder / "model.qwyc")
    for name, rows in ROWS.items():
        with open(folder / f"{name}.csv", "w", newline="") as file:
            csv.writer(file).writerows([NAMES, *rows.tolist()])
    options = ("--only", "cat", "--alpha", "0.02", "--evaluation", "quit")
    done = run("optimize", "model.qwyc", "sample.csv", "-o", "cat.qwyc", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "whether the largest of 3 scores is that of cat" in done.stdout.decode()
    return folder


def test_optimize_is_the_function(folder):
    fast = qwyc.load(folder / "cat.qwyc")
    same = qwyc.optimize(THREE, ROWS["sample"], only="cat", alpha=0.02, evaluation="quit")
    assert same.certificate == fast.certificate
    np.testing.assert_array_equal(same.predict(ROWS["new"]), fast.predict(ROWS["new"]))


def test_predict_says_which_rows_are_of_the_class(folder):
    done = run("predict", "cat.qwyc", "new.csv", "-o", "out.csv", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    with open(folder / "out.csv", newline="") as file:
        rows = list(csv.DictReader(io.StringIO(file.read())))
    called = [row["label"] == "cat" for row in rows]
    assert facts["only"] == "cat"
    assert facts["called"] == sum(called) > 0
    full = full_labels(THREE, ROWS["new"]) == "cat"
    assert not (np.array(called) & ~full).any()
    assert np.mean(full & ~np.array(called)) < 0.02
    assert all(row["complete"] == "true" for row in rows if row["label"] == "cat")


def test_verify_and_inspect(folder):
    done = run("verify", "cat.qwyc", "new.csv", cwd=folder)
    assert done.returncode in (0, 3), done.stderr
    text = done.stdout.decode()
    assert "other classes" in text
    facts = json.loads(run("inspect", "cat.qwyc", "--json", cwd=folder).stdout)
    assert facts["only"] == "cat"
    assert facts["quits"] == "negative"


def test_a_label_that_does_not_exist(folder):
    done = run("optimize", "model.qwyc", "sample.csv", "-o", "x.qwyc", "--only", "dog", cwd=folder)
    assert done.returncode == 2
    assert "--only names 'dog'; the classes are ant" in done.stderr.decode()
    assert not (folder / "x.qwyc").exists()


def test_labels_with_line_breaks_keep_to_one_line(folder):
    """The tables of verify and inspect have a line for each class."""
    options = ("--alpha", "0.05", "--evaluation", "quit")
    made = run("optimize", "model.qwyc", "sample.csv", "-o", "all.qwyc", *options, cwd=folder)
    assert made.returncode == 0, made.stderr
    done = run("verify", "all.qwyc", "new.csv", cwd=folder)
    lines = done.stdout.decode().splitlines()
    of_class = [line for line in lines if line.startswith("  bee")]  # shares, and changes
    assert len(of_class) == 2
    assert all(line.startswith("  bee\\nfly ") for line in of_class)
    assert not any(line.startswith("fly") for line in lines)
    inspected = run("inspect", "all.qwyc", cwd=folder).stdout.decode()
    assert not any(line.startswith("fly") for line in inspected.splitlines())
