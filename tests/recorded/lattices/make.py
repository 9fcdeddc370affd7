"""Record small models of TensorFlow Lattice and the scores that TensorFlow gives:
python tests/recorded/lattices/make.py. Needs TensorFlow; writes the .npz files of this folder anew."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1] / "support")]

import lattice_models as models  # noqa: E402
import lattice_recordings as recordings  # noqa: E402
from qwyc import importers  # noqa: E402

ROWS = 160
PACKAGES = ("tensorflow", "tensorflow-lattice", "tf_keras", "numpy")


def cases() -> dict[str, Any]:
    """Names and models: every kind, and every way to calibrate, interpolate, combine and decide."""
    made = {}
    for interpolation in ("hypercube", "simplex"):
        for separate in (False, True):
            for linear in (False, True):
                name = f"{interpolation}-{'separate' if separate else 'shared'}"
                name += "-linear" if linear else "-mean"
                options = {"separate": separate, "linear": linear, "dtype": "float32"}
                options |= {"interpolation": interpolation, "output_calibration": False}
                seed = len(made)
                made[f"ensemble-{name}"] = models.random_case(100 + seed, "ensemble", **options)
                made[f"rtl-{name}"] = models.random_case(200 + seed, "rtl", **options)
    for kind in models.KINDS:
        made[f"{kind}-calibrated"] = models.random_case(
            303, kind, output_calibration=True, dtype="float32"
        )
        made[f"{kind}-double"] = models.random_case(304, kind, dtype="float64")
    for kind in ("lattice", "linear"):
        made[f"{kind}-plain"] = models.random_case(
            305, kind, output_calibration=False, dtype="float32"
        )
    made["crystals"] = models.crystals_case(306)
    made["cyclic"] = models.cyclic_case(307)
    made["list-same"] = models.random_list(308, same=True)
    made["list-union"] = models.random_list(309, same=False)
    losses = models.keras.losses
    for name, loss in {
        "logits": losses.BinaryCrossentropy(from_logits=True),
        "probability": losses.BinaryCrossentropy(),
        "name": "binary_crossentropy",
        "hinge": "hinge",
    }.items():
        made[f"loss-{name}"] = models.random_case(310, "lattice", dtype="float32")
        made[f"loss-{name}"].model.compile(loss=loss)
    return made


def main() -> None:
    for old in HERE.glob("*.npz"):
        old.unlink()
    for name, case in cases().items():
        record(name, case)
    print(f"{sum(p.stat().st_size for p in HERE.glob('*.npz')):,} bytes")


def record(name: str, case: Any) -> None:
    """Write a model and what TensorFlow makes of rows."""
    is_list = isinstance(case.model, list)
    arrays: dict[str, np.ndarray] = {}
    described = [
        describe(m, model, arrays)
        for m, model in enumerate(case.model if is_list else [case.model])
    ]
    source = importers.open_model(case.model)
    rows = case.rows(ROWS, seed=1).astype(source.ensemble.schema.dtype)
    table = rows
    if source.ensemble.schema.by_name:
        import pandas as pd

        table = pd.DataFrame(rows, columns=list(source.ensemble.schema.names))
    own = importers.tensorflow_lattice._own(case.model, source.ensemble.sample(table))
    facts = {
        "versions": {package: version(package) for package in PACKAGES},
        "models": described,
        "is_list": is_list,
        "threshold": own[2],
    }
    np.savez_compressed(
        HERE / f"{name}.npz",
        **arrays,
        rows=rows,
        output=own[0],
        score=own[1],
        facts=np.array(json.dumps(facts)),
    )


def describe(m: int, model: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """A model's layers and their wiring as plain values; weights go to `arrays`."""
    order = list(model.layers)  # a layer after those whose outputs it takes
    number = {id(layer): i for i, layer in enumerate(order)}
    loss = getattr(model, "loss", None)
    if loss is not None and not isinstance(loss, str):
        loss = {"class": type(loss).__name__, "from_logits": bool(loss.from_logits)}
    config = model.model_config
    return {
        "class": type(model).__name__,
        "layers": [
            describe_layer(f"{m}.{i}", layer, arrays)
            | {"given": encoded(layer, number), **outputs_of(layer)}
            for i, layer in enumerate(order)
        ],
        "inputs": [number[id(tensor._keras_history.layer)] for tensor in model.inputs],
        "output": number[id(model.outputs[0]._keras_history.layer)],
        "loss": loss,
        "bounds": {
            name: None if config is None else getattr(config, name)
            for name in ("output_min", "output_max")
        },
    }


def describe_layer(key: str, layer: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """A layer's class and attributes."""
    kind = type(layer).__name__
    values: dict[str, Any] = {}
    stored = []
    learned = recordings.SYMBOLIC.get(getattr(layer, "input_keypoints_type", ""), ())
    for name in (*recordings.COMMON, *recordings.ATTRIBUTES[kind]):
        if not hasattr(layer, name) or name in learned:
            continue
        value = getattr(layer, name)
        if name == "_rtl_structure":
            value = [[list(m), [list(units) for units in inputs]] for m, inputs in value]
        if name == "lattice_sizes":
            value = list(value)
        if hasattr(value, "shape") and not isinstance(value, np.generic):
            arrays[f"{key}.{name}"] = np.asarray(value)
            stored.append(name)
        else:
            values[name] = value.item() if isinstance(value, np.generic) else value
    found = {"class": kind, "module": type(layer).__module__, "values": values, "arrays": stored}
    if kind == "RTL":
        found["lattices"] = {
            inner: describe_layer(f"{key}.{inner}", each, arrays)
            for inner, each in layer._lattice_layers.items()
        }
    return found


def outputs_of(layer: Any) -> dict[str, int]:
    """How many tensors a layer makes, and their width."""
    made = layer.output if isinstance(layer.output, list) else [layer.output]
    return {"outputs": len(made), "width": int(made[0].shape[1])}


def encoded(layer: Any, number: dict[int, int]) -> Any:
    """What a layer was called with; [layer, output] in the place of each tensor."""
    (node,) = layer._inbound_nodes

    def encode(value: Any) -> Any:
        if hasattr(value, "_keras_history"):
            source, _, output = value._keras_history
            return {"tensor": [number[id(source)], output]}
        if isinstance(value, dict):
            return {key: encode(each) for key, each in value.items()}
        return [encode(each) for each in value]

    return encode(node.call_args[0]) if len(node.call_args) else None


if __name__ == "__main__":
    main()
