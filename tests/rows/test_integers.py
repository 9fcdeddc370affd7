"""Integers that float32 or float64 cannot hold: rows of them are scored and decided as by each library."""

import io
from dataclasses import replace

import catboost
import lightgbm
import numpy as np
import onnxruntime
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import treelite
import xgboost
import ydf
from pyarrow import csv, feather, parquet
from skl2onnx import to_onnx
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier

import qwyc
from commands import run
from forests import ensemble_of, with_inputs
from matrices import F32, F64, check
from qwyc.errors import ArtifactError, InputError
from qwyc.files.parts import read_schema, schema_facts
from qwyc.rows.matrix import to_matrix
from trained import QUIET

pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")
NAMES = ["a", "b", "c", "d"]
N = 600


def integers(seed, *, ties):
    """(N, 4) int64 around 2**24, around 2**53 and small. Column c is around 2**60, with `ties` one off
    the middle between two float32: those become another float32 by way of float64."""
    rng = np.random.default_rng(seed)
    middles = 2**60 + 2**36 * rng.integers(-40, 40, N)
    return np.column_stack(
        [
            2**24 + rng.integers(-40, 40, N),
            2**53 + rng.integers(-40, 40, N),
            middles + (rng.integers(-1, 2, N) if ties else 2**20 * rng.integers(0, 9, N)),
            rng.integers(0, 9, N),
        ]
    )


def training():
    """Rows and labels that trees split between neighbours."""
    X = integers(0, ties=False).astype(np.float64)
    y = (X[:, 0] % 4 < 2) ^ (X[:, 1] % 8 < 4) ^ (X[:, 2] // 2**37 % 2 == 0)
    return pd.DataFrame(X, columns=NAMES), y.astype(int)


def arrays(X):
    yield "i8", X
    yield "u8", X.astype("u8")
    yield "i4", np.repeat(X[:, :1], 4, axis=1).astype("i4")
    yield "u4", np.repeat(X[:, :1], 4, axis=1).astype("u4")
    yield "bool", X % 2 == 0
    yield "f4", X.astype("f4")
    yield "f8", X.astype("f8")
    yield "fortran", np.asfortranarray(X)


def other_floats(X):
    yield "f2", (X % 2**10).astype("f2")
    yield "longdouble", X.astype("g")
    yield ">f4", X.astype(">f4")
    yield ">f8", X.astype(">f8")
    yield ">i8", X.astype(">i8")


def lists(X):
    yield "list", X.tolist()
    yield "list of arrays", list(X)
    yield "list with a fraction", [[a, b, c, d + 0.5] for a, b, c, d in X.tolist()]


def frames(X):
    frame = pd.DataFrame(X, columns=NAMES)
    null = frame.astype("Int64")
    null.iloc[3, 3] = pd.NA
    yield "i8", frame
    yield "u8", frame.astype("u8")
    yield "i4", pd.DataFrame(np.repeat(X[:, :1], 4, axis=1), columns=NAMES).astype("i4")
    yield "i8 and f4", frame.assign(d=frame["d"].astype("f4"))
    yield "i8 and f8", frame.assign(d=frame["d"].astype("f8"))
    yield "i8 and bool", frame.assign(d=frame["d"] > 4)
    yield "Int64", null.fillna(1)
    yield "Int64 with a null", null


def arrow(X):
    frame = dict(frames(X))
    for name in ("i8", "u8", "i4", "i8 and f4", "i8 and bool", "Int64 with a null"):
        yield name, pa.Table.from_pandas(frame[name])


FITTED = {
    "XGBoost": lambda X, y: xgboost.XGBClassifier(n_estimators=20).fit(X, y),
    "CatBoost": lambda X, y: catboost.CatBoostClassifier(iterations=30, verbose=False).fit(X, y),
    "hist": lambda X, y: HistGradientBoostingClassifier(max_iter=20).fit(X, y),
    "forest": lambda X, y: RandomForestClassifier(10, n_jobs=1, random_state=0).fit(X, y),
    "extra": lambda X, y: ExtraTreesClassifier(10, n_jobs=1, random_state=0).fit(X, y),
    "boosting": lambda X, y: GradientBoostingClassifier(n_estimators=20).fit(X, y),
    "tree": lambda X, y: DecisionTreeClassifier(random_state=0).fit(X, y),
    "bagging": lambda X, y: BaggingClassifier(random_state=0).fit(X, y),
    "AdaBoost": lambda X, y: AdaBoostClassifier(random_state=0).fit(X, y),
}
SCIKIT_LEARN_FLOAT32 = ["forest", "extra", "boosting", "tree", "bagging", "AdaBoost"]


def fit_lightgbm(X, y):
    few = {"min_child_samples": 2, "min_data_in_bin": 1}
    return lightgbm.LGBMClassifier(n_estimators=30, **few, **QUIET).fit(X, y)


@pytest.fixture(scope="module")
def light():
    return fit_lightgbm(*training())


def own_scores(name, model, X):
    if name == "XGBoost":
        return model.predict(X, output_margin=True)
    if name == "CatBoost":
        return model.predict(X, prediction_type="RawFormulaVal")
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    return model.predict_proba(X)[:, 1]


def assert_as_the_library(name, model, ensemble, X):
    ours, theirs = ensemble.score_full(X), own_scores(name, model, X)
    if ensemble.base_models.divisor == 1:
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)  # averages: ties are moved
    labels = ensemble.classes[(ours >= ensemble.threshold).astype(int)]
    np.testing.assert_array_equal(labels, model.predict(X))


# ---- LightGBM --------------------------------------------------------------------------------


def taken_by_lightgbm():
    X = integers(1, ties=True)
    for make in (arrays, other_floats, lists, frames, arrow):
        for name, rows in make(X):
            yield pytest.param(rows, id=f"{make.__name__} {name}")
    yield pytest.param([[*row[:3], None] for row in X.tolist()], id="list with None")
    yield pytest.param(pl.from_pandas(pd.DataFrame(X, columns=NAMES)), id="polars")


@pytest.mark.parametrize("X", taken_by_lightgbm())
def test_lightgbm_scores_and_decides_every_container_the_same(light, X):
    ensemble = qwyc.read_model(light)
    for model in (light, light.booster_):
        ours, theirs = ensemble.score_full(X), model.predict(X, raw_score=True)
        np.testing.assert_array_equal(ours, theirs)
    exact = qwyc.optimize(light, alpha=0)
    np.testing.assert_array_equal(exact.predict(X), light.predict(X))


def test_lightgbm_rounds_arrays_and_not_frames(light):
    """The difference that the test above is about is there."""
    X = integers(1, ties=True)
    array = light.predict(X, raw_score=True)
    assert (array != light.predict(pd.DataFrame(X, columns=NAMES), raw_score=True)).any()
    ensemble = qwyc.read_model(light)
    assert to_matrix(X, ensemble.schema).dtype == np.float32
    objects = light.predict(X.astype(object), raw_score=True)  # a Booster rounds these as well
    np.testing.assert_array_equal(ensemble.score_full(X.astype(object)), objects)
    assert (array != objects).any()


def test_what_lightgbm_does_not_take_is_read_as_what_is_nearest(light):
    X = integers(1, ties=True)
    ensemble = qwyc.read_model(light)
    frame = pd.DataFrame(X, columns=NAMES)
    as_frame = light.predict(frame, raw_score=True)
    table = pa.Table.from_pandas(frame)
    for nearest in (frame.astype(object), frame.astype("int64[pyarrow]"), table.to_batches()[0]):
        np.testing.assert_array_equal(ensemble.score_full(nearest), as_frame)
    as_array = light.predict(X, raw_score=True)
    masked = np.ma.array(X, mask=np.zeros(X.shape, bool))
    for nearest in (tuple(map(tuple, X.tolist())), masked):
        np.testing.assert_array_equal(ensemble.score_full(nearest), as_array)


def test_a_live_lightgbm_model_agrees_on_a_sample_of_integers(light):
    X = integers(4, ties=True)
    fast = qwyc.optimize(light, X, alpha=0.3, progress=False)
    np.testing.assert_array_equal(fast.score_full(X), light.predict(X, raw_score=True))


def test_one_row_is_rounded_as_among_others(light):
    fast = qwyc.optimize(light, alpha=0)
    X = integers(2, ties=True)[:200]
    assert [fast.predict_one(row) for row in X] == light.predict(X).tolist()
    assert [fast.predict_one(row.tolist()) for row in X] == light.predict(X).tolist()
    assert [fast.predict_one(tuple(row.tolist())) for row in X] == light.predict(X).tolist()
    mixed = [[a, b, c, d + 0.5] for a, b, c, d in X.tolist()]
    assert [fast.predict_one(row) for row in mixed] == light.predict(mixed).tolist()
    assert light.predict(X).tolist() != light.predict(X.astype(np.float64)).tolist()


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.arrow"])
def test_integers_in_files_are_those_of_an_arrow_table(light, tmp_path, name):
    qwyc.optimize(light, alpha=0).save(tmp_path / "m.qwyc")
    table = pa.Table.from_pandas(pd.DataFrame(integers(1, ties=True), columns=NAMES))
    write = {"csv": csv.write_csv, "parquet": parquet.write_table, "arrow": feather.write_feather}
    write[name.split(".")[1]](table, tmp_path / name)
    done = run("predict", "m.qwyc", name, cwd=tmp_path)
    found = csv.read_csv(io.BytesIO(done.stdout))
    assert found["label"].to_pylist() == light.predict(table).tolist(), done.stderr


# ---- the other libraries ---------------------------------------------------------------------


@pytest.mark.parametrize("name", FITTED)
def test_other_libraries_score_and_decide_integers_the_same(name):
    model = FITTED[name](*training())
    ensemble = qwyc.read_model(model)
    for make in (arrays, lists, frames):
        refused = name in SCIKIT_LEARN_FLOAT32 and make != arrays
        for kind, X in make(integers(1, ties=not refused)):
            if "null" in kind and not ensemble.schema.accepts_missing:
                continue
            assert_as_the_library(name, model, ensemble, X)


def test_treelite_takes_integers_as_its_model_reads_rows(light):
    X = integers(1, ties=True)
    model = treelite.frontend.from_lightgbm(light.booster_)
    own = treelite.gtil.predict(model, X, pred_margin=True)[:, 0, 0]
    np.testing.assert_array_equal(qwyc.read_model(model).score_full(X), own)


def test_onnx_takes_no_integers_and_they_become_float32():
    X = integers(1, ties=True)
    model = to_onnx(FITTED["forest"](*training()), np.zeros((1, 4), np.float32))
    session = onnxruntime.InferenceSession(model.SerializeToString())
    entry = session.get_inputs()[0].name
    with pytest.raises(Exception, match="Unexpected input data type"):
        session.run(None, {entry: X})
    ensemble = qwyc.read_model(model)
    labels = ensemble.classes[(ensemble.score_full(X) >= ensemble.threshold).astype(int)]
    np.testing.assert_array_equal(labels, session.run(None, {entry: X.astype(np.float32)})[0])


def test_ydf_takes_integers_as_float32():
    ydf.verbose(0)
    frame, y = training()
    model = ydf.RandomForestLearner(label="y", num_trees=10).train(frame.assign(y=y))
    ensemble = qwyc.read_model(model)
    for kind, X in frames(integers(1, ties=True)):
        scores = ensemble.score_full(X)
        np.testing.assert_allclose(scores, model.predict(X), rtol=0, atol=1e-6, err_msg=kind)


# ---- what scikit-learn rounds in two ways ----------------------------------------------------


@pytest.mark.parametrize("name", ["forest", "bagging"])
def test_an_integer_that_scikit_learn_rounds_in_two_ways_is_refused(name):
    model = FITTED[name](*training())
    ensemble = qwyc.read_model(model)
    X = integers(1, ties=True)
    mixed = dict(frames(X))["i8 and f8"]
    assert (model.predict_proba(X) != model.predict_proba(mixed)).any()
    for rows in (mixed, X.tolist(), pa.Table.from_pandas(mixed), pl.from_pandas(mixed)):
        with pytest.raises(
            InputError, match=r"past 2\*\*53 in row \d+ of column 'c', 1152.*floats"
        ):
            ensemble.score_full(rows)
    assert_as_the_library(name, model, ensemble, mixed.astype("f8"))


def test_integers_that_round_in_one_way_only_are_not_refused():
    one = replace(F32, n_features=1, names=("a",), integers="checked")
    for rows in ([[2**53]], [[-(2**53)]], [[2**60]], [[2**62 + 2**39]], [[3]]):
        check(rows, one, rows)
        check(pa.table({"a": rows[0]}), one, rows)
    check(pa.table({"a": pa.array([], pa.int64())}), one, np.empty((0, 1)))
    tie = 2**60 + 2**36 + 1
    check(np.array([[tie]]), one, np.array([[tie]]).astype(np.float32))
    for null in (None, 2**60):
        with pytest.raises(InputError, match="row 1 of column 'a'"):
            to_matrix(pa.table({"a": [null, tie]}), one)


# ---- files -----------------------------------------------------------------------------------


def test_how_integers_are_read_is_kept_in_files(light, tmp_path):
    fast = qwyc.optimize(light, alpha=0)
    fast.save(tmp_path / "m.qwyc")
    again = qwyc.load(tmp_path / "m.qwyc")
    assert again.ensemble.schema.integers == "float32"
    assert again.ensemble.digest == fast.ensemble.digest
    X = integers(3, ties=True)
    np.testing.assert_array_equal(again.predict(X), light.predict(X))


def test_files_without_it_mean_what_they_meant():
    ensemble = ensemble_of([(0, 0.5, 1, [], None, None)], [1.0, -1.0])
    # As version 0.1.0 computed it.
    assert ensemble.digest == "3322a27bc25130f7e9852794f6064f8f202ac846fcd3b64856c6e1447e303dd3"
    facts = schema_facts(F64)
    assert read_schema(facts).integers == "direct"
    for how in ("float32", "float32 objects", "checked"):
        other = with_inputs(ensemble, integers=how)
        assert read_schema(schema_facts(other.schema)).integers == how
        assert other.digest != ensemble.digest
    with pytest.raises(
        ArtifactError, match="direct, float32, float32 objects, checked, float64; got 'float16'"
    ):
        read_schema(facts | {"integers": "float16"})
