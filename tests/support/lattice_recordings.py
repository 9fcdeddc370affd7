"""Models of TensorFlow Lattice as they were recorded: their layers, how these are wired, and the scores
that TensorFlow gave. `tests/recorded/lattices/make.py` writes them. Played back, a model has the classes,
the attributes and the wiring that qwyc reads, so that TensorFlow is not needed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

FOLDER = Path(__file__).parents[1] / "recorded" / "lattices"
RECORDED = sorted(path.stem for path in FOLDER.glob("*.npz"))

COMMON = ("name", "dtype", "compute_dtype")
# By class: what a reader may ask a layer for.
ATTRIBUTES = {
    "InputLayer": (),
    "TFOpLambda": ("symbol",),
    "Concatenate": ("axis",),
    "Average": (),
    "PWLCalibration": (
        "units",
        "is_cyclic",
        "impute_missing",
        "missing_input_value",
        "missing_output",
        "input_keypoints_type",
        "_interpolation_keypoints",
        "_lengths",
        "interpolation_logits",
        "_keypoint_range",
        "_keypoint_min",
        "split_outputs",
        "kernel",
    ),
    "CategoricalCalibration": ("units", "default_input_value", "split_outputs", "kernel"),
    "Lattice": ("units", "lattice_sizes", "interpolation", "clip_inputs", "kernel"),
    "Linear": ("units", "clip_value_min", "clip_value_max", "kernel", "use_bias", "bias"),
    "RTL": ("average_outputs", "separate_outputs", "_rtl_structure"),
}
# Tensors of the graph in which a layer was last called: they have no value to record.
SYMBOLIC = {"learned_interior": ("_interpolation_keypoints", "_lengths")}


@dataclass(frozen=True)
class Recording:
    """A model, the rows it was given, and what TensorFlow made of them."""

    model: Any  # played back; a list of models where a list was recorded
    rows: np.ndarray  # (N, D)
    score: np.ndarray  # (N,)
    output: np.ndarray  # (N,)
    facts: dict[str, Any]  # versions, threshold on the output, and what the model is


def load(name: str) -> Recording:
    """A recording by its name."""
    with np.load(FOLDER / f"{name}.npz") as file:
        arrays = dict(file)
    facts = json.loads(str(arrays["facts"]))
    models = [_model(m, described, arrays) for m, described in enumerate(facts["models"])]
    model = models if facts["is_list"] else models[0]
    return Recording(model, arrays["rows"], arrays["score"], arrays["output"], facts)


def fake(module: str, kind: str, **attributes: Any) -> Any:
    """An object of a class with this name in this module."""
    made = type(kind, (), {"__module__": module})()
    made.__dict__.update(attributes)
    return made


def fake_layer(module: str, kind: str, **attributes: Any) -> Any:
    """A layer that has not been called."""
    common = {"name": kind.lower(), "dtype": "float32", "compute_dtype": "float32"}
    return fake(module, kind, **(common | {"_inbound_nodes": []} | attributes))


def call(layer: Any, given: Any, *, width: int = 1, outputs: int = 1, **options: Any) -> list[Any]:
    """Call a layer; the tensors that it makes, (N, width) each."""
    layer._inbound_nodes.append(SimpleNamespace(call_args=(given,), call_kwargs=options))
    node = len(layer._inbound_nodes) - 1
    history = [
        SimpleNamespace(layer=layer, node_index=node, tensor_index=i) for i in range(outputs)
    ]
    return [SimpleNamespace(_keras_history=_History(h), shape=(None, width)) for h in history]


class _History(tuple):
    """Keras's history of a tensor: a tuple whose first item has a name."""

    def __new__(cls, parts: Any) -> Any:
        made = super().__new__(cls, (parts.layer, parts.node_index, parts.tensor_index))
        made.layer = parts.layer
        return made


def _model(m: int, described: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    layers: list[Any] = []
    tensors: list[list[Any]] = []
    for i, layer in enumerate(described["layers"]):
        layers.append(_layer(f"{m}.{i}", layer, arrays))
        given = _decoded(layer["given"], tensors)
        made = call(layers[-1], given, width=layer["width"], outputs=layer["outputs"])
        tensors.append(made)
    loss = described["loss"]
    if isinstance(loss, dict):
        loss = fake("tf_keras.src.losses", loss["class"], from_logits=loss["from_logits"])
    return fake(
        "tensorflow_lattice.python.premade",
        described["class"],
        layers=layers,
        inputs=[tensors[i][0] for i in described["inputs"]],
        outputs=[tensors[described["output"]][0]],
        loss=loss,
        model_config=SimpleNamespace(**described["bounds"]),
    )


def _layer(key: str, described: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    values = dict(described["values"])
    values |= {name: arrays[f"{key}.{name}"] for name in described["arrays"]}
    for inner, layer in described.get("lattices", {}).items():
        values.setdefault("_lattice_layers", {})[inner] = _layer(f"{key}.{inner}", layer, arrays)
    return fake_layer(described["module"], described["class"], **values)


def _decoded(given: Any, tensors: list[list[Any]]) -> Any:
    """The tensors that a layer was called with: [layer, output] in the place of each."""
    if isinstance(given, dict) and "tensor" in given:
        layer, output = given["tensor"]
        return tensors[layer][output]
    if isinstance(given, dict):
        return {key: _decoded(value, tensors) for key, value in given.items()}
    if isinstance(given, list):
        return [_decoded(value, tensors) for value in given]
    return given


def small_tensorflow() -> Any:
    """The functions of TensorFlow that compute learned keypoints, in NumPy."""

    def softmax(logits: Any, axis: int) -> Any:
        shifted = np.exp(logits - logits.max(axis=axis, keepdims=True))
        return shifted / shifted.sum(axis=axis, keepdims=True)

    def cumsum(values: Any, axis: int, exclusive: bool) -> Any:
        assert exclusive
        return np.cumsum(values, axis=axis) - values

    def like(function: Any) -> Any:
        return lambda a, b: function(a, a.dtype.type(b))

    return SimpleNamespace(
        nn=SimpleNamespace(softmax=softmax),
        cumsum=cumsum,
        multiply=like(np.multiply),
        add=like(np.add),
    )


# ---- models that are put together by hand -----------------------------------------------------

TFL, KERAS = "tensorflow_lattice.python.layers", "tf_keras.src.layers"


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


def linear(**options):
    values = {"units": 1, "clip_value_min": None, "clip_value_max": None, "use_bias": True}
    values |= {"kernel": np.array([[2], [3]], np.float32), "bias": np.array(0.5, np.float32)}
    return fake_layer(TFL, "Linear", name="the_sum", **(values | options))
