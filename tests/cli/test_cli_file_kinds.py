"""A file of the wrong kind, or in the wrong place, is said in plain words."""

import re

import lightgbm
import numpy as np
import onnxmltools
import pandas as pd
import pytest
import xgboost
from onnxmltools.convert.common.data_types import FloatTensorType

import qwyc
from commands import one_line, run

NAMES = list("abcd")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Models of three libraries, a classifier and an approximation, a model in a .qwyc file, and rows."""
    made = tmp_path_factory.mktemp("kinds")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(4000, 4)), columns=NAMES)
    y = (X.sum(axis=1) > 0).astype(int)
    model = xgboost.XGBClassifier(n_estimators=20, max_depth=2, n_jobs=1).fit(X[:1500], y[:1500])
    model.save_model(made / "model.json")
    light = lightgbm.LGBMClassifier(n_estimators=5, verbosity=-1, n_jobs=1).fit(X[:1500], y[:1500])
    light.booster_.save_model(made / "model.txt")
    shape = [("input", FloatTensorType([None, 4]))]
    onnx = onnxmltools.convert_lightgbm(light, initial_types=shape, zipmap=False)
    (made / "model.onnx").write_bytes(onnx.SerializeToString())
    (made / "model.pkl").write_bytes(b"\x80\x04pickled")
    qwyc.optimize(model, X[1500:], alpha=0.03, progress=False).save(made / "m.qwyc")
    qwyc.optimize(model, X[1500:], alpha=0.05, tolerance=0.1, progress=False).save(
        made / "near.qwyc"
    )
    qwyc.read_model(model).save(made / "full.qwyc")
    X[1500:].to_parquet(made / "rows.parquet")
    X[1500:].to_csv(made / "rows.csv", index=False)
    X[1500:].to_feather(made / "rows.feather")
    return made


def message_of(folder, *arguments):
    message = one_line(run(*arguments, cwd=folder))
    assert not re.search(r"qwyc\.[A-Za-z]", message), message  # Python has no place here
    assert "Classifier" not in message
    return message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["optimize", "rows.parquet", "model.json"],
            "rows.parquet is a Parquet file; a model file was expected. Did you swap the arguments? The "
            "order is: qwyc optimize MODEL DATA...",
        ),
        (
            ["predict", "rows.csv", "m.qwyc"],
            "rows.csv is a CSV file; a model file was expected. Did you swap the arguments? The order is: "
            "qwyc predict FILE DATA...",
        ),
        (
            ["verify", "rows.feather", "m.qwyc"],
            "rows.feather is an Arrow file; a .qwyc file was expected. Did you swap the arguments?",
        ),
        (
            ["recertify", "rows.csv", "m.qwyc", "-o", "new.qwyc"],
            "rows.csv is a CSV file; a .qwyc file was expected. Did you swap the arguments?",
        ),
        (["bench", "rows.csv", "m.qwyc"], "Did you swap the arguments?"),
        (
            ["verify", "m.qwyc", "model.json"],
            "model.json is a model of XGBoost; rows were expected, as CSV, Parquet or Arrow",
        ),
        (["optimize", "model.json", "m.qwyc"], "m.qwyc is a .qwyc file; rows were expected"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_swapped_arguments(folder, arguments, words):
    assert words in message_of(folder, *arguments)


@pytest.mark.parametrize("command", ["inspect", "report", "verify", "export c", "recertify"])
@pytest.mark.parametrize(
    ("file", "library"),
    [("model.json", "XGBoost"), ("model.txt", "LightGBM"), ("model.onnx", "ONNX")],
)
def test_models_where_a_qwyc_file_is_expected(folder, command, file, library):
    more = {
        "verify": ["rows.csv"],
        "export c": ["-o", "x"],
        "recertify": ["rows.csv", "-o", "x.qwyc"],
    }
    message = message_of(folder, *command.split(), file, *more.get(command, []))
    assert f"{file} is a model of {library}; a .qwyc file was expected" in message
    assert f"qwyc optimize {file} DATA -o model.qwyc" in message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["inspect", "rows.parquet"], "rows.parquet is a Parquet file; a .qwyc file was expected"),
        (["optimize", "model.pkl", "rows.csv"], "model.pkl is a pickle; a model file was expected. "),
        (["optimize", "rows.csv", "rows.csv"], "A model is a file of XGBoost (.json, .ubj), LightGBM"),
        (["verify", "full.qwyc", "rows.csv"], "make one with qwyc optimize"),
        (["report", "near.qwyc"], "FILE was made with --tolerance"),
        (["recertify", "near.qwyc", "rows.csv", "-o", "x.qwyc"], "FILE was made with --tolerance"),
        (
            ["optimize", "model.json", "rows.csv", "--threshold", "0.3"],
            "Pass --threshold score=0.3 or --threshold p=0.3",
        ),
        (
            ["optimize", "model.json", "rows.csv", "--threshold", "q=0.3"],
            "threshold must be a probability such as p=0.3, or a score such as score=0.5",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)  # fmt: skip
def test_other_files_and_options(folder, arguments, words):
    assert words in message_of(folder, *arguments)


@pytest.mark.parametrize("file", ["model.json", "m.qwyc", "full.qwyc", "near.qwyc", "model.onnx"])
def test_predict_takes_all_of_them(folder, file):
    done = run("predict", file, "rows.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(b"\n") == 2501


@pytest.mark.parametrize(("text", "at"), [("p=0.3", np.log(0.3 / 0.7)), ("score=0.3", 0.3)])
def test_thresholds_say_what_they_are(folder, tmp_path, text, at):
    out = tmp_path / "t.qwyc"
    done = run(
        "optimize", folder / "model.json", folder / "rows.csv", "--threshold", text, "-o", out
    )
    assert done.returncode == 0, done.stderr
    assert qwyc.load(out).policy.threshold == pytest.approx(at)
