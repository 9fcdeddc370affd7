"""Random ensembles with every feature a node can have, for tests that need no trainer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from qwyc.classifier import Classifier
from qwyc.model.ensemble import Source
from qwyc.model.trees import NodeFlag, Summation, Trees, tree_ensemble
from qwyc.promise.budget import budget_of
from qwyc.promise.certificate import observed_certificate
from qwyc.rows.schema import Schema


def random_tree(rng, n_features, depth, leaf_stop=0.3, categories=True):
    """Nested tuples (feature, threshold, flags, codes, left, right), or None for a leaf."""
    if depth == 0 or rng.random() < leaf_stop:
        return None
    flags = int(rng.integers(0, 2)) * NodeFlag.DEFAULT_LEFT
    codes = []
    kind = rng.random()
    if kind < 0.25 and categories:
        flags |= NodeFlag.CATEGORICAL | int(rng.integers(0, 2)) * NodeFlag.IN_SET_LEFT
        codes = sorted(rng.choice(70, size=rng.integers(0, 9), replace=False).tolist())
    elif kind < 0.4:
        flags |= NodeFlag.ZERO_IS_MISSING
    children = [random_tree(rng, n_features, depth - 1, leaf_stop, categories) for _ in range(2)]
    threshold = float(np.round(rng.normal(), 1))  # on a grid: rows will lie exactly on thresholds
    return (int(rng.integers(n_features)), threshold, int(flags), codes, *children)


def flatten(roots, leaf_values, leaf_others, dtype):
    """Trees from nested tuples; `leaf_values` gives the leaves' values, tree by tree, left first."""
    columns = {k: [] for k in ("feature", "threshold", "left", "right", "flags")}
    node_begin, leaf_begin, words, word_begin = [0], [0], [], [0]
    for root in roots:
        nodes, n_leaves = [], 0

        def place(tree, nodes=nodes):
            nonlocal n_leaves
            if tree is None:
                n_leaves += 1
                return ~(n_leaves - 1)
            at = len(nodes)
            nodes.append(None)
            left = place(tree[4])
            nodes[at] = (*tree[:4], left, place(tree[5]))
            return at

        place(root)
        for feature, threshold, flags, codes, left, right in nodes:
            for name, value in zip(columns, (feature, threshold, left, right, flags), strict=True):
                columns[name].append(value)
            bits = np.zeros((max(codes) // 32 + 1) if codes else 0, dtype=np.uint32)
            for code in codes:
                bits[code // 32] |= np.uint32(1 << code % 32)
            words.extend(bits)
            word_begin.append(len(words))
        node_begin.append(node_begin[-1] + len(nodes))
        leaf_begin.append(leaf_begin[-1] + n_leaves)
    return Trees(
        node_begin=np.array(node_begin, dtype=np.int64),
        leaf_begin=np.array(leaf_begin, dtype=np.int64),
        feature=np.array(columns["feature"], dtype=np.int32),
        threshold=np.array(columns["threshold"], dtype=dtype),
        left=np.array(columns["left"], dtype=np.int32),
        right=np.array(columns["right"], dtype=np.int32),
        flags=np.array(columns["flags"], dtype=np.uint8),
        category_begin=np.array(word_begin, dtype=np.int64),
        category_words=np.array(words, dtype=np.uint32),
        leaf_value=np.asarray(leaf_values(leaf_begin[-1]), dtype=np.float64),
        leaf_other=np.asarray(leaf_others(leaf_begin[-1]), dtype=np.float64),
    )


def ensemble_of(roots, leaves=None, *, n_features=3, dtype="float32", seed=0, **changes):
    """Trees from nested tuples, with random leaves or these, summed as LightGBM does."""
    random = np.random.default_rng(seed).normal
    values = (lambda n: random(size=n)) if leaves is None else (lambda n: leaves)
    trees = flatten(roots, values, lambda n: [], dtype)
    made = tree_ensemble(
        trees,
        Schema(n_features=n_features, names=None, dtype=dtype),
        summation=Summation.FLOAT64,
        less_equal=True,
        truncates=False,
        base=0.25,
        divisor=1.0,
        threshold=0.0,
        classes=np.array([0, 1]),
        source=Source("test", "0", "random"),
    )
    return changed(made, **changes)


def changed(ensemble, **changes):
    """The same ensemble with other fields, of its own or of its trees (`base` is what they start from)."""
    of_trees = {"trees", "summation", "less_equal", "truncates", "start", "divisor"}
    if "base" in changes:
        changes["start"] = changes.pop("base")
    inner = {name: changes.pop(name) for name in list(changes) if name in of_trees}
    models = replace(ensemble.base_models, **inner) if inner else ensemble.base_models
    return replace(ensemble, base_models=models, **changes)


def classifier_of(ensemble, policy):
    """A classifier with a policy of any kind, which promises nothing."""
    return Classifier(
        ensemble, policy, observed_certificate("in-sample", budget_of(0.0), policy, None)
    )


def random_ensemble(seed, *, n_trees=12, n_features=5, depth=5, summation=None, dtype=None):
    rng = np.random.default_rng(seed)
    dtype = dtype or str(rng.choice(["float32", "float64"]))
    summation = Summation(int(rng.integers(len(Summation))) if summation is None else summation)
    shares = summation == Summation.SHARES
    narrow = summation in (Summation.FLOAT32, Summation.FLOAT32_LATE)
    roots = [random_tree(rng, n_features, int(rng.integers(0, depth + 1))) for _ in range(n_trees)]
    values = {}

    def leaf_values(n):
        # Shares in eighths and thirds: ties between the classes are common.
        v = (
            rng.integers(0, 9, n) / rng.choice([8.0, 8.0, 12.0], n)
            if shares
            else rng.normal(size=n)
        )
        values["v"] = np.asarray(v, dtype=np.float32 if narrow else float)
        return values["v"]

    trees = flatten(roots, leaf_values, lambda n: 1 - values["v"] if shares else [], dtype)
    divisor = float(rng.choice([1.0, n_trees]))
    if summation != Summation.FLOAT64:
        divisor = float(n_trees) if shares else 1.0
    return tree_ensemble(
        trees,
        Schema(n_features=n_features, names=None, dtype=dtype),
        summation=summation,
        less_equal=bool(rng.integers(2)),
        truncates=bool(rng.integers(2)),
        base=0.0 if shares else float(np.float32(rng.normal())),
        divisor=divisor,
        threshold=float(np.nextafter(0.5, 1)) if shares else 0.0,
        classes=np.array([0, 1]),
        source=Source("test", "0", "random"),
    )


def random_rows(seed, ensemble, n=300):
    """Rows on a grid that meets the thresholds, with codes, NaN, infinities and tiny numbers."""
    rng = np.random.default_rng(seed)
    shape = (n, ensemble.schema.n_features)
    rows = np.round(rng.normal(size=shape), 1)
    codes = rng.integers(-2, 75, shape).astype(float)
    rows = np.where(rng.random(shape) < 0.4, codes, rows)
    odd = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-36, -1e-36, -0.5, 2.0**24, 3e9, 0.5]
    rows = np.where(rng.random(shape) < 0.2, rng.choice(odd, shape), rows)
    return rows.astype(ensemble.schema.dtype)


def with_inputs(ensemble, **changes):
    return replace(ensemble, schema=replace(ensemble.schema, **changes))
