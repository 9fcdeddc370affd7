"""`qwyc predict` and `qwyc inspect` on models that are evaluated in full."""

import csv
import io
import json

import lightgbm
import numpy as np
import pytest
import xgboost

import qwyc
from commands import one_line, run
from outputs import made_rows

X, TARGET = made_rows(missing=0.0)
NAMES = [f"f{j}" for j in range(X.shape[1])]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A regressor and a classifier in files of their libraries, and rows."""
    folder = tmp_path_factory.mktemp("models")
    rows = xgboost.DMatrix(X, TARGET, feature_names=NAMES)
    xgboost.train({"max_depth": 3}, rows, 10).save_model(folder / "values.ubj")
    options = {"objective": "multiclass", "num_class": 3, "verbosity": -1, "num_threads": 1}
    labels = np.digitize(TARGET, [-1, 1])
    data = lightgbm.Dataset(X.astype(np.float64), labels, feature_name=NAMES)
    lightgbm.train(options, data, 10).save_model(folder / "classes.txt")
    with open(folder / "rows.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *NAMES])
        writer.writerows([i, *map(repr, row)] for i, row in enumerate(X.astype(float).tolist()))
    return folder


def predicted(*arguments, cwd):
    done = run("predict", *arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout.decode())))


def test_values_of_a_librarys_file(folder):
    found = predicted("values.ubj", "rows.csv", "--keep", "id", cwd=folder)
    own = qwyc.read_model(folder / "values.ubj").predict(X)
    assert list(found[0]) == ["id", "value"]
    np.testing.assert_array_equal(np.float32([row["value"] for row in found]), own)
    assert [row["id"] for row in found[:3]] == ["0", "1", "2"]


def test_probabilities_and_scores(folder):
    found = predicted("classes.txt", "rows.csv", "--proba", "--raw", cwd=folder)
    model = qwyc.read_model(folder / "classes.txt")
    columns = [f"{name}_{k}" for name in ("proba", "score") for k in range(3)]
    assert list(found[0]) == ["label", *columns]
    numbers = np.array([[float(row[name]) for name in columns] for row in found])
    rows = X.astype(np.float64)
    np.testing.assert_array_equal(numbers[:, :3], model.predict_proba(rows))
    np.testing.assert_array_equal(numbers[:, 3:], model.score_full(rows))
    assert [int(row["label"]) for row in found] == model.predict(rows).tolist()


def test_a_model_without_a_policy(folder, tmp_path):
    qwyc.read_model(folder / "values.ubj").save(tmp_path / "values.qwyc")
    found = predicted(tmp_path / "values.qwyc", folder / "rows.csv", "--raw", cwd=tmp_path)
    assert list(found[0]) == ["value", "score"]
    values, scores = ([float(row[name]) for row in found] for name in ("value", "score"))
    np.testing.assert_array_equal(np.float32(values), np.float32(scores))
    done = run("inspect", "values.qwyc", "--json", cwd=tmp_path)
    facts = json.loads(done.stdout)
    assert (facts["base_models"], facts["classes"], facts["features"]) == (10, [], 8)
    assert b"evaluated in full" in run("inspect", "values.qwyc", cwd=tmp_path).stdout
    for command, *more in (("verify",), ("recertify", "-o", "again.qwyc")):
        done = run(command, "values.qwyc", folder / "rows.csv", *more, cwd=tmp_path)
        assert "holds a model without a policy" in one_line(done)


def test_classifiers_are_evaluated_in_full_for_probabilities(folder, tmp_path):
    model = qwyc.read_model(folder / "classes.txt")
    qwyc.optimize(model, alpha=0).save(tmp_path / "fast.qwyc")
    found = predicted(tmp_path / "fast.qwyc", folder / "rows.csv", "--proba", cwd=tmp_path)
    own = model.predict_proba(X.astype(np.float64))
    np.testing.assert_array_equal([float(row["proba_2"]) for row in found], own[:, 2])


def test_what_does_not_go_together(folder):
    done = run("predict", "values.ubj", "rows.csv", "--unseen", "flag", cwd=folder)
    assert "--unseen can only be used with a classifier" in one_line(done)
    done = run("predict", "values.ubj", "rows.csv", "--proba", cwd=folder)
    assert "gives values, not probabilities" in one_line(done)
    done = run("predict", "values.ubj", "rows.csv", "--keep", "value", cwd=folder)
    assert done.returncode == 2
