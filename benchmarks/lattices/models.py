"""The ensembles: trained once with TensorFlow Lattice, kept as arrays, and built as its live models."""

from __future__ import annotations

import hashlib
import inspect
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..cache import Trained, trained
from ..peers import library
from . import data
from .shapes import KEYPOINTS, Shape

LAYERS, RTL = "a layer per lattice", "one RTL layer"  # two ways to build an ensemble
INITIAL = [-2.0, 2.0]  # range of the scores that training starts from


@dataclass(frozen=True)
class Weights:
    """What is trained; the same for both interpolations."""

    keypoints: Any  # (F, KEYPOINTS) float32, of the calibrators
    steps: Any  # (F, KEYPOINTS) float32: first output, then the rises to the next keypoints
    inputs: Any  # (T, d) features
    vertices: Any  # (T, 2**d) float32, row-major, the first input slowest

    @property
    def outputs(self) -> Any:
        """The calibrators' outputs at the keypoints, (F, KEYPOINTS)."""
        return np.cumsum(self.steps, axis=1)


def tensorflow() -> tuple[Any, Any, Any, str]:
    """TensorFlow on one thread, TensorFlow Lattice, its Keras, and both versions."""
    tf, version = library("tensorflow")
    tfl, tfl_version = library("tensorflow_lattice", "tensorflow-lattice")
    keras, _ = library("tf_keras")
    if tf.config.threading.get_intra_op_parallelism_threads() != 1:  # settable before its first use
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    return tf, tfl, keras, f"{tfl_version} on {version}"


def weights(shape: Shape) -> tuple[Weights, float]:
    """Trained now or in an earlier run, and the seconds of processor time that training took."""
    _, _, _, versions = tensorflow()
    generator = hashlib.sha256(inspect.getsource(data).encode()).hexdigest()
    found: Trained = trained(train, shape=shape, versions=versions, generator=generator)
    arrays, seconds = found.model
    return Weights(**arrays), seconds


def train(shape: Shape, versions: str, generator: str) -> tuple[dict[str, Any], float]:
    """The arrays of `Weights`, and seconds of processor time. The layer for random lattices and
    simplex interpolation are the fastest to train."""
    _, _, keras, _ = tensorflow()
    rows = data.make_data(shape)
    shares = np.linspace(0, 1, KEYPOINTS)
    keypoints = np.quantile(rows.training, shares, axis=0).T.astype(np.float32)
    started = time.process_time()
    keras.utils.set_random_seed(shape.seed)
    model = ensemble(shape, keypoints, "simplex", "rtl_layer")
    model.compile(
        loss=keras.losses.BinaryCrossentropy(from_logits=True),
        optimizer=keras.optimizers.Adam(shape.learning_rate),
    )
    model.fit(
        columns(rows.training),
        rows.label,
        batch_size=shape.training_batch,
        epochs=shape.epochs,
        verbose=0,
    )
    seconds = time.process_time() - started
    layer = model.get_layer("tfl_rtl_0")
    ((_, inputs),) = layer._rtl_structure  # no input is monotonic, so there is one part
    steps = [model.get_layer(f"tfl_calib_f{i}").get_weights()[0] for i in range(shape.features)]
    arrays = {
        "keypoints": keypoints,
        "steps": np.array(steps)[..., 0],
        "inputs": np.array(inputs),
        "vertices": layer.get_weights()[0].T.copy(),
    }
    return arrays, seconds


def live(shape: Shape, weights: Weights, interpolation: str, form: str) -> Any:
    """A CalibratedLatticeEnsemble with these weights."""
    if form == RTL:
        model = ensemble(shape, weights.keypoints, interpolation, "rtl_layer", weights.inputs)
        model.get_layer("tfl_rtl_0").set_weights([weights.vertices.T])
    else:
        names = [[f"f{i}" for i in each] for each in weights.inputs]
        model = ensemble(shape, weights.keypoints, interpolation, names)
        for i, vertices in enumerate(weights.vertices):
            model.get_layer(f"tfl_lattice_{i}").set_weights([vertices[:, None]])
    for i, steps in enumerate(weights.steps):
        model.get_layer(f"tfl_calib_f{i}").set_weights([steps[:, None]])
    _, _, keras, _ = tensorflow()
    model.compile(loss=keras.losses.BinaryCrossentropy(from_logits=True))
    return model


def ensemble(
    shape: Shape, keypoints: Any, interpolation: str, lattices: Any, inputs: Any = None
) -> Any:
    """An untrained CalibratedLatticeEnsemble: the mean of the lattices, with shared calibrators.

    `inputs` are the features of each lattice where an RTL layer is to have them; otherwise it
    searches for its own, which takes long."""
    _, tfl, _, _ = tensorflow()
    features = [
        tfl.configs.FeatureConfig(
            name=f"f{i}",
            lattice_size=2,
            pwl_calibration_num_keypoints=KEYPOINTS,
            pwl_calibration_input_keypoints=points.tolist(),
        )
        for i, points in enumerate(keypoints)
    ]
    config = tfl.configs.CalibratedLatticeEnsembleConfig(
        feature_configs=features,
        lattices=lattices,
        num_lattices=shape.lattices,
        lattice_rank=shape.inputs,
        interpolation=interpolation,
        separate_calibrators=False,
        output_initialization=INITIAL,
        random_seed=shape.seed,
    )
    search = tfl.layers.RTL._get_rtl_structure
    if inputs is not None:
        known = [((0,) * shape.inputs, inputs.tolist())]
        tfl.layers.RTL._get_rtl_structure = lambda self, shapes: known
    try:
        return tfl.premade.CalibratedLatticeEnsemble(config)
    finally:
        tfl.layers.RTL._get_rtl_structure = search


def columns(rows: Any) -> list[Any]:
    """Rows as the models take them: F columns, (N, 1) each."""
    return [rows[:, i : i + 1] for i in range(rows.shape[1])]
