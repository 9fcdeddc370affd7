"""Recorded models of TensorFlow Lattice as qwyc reads them, against the scores that TensorFlow gave; and
what is refused. TensorFlow is not needed; test_import_tensorflow_lattice_live.py has the library itself."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import qwyc
from lattice_recordings import FOLDER, RECORDED, call, fake, fake_layer, load, small_tensorflow
from qwyc import _native, importers
from qwyc.importers.tensorflow_lattice import calibrators
from qwyc.model.lattices import CalibratorKind, Interpolation

NEAR = 1e-6  # relative to max(1, |score|)
TFL, KERAS = "tensorflow_lattice.python.layers", "tf_keras.src.layers"


@pytest.fixture(autouse=True)
def no_tensorflow(monkeypatch):
    """Learned keypoints are computed with TensorFlow's functions; here with NumPy's."""
    monkeypatch.setitem(sys.modules, "tensorflow", small_tensorflow())


# ---- recorded models --------------------------------------------------------------------------


def test_the_recordings_are_many_and_small():
    assert len(RECORDED) >= 24
    assert sum(path.stat().st_size for path in FOLDER.glob("*.npz")) < 1e6
    kinds = {described["class"] for name in RECORDED for described in load(name).facts["models"]}
    assert kinds == {"CalibratedLatticeEnsemble", "CalibratedLattice", "CalibratedLinear"}


@pytest.mark.parametrize("name", RECORDED)
def test_scores_and_decisions_are_those_of_tensorflow(name):
    recorded = load(name)
    ensemble = qwyc.read_model(recorded.model)
    assert ensemble.schema.dtype == recorded.rows.dtype.name
    positive = recorded.output >= recorded.facts["threshold"]
    for isa in _native.available_isas():
        ours = ensemble.base_models.native.score_full(recorded.rows, 1, isa)
        size = np.maximum(1.0, np.abs(recorded.score))
        assert (np.abs(ours - recorded.score) / size).max() <= NEAR, isa
        tie = np.abs(ours - ensemble.threshold) <= NEAR
        assert ((ours >= ensemble.threshold) == positive)[~tie].all(), isa
    assert np.ptp(recorded.score) > 0.01  # otherwise nothing was compared
    outputs = [ensemble.link.output(score) for score in recorded.score]
    np.testing.assert_allclose(outputs, recorded.output, atol=2e-6)


@pytest.mark.parametrize("name", ["ensemble-simplex-separate-linear", "linear-calibrated"])
def test_files_keep_it(name, tmp_path):
    recorded = load(name)
    ensemble = qwyc.read_model(recorded.model)
    rows = recorded.rows
    fast = qwyc.optimize(ensemble, rows, alpha=0)
    fast.save(tmp_path / "model.qwyc")
    again = qwyc.load(tmp_path / "model.qwyc")
    assert again.ensemble.digest == ensemble.digest
    assert again.ensemble.link == ensemble.link
    assert again.ensemble.schema.own_missing == ensemble.schema.own_missing
    assert again.ensemble.source == ensemble.source
    np.testing.assert_array_equal(again.predict(rows), fast.predict(rows))
    np.testing.assert_array_equal(
        fast.predict(rows), recorded.output >= recorded.facts["threshold"]
    )


def test_bases_are_lattices_or_calibrated_features():
    models = qwyc.read_model(load("ensemble-simplex-shared-linear").model).base_models
    assert set(models.arrays.interpolation) == {Interpolation.SIMPLEX}
    assert models.description.endswith(" lattices")
    assert not models.average
    assert qwyc.read_model(load("rtl-hypercube-shared-mean").model).base_models.average
    linear = qwyc.read_model(load("linear-plain").model)
    assert set(linear.base_models.arrays.interpolation) == {Interpolation.LINEAR}
    assert linear.n_models == linear.schema.n_features
    assert linear.base_models.start != 0  # the bias
    assert qwyc.read_model(load("lattice-plain").model).n_models == 1


def test_calibrators_are_shared_or_separate():
    def per_model(name):
        arrays = qwyc.read_model(load(name).model).base_models.arrays
        return arrays.n_calibrators / len(arrays.input)

    assert per_model("ensemble-hypercube-shared-mean") < 1
    assert per_model("ensemble-hypercube-separate-mean") == 1


def test_a_list_is_summed():
    recorded = load("list-same")
    together = qwyc.read_model(recorded.model)
    alone = [qwyc.read_model(model) for model in recorded.model]
    assert together.schema.names == alone[0].schema.names
    assert not together.schema.by_name
    assert together.threshold == sum(one.threshold for one in alone)
    sums = sum(one.score_full(recorded.rows) for one in alone)
    np.testing.assert_allclose(together.score_full(recorded.rows), sums, rtol=1e-12, atol=1e-12)
    assert together.source.kind == f"sum of {len(alone)} models"


def test_a_list_with_other_features_needs_names():
    recorded = load("list-union")
    together = qwyc.read_model(recorded.model)
    first = [qwyc.read_model(model).schema.names for model in recorded.model]
    assert together.schema.names == tuple(dict.fromkeys(n for names in first for n in names))
    with pytest.raises(qwyc.InputError, match="no column names"):
        together.score_full(recorded.rows)
    table = pd.DataFrame(recorded.rows, columns=list(together.schema.names))
    ours = together.score_full(table[list(reversed(together.schema.names))])
    np.testing.assert_allclose(ours, recorded.score, atol=NEAR * 5)


# ---- decisions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "threshold", "link"),
    [
        ("loss-logits", 0.0, "logistic"),
        ("loss-hinge", 0.0, "none"),
        ("loss-probability", 0.5, "identity"),
        ("loss-name", 0.5, "identity"),
    ],
)
def test_the_loss_decides(name, threshold, link):
    recorded = load(name)
    ensemble = qwyc.read_model(recorded.model)
    assert recorded.facts["threshold"] == threshold
    assert ensemble.classes.tolist() == [0, 1]
    assert ensemble.source.kind == f"CalibratedLattice, output >= {threshold:g}"
    assert ensemble.source.library == "tensorflow-lattice"
    calibrated = ensemble.link.kind == "piecewise"
    assert (ensemble.link.means if calibrated else ensemble.link.kind) == link


@pytest.mark.parametrize(
    ("bounds", "threshold"), [((0.0, 1.0), 0.5), ((None, None), 0.0), ((-1.0, 1.0), 0.0)]
)
@pytest.mark.parametrize("loss", [None, "mse", lambda y, p: y - p])
def test_without_a_loss_that_tells_the_bounds_decide(loss, bounds, threshold):
    model = load("lattice-plain").model
    model.loss = loss
    model.model_config.output_min, model.model_config.output_max = bounds
    assert qwyc.read_model(model).threshold == threshold


@pytest.mark.parametrize("wrap", [lambda loss: [loss], lambda loss: {"output": loss}])
def test_a_loss_in_a_list(wrap):
    model = load("loss-hinge").model
    model.loss = wrap("squared_hinge")
    assert qwyc.read_model(model).link.kind in ("none", "piecewise")
    assert qwyc.read_model(model).source.kind.endswith("output >= 0")


# ---- output calibration ------------------------------------------------------------------------


def test_thresholds_are_those_of_the_output():
    recorded = load("ensemble-calibrated")
    ensemble = qwyc.read_model(recorded.model)
    link = ensemble.link
    assert link.kind == "piecewise"
    assert link.output(ensemble.threshold) >= recorded.facts["threshold"]
    assert link.output(np.nextafter(ensemble.threshold, -np.inf)) < recorded.facts["threshold"]
    varied = recorded.output[
        (recorded.output > link.outputs[0]) & (recorded.output < link.outputs[-1])
    ]
    output = float(np.median(varied))
    fast = qwyc.optimize(ensemble, recorded.rows, alpha=0, threshold=output)
    clear = np.abs(recorded.output - output) > 1e-6
    expected = recorded.output >= output
    np.testing.assert_array_equal(fast.predict(recorded.rows)[clear], expected[clear])
    assert 0 < expected.mean() < 1


@pytest.mark.parametrize("threshold", [-0.001, 1.5])
def test_a_threshold_that_decides_nothing_is_refused(threshold):
    ensemble = qwyc.read_model(load("ensemble-calibrated").model)
    with pytest.raises(qwyc.OptionError, match="own output, which lies between"):
        qwyc.optimize(ensemble, alpha=0, threshold=threshold)


def test_a_model_whose_output_never_turns_is_read():
    model = load("lattice-calibrated").model
    last = model.layers[-1]
    last.kernel = last.kernel * np.float32(0.1)
    ensemble = qwyc.read_model(model)
    assert ensemble.threshold > 1e100
    last.kernel[0] = 0.7
    assert qwyc.read_model(model).threshold < -1e100


def test_an_output_calibration_that_falls_is_refused():
    model = load("lattice-calibrated").model
    model.layers[-1].kernel[1] = -0.1
    with pytest.raises(qwyc.ModelError, match=r"'tfl_output_calib'.*not increasing"):
        qwyc.read_model(model)


def test_an_output_calibration_in_a_list_is_refused():
    models = [load("lattice-plain").model, load("lattice-calibrated").model]
    with pytest.raises(qwyc.ModelError, match=r"item 1 of the list.*'tfl_output_calib'"):
        qwyc.read_model(models)


# ---- calibrators -------------------------------------------------------------------------------


def layer_of(starts, lengths, heights, **options):
    values = {"name": "calib", "units": 1, "split_outputs": False}
    values |= {"is_cyclic": False, "impute_missing": False}
    return fake_layer(
        TFL,
        "PWLCalibration",
        input_keypoints_type="fixed",
        _interpolation_keypoints=np.asarray(starts, np.float32),
        _lengths=np.asarray(lengths, np.float32),
        kernel=np.asarray(heights, np.float32)[:, None],
        **(values | options),
    )


def added_up(starts, lengths, heights, x):
    """A PWLCalibration layer in float64."""
    starts, lengths, heights = (
        np.asarray(v, np.float32).astype(float) for v in (starts, lengths, heights)
    )
    share = np.clip((x.astype(float)[:, None] - starts) / lengths, 0, 1)
    return heights[0] + share @ heights[1:]


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5, -7e6])
def test_close_keypoints_far_from_zero(offset):
    """The layer's lengths are not the differences of its rounded keypoints."""
    rng = np.random.default_rng(0)
    points = offset + np.cumsum(rng.uniform(0.5, 3.0, 12)) * max(1.0, abs(offset) / 1e5)
    starts, lengths, heights = points[:-1], np.diff(points), rng.normal(size=12)
    (part,) = calibrators.piecewise_linear(layer_of(starts, lengths, heights), 0)
    assert (np.diff(part.points) > 0).all()
    x = np.concatenate([part.points, rng.uniform(points[0] - 1, points[-1] + 1, 5000)])
    x = np.unique(np.concatenate([x.astype(np.float32), starts.astype(np.float32)]))
    ours = np.interp(x, part.points, part.outputs)
    np.testing.assert_allclose(ours, added_up(starts, lengths, heights, x), atol=4e-7)


def test_keypoints_are_added_where_needed_only():
    heights = np.full(12, 1 / 12)
    for points in (np.linspace(0, 1, 12), np.arange(17.0, 29.0), np.linspace(-3, 3, 12)):
        (part,) = calibrators.piecewise_linear(layer_of(points[:-1], np.diff(points), heights), 0)
        assert len(part.points) == 12
    points = np.linspace(1000, 1001, 12)
    (part,) = calibrators.piecewise_linear(layer_of(points[:-1], np.diff(points), heights), 0)
    assert len(part.points) > 12


def test_equal_keypoints_are_refused():
    layer = layer_of([1.0, 1.0 + 1e-9], [1e-9, 1.0], [0.0, 0.5, 0.5])
    with pytest.raises(qwyc.ModelError, match="'calib' has keypoints that are equal in float32"):
        calibrators.piecewise_linear(layer, 0)


def test_missing_values_of_a_piecewise_calibrator():
    missing = {"impute_missing": True, "missing_output": np.array([[0.7]], np.float32)}
    for value, expected in ((-1, -1.0), (0.1, float(np.float32(0.1)))):
        layer = layer_of([0.0], [1.0], [0.0, 1.0], missing_input_value=value, **missing)
        (part,) = calibrators.piecewise_linear(layer, 0)
        assert part.missing == (expected, pytest.approx(0.7))
    layer = layer_of([0.0], [1.0], [0.0, 1.0], missing_input_value=np.nan, **missing)
    assert calibrators.piecewise_linear(layer, 0)[0].missing is None  # nothing equals NaN


def test_a_categorical_calibrator():
    kernel = np.array([[0.1, 0.4], [0.2, 0.5], [0.3, 0.6]], np.float32)
    layer = fake_layer(
        TFL, "CategoricalCalibration", units=2, default_input_value=-1.5, kernel=kernel
    )
    first, second = calibrators.categorical(layer, 3)
    assert first.kind == CalibratorKind.CATEGORICAL
    assert first.feature == 3
    np.testing.assert_array_equal(second.outputs, kernel[:, 1])
    assert second.missing == (-1.0, pytest.approx(0.6))  # the last bucket
    assert second.other == 0.0
    layer.default_input_value = 2**24 + 1
    with pytest.raises(qwyc.ModelError, match="category codes past 16,777,216"):
        calibrators.categorical(layer, 0)


def test_rows_with_nan_are_refused():
    ensemble = qwyc.read_model(load("cyclic").model)
    rows = load("cyclic").rows.copy()
    rows[3, 1] = np.nan
    with pytest.raises(
        qwyc.InputError, match="row 3 of column 'f1'; the model takes -1 for what is"
    ):
        ensemble.score_full(rows)
    plain = qwyc.read_model(two_inputs(lattice()))
    with pytest.raises(qwyc.InputError, match=r"row 3 of column 'f1'.*missing values"):
        plain.score_full(rows)
    rows[3, 1] = np.inf
    assert np.isfinite(ensemble.score_full(rows)).all()


# ---- refusals ----------------------------------------------------------------------------------


def lattice(**options):
    values = {"units": 1, "lattice_sizes": [2, 2], "interpolation": "hypercube"}
    values |= {"clip_inputs": False, "kernel": np.array([[0], [1], [2], [4]], np.float32)}
    return fake_layer(TFL, "Lattice", name="the_lattice", **(values | options))


def two_inputs(last, *, heights=(0.0, 1.0), between=None, together=False, kind="CalibratedLattice"):
    """Two calibrated features and one more layer."""
    inputs = [
        call(fake_layer(KERAS, "InputLayer", name=f"tfl_input_f{i}"), None)[0] for i in range(2)
    ]
    made = [layer_of([0.0], [1.0], heights, name=f"calib_{i}") for i in range(2)]
    tensors = [call(layer, x)[0] for layer, x in zip(made, inputs, strict=True)]
    if between is not None:
        tensors[1] = call(between, tensors[1])[0]
        made.append(between)
    given = tensors
    if together:
        joined = fake_layer(KERAS, "Concatenate", axis=1)
        given = call(joined, tensors, width=2)[0]
        made.append(joined)
    outputs = call(last, given)
    layers = [*(x._keras_history.layer for x in inputs), *made, last]
    return fake(
        "tensorflow_lattice.python.premade", kind, layers=layers, inputs=inputs, outputs=outputs
    )


def refused(model, *words):
    with pytest.raises(qwyc.ModelError) as caught:
        qwyc.read_model(model)
    for word in words:
        assert word in str(caught.value)


def test_the_plain_model_is_read():
    ensemble = qwyc.read_model(two_inputs(lattice()))
    rows = np.array([[0, 0], [0, 1], [1, 0], [0.5, 0.5]], np.float32)
    np.testing.assert_allclose(ensemble.score_full(rows), [0, 1, 2, 1.75])


def test_other_layers_are_refused():
    kronecker = fake_layer(TFL, "KroneckerFactoredLattice", name="kfl_0")
    refused(two_inputs(kronecker), "'kfl_0' (KroneckerFactoredLattice)", "tables of vertices")
    refused(two_inputs(fake_layer(TFL, "Aggregation")), "several values per feature")
    refused(two_inputs(lattice(), between=fake_layer(TFL, "CDF")), "(CDF)", "no lattice of")
    custom = fake_layer("mine", "Lattice", name="own")
    refused(two_inputs(custom), "'own' (Lattice) cannot be read")
    refused(two_inputs(lattice(), between=custom), "'own'", "between an input and a lattice")
    lambda_layer = fake_layer(KERAS, "TFOpLambda", name="tf.square", symbol="square")
    refused(two_inputs(lattice(), between=lambda_layer), "'tf.square'")
    identity = fake_layer(KERAS, "TFOpLambda", name="tf.identity", symbol="identity")
    assert qwyc.read_model(two_inputs(lattice(), between=identity)).n_models == 1


def test_a_layer_beside_the_others_is_refused():
    model = two_inputs(lattice())
    model.layers.append(fake_layer(KERAS, "Dense", name="extra"))
    refused(model, "'extra' (Dense) is not between inputs and output")


def test_several_units_are_refused():
    refused(two_inputs(lattice(units=3)), "'the_lattice' (Lattice) has 3 units")


def test_several_outputs_are_refused():
    model = two_inputs(lattice())
    model.outputs = model.outputs * 2
    refused(model, "2 outputs")


def linear(**options):
    values = {"units": 1, "clip_value_min": None, "clip_value_max": None, "use_bias": True}
    values |= {"kernel": np.array([[2], [3]], np.float32), "bias": np.array(0.5, np.float32)}
    return fake_layer(TFL, "Linear", name="the_sum", **(values | options))


def test_a_linear_layer_that_clips_is_refused():
    ensemble = qwyc.read_model(two_inputs(linear(), together=True, kind="CalibratedLinear"))
    np.testing.assert_allclose(ensemble.score_full(np.array([[1, 0.5]], np.float32)), [4.0])
    clips = linear(clip_value_min=np.zeros(2))
    refused(two_inputs(clips, together=True), "'the_sum' (Linear) clips its inputs")


def test_calibrators_that_leave_the_lattice_are_refused():
    refused(two_inputs(lattice(), heights=(0.0, 1.2)), "'the_lattice'", "from 0 to 1.2")
    refused(two_inputs(lattice(), heights=(-0.1, 1.0)), "calibrator of 'f0'", "from -0.1")
    assert qwyc.read_model(two_inputs(lattice(clip_inputs=True), heights=(0.0, 1.2))).n_models == 1
    # Rounding alone is let pass.
    assert qwyc.read_model(two_inputs(lattice(), heights=(-1e-6, 1.000002))).n_models == 1


def test_a_calibrator_that_is_told_what_is_missing_is_refused():
    model = two_inputs(lattice())
    node = model.layers[2]._inbound_nodes[0]
    node.call_args = ([model.inputs[0], model.inputs[1]],)
    refused(model, "'calib_0' (PWLCalibration) has 2 inputs", "what is missing")


def test_weights_that_are_not_finite_are_refused():
    refused(two_inputs(lattice(kernel=np.full((4, 1), np.nan, np.float32))), "not finite")
    half = lattice(kernel=np.ones((4, 1), np.float16))
    refused(two_inputs(half), "'the_lattice' has weights of float16")
    mixed = lattice(compute_dtype="float16")
    refused(two_inputs(mixed), "computes in float16")


@pytest.mark.parametrize("name", ["AggregateFunction", "Model"])
def test_other_models_are_refused(name):
    refused(fake("tensorflow_lattice.python.premade", name), name, "CalibratedLatticeEnsemble")


def test_a_class_of_ones_own_is_refused():
    model = two_inputs(lattice())
    own = type("Mine", (type(model),), {"__module__": "mine"})()
    own.__dict__.update(model.__dict__)
    refused(own, "mine.Mine", "supported are the premade models")


def test_lists_of_several_kinds_are_refused():
    refused([two_inputs(lattice()), np.sin], "item 1 of the list")
    other = two_inputs(lattice(units=3))
    refused([two_inputs(lattice()), other], "item 1 of the list", "3 units")


def test_lists_of_other_callables_are_not_read_here():
    assert not importers.tensorflow_lattice.is_live([np.sin, np.cos])
    assert qwyc.read_model([lambda rows: rows[:, 0]]).schema is None


def test_tensorflow_is_not_imported():
    code = (
        "import sys, qwyc\n"
        "from qwyc import importers\n"
        "qwyc.read_model([lambda rows: rows[:, 0]])\n"
        "assert not any(i.is_live(object()) for i in importers.LIVE)\n"
        "print([m for m in ('tensorflow', 'tensorflow_lattice', 'tf_keras') if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
