"""Random trees of K classes with every kind of split, and policies on leads for them."""

import numpy as np

from forests import flatten, random_tree
from qwyc.model.class_trees import class_tree_ensemble
from qwyc.model.ensemble import Source
from qwyc.model.trees import Summation
from qwyc.policy.lead_policy import LeadPolicy
from qwyc.rows.schema import Schema

SUMMATIONS = [s for s in Summation if s != Summation.SHARES]


def random_classes(
    seed,
    *,
    n_classes=4,
    rounds=9,
    vectors=False,
    depth=5,
    leaf_stop=0.1,
    categories=True,
    dtype=None,
    summation=None,
    gaps=False,
    divisor=None,
):
    """Trees with every kind of split, or none on categories. With `gaps`, some rounds have no tree of some
    classes. divisor: of sums of doubles; by default they are averaged."""
    rng = np.random.default_rng(seed)
    dtype = dtype or str(rng.choice(["float32", "float64"]))
    if summation is None:  # FLOAT32 is 0
        summation = SUMMATIONS[int(rng.integers(len(SUMMATIONS)))]
    of_class = np.tile(np.arange(n_classes), rounds)
    if gaps:
        of_class = of_class[rng.random(len(of_class)) < 0.7]
    n_trees = rounds if vectors else len(of_class)
    roots = [
        random_tree(rng, 5, int(rng.integers(0, depth + 1)), leaf_stop, categories)
        for _ in range(n_trees)
    ]
    narrow = summation in (Summation.FLOAT32, Summation.FLOAT32_LATE)
    kind = np.float32 if narrow else np.float64

    def draw(n):
        return rng.normal(size=n).astype(kind).astype(np.float64)

    trees = flatten(roots, lambda n: draw(0 if vectors else n), lambda n: [], dtype)
    form = {"tree_class": of_class}
    if vectors:
        form = {"leaf_vector": draw((int(trees.leaf_begin[-1]), n_classes))}
    return class_tree_ensemble(
        trees,
        Schema(n_features=5, names=None, dtype=dtype),
        classes=np.arange(n_classes),
        source=Source("test", "0", "random"),
        summation=summation,
        less_equal=bool(rng.integers(2)),
        truncates=bool(rng.integers(2)),
        start=draw(n_classes),
        divisor=(divisor or float(rounds)) if summation == Summation.FLOAT64 else 1.0,
        **form,
    )


def random_policy(seed, ensemble, *, rules_out=False, tested=0.7):
    """Thresholds at which some rows quit at most steps, and others never do."""
    rng = np.random.default_rng(seed)
    R, K = ensemble.n_models, len(ensemble.classes)
    average = ensemble.base_models.divisor
    lead = rng.uniform(0, 4, (R, K)) / average
    lead[rng.random(R) > tested] = np.inf
    drop = rng.uniform(0.5, 5, R) / average if rules_out else None
    return LeadPolicy(rng.permutation(R), lead, np.ones(R), drop=drop)
