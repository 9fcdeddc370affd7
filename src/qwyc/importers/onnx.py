"""ONNX: `.onnx` files and live models with one tree ensemble that decides, as ONNX Runtime runs them
on one thread. Neither onnx nor onnxruntime is needed to read them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.border import smallest_positive, smallest_sum_above_zero
from qwyc.ensemble import Ensemble, Inputs, Link, NodeFlag, Source, Summation
from qwyc.errors import MissingDependencyError, ModelError
from qwyc.importers import files, live
from qwyc.importers.comparisons import with_one_rule
from qwyc.importers.flatten import NodeTable, flatten, offsets
from qwyc.importers.onnx_graph import TREES, TreeGraph, find_trees

_REMEDY = "export it again"
TOLERANCE = LOADING_ERROR = 0.0
_NEAR = 2e-6  # probabilities are float32, and their sigmoid is not reproducible
_MODES = {
    "BRANCH_LEQ": "<=",
    "BRANCH_LT": "<",
    "BRANCH_GTE": ">=",
    "BRANCH_GT": ">",
    "BRANCH_EQ": "==",
    "BRANCH_NEQ": "!=",
    "LEAF": "",
}
_MODE_NUMBERS = np.array(["<=", "<", ">=", ">", "==", "!=", "in a set"])

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
        raise ModelError("the session does not say what it was made of; pass the model's file")
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


def _run(model: Any, X: Any, ensemble: Ensemble) -> list[Any]:
    session = _session(_content(model))
    entry = session.get_inputs()[0]
    rows = ensemble.matrix(X)
    rows = rows.astype({"tensor(float)": np.float32, "tensor(double)": np.float64}[entry.type])
    outputs: list[Any] = session.run(None, {entry.name: rows})
    return outputs


def live_labels(model: Any, X: Any, ensemble: Ensemble) -> Array:
    """The classes, (N,), that ONNX Runtime gives the rows X."""
    outputs = np.asarray(_run(model, X, ensemble)[0])
    if ensemble.source.kind != "TreeEnsembleClassifier":
        return ensemble.classes[(outputs.reshape(-1) > 0.5).astype(np.intp)]
    return outputs.reshape(-1)


def live_scores(model: Any, X: Any, ensemble: Ensemble) -> Array:
    """Scores, (N,), to compare with. The graph gives probabilities: ours where ours has that
    probability, and otherwise theirs, as far as it can be told."""
    outputs = _run(model, X, ensemble)
    if ensemble.source.kind == "TreeEnsembleClassifier":
        last = outputs[-1]
        if isinstance(last, list):  # a dictionary a row
            last = np.array([[row[key] for key in row] for row in last])
        p = np.asarray(last, np.float64)[:, -1]
    else:
        p = np.asarray(outputs[0], np.float64).reshape(-1)
    ours = ensemble.score_full(X)
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
    attributes, kind = graph.trees.attributes, graph.trees.kind
    real = np.dtype(np.float64 if graph.wide else np.float32)
    if kind == "TreeEnsemble":
        table, operator, weights = _version_5(attributes, real)
    else:
        table, operator, weights = _keyed(
            attributes, real, "class" if kind == TREES[0] else "target"
        )
    table, less_equal = with_one_rule(table, operator)
    base, link, threshold, classes = _decision(graph, weights)
    used = int(table.feature.max(initial=0)) + 1
    trees = flatten(table)
    if threshold is None:
        threshold = smallest_sum_above_zero(trees.leaf_value, base)
        if not graph.wide:
            threshold = smallest_positive(lambda score: score > 0, np.float32)
    return Ensemble(
        trees=trees,
        inputs=Inputs(graph.n_columns or used, None, real.name),
        summation=Summation.FLOAT64_LATE if graph.wide else Summation.FLOAT32_LATE,
        less_equal=less_equal,
        truncates=False,
        base=base,
        divisor=1.0,
        threshold=threshold,
        classes=classes,
        source=Source("onnx", graph.producer, kind),
        link=link,
    ).checked()


def _text(value: Any, default: str) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else default


def _decision(graph: TreeGraph, weights: _Weights) -> tuple[float, Link, float | None, Array]:
    """Base, link, threshold (None: above 0) and classes, as ONNX Runtime decides."""
    attributes, kind = graph.trees.attributes, graph.trees.kind
    dtype = np.float64 if graph.wide else np.float32
    bases = [float(b) for b in _first(attributes, "base_values_as_tensor", "base_values")]
    transform = _text(attributes.get("post_transform"), "NONE")
    if kind == "TreeEnsemble":
        transform = {0: "NONE", 1: "LOGISTIC"}.get(
            int(attributes.get("post_transform", 0)), "OTHER"
        )
    above_half = smallest_positive(lambda score: score > 0.5, dtype)
    if kind != "TreeEnsembleClassifier":
        if set(weights.ids) - {0} or int(attributes.get("n_targets", 1)) > 1:
            raise ModelError("the trees have several targets; qwyc decides between two classes")
        how = attributes.get("aggregate_function", 1 if kind == "TreeEnsemble" else b"SUM")
        if how not in (1, b"SUM"):
            raise ModelError("the trees' outputs are not added up (aggregate_function is not SUM)")
        logistic = transform == "LOGISTIC"
        if logistic == graph.sigmoid or transform not in ("NONE", "LOGISTIC"):
            raise ModelError(
                f"a {kind} gives a number and decides nothing; it is read where a sigmoid makes it a "
                "probability, and the decision is probability > 0.5"
            )
        link = Link("logistic", dtype=np.dtype(dtype).name)
        border = smallest_positive(lambda score: link.probability(score) > 0.5, dtype)
        return (bases or [0.0])[0], link, border, np.array([0, 1])
    classes = _classes(attributes)
    one_class = len(set(weights.ids)) == 1
    if len(bases) > (1 if weights.ids == [0] else 0):
        raise ModelError(
            "the trees have base values that ONNX does not define for two classes; export with one base "
            "value, and leaf weights for class 0 alone"
        )
    base = bases[-1] if bases else 0.0
    link = Link("logistic") if transform == "LOGISTIC" else Link("none")
    if one_class and weights.all_positive:
        return base, Link("identity") if transform == "NONE" else link, above_half, classes
    return base, link, None, classes


def _classes(attributes: Mapping[str, Any]) -> Array:
    texts = attributes.get("classlabels_strings") or []
    numbers = _first(attributes, "classlabels_int64s").tolist()
    labels = [text.decode("utf-8", "replace") for text in texts] or numbers
    if len(labels) != 2:
        raise ModelError(f"the model has {len(labels)} classes; qwyc supports two")
    return np.array(labels, dtype=object if texts else np.int64)


def _first(attributes: Mapping[str, Any], *names: str) -> Array:
    """The first of these attributes that is there, as an array."""
    for name in names:
        value = attributes.get(name)
        if value is not None and np.size(value):
            return np.asarray(value)
    return np.empty(0)


class _Weights:
    """What leaves add: which classes have weights, and whether all are 0 or more."""

    def __init__(self, ids: Array, values: Array) -> None:
        self.ids = np.unique(ids).tolist()
        self.all_positive = bool((values >= 0).all())


def _keyed(
    attributes: Mapping[str, Any], real: np.dtype[Any], prefix: str
) -> tuple[NodeTable, npt.NDArray[np.str_], _Weights]:
    """Nodes that go by tree and node number, and weights that go by tree, node and class."""

    def integers(name: str) -> Array:
        return _first(attributes, name).astype(np.int64)

    tree, node = integers("nodes_treeids"), integers("nodes_nodeids")
    n = len(tree)
    modes = [_text(mode, "") for mode in attributes["nodes_modes"]]
    values = _first(attributes, "nodes_values_as_tensor", "nodes_values").astype(real)
    columns = [integers(f"nodes_{name}") for name in ("truenodeids", "falsenodeids", "featureids")]
    tracks = integers("nodes_missing_value_tracks_true")
    tracks = tracks if len(tracks) else np.zeros(n, np.int64)
    if not n or {len(modes), *(len(part) for part in (node, values, *columns, tracks))} != {n}:
        raise ModelError("the trees' attributes differ in length")
    if unknown := set(modes) - set(_MODES):
        raise ModelError(f"a node has the unknown mode {min(unknown)!r}")
    starts = np.flatnonzero(np.append(True, tree[1:] != tree[:-1]))
    if len(np.unique(tree[starts])) != len(starts):
        raise ModelError("a tree's nodes are not together")
    begin = np.append(starts, n)
    rank = np.repeat(np.arange(len(starts)), np.diff(begin))
    order = np.lexsort((node, rank))
    span = int(node.max()) + 1
    if node.min() < 0 or span > 1 << 31:
        raise ModelError("a node's number is out of range")
    keys = rank[order] * span + node[order]
    if np.any(np.diff(keys) == 0):
        raise ModelError("a tree has two nodes of one number")

    def place(ranks: Array, nodes: Array) -> Array:
        """Where nodes stand in the lists."""
        wanted = ranks * span + nodes
        at = np.minimum(np.searchsorted(keys, wanted), n - 1)
        if np.any((keys[at] != wanted) | (nodes < 0) | (nodes >= span)):
            raise ModelError("a tree refers to a node that it does not have")
        return order[at]

    is_leaf = np.array([mode == "LEAF" for mode in modes])
    left, right = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    for out, ids in ((left, columns[0]), (right, columns[1])):
        out[~is_leaf] = place(rank[~is_leaf], ids[~is_leaf]) - begin[rank[~is_leaf]]
    w_tree, w_node, w_class = (integers(f"{prefix}_{k}") for k in ("treeids", "nodeids", "ids"))
    weight = _first(attributes, f"{prefix}_weights_as_tensor", f"{prefix}_weights").astype(real)
    if not len(weight) or any(len(part) != len(weight) for part in (w_tree, w_node, w_class)):
        raise ModelError("the leaves' weights differ in length, or there are none")
    by_tree = np.argsort(tree[starts])
    at = np.minimum(np.searchsorted(tree[starts][by_tree], w_tree), len(starts) - 1)
    if np.any(tree[starts][by_tree][at] != w_tree):
        raise ModelError("a weight belongs to a tree that is not there")
    where = place(by_tree[at], w_node)
    if len(np.unique(np.stack([where, w_class]), axis=1)[0]) != len(where):
        raise ModelError("a leaf has two weights for one class")
    # With weights for both classes, ONNX Runtime looks at the second's.
    chosen = w_class == w_class.max()
    value = np.zeros(n)
    value[where[chosen]] = weight[chosen]
    table = NodeTable(
        begin=begin.astype(np.int64),
        left=left,
        right=right,
        feature=columns[2],
        threshold=np.where(is_leaf, real.type(0), values),
        flags=np.where(tracks != 0, NodeFlag.DEFAULT_LEFT, 0).astype(np.uint8),
        value=value,
    )
    return table, np.array([_MODES[mode] for mode in modes]), _Weights(w_class, weight)


def _version_5(
    attributes: Mapping[str, Any], real: np.dtype[Any]
) -> tuple[NodeTable, npt.NDArray[np.str_], _Weights]:
    """One list of inner nodes and one of leaves for all trees."""

    def integers(name: str) -> Array:
        return _first(attributes, name).astype(np.int64)

    splits = _first(attributes, "nodes_splits").astype(real)
    mode = integers("nodes_modes")
    children = [
        (integers(f"nodes_{k}nodeids"), integers(f"nodes_{k}leafs")) for k in ("true", "false")
    ]
    feature, tracks = integers("nodes_featureids"), integers("nodes_missing_value_tracks_true")
    weight, target = _first(attributes, "leaf_weights").astype(real), integers("leaf_targetids")
    roots, n = integers("tree_roots"), len(splits)
    tracks = tracks if len(tracks) else np.zeros(n, np.int64)
    if any(len(part) != n for part in (mode, feature, tracks, *children[0], *children[1])):
        raise ModelError("the trees' attributes differ in length")
    if len(weight) != len(target) or not len(weight) or not len(roots):
        raise ModelError("the leaves' weights differ in length, or there are none")
    if n and (mode.min() < 0 or mode.max() >= len(_MODE_NUMBERS)):
        raise ModelError("a node has an unknown mode")
    rows: list[tuple[int, int]] = []  # (node, -1) or (-1, leaf)
    pairs: list[list[int]] = []
    sizes = []
    for root in roots.tolist():
        first = len(rows)
        rows.append((root, -1))
        pairs.append([-1, -1])
        at = first
        while at < len(rows):
            node = rows[at][0]
            if node >= 0:
                if node >= n or len(rows) > 4 * (n + len(weight) + len(roots)):
                    raise ModelError("a tree refers to a node that is not there, or to itself")
                for side, (ids, leaf) in enumerate(children):
                    pairs[at][side] = len(rows) - first
                    child = int(ids[node])
                    limit = len(weight) if leaf[node] else n
                    if not 0 <= child < limit:
                        raise ModelError("a tree refers to a node that it does not have")
                    rows.append((-1, child) if leaf[node] else (child, -1))
                    pairs.append([-1, -1])
            at += 1
        sizes.append(len(rows) - first)
    which, leaf_of = np.array(rows, np.int64).T
    inner = which >= 0
    left, right = np.array(pairs, np.int64).T
    safe = np.where(inner, which, 0)

    def of_nodes(values: Array, fill: Any) -> Array:
        return np.where(inner, values[safe], fill) if n else np.full(len(inner), fill)

    table = NodeTable(
        begin=offsets(sizes),
        left=left,
        right=right,
        feature=of_nodes(feature, 0).astype(np.int64),
        threshold=of_nodes(splits, 0).astype(real),
        flags=np.where(of_nodes(tracks, 0) != 0, NodeFlag.DEFAULT_LEFT, 0).astype(np.uint8),
        value=np.where(inner, 0.0, weight[np.where(inner, 0, leaf_of)]),
    )
    return table, np.where(inner, _MODE_NUMBERS[of_nodes(mode, 0)], ""), _Weights(target, weight)
