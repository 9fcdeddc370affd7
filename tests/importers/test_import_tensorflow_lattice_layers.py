"""Layers of TensorFlow Lattice, put together by hand: how calibrators are read, and what is refused.
TensorFlow is not needed; test_import_tensorflow_lattice_live.py refuses the library's own objects."""

import numpy as np
import pytest

import qwyc
from lattice_recordings import (
    KERAS,
    TFL,
    fake,
    fake_layer,
    lattice,
    layer_of,
    linear,
    load,
    two_inputs,
)
from qwyc import importers
from qwyc.importers.tensorflow_lattice import calibrators
from qwyc.model.lattices.models import CalibratorKind

# ---- calibrators -------------------------------------------------------------------------------


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
