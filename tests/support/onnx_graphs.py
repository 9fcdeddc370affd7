"""ONNX graphs with random trees, made node by node."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

N_COLUMNS = 4


def random_nodes(rng, n_trees, modes, depth=4):
    """Columns of the nodes' attributes, and the leaves."""
    nodes = {k: [] for k in ("tree", "node", "mode", "value", "true", "false", "feature", "nan")}
    leaves = []
    for t in range(n_trees):
        waiting, used = [(0, 0)], 0
        while waiting:
            number, level = waiting.pop(0)
            leaf = level == depth or rng.random() < 0.25
            row = [0, 0]
            if not leaf:
                row = [used + 1, used + 2]
                used += 2
                waiting += [(child, level + 1) for child in row]
            mode = "LEAF" if leaf else str(rng.choice(modes))
            values = (t, number, mode, float(np.float32(round(rng.normal(), 1))), *row)
            values = (*values, int(rng.integers(N_COLUMNS)), int(rng.integers(2)))
            for key, value in zip(nodes, values, strict=True):
                nodes[key].append(value)
            if leaf:
                leaves.append((t, number))
    return nodes, leaves


def classifier(seed, *, classes=(0,), positive=False, base=(), transform="NONE", modes=("BRANCH_LEQ",),
               labels=(0, 1), n_trees=9, wide=False, width=N_COLUMNS, depth=4, by_tree=False,
               kept=1.0):  # fmt: skip
    """`by_tree`: tree t has weights of class t modulo K alone. `kept`: of all weights, which are not 0."""
    rng = np.random.default_rng(seed)
    nodes, leaves = random_nodes(rng, n_trees, modes, depth)
    weights = rng.normal(size=(len(leaves), len(classes))).astype(np.float32)
    weights = np.abs(weights) / n_trees if positive else weights
    texts = isinstance(labels[0], str)
    held = [  # (tree, node, class, weight)
        (t, n, c, float(w))
        for (t, n), row in zip(leaves, weights, strict=True)
        for c, w in zip(classes, row, strict=True)
        if (not by_tree or c == t % len(labels)) and (kept == 1 or rng.random() < kept)
    ]
    real = "_as_tensor" if wide else ""

    def numbers(name, values):
        if not wide:
            return {name: [float(v) for v in values]}
        tensor = helper.make_tensor(name, TensorProto.DOUBLE, [len(values)], values)
        return {f"{name}{real}": tensor}

    attributes = {
        "nodes_treeids": nodes["tree"],
        "nodes_nodeids": nodes["node"],
        "nodes_modes": nodes["mode"],
        "nodes_truenodeids": nodes["true"],
        "nodes_falsenodeids": nodes["false"],
        "nodes_featureids": nodes["feature"],
        "nodes_missing_value_tracks_true": nodes["nan"],
        "class_treeids": [t for t, _, _, _ in held],
        "class_nodeids": [n for _, n, _, _ in held],
        "class_ids": [c for _, _, c, _ in held],
        "post_transform": transform,
        "classlabels_strings" if texts else "classlabels_int64s": list(labels),
        **numbers("nodes_values", nodes["value"]),
        **numbers("class_weights", [w for _, _, _, w in held]),
    }
    if base:
        attributes |= numbers("base_values", base)
    kind = TensorProto.DOUBLE if wide else TensorProto.FLOAT
    node = helper.make_node(
        "TreeEnsembleClassifier", ["X"], ["label", "scores"], domain="ai.onnx.ml", **attributes
    )
    label = TensorProto.STRING if texts else TensorProto.INT64
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("X", kind, [None, width])],
        [
            helper.make_tensor_value_info("label", label, [None]),
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, [None, len(labels)]),
        ],
    )
    versions = [helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=versions, ir_version=9, producer_name="tests")


def ensemble_5(seed, sigmoid=True, modes=(0, 1, 2, 3), aggregate=1, wide=False, post=0, root=0):
    """The TreeEnsemble operator of ai.onnx.ml 5: two splits a tree, three leaves."""
    rng = np.random.default_rng(seed)
    n_trees = 7
    kind = TensorProto.DOUBLE if wide else TensorProto.FLOAT
    reals = rng.normal(size=(2 * n_trees)).round(1)
    weights = rng.normal(size=3 * n_trees)
    node = helper.make_node(
        "TreeEnsemble",
        ["X"],
        ["raw"],
        domain="ai.onnx.ml",
        n_targets=1,
        aggregate_function=aggregate,
        post_transform=post,
        tree_roots=[root, *(2 * t for t in range(1, n_trees))],
        nodes_featureids=rng.integers(0, N_COLUMNS, 2 * n_trees).tolist(),
        nodes_splits=helper.make_tensor("s", kind, [len(reals)], reals.tolist()),
        nodes_modes=helper.make_tensor(
            "m", TensorProto.UINT8, [len(reals)], rng.choice(modes, len(reals)).tolist()
        ),
        nodes_truenodeids=[v for t in range(n_trees) for v in (2 * t + 1, 3 * t)],
        nodes_trueleafs=[0, 1] * n_trees,
        nodes_falsenodeids=[v for t in range(n_trees) for v in (3 * t + 1, 3 * t + 2)],
        nodes_falseleafs=[1, 1] * n_trees,
        nodes_missing_value_tracks_true=rng.integers(0, 2, len(reals)).tolist(),
        leaf_targetids=[0] * len(weights),
        leaf_weights=helper.make_tensor("w", kind, [len(weights)], weights.tolist()),
    )
    nodes = [node, helper.make_node("Sigmoid", ["raw"], ["p"])] if sigmoid else [node]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("X", kind, [None, N_COLUMNS])],
        [helper.make_tensor_value_info("p" if sigmoid else "raw", kind, [None, 1])],
    )
    versions = [helper.make_opsetid("ai.onnx.ml", 5), helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=versions, ir_version=9)
