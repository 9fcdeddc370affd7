"""Models of TensorFlow Lattice as qwyc reads them against TensorFlow itself. `make test-all` runs these
tests; test_import_tensorflow_lattice.py compares with recorded scores."""

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

import qwyc
from qwyc import importers

pytestmark = pytest.mark.slow

NEAR = 1e-6  # relative to max(1, |score|)
SEEDS = 34
ROWS = 500


@pytest.fixture(scope="module")
def models():
    """The module that makes models; it imports TensorFlow."""
    import lattice_models

    return lattice_models


def rows_for(case, n, seed, ensemble):
    rows = case.rows(n, seed)
    if not ensemble.schema.by_name:
        return rows
    return pd.DataFrame(rows, columns=list(ensemble.schema.names))


@dataclass(frozen=True)
class Comparison:
    """Rows by what was found, and what is wrong in words."""

    positive: int  # by the model's own decision
    tied: int  # within NEAR of the threshold
    differ: int  # decided differently, and tied
    wrong: str


def compare(case, n, seed):
    """A model's own scores and decisions against those of qwyc."""
    source = importers.open_model(case.model)
    ensemble = source.ensemble
    sample = ensemble.sample(rows_for(case, n, seed, ensemble))
    ours, theirs = ensemble.score_full(sample), source.predict_live(sample)
    off = np.abs(ours - theirs.scores) / np.maximum(1.0, np.abs(theirs.scores))
    other = (ours >= ensemble.threshold) != (theirs.labels == 1)
    tied = np.abs(ours - ensemble.threshold) <= NEAR
    wrong = ""
    if np.ptp(theirs.scores) < 1e-3:
        wrong = f"{case.name}: all scores are {ours[0]:g}, so that nothing was compared"
    elif not off.max() <= NEAR:
        wrong = f"{case.name}: scores differ by up to {off.max():g}"
    elif (other & ~tied).any():
        wrong = f"{case.name}: {np.count_nonzero(other & ~tied)} decisions differ"
    found = (theirs.labels == 1, tied, other & tied)
    return Comparison(*(int(np.count_nonzero(rows)) for rows in found), wrong)


def test_random_models(models, capsys):
    found = []
    for seed in range(SEEDS):
        made = [models.random_case(seed, kind) for kind in models.KINDS]
        made += [models.random_list(seed, same=same) for same in (True, False)]
        made += [models.crystals_case(seed)] if seed % 5 == 0 else []
        found += [compare(case, ROWS, seed) for case in made]
        models.keras.backend.clear_session()
    assert [each.wrong for each in found if each.wrong] == []
    rows = ROWS * len(found)
    positive, tied, differ = (
        sum(getattr(each, name) for each in found) for name in ("positive", "tied", "differ")
    )
    assert len(found) >= 200
    assert rows >= 100_000
    assert 0.2 < positive / rows < 0.8
    with capsys.disabled():
        print(
            f"\n{len(found)} models of TensorFlow Lattice, {rows:,} rows: {tied:,} within {NEAR:g} of the "
            f"threshold, {differ:,} of them decided differently"
        )


def test_many_rows(models, capsys):
    names = [f"f{i}" for i in range(12)]
    rng = np.random.default_rng(0)
    lattices = [rng.permutation(names)[:8].tolist() for _ in range(50)]
    case = models.random_case(
        1, "ensemble", n_features=12, size=2, dtype="float32", lattices=lattices, linear=False
    )
    found = compare(case, 100_000, 0)
    assert found.wrong == ""
    with capsys.disabled():
        print(
            f"\n50 lattices of 8 features, 100,000 rows: {found.tied:,} within {NEAR:g} of the threshold, "
            f"{found.differ:,} of them decided differently"
        )


def test_cyclic_calibrators(models):
    assert compare(models.cyclic_case(5), 2000, 0).wrong == ""


@pytest.mark.parametrize("kind", ["ensemble", "rtl", "lattice"])
def test_float64_where_keras_computes_in_float32(models, kind):
    """Keras's own layers, and the lattices of an RTL layer, do not take the dtype of the model."""
    features = [
        models.configs.FeatureConfig(name=f"f{i}", pwl_calibration_input_keypoints=[0.0, 0.3, 1.0])
        for i in range(4)
    ]
    common = {"feature_configs": features, "output_initialization": [0.0, 1.0]}
    if kind == "lattice":
        config = models.configs.CalibratedLatticeConfig(**common)
        model = models.tfl.premade.CalibratedLattice(config, dtype="float64")
    else:
        lattices = "rtl_layer" if kind == "rtl" else [["f0", "f1"], ["f2", "f3"]]
        shape = {"num_lattices": 3, "lattice_rank": 2} if kind == "rtl" else {}
        config = models.configs.CalibratedLatticeEnsembleConfig(
            lattices=lattices, **shape, **common
        )
        model = models.tfl.premade.CalibratedLatticeEnsemble(config, dtype="float64")
    models.randomise(model, np.random.default_rng(0))
    assert qwyc.read_model(model).schema.dtype == "float64"
    assert compare(models.Case(kind, model, tuple(features)), 500, 0).wrong == ""


@pytest.mark.parametrize("kind", ["fixed", "learned_interior"])
def test_keypoints_far_from_zero(models, kind):
    points = (1000 + np.cumsum(np.random.default_rng(0).uniform(0.1, 0.4, 8))).tolist()
    features = [
        models.configs.FeatureConfig(
            name=name,
            pwl_calibration_input_keypoints=points,
            pwl_calibration_input_keypoints_type=kind,
        )
        for name in "ab"
    ]
    model = models.tfl.premade.CalibratedLattice(
        models.configs.CalibratedLatticeConfig(
            feature_configs=features, output_initialization=[0.0, 1.0]
        )
    )
    models.randomise(model, np.random.default_rng(1))
    case = models.Case("far", model, tuple(features))
    assert compare(case, 5000, 0).wrong == ""


def test_a_model_that_was_saved_and_loaded(models, tmp_path):
    case = models.random_case(3, "ensemble", dtype="float32")
    case.model.save(tmp_path / "model.h5")
    with models.keras.utils.custom_object_scope(custom_objects(models)):
        loaded = models.keras.models.load_model(tmp_path / "model.h5", compile=False)
    assert type(loaded) is type(case.model)
    assert qwyc.read_model(loaded).digest == qwyc.read_model(case.model).digest
    assert compare(models.Case("loaded", loaded, case.features), 500, 0).wrong == ""


def custom_objects(models):
    tfl = models.tfl
    found = {}
    for module in (tfl.layers, tfl.premade, tfl.configs):
        found |= {name: value for name, value in vars(module).items() if isinstance(value, type)}
    for module in (tfl.lattice_layer, tfl.pwl_calibration_layer, tfl.linear_layer):
        found |= {name: value for name, value in vars(module).items() if isinstance(value, type)}
    found |= vars(tfl.categorical_calibration_layer)
    return {name: value for name, value in found.items() if isinstance(value, type)}


# ---- end to end --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(models):
    """An ensemble of lattices that was trained, and rows like those that it was trained on."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 6)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * np.abs(X[:, 3]) > 0.3).astype(np.float32)
    features = [
        models.configs.FeatureConfig(
            name=f"f{i}",
            default_value=-99.0 if i == 5 else None,
            pwl_calibration_input_keypoints=np.quantile(X[:, i], np.linspace(0, 1, 6)).tolist(),
        )
        for i in range(6)
    ]
    config = models.configs.CalibratedLatticeEnsembleConfig(
        feature_configs=features,
        lattices="random",
        num_lattices=12,
        lattice_rank=3,
        use_linear_combination=True,
        output_initialization=[-1.0, 1.0],
        random_seed=0,
    )
    models.tfl.premade_lib.set_random_lattice_ensemble(config)
    model = models.tfl.premade.CalibratedLatticeEnsemble(config)
    model.compile(
        loss=models.keras.losses.BinaryCrossentropy(from_logits=True),
        optimizer=models.keras.optimizers.legacy.Adam(0.05),
    )
    columns = [X[:, i : i + 1] for i in range(6)]
    model.fit(columns, y, batch_size=256, epochs=4, verbose=0)
    return model, rng.normal(size=(8000, 6)).astype(np.float32)


def test_a_trained_model_from_end_to_end(trained, tmp_path):
    model, X = trained
    own = model.predict([X[:, i : i + 1] for i in range(6)], verbose=0)[:, 0] >= 0
    assert 0.2 < own.mean() < 0.8
    fast = qwyc.optimize(model, X[:4000], alpha=0.02, evaluation="quit")
    assert fast.ensemble.source.kind == "CalibratedLatticeEnsemble"
    fast.save(tmp_path / "model.qwyc")
    again = qwyc.load(tmp_path / "model.qwyc")
    predicted = again.predict(X[4000:])
    assert np.mean(predicted != own[4000:]) <= 0.03
    assert again.decide(X[4000:]).steps.mean() < 12
    frame = pd.DataFrame(X[4000:], columns=[f"f{i}" for i in range(6)])
    np.testing.assert_array_equal(again.predict(frame[frame.columns[::-1]]), predicted)
    assert "All 4,000 full decisions" in qwyc.verify(again, X[4000:], model=model).parity
    exact = qwyc.optimize(model, alpha=0)
    clear = np.abs(exact.ensemble.score_full(X)) > 1e-5
    np.testing.assert_array_equal(exact.predict(X)[clear], own[clear])


def test_rows_with_missing_values_say_what_to_pass(trained):
    model, X = trained
    rows = X[:100].copy()
    rows[7, 5] = np.nan
    with pytest.raises(qwyc.InputError, match="row 7 of column 'f5'; the model takes -99"):
        qwyc.optimize(model, rows, alpha=0)


def test_a_change_after_reading_is_found(models, trained):
    model, X = trained
    fast = qwyc.optimize(model, X[:500], alpha=0)
    layer = next(each for each in model.layers if type(each).__name__ == "Lattice")
    before = layer.kernel.numpy()
    layer.kernel.assign(before + 0.5)
    with pytest.raises(qwyc.ParityError, match="was not made from"):
        qwyc.verify(fast, X[:500], model=model)
    layer.kernel.assign(before)
    with warnings.catch_warnings():
        warnings.simplefilter("error", qwyc.QwycWarning)
        assert qwyc.verify(fast, X[:500], model=model).parity is not None


def test_averages_of_models(models):
    case = models.random_list(4, same=True)
    mean = qwyc.lattice.ensemble(case.model, average=True)
    rows = case.rows(500)
    own = np.mean([models.own_outputs(model, rows) for model in case.model], axis=0)
    np.testing.assert_allclose(mean.score_full(rows), own, rtol=NEAR, atol=NEAR)


# ---- refusals by the library's own objects ------------------------------------------------------


def refused(model, *words):
    with pytest.raises(qwyc.ModelError) as caught:
        qwyc.read_model(model)
    for word in words:
        assert word in str(caught.value)


def features_of(models, n=2):
    return [
        models.configs.FeatureConfig(name=f"f{i}", pwl_calibration_input_keypoints=[0.0, 0.5, 1.0])
        for i in range(n)
    ]


def test_kronecker_factored_lattices(models):
    common = {"feature_configs": features_of(models), "parameterization": "kronecker_factored"}
    config = models.configs.CalibratedLatticeConfig(output_initialization=[0.0, 1.0], **common)
    refused(models.tfl.premade.CalibratedLattice(config), "(KroneckerFactoredLattice)")
    config = models.configs.CalibratedLatticeEnsembleConfig(
        lattices="rtl_layer",
        num_lattices=2,
        lattice_rank=2,
        output_initialization=[0.0, 1.0],
        **common,
    )
    refused(models.tfl.premade.CalibratedLatticeEnsemble(config), "(KroneckerFactoredLattice)")


def test_aggregate_functions(models):
    config = models.configs.AggregateFunctionConfig(
        feature_configs=features_of(models),
        middle_dimension=2,
        output_initialization=[0.0, 1.0],
    )
    refused(models.tfl.premade.AggregateFunction(config), "AggregateFunction", "supported are")


def calibrated(models, inputs, **options):
    layer = models.tfl.layers.PWLCalibration
    options = {"output_min": 0.0, "output_max": 1.0, **options}
    return [layer([0.0, 0.5, 1.0], **options)(each) for each in inputs]


def test_layers_that_are_wired_in_other_ways(models):
    layers, keras = models.tfl.layers, models.keras

    class Doubled(keras.layers.Layer):
        def call(self, x):
            return 2 * x

    lattice = layers.Lattice([2, 2], clip_inputs=False, name="it")
    assert qwyc.read_model(models.wired(lambda x: lattice(calibrated(models, x)))).n_models == 1
    wirings = {
        "Doubled": lambda x: layers.Lattice([2, 2])([Doubled()(c) for c in calibrated(models, x)]),
        "Dense": lambda x: keras.layers.Dense(1)(layers.Lattice([2, 2])(calibrated(models, x))),
        "CDF": lambda x: layers.Lattice([2, 2])([layers.CDF(3)(each) for each in x]),
        "has 2 inputs": lambda x: layers.Lattice([2])(
            layers.PWLCalibration([0.0, 1.0], impute_missing=True)([x[0], x[1]])
        ),
        "clips its inputs": lambda x: layers.Linear(2, input_min=[0.0, 0.0])(
            keras.layers.Concatenate()(calibrated(models, x))
        ),
        "has 3 units": lambda x: layers.Linear(3)(
            layers.Lattice([2, 2], units=3)(keras.layers.RepeatVector(3)(joined(models, x)))
        ),
        "outside 0 to 1": lambda x: layers.Lattice([2, 2], clip_inputs=False)(
            calibrated(models, x, output_max=3.0)
        ),
        "keypoints that are equal": lambda x: layers.Lattice([2, 2])(
            [layers.PWLCalibration([0.0, 1.0, 1.0 + 1e-9])(each) for each in x]
        ),
        "not increasing": lambda x: falling(models, x),
    }
    for words, wiring in wirings.items():
        refused(models.wired(wiring), words)


def joined(models, inputs):
    return models.keras.layers.Concatenate()(calibrated(models, inputs))


def falling(models, inputs):
    score = models.tfl.layers.Lattice([2, 2])(calibrated(models, inputs))
    down = {"monotonicity": "decreasing", "output_min": 0.0, "output_max": 1.0}
    return models.tfl.layers.PWLCalibration([0.0, 1.0], **down)(score)


def test_several_outputs(models):
    lattice = models.tfl.layers.Lattice([2, 2])
    refused(models.wired(lambda x: [lattice(calibrated(models, x))] * 2), "2 outputs")


def test_models_of_other_classes(models):
    class Mine(models.tfl.premade.CalibratedLattice):
        pass

    config = models.configs.CalibratedLatticeConfig(
        feature_configs=features_of(models), output_initialization=[0.0, 1.0]
    )
    refused(Mine(config), "Mine", "supported are the premade models")
    sequential = models.keras.Sequential([models.keras.Input((2,)), models.tfl.layers.Linear(2)])
    refused(sequential, "Sequential", "CalibratedLatticeEnsemble")
