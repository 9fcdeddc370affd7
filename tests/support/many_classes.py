"""Ensembles of K classes made of random trees, and rows for them: tests that need no trainer."""

from dataclasses import replace

import numpy as np

from forests import flatten
from qwyc.model.class_trees import class_tree_ensemble
from qwyc.model.ensemble import Source
from qwyc.model.trees import Summation
from qwyc.rows.schema import Schema
from qwyc.target.ties import BY_SCORES

N_FEATURES = 6


def simple_tree(rng, depth):
    if depth == 0:
        return None
    children = [simple_tree(rng, depth - 1) for _ in range(2)]
    return (int(rng.integers(N_FEATURES)), float(rng.normal()), 0, [], *children)


def class_ensemble(
    n_classes=4,
    rounds=20,
    *,
    seed=0,
    classes=None,
    vectors=False,
    ties=BY_SCORES,
    lean=None,
    names=None,
    decimals=None,
):
    """Rounds whose trees add less and less, so that rows can quit. `lean` (K,) is added to the scores at
    the start: it makes classes frequent or rare. `decimals`: thresholds are
    rounded to so many."""
    rng = np.random.default_rng(seed)
    per_round = 1 if vectors else n_classes
    roots = [simple_tree(rng, 3) for _ in range(rounds * per_round)]
    fades = np.repeat(0.85 ** np.arange(rounds), 8 * per_round)
    n_leaves = 8 * len(roots)
    values = [] if vectors else rng.normal(size=n_leaves) * fades
    trees = flatten(roots, lambda n: values, lambda n: [], "float32")
    if decimals is not None:
        trees = replace(trees, threshold=trees.threshold.round(decimals))
    form = {"tree_class": np.tile(np.arange(n_classes), rounds)}
    if vectors:
        form = {"leaf_vector": rng.normal(size=(n_leaves, n_classes)) * fades[:, None]}
    return class_tree_ensemble(
        trees,
        Schema(n_features=N_FEATURES, names=names, dtype="float32"),
        classes=np.arange(n_classes) if classes is None else np.asarray(classes),
        source=Source("test", "0", "random"),
        summation=Summation.FLOAT64,
        less_equal=True,
        truncates=False,
        start=np.zeros(n_classes) if lean is None else lean,
        ties=ties,
        **form,
    )


def rows_of(n, seed=1):
    return np.random.default_rng(seed).normal(size=(n, N_FEATURES)).astype(np.float32)


def full_labels(ensemble, rows):
    """What the full ensemble decides."""
    return ensemble.classes[ensemble.target.decide(ensemble.score_full(rows))]
