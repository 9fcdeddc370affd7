"""Commands on classifiers of K classes, from a file to a file."""

import csv
import io
import json

import numpy as np
import pytest

import qwyc
from commands import run
from many_classes import class_ensemble, full_labels, rows_of

LABELS = ["ant", "bee", "cat"]
NAMES = tuple("uvwxyz")
THREE = class_ensemble(3, classes=LABELS, names=NAMES)
ROWS = {"sample": rows_of(6000), "new": rows_of(8000, seed=2)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A classifier, from which the model is read again, and rows in files."""
    folder = tmp_path_factory.mktemp("classes")
    qwyc.optimize(THREE, alpha=0).save(folder / "model.qwyc")
    for name, rows in ROWS.items():
        with open(folder / f"{name}.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*NAMES, "group", "when"])
            for i, row in enumerate(rows.tolist()):
                writer.writerow([*row, i // 2, i])
    return folder


@pytest.fixture(scope="module")
def fast(folder):
    """What `qwyc optimize` makes."""
    options = ("--alpha", "0.02", "--evaluation", "quit")
    done = run("optimize", "model.qwyc", "sample.csv", "-o", "fast.qwyc", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "the largest of 3 scores" in done.stdout.decode()
    return qwyc.load(folder / "fast.qwyc")


def test_optimize_is_the_function(folder, fast):
    same = qwyc.optimize(THREE, ROWS["sample"], alpha=0.02, evaluation="quit")
    assert same.certificate == fast.certificate
    np.testing.assert_array_equal(same.predict(ROWS["new"]), fast.predict(ROWS["new"]))


@pytest.mark.parametrize(
    "options",
    [
        ("--by-class", "ant=0.05,bee=0.05,cat=0.05"),
        ("--alpha", "0.04", "--by-class", "cat=0.05"),
        ("--alpha", "0.04", "--groups", "group"),
        ("--alpha", "0.04", "--order-by", "when"),
        ("--alpha", "0.04", "--method", "natural"),
        ("--alpha", "0"),
    ],
)
def test_optimize_takes_options(folder, options):
    arguments = ("model.qwyc", "sample.csv", "-o", "other.qwyc", "--json", *options)
    done = run("optimize", *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert [loss["name"] for loss in facts["certificate"]["classes"]] == LABELS
    assert (
        np.mean(
            qwyc.load(folder / "other.qwyc").predict(ROWS["new"]) != full_labels(THREE, ROWS["new"])
        )
        <= 0.05
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--quit", "negative"), 'quit must be "both"'),
        (("--threshold", "p=0.3"), "threshold is for two classes"),
        (("--by-class", "dog=0.1"), "by-class names 'dog'; the classes are ant, bee, cat"),
        (("--by-class", "ant=0.1"), "must name every class"),
        (("--alpha", "negative=0.01,positive=0.1"), "two classes"),
    ],
)
def test_wrong_options_are_one_line(folder, options, message):
    done = run("optimize", "model.qwyc", "sample.csv", "-o", "no.qwyc", *options, cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr.decode()
    assert not (folder / "no.qwyc").exists()


def test_predict_writes_a_score_for_each_class(folder, fast):
    done = run("predict", "fast.qwyc", "new.csv", "--keep", "when", cwd=folder)
    assert done.returncode == 0, done.stderr
    table = list(csv.DictReader(io.StringIO(done.stdout.decode())))
    scores = [f"score_{label}" for label in LABELS]
    assert list(table[0]) == ["when", "label", "steps", *scores, "complete"]
    decided = fast.decide(ROWS["new"])
    assert [row["label"] for row in table] == decided.label.tolist()
    assert [int(row["steps"]) for row in table] == decided.steps.tolist()
    found = np.array([[float(row[name]) for name in scores] for row in table])
    np.testing.assert_allclose(found, decided.score, rtol=1e-12)


def test_predict_to_parquet_counts_classes(folder, fast):
    import pyarrow.parquet

    arguments = ("fast.qwyc", "new.csv", "-o", "out.parquet", "--prefix", "q_", "--json")
    done = run("predict", *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    table = pyarrow.parquet.read_table(folder / "out.parquet")
    assert table.column_names[2:5] == ["q_score_ant", "q_score_bee", "q_score_cat"]
    facts = json.loads(done.stdout)
    labels, rows = np.unique(fast.predict(ROWS["new"]), return_counts=True)
    assert facts["classes"] == dict(zip(labels.tolist(), rows.tolist(), strict=True))


def test_predict_flags_rows(folder, fast):
    (folder / "odd.csv").write_text(",".join(NAMES) + "\n1,2,3,4,5,6\n1,2,red,4,5,6\n")
    done = run("predict", "fast.qwyc", "odd.csv", "--unseen", "flag", cwd=folder)
    assert done.returncode == 0, done.stderr
    first, second = csv.DictReader(io.StringIO(done.stdout.decode()))
    assert first["label"] in LABELS
    assert first["score_ant"]
    assert second["label"] == second["score_ant"] == second["score_cat"] == ""
    assert "red" in second["reason"]


@pytest.mark.parametrize(("alpha", "code"), [("0.05", 0), ("0.0005", 1)])
def test_verify_has_exit_codes(folder, fast, alpha, code):
    done = run("verify", "fast.qwyc", "new.csv", "--alpha", alpha, cwd=folder)
    text = done.stdout.decode()
    assert done.returncode == code, text + done.stderr.decode()
    assert "bee: " in text
    assert "rows by full decision (lines) and by early decision (columns)" in text


def test_verify_by_class(folder, fast):
    limits = ("--by-class", "ant=0.5,bee=0.5,cat=0.5", "--json")
    done = run("verify", "fast.qwyc", "new.csv", *limits, cwd=folder)
    facts = json.loads(done.stdout)
    assert done.returncode == 0
    assert facts["by_class"] == dict.fromkeys(LABELS, 0.5)
    changed = sum(change["rows"] for change in facts["diagnosis"]["changes"])
    assert changed == facts["diagnosis"]["overall"]["disagreements"]


def test_recertify_inspect_and_bench(folder, fast):
    options = ("-o", "again.qwyc", "--alpha", "0.05")
    done = run("recertify", "fast.qwyc", "new.csv", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    again = qwyc.load(folder / "again.qwyc")
    assert again.certificate.rows == 8000
    done = run("inspect", "again.qwyc", "--json", cwd=folder)
    assert json.loads(done.stdout)["classes"] == LABELS
    done = run("inspect", "again.qwyc", cwd=folder)
    assert "the largest of 3 scores" in done.stdout.decode()
    done = run("bench", "again.qwyc", "new.csv", "--seconds", "0.01", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "base models per row" in done.stdout.decode()
