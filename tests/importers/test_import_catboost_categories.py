"""CatBoost's categorical features: one-hot splits and statistics of one feature, as sets of hashes."""

from __future__ import annotations

import io
import json

import catboost
import numpy as np
import pandas as pd
import polars as pl
import pytest

import qwyc
from commands import run
from qwyc.importers import catboost as importer
from qwyc.rows.cityhash import city_hash_64
from trained import damaged

OPTIONS = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}
CATEGORICAL = ["k", "i", "m"]
LENGTHS = [0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 300]


def make_frame(seed=0, rows=600):
    rng = np.random.default_rng(seed)
    texts = [*"pqrstu", *(f"a longer text, number {i}" for i in range(8)), "é"]
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=rows).round(1),
            "k": rng.choice(texts, rows),
            "i": rng.integers(-5, 40, rows),
            "m": rng.choice(["x", "y"], rows),
        }
    )
    frame.loc[rng.random(rows) < 0.1, "a"] = np.nan
    signal = (frame["a"].fillna(0) > 0) ^ (frame["k"] > "r")
    return frame, (signal | (frame["i"] % 3 == 0) & (frame["m"] == "x")).astype(int)


def train(frame, y, **options):
    options = {"iterations": 25, "depth": 4, "max_ctr_complexity": 1, **OPTIONS, **options}
    return catboost.CatBoostClassifier(cat_features=CATEGORICAL, **options).fit(frame, y)


def with_unseen(frame, seed=1):
    rng = np.random.default_rng(seed)
    other = rng.random((3, len(frame))) < 0.2
    return frame.assign(
        k=np.where(other[0], "not seen", frame["k"]),
        i=np.where(other[1], 999, frame["i"]),
        m=np.where(other[2], "", frame["m"]),
    )


def check(model, frame):
    ensemble = qwyc.read_model(model)
    for rows in (frame, with_unseen(frame)):
        score = ensemble.score_full(rows)
        np.testing.assert_array_equal(score, model.predict(rows, prediction_type="RawFormulaVal"))
        labels = ensemble.classes[(score >= ensemble.threshold).astype(int)]
        np.testing.assert_array_equal(labels, model.predict(rows))
    return ensemble


@pytest.mark.parametrize("policy", ["SymmetricTree", "Depthwise", "Lossguide"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"one_hot_max_size": 100},
        {"simple_ctr": ["Buckets", "BinarizedTargetMeanValue", "Counter:Prior=0.3"]},
        {"simple_ctr": ["Borders:Prior=0.3:Prior=2"]},
        {"counter_calc_method": "Full", "iterations": 1},
    ],
    ids=str,
)
def test_scores_are_those_of_catboost(policy, options, tmp_path):
    frame, y = make_frame()
    model = train(frame, y, grow_policy=policy, **options)
    live = check(model, frame)
    for kind in ("cbm", "json"):
        model.save_model(str(tmp_path / kind), format=kind)
        assert qwyc.read_model(tmp_path / kind).digest == live.digest


def test_every_form_of_rows_and_a_file(tmp_path):
    frame, y = make_frame()
    model = train(frame, y)
    expected = model.predict(frame, prediction_type="RawFormulaVal")
    for form in (
        frame,
        frame.astype({"k": "category", "m": "category"}),
        frame[["m", "i", "k", "a"]],
        pl.DataFrame(frame),
        pl.DataFrame(frame).to_arrow(),
        frame.to_numpy(dtype=object),
    ):
        fast = qwyc.optimize(model, form, alpha=0)
        np.testing.assert_array_equal(fast.score_full(form), expected)
    fast.save(tmp_path / "m.qwyc")
    again = qwyc.load(tmp_path / "m.qwyc")
    np.testing.assert_array_equal(again.score_full(frame), expected)
    assert again.ensemble.digest == fast.ensemble.digest


@pytest.mark.parametrize("kind", ["cbm", "json"])
def test_files_of_models_and_of_rows(kind, tmp_path):
    """Codes and text in a CSV file are both texts to CatBoost; its own JSON reader misses last bits."""
    frame, y = make_frame()
    train(frame, y).save_model(str(tmp_path / "model"), format=kind)
    rows = with_unseen(frame.sample(3000, replace=True, random_state=0)).assign(m="x")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    arguments = ("--alpha", "0.05", "-o", "m.qwyc")
    done = run("optimize", "model", "rows.csv", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    fast = qwyc.load(tmp_path / "m.qwyc")
    others = with_unseen(make_frame(seed=1)[0]).assign(m="x")
    assert "as catboost itself" in qwyc.verify(fast, others, model=tmp_path / "model").parity
    done = run("predict", "m.qwyc", "rows.csv", cwd=tmp_path)
    labels = pd.read_csv(io.BytesIO(done.stdout))["label"]
    np.testing.assert_array_equal(labels, fast.predict(rows))


def test_integers_in_arrays_and_booleans():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 12, (500, 3))
    y = (X[:, 1] % 3 == 0) ^ (X[:, 0] > 5)
    options = {"iterations": 15, "max_ctr_complexity": 1, **OPTIONS}
    model = catboost.CatBoostClassifier(cat_features=[1], **options).fit(X, y)
    score = qwyc.read_model(model).score_full(X)
    np.testing.assert_array_equal(score, model.predict(X, prediction_type="RawFormulaVal"))
    frame = pd.DataFrame({"a": X[:, 0], "t": X[:, 1] > 5})
    flags = catboost.CatBoostClassifier(cat_features=["t"], **options).fit(frame, y)
    score = qwyc.read_model(flags).score_full(frame)
    np.testing.assert_array_equal(score, flags.predict(frame, prediction_type="RawFormulaVal"))


def test_hashes_are_catboost_s_own(tmp_path):
    rng = np.random.default_rng(0)
    texts = np.array([chr(97 + i) * n for i, n in enumerate(LENGTHS)], dtype=object)
    code = rng.integers(0, len(texts), 2000)
    frame = pd.DataFrame({"k": texts[code], "a": rng.normal(size=2000)})
    options = {"iterations": 400, "depth": 1, "one_hot_max_size": 100, **OPTIONS}
    model = catboost.CatBoostClassifier(cat_features=["k"], **options)
    # Every text has a share of its own, so that trees split on most of them.
    model.fit(frame, rng.random(2000) < code / len(texts))
    model.save_model(str(tmp_path / "m.json"), format="json")
    (feature,) = json.loads((tmp_path / "m.json").read_text())["features_info"][
        "categorical_features"
    ]
    theirs = {value & 0xFFFFFFFF for value in feature["values"]}
    assert theirs <= {city_hash_64(text.encode()) & 0xFFFFFFFF for text in texts}
    assert len(theirs) > len(texts) / 2


def test_what_is_refused(tmp_path):
    frame, y = make_frame()
    ensemble = qwyc.read_model(train(frame, y))
    for column, value in (("k", None), ("i", 1.5), ("m", float("nan"))):
        with pytest.raises(qwyc.InputError, match=f"column '{column}'.*integers and text"):
            ensemble.score_full(frame.assign(**{column: value}))
    rows = frame.to_numpy(dtype=object)
    for value, message in (
        (1.0, "integers and text"),
        ("\ud800", "not valid text"),
        ([1], "is \\[1"),
    ):
        rows[3, 2] = value  # beside integers, which 1.0 equals
        with pytest.raises(qwyc.InputError, match=message):
            ensemble.score_full(rows)


def test_damaged_files_are_refused_or_sound(tmp_path):
    frame, y = make_frame(rows=150)
    model = train(frame, y, iterations=3)
    rng = np.random.default_rng(0)
    for kind in ("cbm", "json"):
        path = tmp_path / f"m.{kind}"
        model.save_model(str(path), format=kind)
        content = path.read_bytes()
        outcomes = set()
        for bad in damaged(content, rng):
            path.write_bytes(bad)
            try:
                importer.read_file(path)
                outcomes.add("read")
            except qwyc.ModelError as error:
                outcomes.add("refused" if str(path) in str(error) else str(error))
        assert outcomes <= {"read", "refused"}
