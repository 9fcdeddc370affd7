"""Large integers in every container that LightGBM takes: read as `LGBMClassifier`, `Booster` and the file
of a model read them."""

import io

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv

import qwyc
from commands import run
from trained import QUIET

pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")
NAMES = ["a", "b", "c", "d"]
N = 400
BEYOND = 2**63  # past int64


def integers(seed):
    """(N, 4) int64 around 2**24, around 2**53, around 2**60 and small."""
    rng = np.random.default_rng(seed)
    middles = 2**60 + 2**36 * rng.integers(-40, 40, N) + rng.integers(-1, 2, N)
    around = [2**24 + rng.integers(-40, 40, N), 2**53 + rng.integers(-40, 40, N)]
    return np.column_stack([*around, middles, rng.integers(0, 9, N)])


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """An LGBMClassifier, its Booster, and the Booster that LightGBM makes of its file."""
    X = integers(0).astype(np.float64)
    y = (X[:, 0] % 4 < 2) ^ (X[:, 1] % 8 < 4) ^ (X[:, 2] // 2**37 % 2 == 0)
    few = {"min_child_samples": 2, "min_data_in_bin": 1}
    light = lightgbm.LGBMClassifier(n_estimators=30, **few, **QUIET)
    light.fit(pd.DataFrame(X, columns=NAMES), y.astype(int))
    path = tmp_path_factory.mktemp("lightgbm") / "m.txt"
    light.booster_.save_model(path)
    return {
        "classifier": (light, light),
        "booster": (light.booster_, light.booster_),
        "file": (path, lightgbm.Booster(model_file=path)),
    }


def arrays(X):
    past = X.astype("u8")
    past[:, 2] += np.uint64(BEYOND)
    for kind in ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g", "O"):
        with np.errstate(over="ignore", invalid="ignore"):
            yield f"array {kind}", X.astype(kind)
    yield "array u8 past int64", past
    yield "array of objects past int64", past.astype(object)
    yield "array of objects with None", np.array([[*r[:3], None] for r in X.tolist()], object)
    yield "array of objects and floats", np.array([[*r[:3], 0.1] for r in X.tolist()], object)
    yield "strided array", np.repeat(X, 2, axis=1)[:, ::2]
    yield "reversed array", X[::-1]


def lists(X):
    rows = X.tolist()
    yield "list past int64", [[a, b, c + BEYOND, d] for a, b, c, d in rows]
    yield "list past int64, negative", [[-a, b, c + BEYOND, d] for a, b, c, d in rows]
    yield "list past uint64", [[a, b, c * 2**10, d] for a, b, c, d in rows]
    yield "list with bool", [[a, b, c, d > 4] for a, b, c, d in rows]
    yield "list of bool", [[v % 2 == 0 for v in row] for row in rows]
    kinds = (np.int64, np.float32, np.uint64, np.float64)
    yield "list of scalars", [[k(v) for k, v in zip(kinds, r, strict=True)] for r in rows]


def frames(X):
    frame = pd.DataFrame(X, columns=NAMES)
    past = frame.astype("u8")
    past["c"] += np.uint64(BEYOND)
    small = frame % 100
    missing = frame.astype("Int64")
    missing.iloc[3, 2] = pd.NA
    past_missing = past.astype("UInt64")
    past_missing.iloc[5, 2] = pd.NA
    yield "u8 past int64", past
    yield "i8 and u8", frame.assign(c=past["c"])
    yield "i4 and f4", frame.astype({"a": "i4", "b": "f4", "c": "f4", "d": "f4"})
    yield "i2 and f4", frame.astype({"a": "f4", "b": "f4", "c": "f4", "d": "i2"})
    yield "i8 and f4", frame.astype({"d": "f4"})
    yield "f4", frame.astype("f4")
    yield "bool", frame % 2 == 0
    yield "i2 and bool", small.astype("i2").assign(d=frame["d"] > 4)
    for kind in ("i1", "Int8", "UInt8", "Int16", "Int32", "UInt32"):
        yield kind, small.astype(kind)
    yield "Int64 with NA", missing
    yield "UInt64 past int64", past.astype("UInt64")
    yield "UInt64 with NA", past_missing
    yield "Int64 and Float32", frame.astype({"a": "Int64", "b": "Float32", "c": "Int64"})
    yield "boolean with NA", missing.assign(d=pd.array([True, None] * (N // 2), dtype="boolean"))


def every_container():
    X = integers(1)
    for make in (arrays, lists):
        yield from make(X)
    for name, frame in frames(X):
        yield f"pandas {name}", frame
        yield f"Polars {name}", pl.from_pandas(frame)
        yield f"Arrow {name}", pa.Table.from_pandas(frame)


CONTAINERS = dict(every_container())


@pytest.mark.parametrize("kind", ["classifier", "booster", "file"])
@pytest.mark.parametrize("container", CONTAINERS)
def test_scores_are_those_of_the_model_itself(models, kind, container):
    model, own = models[kind]
    X = CONTAINERS[container]
    ours = qwyc.read_model(model).score_full(X)
    np.testing.assert_array_equal(ours, own.predict(X, raw_score=True))


def test_the_containers_make_a_difference(models):
    """Otherwise the test above would not show anything."""
    light, booster = models["classifier"][0], models["booster"][0]
    X = integers(1)
    array = booster.predict(X, raw_score=True)
    objects = booster.predict(X.astype(object), raw_score=True)  # rounded twice: float64, float32
    assert (objects != array).any()
    assert (objects != light.predict(X.astype(object), raw_score=True)).any()
    assert (array != booster.predict(pd.DataFrame(X, columns=NAMES), raw_score=True)).any()


@pytest.mark.parametrize("kind", ["classifier", "booster", "file"])
@pytest.mark.parametrize("container", [*dict(arrays(integers(2))), *dict(lists(integers(2)))])
def test_one_row_is_decided_as_by_the_model_itself(models, kind, container):
    model, own = models[kind]
    fast = qwyc.optimize(model, alpha=0)
    rows = (dict(arrays(integers(2))) | dict(lists(integers(2))))[container]
    for row in rows[:60]:
        alone = row[None] if isinstance(row, np.ndarray) else [row]
        output = own.predict(alone)[0]
        assert fast.predict_one(row) == (output if kind == "classifier" else int(output > 0.5))


@pytest.mark.parametrize("past", [False, True])
def test_text_of_integers_in_a_file(models, tmp_path, past):
    light = models["classifier"][0]
    qwyc.optimize(light, alpha=0).save(tmp_path / "m.qwyc")
    table = pa.Table.from_pandas(
        dict(frames(integers(3)))["u8 past int64" if past else "i8 and f4"]
    )
    csv.write_csv(table, tmp_path / "rows.csv")
    done = run("predict", "m.qwyc", "rows.csv", cwd=tmp_path)
    found = csv.read_csv(io.BytesIO(done.stdout))["label"].to_pylist()
    assert found == light.predict(csv.read_csv(tmp_path / "rows.csv")).tolist(), done.stderr


def test_a_classifier_and_its_file_are_one_model(models, tmp_path):
    light, path = models["classifier"][0], models["file"][0]
    X = integers(4)
    fast = qwyc.optimize(light, X, alpha=0, progress=False)
    assert fast.ensemble.digest == qwyc.read_model(path).digest
    assert "equal those" in qwyc.verify(fast, X, model=path).parity
    fast.save(tmp_path / "m.qwyc")
    assert qwyc.load(tmp_path / "m.qwyc").ensemble.schema.integers == "float32"
    of_booster = qwyc.optimize(path, X, alpha=0, progress=False)
    of_booster.save(tmp_path / "b.qwyc")
    assert qwyc.load(tmp_path / "b.qwyc").ensemble.schema.integers == "float32 objects"
    objects = X.astype(object)
    assert (fast.score_full(objects) != of_booster.score_full(objects)).any()
