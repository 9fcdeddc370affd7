"""An ONNX model's graph, as far as finding its tree ensemble takes: which operator has the trees,
what it is fed with and what becomes of its outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.importers.wire.protobuf import Message

TREES = ("TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble")
_FLOAT, _DOUBLE = 1, 11  # element types of tensors
_DTYPES = {1: "<f4", 2: "u1", 3: "i1", 6: "<i4", 7: "<i8", 11: "<f8"}
_SAME = ("Identity", "Cast")  # pass values on unchanged
_AROUND = (*_SAME, "Reshape", "ZipMap", "Squeeze", "Flatten")
_CYCLE = (
    "the graph has a cycle: an operator is fed with its own output, directly or through others; export the "
    "model again"
)

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Operator:
    """One operator of a graph."""

    kind: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: Mapping[str, Any]  # number, text (bytes), array or list of texts


@dataclass(frozen=True)
class TreeGraph:
    """The one operator with trees, and what is around it."""

    trees: Operator
    wide: bool  # rows are float64 (otherwise float32)
    n_columns: int | None  # None: the graph does not say
    sigmoid: bool  # its output goes through a sigmoid
    producer: str  # the library that wrote the graph


def find_trees(content: bytes) -> TreeGraph:
    """The tree ensemble of a serialised model; ModelError where other operators decide as well."""
    model = Message(content)
    graphs = model.messages(7)
    if not graphs:
        raise ModelError("the file has no ONNX graph")
    graph = graphs[-1]
    operators = [_operator(node) for node in graph.messages(1)]
    with_trees = [op for op in operators if op.kind in TREES]
    if len(with_trees) != 1:
        kinds = ", ".join(sorted({op.kind for op in operators})) or "nothing"
        raise ModelError(
            f"the graph has {len(with_trees)} tree ensembles, and must have one (it holds {kinds})"
        )
    trees = with_trees[0]
    constants = {tensor.text(8) for tensor in graph.messages(5)}
    inputs = [value for value in graph.messages(11) if value.text(1) not in constants]
    producers = {name: op for op in operators for name in op.outputs}
    name = trees.inputs[0]
    casts: list[Any] = []  # what each step casts to; None where it does not
    while name in producers:
        op = producers[name]
        if op is trees or len(casts) >= len(operators):
            raise ModelError(_CYCLE)
        if op.kind not in _SAME:
            raise ModelError(
                f"the graph transforms its rows ({op.kind}) before the trees; pass a model of the trees "
                "alone, and rows as they reach them"
            )
        casts.append(op.attributes.get("to"))
        name = op.inputs[0]
    matching = [value for value in inputs if value.text(1) == name]
    if len(inputs) != 1 or not matching:
        raise ModelError(f"the graph must have one input, the rows; it has {len(inputs)}")
    element, n_columns = _shape(matching[0])
    reached = casts[0] if casts and casts[0] is not None else element
    if reached not in (_FLOAT, _DOUBLE):
        raise ModelError(
            f"the trees' rows are of element type {reached}; supported are float and double"
        )
    if element == _FLOAT:
        reached = _FLOAT  # what was float32 once stays it
    sigmoid = _what_follows(trees, operators, [value.text(1) for value in graph.messages(12)])
    return TreeGraph(trees, reached == _DOUBLE, n_columns, sigmoid, model.text(2))


def _what_follows(trees: Operator, operators: Sequence[Operator], outputs: Sequence[str]) -> bool:
    """Whether a sigmoid follows a regressor. The graph's first output must be the trees' first,
    but for operators that pass it on."""
    allowed = _AROUND if trees.kind == "TreeEnsembleClassifier" else (*_AROUND, "Sigmoid")
    producers = {name: op for op in operators for name in op.outputs}
    name, sigmoid, steps = (outputs[0] if outputs else ""), False, 0
    while name not in trees.outputs:
        op = producers.get(name)
        if steps >= len(operators):
            raise ModelError(_CYCLE)
        if op is None or op.kind not in allowed:
            what = "nothing" if op is None else op.kind
            raise ModelError(
                f"the graph's first output is made by {what}, not by its tree ensemble; qwyc reads "
                "graphs whose trees decide"
            )
        sigmoid |= op.kind == "Sigmoid"
        name, steps = op.inputs[0], steps + 1
    if name != trees.outputs[0]:
        raise ModelError("the graph's first output must be the label that the trees decide")
    return sigmoid


def _shape(value: Message) -> tuple[int, int | None]:
    """Element type and number of columns of a graph's input."""
    kinds = [tensor for kind in value.messages(2) for tensor in kind.messages(1)]
    if not kinds:
        raise ModelError("the graph's input is not a tensor")
    dims = [dim for shape in kinds[-1].messages(2) for dim in shape.messages(1)]
    n_columns = dims[1].integer(1) if len(dims) == 2 else 0
    return kinds[-1].integer(1), n_columns if 0 < n_columns < 1 << 27 else None


def _operator(node: Message) -> Operator:
    return Operator(
        kind=node.text(4),
        inputs=[value.decode("utf-8", "replace") for value in node.texts(1)],
        outputs=[value.decode("utf-8", "replace") for value in node.texts(2)],
        attributes={a.text(1): _attribute(a) for a in node.messages(5)},
    )


def _attribute(attribute: Message) -> Any:
    kind = attribute.integer(20)
    if kind == 1:
        return float(attribute.reals(2, "<f4")[-1])
    if kind == 2:
        return attribute.integer(3)
    if kind == 3:
        return (attribute.texts(4) or [b""])[-1]
    if kind == 4:
        return _tensor(attribute.messages(5)[-1])
    if kind == 6:
        return attribute.reals(7, "<f4")
    if kind == 7:
        return attribute.integers(8)
    if kind == 8:
        return attribute.texts(9)
    return None


def _tensor(tensor: Message) -> Array:
    """A tensor's numbers, flat."""
    dtype = _DTYPES.get(tensor.integer(2))
    if dtype is None:
        raise ModelError(f"a tensor is of the unsupported element type {tensor.integer(2)}")
    raw = tensor.texts(9)
    if raw:
        if len(raw[-1]) % np.dtype(dtype).itemsize:
            raise ModelError("a tensor's bytes do not fit its type")
        return np.frombuffer(raw[-1], dtype)
    if dtype == "<f4":
        return tensor.reals(4, "<f4")
    if dtype == "<f8":
        return tensor.reals(10, "<f8")
    return tensor.integers(7 if dtype == "<i8" else 5).astype(dtype)
