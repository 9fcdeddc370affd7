"""Random premade models of TensorFlow Lattice, and rows for them. Needs TensorFlow."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import tensorflow as tf
    import tensorflow_lattice as tfl
    import tf_keras as keras

try:
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
except RuntimeError:  # TensorFlow has run something already
    pass
configs = tfl.configs

KINDS = ("ensemble", "rtl", "lattice", "linear")


@dataclass(frozen=True)
class Case:
    """A model, or a list of models, and how rows for it are made."""

    name: str
    model: Any
    features: tuple[Any, ...] = field(repr=False)  # FeatureConfig

    def rows(self, n: int, seed: int = 0, *, infinities: bool = True) -> np.ndarray:
        """(n, D) float64: values inside and outside, keypoints, missing values, infinities."""
        rng = np.random.default_rng(seed)
        columns = [feature_column(rng, f, n, infinities=infinities) for f in self.features]
        return np.stack(columns, axis=1)


def feature_column(rng, feature, n, *, infinities=True):
    """Values of one feature, (n,)."""
    if feature.num_buckets:
        values = rng.integers(-2, feature.num_buckets + 2, n).astype(float)
        values = np.where(rng.random(n) < 0.2, values + rng.random(n), values)  # cut to integers
    else:
        points = np.asarray(feature.pwl_calibration_input_keypoints, float)
        low, high = points[0], points[-1]
        values = rng.uniform(low - 0.2 * (high - low), high + 0.2 * (high - low), n)
        values = np.where(rng.random(n) < 0.15, rng.choice(points, n), values)
    if infinities:
        values[rng.random(n) < 0.02] = np.inf
        values[rng.random(n) < 0.02] = -np.inf
        values[rng.random(n) < 0.02] = 1e30
    if feature.default_value is not None:
        values[rng.random(n) < 0.1] = feature.default_value
    return values


def random_feature(rng, i, *, size=None, dtype="float32", categorical=0.25):
    """A feature with a random calibrator. TensorFlow Lattice itself fails on categories in float64, and on
    learned keypoints of several units there."""
    size = int(rng.integers(2, 5)) if size is None else size
    default = None if rng.random() < 0.6 else int(rng.choice([-1, -999, 0]))
    if dtype == "float32" and rng.random() < categorical:
        buckets = int(rng.integers(2, 7))
        pairs = [(0, 1)] if rng.random() < 0.3 else "none"
        return configs.FeatureConfig(
            name=f"f{i}",
            lattice_size=size,
            num_buckets=buckets,
            default_value=default,
            monotonicity=pairs,
        )
    n = int(rng.integers(2, 9))
    scale = float(rng.choice([1.0, 1.0, 30.0, 0.01]))
    start = float(rng.choice([0.0, -1.0, 5.0])) * scale
    points = start + scale * np.cumsum(rng.uniform(0.2, 1.0, n))
    monotonicity = rng.choice(["none", "none", "increasing", "decreasing"])
    return configs.FeatureConfig(
        name=f"f{i}",
        lattice_size=size,
        default_value=default,
        monotonicity=str(monotonicity),
        pwl_calibration_input_keypoints=[float(p) for p in points],
        pwl_calibration_input_keypoints_type=(
            "learned_interior" if dtype == "float32" and rng.random() < 0.3 else "fixed"
        ),
        pwl_calibration_convexity=0,
    )


def random_case(seed: int, kind: str, **options: Any) -> Case:
    """A model of one of KINDS with random options; those that are given are kept."""
    rng = np.random.default_rng(seed)
    dtype = options.get("dtype", "float64" if rng.random() < 0.2 else "float32")
    # Without it, the layers of Keras itself stay float32, which TensorFlow Lattice's Linear refuses.
    keras.backend.set_floatx(dtype)
    try:
        return _random_case(rng, seed, kind, dtype, options)
    finally:
        keras.backend.set_floatx("float32")


def _random_case(rng, seed, kind, dtype, options):
    n = options.get("n_features", int(rng.integers(2, 6)))
    size = int(rng.integers(2, 5)) if kind == "rtl" else options.get("size")
    features = [random_feature(rng, i, size=size, dtype=dtype) for i in range(n)]
    bounded, calibrated = rng.random() < 0.3, rng.random() < 0.3
    calibrated = options.get("output_calibration", calibrated)
    common: dict[str, Any] = {
        "feature_configs": features,
        "output_initialization": [0.0, 1.0],
        "output_calibration": calibrated,
    }
    if bounded or calibrated:
        common |= {"output_min": 0.0, "output_max": 1.0}
    if calibrated:
        common["output_initialization"] = np.linspace(0, 1, int(rng.integers(2, 8))).tolist()
        if dtype == "float32" and rng.random() < 0.3:
            common["output_calibration_input_keypoints_type"] = "learned_interior"
    interpolation = options.get("interpolation", str(rng.choice(["hypercube", "simplex"])))
    if kind == "lattice":
        config = configs.CalibratedLatticeConfig(**common, interpolation=interpolation)
        model = tfl.premade.CalibratedLattice(config, dtype=dtype)
    elif kind == "linear":
        config = configs.CalibratedLinearConfig(**common, use_bias=not (bounded or calibrated))
        model = tfl.premade.CalibratedLinear(config, dtype=dtype)
    else:
        linear = options.get("linear", bool(rng.random() < 0.5))
        common |= {
            "interpolation": interpolation,
            "separate_calibrators": options.get("separate", bool(rng.random() < 0.5)),
            "use_linear_combination": linear,
            "use_bias": linear and not (bounded or calibrated) and bool(rng.random() < 0.7),
            "random_seed": seed,
        }
        n_lattices, rank = int(rng.integers(2, 6)), int(rng.integers(1 + (kind == "rtl"), n + 1))
        n_lattices = options.get("n_lattices", max(n_lattices, -(-n // rank)))
        if kind == "rtl":
            common |= {"lattices": "rtl_layer", "num_lattices": n_lattices, "lattice_rank": rank}
        elif rng.random() < 0.5 or "lattices" in options:
            names = [f.name for f in features]
            drawn = [rng.permutation(names)[:rank].tolist() for _ in range(n_lattices)]
            common["lattices"] = options.get("lattices", drawn)
        else:
            common |= {"lattices": "random", "num_lattices": n_lattices, "lattice_rank": rank}
        config = configs.CalibratedLatticeEnsembleConfig(**common)
        if config.lattices == "random":
            tfl.premade_lib.set_random_lattice_ensemble(config)
        model = tfl.premade.CalibratedLatticeEnsemble(config, dtype=dtype)
    randomise(model, rng)
    return Case(f"{kind} {seed}", model, tuple(features))


def random_list(seed: int, *, same: bool) -> Case:
    """Several models on the same features, or each on features of its own choice."""
    rng = np.random.default_rng(seed)
    features = [random_feature(rng, i, size=2) for i in range(5)]
    models = []
    for m in range(int(rng.integers(1, 4))):
        own = features if same else [features[i] for i in rng.permutation(5)[: 2 + m]]
        bounds = {"output_initialization": [0.0, 1.0]}
        if rng.random() < 0.5:
            model = tfl.premade.CalibratedLattice(
                configs.CalibratedLatticeConfig(feature_configs=own, **bounds)
            )
        else:
            model = tfl.premade.CalibratedLinear(
                configs.CalibratedLinearConfig(feature_configs=own, **bounds)
            )
        randomise(model, rng)
        models.append(model)
    used = list(dict.fromkeys(name for model in models for name in names_of(model)))
    by_name = {f.name: f for f in features}
    return Case(f"list {seed}", models, tuple(by_name[name] for name in used))


def crystals_case(seed: int) -> Case:
    """An ensemble whose lattices are those that the Crystals algorithm finds."""
    rng = np.random.default_rng(seed)
    features = [random_feature(rng, i, size=2) for i in range(6)]
    config = configs.CalibratedLatticeEnsembleConfig(
        feature_configs=features,
        lattices="crystals",
        num_lattices=4,
        lattice_rank=3,
        output_initialization=[0.0, 1.0],
        random_seed=seed,
    )
    before = tfl.premade_lib.construct_prefitting_model_config(config)
    prefitting = tfl.premade.CalibratedLatticeEnsemble(before)
    for layer in prefitting.layers:
        for weight in layer.weights:
            weight.assign(rng.uniform(0, 1, weight.shape))
    tfl.premade_lib.set_crystals_lattice_ensemble(config, before, prefitting)
    model = tfl.premade.CalibratedLatticeEnsemble(config)
    randomise(model, rng)
    return Case(f"crystals {seed}", model, tuple(features))


def wired(layers, *, kind="CalibratedLattice", features=2, dtype="float32"):
    """A model of a premade class whose layers the caller puts together: `layers` gets the inputs, each
    (N, 1), and returns the output. Its configuration is unknown, as after loading by other means."""
    inputs = [keras.Input(shape=(1,), dtype=dtype, name=f"tfl_input_f{i}") for i in range(features)]
    return getattr(tfl.premade, kind)(inputs=inputs, outputs=layers(inputs))


def cyclic_case(seed: int) -> Case:
    """A lattice of cyclic calibrators. No configuration has them, so the layers are put together here."""
    points = [0.0, 0.5, 1.0, 1.75, 2.0]

    def layers(inputs):
        calibrated = [
            tfl.layers.PWLCalibration(
                points,
                output_min=0.0,
                output_max=2.0,
                is_cyclic=True,
                impute_missing=True,
                missing_input_value=-1.0,
                missing_output_value=0.25,
            )(each)
            for each in inputs
        ]
        return tfl.layers.Lattice([3, 3], clip_inputs=True)(calibrated)

    model = wired(layers)
    randomise(model, np.random.default_rng(seed))
    feature = {"pwl_calibration_input_keypoints": points, "default_value": -1.0}
    features = tuple(configs.FeatureConfig(name=f"f{i}", **feature) for i in range(2))
    return Case(f"cyclic {seed}", model, features)


def names_of(model):
    """The features of a model, in the order of its inputs."""
    return [f.name for f in model.model_config.feature_configs]


def randomise(model, rng) -> None:
    """Give every weight a random value that satisfies its constraint."""
    for layer in model.layers:
        for each in [*getattr(layer, "_lattice_layers", {}).values()] or [layer]:
            for weight in each.weights:
                values = tf.constant(_values(each, weight, rng), weight.dtype)
                constraint = getattr(weight, "constraint", None)
                weight.assign(values if constraint is None else constraint(values))


def _values(layer, weight, rng):
    """Random numbers of a weight's shape, mostly inside the bounds of its layer."""
    low, high = getattr(layer, "output_min", None), getattr(layer, "output_max", None)
    low, high = -1.0 if low is None else low, 1.0 if high is None else high
    kind, shape = type(layer).__name__, weight.shape
    if kind == "Linear":
        return rng.normal(size=shape) if "bias" in weight.name else rng.uniform(0.05, 0.6, shape)
    if "logits" in weight.name:
        return rng.normal(0, 0.6, shape)
    if kind == "PWLCalibration" and "missing_output" not in weight.name:
        outputs = rng.uniform(low, high, shape)  # at the keypoints
        slope = {"increasing": 1, "decreasing": -1}.get(layer.monotonicity, layer.monotonicity)
        if slope in (1, -1):
            outputs = slope * np.sort(slope * outputs, axis=0)
        return np.concatenate([outputs[:1], np.diff(outputs, axis=0)])
    values = rng.uniform(low, high, shape)
    if kind == "Lattice":  # sorted where it must not fall: the constraint alone would level it
        values = values.reshape(*layer.lattice_sizes, layer.units)
        for axis, monotonic in enumerate(layer.monotonicities or ()):
            values = np.sort(values, axis=axis) if monotonic in (1, "increasing") else values
    return values.reshape(shape)


def own_outputs(model, rows):
    """What the model itself gives, (N,)."""
    columns = []
    for j, tensor in enumerate(model.inputs):
        column = rows[:, j : j + 1]
        if tensor.dtype.is_integer:
            column = np.clip(column, -(2**31), 2**31 - 1)
        columns.append(column.astype(tensor.dtype.as_numpy_dtype))
    return np.asarray(model(columns), np.float64)[:, 0]


__all__ = ["Case", "keras", "tf", "tfl"]
