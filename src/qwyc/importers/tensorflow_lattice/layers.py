"""The layers of a live premade model, walked from its output to its inputs as they are wired.

Every layer must be one whose arithmetic is known here. What is found is a sum of lattices and calibrated
features, each with a weight, and perhaps an output calibration behind it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.importers.tensorflow_lattice.calibrators import (
    categorical,
    output_range,
    piecewise_linear,
    weights,
)
from qwyc.model.lattices.join import CalibratorPart, ModelPart
from qwyc.model.lattices.models import Interpolation

Array = npt.NDArray[Any]

SUPPORTED = (
    "supported are the premade models CalibratedLatticeEnsemble, CalibratedLattice and CalibratedLinear "
    "with parameterization='all_vertices', as tensorflow_lattice builds them"
)
OUTSIDE = 1e-5  # how far rounding may put a calibrator's output outside its lattice
INPUT_PREFIX = "tfl_input_"


@dataclass(frozen=True, eq=False)
class Structure:
    """What a model computes: base + sum of its base models, and an output calibration of that."""

    features: tuple[str, ...]
    dtype: np.dtype[Any]
    calibrators: tuple[CalibratorPart, ...]
    models: tuple[ModelPart, ...]
    base: float
    mean: bool
    largest: int  # values per row of the largest tensor that the model makes of its lattices
    output_calibration: Any = None  # the layer


def structure_of(model: Any) -> Structure:
    """Walk a model's layers; ModelError where one of them cannot be read exactly."""
    return _Walk(model).structure()


def feature_name(tensor: Any) -> str:
    """The name of the feature that an input of a premade model takes."""
    return str(_layer(tensor).name).removeprefix(INPUT_PREFIX)


def kind_of(layer: Any) -> str:
    """The name of a layer's class where it is one of tensorflow_lattice or Keras, and "" otherwise. A
    class that derives from theirs may compute something else, so it does not count."""
    package = type(layer).__module__.split(".")[0]
    known = package in ("tensorflow_lattice", "tf_keras", "keras", "tensorflow")
    return type(layer).__name__ if known else ""


def _layer(tensor: Any) -> Any:
    return tensor._keras_history.layer


def _arguments(tensor: Any) -> Any:
    """What the layer that makes this tensor was called with."""
    layer, node_index, _ = tensor._keras_history
    node = layer._inbound_nodes[node_index]
    values = list(node.call_args)
    if len(values) != 1 or set(node.call_kwargs) - {"name"}:
        raise ModelError(f"{_name(layer)} is called with further arguments; {SUPPORTED}")
    return values[0]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _name(layer: Any) -> str:
    return f"the layer {layer.name!r} ({type(layer).__name__})"


@dataclass
class _Walk:
    """One walk through a model."""

    model: Any
    calibrators: list[CalibratorPart] = field(default_factory=list)
    found: dict[tuple[int, int], list[int]] = field(default_factory=dict)  # by layer and node
    seen: set[int] = field(default_factory=set)  # identities of layers
    dtypes: set[np.dtype[Any]] = field(default_factory=set)
    largest: int = 1

    def structure(self) -> Structure:
        outputs = list(self.model.outputs)
        if len(outputs) != 1 or tuple(outputs[0].shape[1:]) != (1,):
            raise ModelError(
                f"the model has {len(outputs)} outputs of shape {[tuple(o.shape) for o in outputs]}; qwyc "
                "reads models with one number per row"
            )
        output, calibration = outputs[0], None
        if kind_of(_layer(output)) == "PWLCalibration":
            calibration = _layer(output)
            self._see(calibration)
            output = self._single(_arguments(output), calibration)
        models, base, mean = self._sum(output)
        for tensor in self.model.inputs:  # a feature that no lattice uses is an input all the same
            self.seen.add(id(_layer(tensor)))
        for layer in self.model.layers:
            if id(layer) not in self.seen:
                raise ModelError(f"{_name(layer)} is not between inputs and output; {SUPPORTED}")
        return Structure(
            features=tuple(feature_name(tensor) for tensor in self.model.inputs),
            dtype=max(self.dtypes, key=lambda dtype: dtype.itemsize),
            calibrators=tuple(self.calibrators),
            models=tuple(models),
            base=base,
            mean=mean,
            largest=self.largest,
            output_calibration=calibration,
        )

    def _see(self, layer: Any) -> None:
        self.seen.add(id(layer))
        if layer.compute_dtype != layer.dtype:
            raise ModelError(
                f"{_name(layer)} has weights of {layer.dtype} and computes in {layer.compute_dtype}; qwyc "
                "reads models that have one dtype"
            )

    def _weights(self, layer: Any, name: str) -> Array:
        values = weights(layer, name)
        self.dtypes.add(values.dtype)
        return values

    def _refuse(self, layer: Any, where: str) -> ModelError:
        known = {
            "KroneckerFactoredLattice": "its lattices are not stored as tables of vertices",
            "Aggregation": "it takes several values per feature",
            "CDF": "it is no lattice of calibrated features",
        }
        why = known.get(kind_of(layer), f"it is not read {where}")
        return ModelError(f"{_name(layer)} cannot be read, since {why}; {SUPPORTED}")

    def _single(self, value: Any, layer: Any) -> Any:
        """The one tensor that a layer is called with."""
        tensors = _listed(value)
        if len(tensors) != 1:
            raise ModelError(
                f"{_name(layer)} has {len(tensors)} inputs, such as one that says what is missing; qwyc "
                "reads calibrators of one column: set missing_input_value instead"
            )
        return tensors[0]

    # ---- sums of base models ----------------------------------------------------------------

    def _sum(self, tensor: Any) -> tuple[list[ModelPart], float, bool]:
        """Base models with their weights, what is added, and whether it is a mean."""
        layer = _layer(tensor)
        kind = kind_of(layer)
        if kind == "Linear":
            return self._linear(tensor, layer)
        if kind == "Average":
            self._see(layer)
            terms = [self._one_term(each, layer) for each in _listed(_arguments(tensor))]
        elif kind == "RTL" and layer.average_outputs:
            terms = self._rtl(tensor, layer)
        elif kind == "Lattice":
            return [self._lattice(tensor, layer)], 0.0, False
        else:
            raise self._refuse(layer, "at the place where lattices are added up")
        return [replace(term, weight=1.0 / len(terms)) for term in terms], 0.0, True

    def _one_term(self, tensor: Any, layer: Any) -> ModelPart:
        terms = self._terms(tensor)
        if len(terms) != 1:
            raise ModelError(f"{_name(layer)} averages tensors of several columns; {SUPPORTED}")
        return terms[0]

    def _linear(self, tensor: Any, layer: Any) -> tuple[list[ModelPart], float, bool]:
        self._see(layer)
        if layer.units != 1:
            raise ModelError(f"{_name(layer)} has {layer.units} units; qwyc reads one")
        if layer.clip_value_min is not None or layer.clip_value_max is not None:
            raise ModelError(
                f"{_name(layer)} clips its inputs (input_min, input_max), which qwyc does not; train the "
                "model without"
            )
        kernel = self._weights(layer, "kernel")[:, 0]  # (T,)
        base = float(self._weights(layer, "bias")) if layer.use_bias else 0.0
        terms = self._terms(self._single(_arguments(tensor), layer))
        if len(terms) != len(kernel):
            raise ModelError(f"{_name(layer)} has {len(kernel)} weights for {len(terms)} inputs")
        for i, term in enumerate(terms):
            if term.interpolation == Interpolation.LINEAR:
                terms[i] = replace(term, vertices=np.array([kernel[i], 0.0], kernel.dtype))
            else:
                terms[i] = replace(term, weight=float(kernel[i]))
        return terms, base, False

    def _terms(self, tensor: Any) -> list[ModelPart]:
        """The base models that are the columns of a tensor."""
        layer = _layer(tensor)
        kind = kind_of(layer)
        if kind == "Concatenate":
            self._check_concatenate(layer)
            return [term for each in _listed(_arguments(tensor)) for term in self._terms(each)]
        if kind == "Lattice":
            return [self._lattice(tensor, layer)]
        if kind == "RTL" and not layer.average_outputs:
            return self._rtl(tensor, layer)
        if self._is_identity(layer) or kind in ("PWLCalibration", "CategoricalCalibration"):
            unit = np.ones(2, np.float32)  # replaced by the layer that adds them up
            columns = self._columns(tensor)
            return [ModelPart(Interpolation.LINEAR, 1.0, (c,), (0,), unit) for c in columns]
        raise self._refuse(layer, "at the place of a base model")

    def _lattice(self, tensor: Any, layer: Any) -> ModelPart:
        self._see(layer)
        if layer.units != 1:
            raise ModelError(
                f"{_name(layer)} has {layer.units} units; qwyc reads lattices of one unit, or those of an "
                "RTL layer"
            )
        inputs = [c for each in _listed(_arguments(tensor)) for c in self._columns(each)]
        return self._table(layer, inputs, 0)

    def _rtl(self, tensor: Any, layer: Any) -> list[ModelPart]:
        """The lattices of an RTL layer in the order of its outputs, those without monotonic inputs
        first."""
        self._see(layer)
        if layer.separate_outputs:
            raise ModelError(f"{_name(layer)} has separate outputs; {SUPPORTED}")
        given = _arguments(tensor)
        groups = {"unconstrained": given} if not isinstance(given, dict) else given
        flat = [  # calibrators, in the order in which the layer concatenates its inputs
            column
            for key in sorted(groups)
            for each in _listed(groups[key])
            for column in self._columns(each)
        ]
        outputs: tuple[list[ModelPart], list[ModelPart]] = ([], [])
        for monotonicities, units in layer._rtl_structure:
            lattice = layer._lattice_layers[str(tuple(monotonicities))]
            if kind_of(lattice) != "Lattice":
                raise self._refuse(lattice, f"inside {_name(layer)}")
            outputs[max(monotonicities)].extend(
                self._table(lattice, [flat[i] for i in inputs], unit)
                for unit, inputs in enumerate(units)
            )
            self.largest = max(self.largest, len(units) * int(np.prod(lattice.lattice_sizes)))
        return [*outputs[0], *outputs[1]]

    def _table(self, layer: Any, inputs: Sequence[int], unit: int) -> ModelPart:
        """One unit of a Lattice layer."""
        kernel = self._weights(layer, "kernel")  # (vertices, units), the first input slowest
        sizes = tuple(int(size) for size in layer.lattice_sizes)
        if len(sizes) != len(inputs) or len(kernel) != np.prod(sizes):
            raise ModelError(f"{_name(layer)} has {len(inputs)} inputs for lattice sizes {sizes}")
        if not layer.clip_inputs:
            self._check_range(layer, inputs, sizes)
        self.largest = max(self.largest, len(kernel))
        kinds = {"hypercube": Interpolation.HYPERCUBE, "simplex": Interpolation.SIMPLEX}
        if layer.interpolation not in kinds:
            raise ModelError(
                f"{_name(layer)} has an unknown interpolation, {layer.interpolation!r}"
            )
        return ModelPart(kinds[layer.interpolation], 1.0, tuple(inputs), sizes, kernel[:, unit])

    def _check_range(self, layer: Any, inputs: Iterable[int], sizes: Iterable[int]) -> None:
        """Outside a lattice that does not clip its inputs, TensorFlow Lattice extrapolates. Rounding alone
        puts outputs outside by a few last bits; these are clamped when rows are evaluated, which changes
        the score by less than the tolerance."""
        for column, size in zip(inputs, sizes, strict=True):
            calibrator = self.calibrators[column]
            least, most = output_range(calibrator)
            if least < -OUTSIDE or most > size - 1 + OUTSIDE:
                name = feature_name(self.model.inputs[calibrator.feature])
                raise ModelError(
                    f"{_name(layer)} does not clip its inputs, and the calibrator of {name!r} has outputs "
                    f"from {least:g} to {most:g}, outside 0 to {size - 1}; train the model with its "
                    "constraints on, or clip the calibrator's weights"
                )

    # ---- calibrated columns -----------------------------------------------------------------

    def _columns(self, tensor: Any) -> list[int]:
        """The calibrators that are the columns of a tensor."""
        layer, node_index, tensor_index = tensor._keras_history
        kind = kind_of(layer)
        if self._is_identity(layer):
            self.seen.add(id(layer))
            return self._columns(self._single(_arguments(tensor), layer))
        if kind == "Concatenate":
            self._check_concatenate(layer)
            return [c for each in _listed(_arguments(tensor)) for c in self._columns(each)]
        if kind not in ("PWLCalibration", "CategoricalCalibration"):
            raise self._refuse(layer, "between an input and a lattice")
        key = id(layer), node_index
        if key not in self.found:
            self.found[key] = self._calibrators(tensor, layer, kind)
        units = self.found[key]
        return [units[tensor_index]] if layer.split_outputs and len(units) > 1 else units

    def _calibrators(self, tensor: Any, layer: Any, kind: str) -> list[int]:
        self._see(layer)
        source = self._single(_arguments(tensor), layer)
        features = [i for i, x in enumerate(self.model.inputs) if _layer(x) is _layer(source)]
        if not features or tuple(source.shape[1:]) != (1,):
            raise self._refuse(_layer(source), "between an input and a calibrator")
        self._weights(layer, "kernel")
        read = piecewise_linear if kind == "PWLCalibration" else categorical
        first = len(self.calibrators)
        self.calibrators += read(layer, features[0])
        return list(range(first, len(self.calibrators)))

    def _check_concatenate(self, layer: Any) -> None:
        self.seen.add(id(layer))
        if layer.axis not in (1, -1):
            raise ModelError(f"{_name(layer)} joins along axis {layer.axis}; {SUPPORTED}")

    def _is_identity(self, layer: Any) -> bool:
        return kind_of(layer) == "TFOpLambda" and getattr(layer, "symbol", "") == "identity"
