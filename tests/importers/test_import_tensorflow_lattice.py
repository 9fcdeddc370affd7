"""Recorded models of TensorFlow Lattice as qwyc reads them, against the scores that TensorFlow gave.
TensorFlow is not needed; test_import_tensorflow_lattice_live.py has the library itself."""

import subprocess
import sys
import warnings
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest

import qwyc
from lattice_recordings import FOLDER, RECORDED, load, small_tensorflow
from qwyc import _native
from qwyc.importers.tensorflow_lattice.decision import decision_of
from qwyc.model.lattices.models import Interpolation

NEAR = 1e-6  # relative to max(1, |score|)


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
    assert ensemble.source.kind == "CalibratedLattice"
    assert decision_of(recorded.model, None).output == threshold
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
    told = bounds == (0.0, 1.0)
    with nullcontext() if told else pytest.warns(qwyc.QwycWarning, match="tell where it decides"):
        qwyc.optimize(model, alpha=0)
    assert bool(qwyc.lattice.ensemble([model, model]).doubt) != told
    assert qwyc.lattice.ensemble([model, model], threshold=0.5).doubt == ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        qwyc.optimize(model, alpha=0, threshold=0.25)  # whoever says it knows it


@pytest.mark.parametrize("wrap", [lambda loss: [loss], lambda loss: {"output": loss}])
def test_a_loss_in_a_list(wrap):
    model = load("loss-hinge").model
    model.loss = wrap("squared_hinge")
    assert qwyc.read_model(model).link.kind in ("none", "piecewise")
    assert "tell where it decides" not in qwyc.read_model(model).doubt


@pytest.mark.parametrize("loss", ["bce", "BCE", "binary_crossentropy", "BinaryCrossentropy"])
def test_every_name_of_the_cross_entropy(loss):
    model = load("lattice-plain").model
    model.loss = loss
    ensemble = qwyc.read_model(model)
    assert ensemble.threshold == 0.5
    assert ensemble.link.kind == "identity"


def test_what_is_near_a_model_and_none_is_named(tmp_path):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = load("lattice-plain").model
    with pytest.raises(qwyc.ModelError, match="cannot predict with a Keras model"):
        qwyc.read_model(make_pipeline(StandardScaler(), model))
    with pytest.raises(qwyc.ModelError, match="put ensembles of lattices together"):
        qwyc.read_model([qwyc.read_model(model), qwyc.read_model(model)])
    for name in ("m.keras", "m.h5"):
        (tmp_path / name).write_bytes(b"PK")
        with pytest.raises(qwyc.ModelError, match="load it with Keras and pass the live model"):
            qwyc.read_model(tmp_path / name)
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "saved_model.pb").write_bytes(b"")
    with pytest.raises(qwyc.ModelError, match="is a SavedModel"):
        qwyc.read_model(tmp_path / "saved")


def test_a_mean_knows_its_library_and_its_own_missing_values():
    model = load("ensemble-simplex-shared-mean").model
    mean = qwyc.lattice.ensemble([model, model], average=True)
    assert mean.source.kind == "mean of 2 models"
    assert mean.schema.own_missing == qwyc.read_model(model).schema.own_missing != ()


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
    assert f"output >= {output:.4g} (score >= " in str(fast)
    greatest = qwyc.optimize(ensemble, alpha=0, threshold=link.outputs[-1] + 1e-8)
    assert link.output(greatest.policy.threshold) == link.outputs[-1]
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
    with pytest.warns(qwyc.QwycWarning, match=r"never crosses .*every row is negative"):
        qwyc.optimize(model, alpha=0)
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


# ---- imports -----------------------------------------------------------------------------------


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
