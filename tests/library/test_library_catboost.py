"""libqwyc and CatBoost's categories: hashes of text, and columns from combinations of categories."""

from __future__ import annotations

import catboost
import numpy as np
import pandas as pd
import pytest
from test_library_kinds import check_trained, loaded, same_bits

import qwyc
from library import ARGUMENT, LibraryError, Loaded
from qwyc.rows.categories import FIRST_HASH, codes_of_hashed
from qwyc.rows.cityhash import city_hash_64

CATEGORICAL = ["k", "i", "z"]


def make_frame(rows=400):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=rows).round(2),
            "k": rng.choice([*"pqrstu", *(f"a longer text, {i}" for i in range(6))], rows),
            "i": rng.integers(-3, 9, rows),
            "z": rng.choice(["u", "v", "NA", "é"], rows),
        }
    )
    frame.loc[rng.random(rows) < 0.1, "a"] = np.nan
    y = ((frame["a"].fillna(0) > 0) ^ (frame["k"] > "r")).astype(int) + (frame["z"] == "u")
    return frame, y


def train(kind, y, **options):
    frame, _ = make_frame()
    model = kind(
        iterations=20,
        depth=3,
        verbose=False,
        thread_count=1,
        max_ctr_complexity=3,
        cat_features=CATEGORICAL,
        **options,
    )
    return model.fit(frame, y)


@pytest.fixture(scope="module")
def model():
    _, y = make_frame()
    return train(catboost.CatBoostClassifier, y > 0)


def other_values(frame):
    return frame.assign(
        k=np.where(frame.index % 7 == 0, "not seen", frame["k"]),
        i=np.where(frame.index % 5 == 0, 999, frame["i"]),
    )


def test_two_classes(model):
    frame, _ = make_frame()
    ensemble = qwyc.read_model(model)
    assert ensemble.base_models.kind == "combined-trees"
    check_trained(ensemble, other_values(frame))


def test_several_classes():
    frame, y = make_frame()
    several = train(catboost.CatBoostClassifier, y, loss_function="MultiClass")
    ensemble = qwyc.read_model(several)
    assert ensemble.base_models.kind == "combined-class-trees"
    check_trained(ensemble, other_values(frame))


def test_values(tmp_path):
    frame, y = make_frame()
    regressor = train(catboost.CatBoostRegressor, y + frame["a"].fillna(1))
    predictor = qwyc.read_model(regressor)
    predictor.save(tmp_path / "model.qwyc")
    given = other_values(frame)
    rows = np.ascontiguousarray(predictor.rows(given), dtype=np.float64)
    found = Loaded.of_file(tmp_path / "model.qwyc").output("values", rows, 1, threads=2)
    same_bits(found[:, 0], regressor.predict(given))


def test_codes_of_values(model, tmp_path):
    """Of text of every length, and of integers, known or not: as Python encodes them."""
    predictor = qwyc.read_model(model)
    predictor.save(tmp_path / "model.qwyc")
    native, schema = Loaded.of_file(tmp_path / "model.qwyc"), predictor.schema
    text = "é, and letters: " * 20
    values = [*"pqrstu", "NA", "é", -3, 8, 10**15, "0"]
    values += [text.encode()[:n].decode(errors="ignore") for n in range(200)]
    values += ["x" * n for n in range(200)]
    for feature, known in schema.categories.items():
        expected = codes_of_hashed(values, known, schema.names[feature])
        found = [native.code_of(feature, value) for value in values]
        np.testing.assert_array_equal(found, expected)
        assert (expected >= FIRST_HASH).any() == (None in known)
    assert city_hash_64(b"x" * 65) != city_hash_64(b"x" * 64)
    for value in (None, 0.5):
        with pytest.raises(LibraryError, match="CatBoost takes integers and text"):
            native.code_of(1, value)
    with pytest.raises(LibraryError, match="not a column of categories") as error:
        native.code_of(0, "p")
    assert error.value.status == ARGUMENT


def test_rows_from_codes_are_decided_as_in_python(model, tmp_path):
    """From values to decisions, without Python's encoding."""
    frame, _ = make_frame()
    given = other_values(frame)
    fast = qwyc.optimize(model, frame, alpha=0.2, confidence=0.8, progress=False)
    native = loaded(fast)
    rows = given.to_numpy(dtype=object)
    for j in (1, 2, 3):
        rows[:, j] = [native.code_of(j, value) for value in rows[:, j]]
    label, steps, _ = native.decide(rows.astype(np.float64))
    expected = fast.decide(given)
    np.testing.assert_array_equal(fast.ensemble.classes.take(label), expected.label)
    np.testing.assert_array_equal(steps, expected.steps)
