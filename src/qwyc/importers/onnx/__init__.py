"""ONNX: `.onnx` files and live models with one tree ensemble that decides, as ONNX Runtime runs them
on one thread. Neither onnx nor onnxruntime is needed to read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import MissingDependencyError, ModelError
from qwyc.importers import files, live
from qwyc.importers.comparisons import with_one_rule
from qwyc.importers.flatten import flatten
from qwyc.importers.onnx.classes import class_ensemble, scores_of_probabilities
from qwyc.importers.onnx.graph import TreeGraph, find_trees
from qwyc.importers.onnx.trees import Weights, first, text, trees_of
from qwyc.importers.onnx.values import value_ensemble
from qwyc.model.ensemble import Ensemble, Sample, Source
from qwyc.model.link import Link
from qwyc.model.output import Output
from qwyc.model.trees import Summation, tree_ensemble
from qwyc.rows.schema import Schema
from qwyc.target.boundary import smallest_positive, smallest_sum_above_zero

LIVE_KINDS = "ONNX (ModelProto, InferenceSession)"
FILE_KINDS = "ONNX (.onnx)"
_REMEDY = "export it again"
LOADING_ERROR = 0.0
_NEAR = 2e-6  # probabilities are float32, and their sigmoid is not reproducible

Array = npt.NDArray[Any]


def looks_like(head: bytes) -> bool:
    """Whether a file that starts with `head` may be an ONNX model: its version, then its producer."""
    return (
        len(head) > 8
        and head[:1] == b"\x08"
        and head[1] < 64
        and head[2:3] in b"\x12\x1a\x22\x3a\x42"
    )


def is_live(model: object) -> bool:
    """Whether `model` is an onnx.ModelProto or an ONNX Runtime session."""
    named = type(model).__name__ in ("ModelProto", "InferenceSession")
    return named and (live.made_by(model, "onnx") or live.made_by(model, "onnxruntime"))


def read_file(path: Path) -> Ensemble:
    """The model in a `.onnx` file."""
    content = files.read_bytes(path)
    with files.reading(str(path), "ONNX model", _REMEDY):
        return _ensemble(find_trees(content))


def read_live(model: Any) -> Ensemble:
    """An `onnx.ModelProto` or an `onnxruntime.InferenceSession`."""
    with files.reading(type(model).__name__, "ONNX model", _REMEDY):
        return _ensemble(find_trees(_content(model)))


def _content(model: Any) -> bytes:
    if hasattr(model, "SerializeToString"):
        return bytes(model.SerializeToString())
    path, content = getattr(model, "_model_path", None), getattr(model, "_model_bytes", None)
    if content is None and path is None:
        raise ModelError(
            "the session does not say which file it was made from; pass the path of the model"
        )
    return bytes(content) if content is not None else files.read_bytes(Path(str(path)))


def load(path: Path) -> Any:
    """The model in a file as ONNX Runtime loads it, on one thread."""
    return _session(files.read_bytes(path))


def _session(content: bytes) -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise MissingDependencyError(
            "comparing with an ONNX model takes onnxruntime: install it, or pass the model's path, "
            "which is read without that proof"
        ) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # with more, trees are added up in another order
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def _run(model: Any, sample: Sample) -> list[Any]:
    session = _session(_content(model))
    entry = session.get_inputs()[0]
    rows = sample.rows.astype(
        {"tensor(float)": np.float32, "tensor(double)": np.float64}[entry.type]
    )
    outputs: list[Any] = session.run(None, {entry.name: rows})
    return outputs


def _classifies(sample: Sample) -> bool:
    """Whether the operator with the trees gives classes, not scores."""
    source = sample.ensemble.source
    return source is not None and source.kind == "TreeEnsembleClassifier"


def live_predictions(model: Any, sample: Sample) -> live.Predictions:
    """The model's own decisions and scores."""
    return live.Predictions.of(live_labels(model, sample), live_scores(model, sample))


def live_labels(model: Any, sample: Sample) -> Array:
    """The classes, (N,), that ONNX Runtime gives the rows X."""
    outputs = np.asarray(_run(model, sample)[0])
    if not _classifies(sample):
        return sample.ensemble.classes[(outputs.reshape(-1) > 0.5).astype(np.intp)]
    return outputs.reshape(-1)


def live_scores(model: Any, sample: Sample) -> Array:
    """Scores, (N,) or (N, K), to compare with. The graph gives probabilities: ours where ours has that
    probability, and otherwise theirs, as far as it can be told."""
    outputs = _run(model, sample)
    ensemble = sample.ensemble
    if ensemble.by_class:
        last, labels = outputs[-1], ensemble.classes.tolist()
        if isinstance(last, list):  # a dictionary a row
            last = np.array([[row[label] for label in labels] for row in last])
        ours = ensemble.score_full(sample)
        if len(outputs) < 2 or np.shape(last) != ours.shape:
            return ours  # the graph gives labels only
        attributes = find_trees(_content(model)).trees.attributes
        transform = text(attributes.get("post_transform"), "NONE")
        return scores_of_probabilities(ours, np.asarray(last, np.float64), transform)
    if _classifies(sample):
        last = outputs[-1]
        if isinstance(last, list):  # a dictionary a row
            last = np.array([[row[key] for key in row] for row in last])
        p = np.asarray(last, np.float64)[:, -1]
    else:
        p = np.asarray(outputs[0], np.float64).reshape(-1)
    ours = ensemble.score_full(sample)
    if ensemble.link.kind == "none":
        return ours
    expected = ours
    if ensemble.link.kind == "logistic":
        expected = 1 / (1 + np.exp(-np.clip(ours, -700, 700)))
        near = np.clip(p, 1e-300, 1 - 1e-16)
        theirs = np.log(near) - np.log1p(-near)
    else:
        theirs = p
    return np.asarray(np.where(np.abs(p - expected) <= _NEAR, ours, theirs))


def _ensemble(graph: TreeGraph) -> Ensemble:
    kind, attributes = graph.trees.kind, graph.trees.attributes
    real = np.dtype(np.float64 if graph.wide else np.float32)
    table, operator, weights = trees_of(kind, attributes, real)
    table, less_equal = with_one_rule(table, operator)
    used = int(table.feature.max(initial=0)) + 1
    transform = _transform(kind, attributes)
    if _gives_values(graph, transform):
        return value_ensemble(
            graph,
            table,
            weights,
            _bases(attributes),
            transform,
            less_equal=less_equal,
            schema=Schema(graph.n_columns or used, None, real.name),
            source=Source("onnx", graph.producer, kind),
        )
    if kind == "TreeEnsembleClassifier" and len(_classes(attributes)) > 2:
        return class_ensemble(
            table,
            weights,
            _bases(attributes),
            less_equal=less_equal,
            schema=Schema(graph.n_columns or used, None, real.name),
            classes=_classes(attributes),
            source=Source("onnx", graph.producer, kind),
            output=_OUTPUTS.get(transform),
        )
    base, link, threshold, classes = _decision(graph, weights, transform)
    trees = flatten(table)
    if threshold is None:
        threshold = smallest_sum_above_zero(trees.leaf_value, base)
        if not graph.wide:
            threshold = smallest_positive(lambda score: score > 0, np.float32)
    return tree_ensemble(
        trees,
        schema=Schema(graph.n_columns or used, None, real.name),
        summation=Summation.FLOAT64_LATE if graph.wide else Summation.FLOAT32_LATE,
        less_equal=less_equal,
        truncates=False,
        base=base,
        divisor=1.0,
        threshold=threshold,
        classes=classes,
        source=Source("onnx", graph.producer, kind),
        link=link,
        output=_two_classes(kind, weights, transform),
    )


# What becomes of the scores of more than two classes.
_OUTPUTS = {
    "NONE": Output("identity", "float32"),
    "LOGISTIC": Output("mirrored", "float32"),
    "SOFTMAX": Output("single softmax", "float32"),
}


def _two_classes(kind: str, weights: Weights, transform: str) -> Output | None:
    """What becomes of the score of two classes; None where it is not known, or no probability."""
    if kind != "TreeEnsembleClassifier" or len(set(weights.ids)) != 1:
        return None
    if transform == "LOGISTIC":
        return Output("mirrored", "float32")
    return Output("both shares", "float32") if weights.all_positive else None


def _transform(kind: str, attributes: Mapping[str, Any]) -> str:
    """The name of the post_transform."""
    if kind != "TreeEnsemble":
        return text(attributes.get("post_transform"), "NONE")
    number = int(attributes.get("post_transform", 0))
    names = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")
    return names[number] if 0 <= number < len(names) else "OTHER"


def _gives_values(graph: TreeGraph, transform: str) -> bool:
    """Whether the graph gives values: it has no classes, and no sigmoid makes its output a probability."""
    if graph.trees.kind == "TreeEnsembleClassifier" or graph.sigmoid:
        return False
    return transform != "LOGISTIC" or int(graph.trees.attributes.get("n_targets", 1)) > 1


def _decision(
    graph: TreeGraph, weights: Weights, transform: str
) -> tuple[float, Link, float | None, Array]:
    """Base, link, threshold (None: above 0) and classes, as ONNX Runtime decides."""
    kind, attributes = graph.trees.kind, graph.trees.attributes
    dtype = np.float64 if graph.wide else np.float32
    bases = _bases(attributes)
    above_half = smallest_positive(lambda score: score > 0.5, dtype)
    if kind != "TreeEnsembleClassifier":
        if set(weights.ids) - {0} or int(attributes.get("n_targets", 1)) > 1:
            raise ModelError(
                f"a {kind} with several targets gives numbers and makes no decision; several classes are "
                "read from a TreeEnsembleClassifier"
            )
        how = attributes.get("aggregate_function", 1 if kind == "TreeEnsemble" else b"SUM")
        if how not in (1, b"SUM"):
            raise ModelError("the trees' outputs are not added up (aggregate_function is not SUM)")
        logistic = transform == "LOGISTIC"
        if logistic == graph.sigmoid or transform not in ("NONE", "LOGISTIC"):
            raise ModelError(
                f"a {kind} gives a number and makes no decision; it is read where a sigmoid makes it a "
                "probability, and the decision is probability > 0.5"
            )
        link = Link("logistic", dtype=np.dtype(dtype).name)
        boundary = smallest_positive(lambda score: link.probability(score) > 0.5, dtype)
        # ONNX Runtime's Sigmoid is an approximation, and it skips the post_transform of one target.
        link = replace(link, form="approximate")
        return (bases or [0.0])[0], link, boundary, np.array([0, 1])
    classes = _classes(attributes)
    one_class = len(set(weights.ids)) == 1
    if len(bases) > (1 if weights.ids == [0] else 0):
        raise ModelError(
            "the trees have base values that ONNX does not define for two classes; export with one base "
            "value, and leaf weights for class 0 alone"
        )
    base = bases[-1] if bases else 0.0
    # Probabilities are float32, whatever the trees are.
    link = Link("none")
    if transform == "LOGISTIC":
        link = Link("logistic", dtype="float32", form="mirrored")
    if one_class and weights.all_positive:
        share = Link("identity", dtype="float32" if graph.wide else "float64")
        return base, share if transform == "NONE" else link, above_half, classes
    return base, link, None, classes


def _bases(attributes: Mapping[str, Any]) -> list[float]:
    return [float(b) for b in first(attributes, "base_values_as_tensor", "base_values")]


def _classes(attributes: Mapping[str, Any]) -> Array:
    texts = attributes.get("classlabels_strings") or []
    numbers = first(attributes, "classlabels_int64s").tolist()
    labels = [label.decode("utf-8", "replace") for label in texts] or numbers
    if len(labels) < 2:
        raise ModelError(f"the model has {len(labels)} classes; qwyc supports two or more")
    return np.array(labels, dtype=object if texts else np.int64)
