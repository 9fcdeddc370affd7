"""CatBoost's statistics of combinations: several categories, numbers above borders, single categories."""

from __future__ import annotations

import pickle

import catboost
import numpy as np
import pandas as pd
import polars as pl
import pytest

import qwyc
from commands import run
from qwyc.importers import catboost as importer
from qwyc.model import combined_trees
from trained import damaged

CATEGORICAL = ["k", "i", "m", "z"]
OPTIONS = {
    "verbose": 0,
    "allow_writing_files": False,
    "thread_count": 1,
    "iterations": 25,
    "depth": 5,
    "max_ctr_complexity": 4,
    "model_size_reg": 0,  # otherwise few combinations are large
    "cat_features": CATEGORICAL,
}


def make_frame(seed=0, rows=500):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=rows).round(2),
            "k": rng.choice([*"pqrstu", *(f"a longer text, {i}" for i in range(6))], rows),
            "i": rng.integers(-3, 9, rows),
            "m": rng.choice(["x", "y"], rows),
            "b": rng.normal(size=rows),
            "z": rng.choice(["u", "v", "NA", "é"], rows),
        }
    )
    frame.loc[rng.random(rows) < 0.1, "a"] = np.nan
    y = ((frame["a"].fillna(0) > 0) ^ (frame["k"] > "r")).astype(int)
    y += ((frame["i"] % 3 == 0) & (frame["m"] == "x")) | ((frame["z"] == "u") & (frame["b"] > 0))
    return frame, y


def with_unseen(frame, seed=1):
    rng = np.random.default_rng(seed)
    other = rng.random((3, len(frame))) < 0.15
    return frame.assign(
        k=np.where(other[0], "not seen", frame["k"]),
        i=np.where(other[1], 999, frame["i"]),
        z=np.where(other[2], "", frame["z"]),
    )


def train(kind=catboost.CatBoostClassifier, **options):
    frame, y = make_frame()
    if kind is catboost.CatBoostRegressor:
        y = y + 0.1 * frame["b"].clip(0)
    elif "loss_function" not in options:
        y = (y > 0).astype(int)
    return kind(**{**OPTIONS, **options}).fit(frame, y)


@pytest.fixture(scope="module")
def classifier():
    return train()


def kinds_of_parts(ensemble):
    return set(ensemble.base_models.combinations.part_kind.tolist())


CTRS = ["Buckets", "BinarizedTargetMeanValue:Prior=0.3", "Borders:Prior=0.1:Prior=2", "Counter"]
MODELS = {
    "classifier": (catboost.CatBoostClassifier, {}),
    "missing is high": (catboost.CatBoostClassifier, {"nan_mode": "Max", "one_hot_max_size": 4}),
    "all types": (
        catboost.CatBoostClassifier,
        {"combinations_ctr": CTRS, "counter_calc_method": "Full"},
    ),
    "classes": (catboost.CatBoostClassifier, {"loss_function": "MultiClass"}),
    "one against all": (catboost.CatBoostClassifier, {"loss_function": "MultiClassOneVsAll"}),
    "regressor": (catboost.CatBoostRegressor, {}),
    "borders of the target": (
        catboost.CatBoostRegressor,
        {"combinations_ctr": ["Borders:TargetBorderCount=4", "Buckets:TargetBorderCount=3"]},
    ),
    "exponential": (
        catboost.CatBoostRegressor,
        {"loss_function": "Poisson", "model_size_reg": 0.5},
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_outputs_are_those_of_catboost(name, tmp_path):
    kind, options = MODELS[name]
    model = train(kind, **options)
    ensemble = qwyc.read_model(model)
    assert {combined_trees.CATEGORY} < kinds_of_parts(ensemble)
    ensemble.save(tmp_path / "model.qwyc")
    found = [ensemble, qwyc.load(tmp_path / "model.qwyc")]
    for suffix in ("cbm", "json"):
        model.save_model(str(tmp_path / suffix), format=suffix)
        found.append(qwyc.read_model(tmp_path / suffix))
    assert len({each.digest for each in found}) == 1
    for frame in (make_frame()[0], with_unseen(make_frame(1)[0])):
        expected = model.predict(frame)
        for each in found:
            score = each.score_full(frame)
            np.testing.assert_array_equal(
                score, model.predict(frame, prediction_type="RawFormulaVal")
            )
            np.testing.assert_array_equal(each.predict(frame), expected.reshape(-1))
        if hasattr(model, "predict_proba"):
            probabilities = ensemble.predict_proba(frame)
            np.testing.assert_array_equal(probabilities, model.predict_proba(frame))
        for i in range(3):
            assert ensemble.predict_one(frame.iloc[i]) == expected.reshape(-1)[i]


def test_parts_of_every_kind_are_read(classifier):
    high = train(nan_mode="Max")
    kinds = kinds_of_parts(qwyc.read_model(classifier)) | kinds_of_parts(qwyc.read_model(high))
    assert kinds == set(range(4))
    parts = np.diff(qwyc.read_model(classifier).base_models.combinations.part_begin)
    assert parts.max() >= 3


def test_every_form_of_rows(classifier):
    frame = with_unseen(make_frame(2)[0])
    ensemble = qwyc.read_model(classifier)
    expected = classifier.predict(frame, prediction_type="RawFormulaVal")
    for form in (
        frame,
        frame.astype({"k": "category", "m": "category"}),
        frame[["z", "m", "b", "i", "k", "a"]],
        pl.DataFrame(frame),
        pl.DataFrame(frame).with_columns(pl.col("k").cast(pl.Categorical)),
        pl.DataFrame(frame).to_arrow(),
        frame.to_numpy(dtype=object),
        frame.to_numpy(dtype=object).tolist(),
    ):
        for _ in range(2):  # texts that were seen are read in another way
            np.testing.assert_array_equal(ensemble.score_full(form), expected)
            np.testing.assert_array_equal(ensemble.predict(form), expected > 0)
    for row in (frame.iloc[3].to_dict(), frame.iloc[3].tolist(), frame.iloc[3:4]):
        assert ensemble.predict_one(row) == (expected[3] > 0)
    with pytest.raises(qwyc.InputError, match=r"column 'z'.*refuses missing values"):
        ensemble.predict(frame.assign(z=None))


def test_a_classifier_that_quits_early(classifier, tmp_path):
    frame, fresh = make_frame(3, rows=3000)[0], with_unseen(make_frame(4)[0])
    fast = qwyc.optimize(classifier, frame, alpha=0.05)
    assert fast.certificate.counts.mean_models < OPTIONS["iterations"]
    np.testing.assert_array_equal(fast.full().predict(fresh), classifier.predict(fresh))
    fast.save(tmp_path / "fast.qwyc")
    for again in (qwyc.load(tmp_path / "fast.qwyc"), pickle.loads(pickle.dumps(fast))):
        np.testing.assert_array_equal(again.predict(fresh), fast.predict(fresh))
    lazily = fast.decide_lazily(lambda columns, rows: fresh.iloc[rows][columns], len(fresh))
    np.testing.assert_array_equal(lazily.label, fast.predict(fresh))
    monitor = qwyc.Monitor(fast, rate=1.0)
    np.testing.assert_array_equal(monitor.predict(fresh), fast.predict(fresh))
    assert "combinations" in repr(fast)
    with pytest.raises(qwyc.ModelError, match="combinations of columns cannot be exported to C"):
        fast.export_c(tmp_path / "fast")
    proven = qwyc.optimize(classifier, alpha=0)
    np.testing.assert_array_equal(proven.predict(fresh), classifier.predict(fresh))


def test_a_csv_file_holds_categories_as_text(tmp_path):
    """NA is a category, as it is in CatBoost's own files: the model does not list its categories."""
    model = train(iterations=5)
    model.save_model(str(tmp_path / "model.cbm"))
    frame = make_frame(5, rows=100)[0].drop(columns="b").assign(b=0.5)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    done = run("predict", "model.cbm", "rows.csv", "-o", "out.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    labels = pd.read_csv(tmp_path / "out.csv")["label"]
    np.testing.assert_array_equal(labels, model.predict(frame[["a", "k", "i", "m", "b", "z"]]))


def test_damaged_files_are_refused_or_sound(tmp_path):
    model = train(iterations=3)
    rng = np.random.default_rng(0)
    for kind in ("cbm", "json"):
        path = tmp_path / f"m.{kind}"
        model.save_model(str(path), format=kind)
        outcomes = set()
        for bad in list(damaged(path.read_bytes(), rng))[::4]:
            path.write_bytes(bad)
            try:
                importer.read_file(path)
                outcomes.add("read")
            except qwyc.ModelError as error:
                outcomes.add("refused" if str(path) in str(error) else str(error))
        assert outcomes <= {"read", "refused"}
