"""A model whose features cost something, and what rows need of them, counted by hand."""

from functools import cache

import numpy as np
import pandas as pd
import xgboost

import qwyc

NAMES = ["age", "income", "visits", "score", "region", "unused"]
FAST = {"alpha": 0.02, "evaluation": "quit", "progress": False}
COSTS = np.array([0.0, 4.0, 0.5, 20.0, 8.0, 3.0])


@cache
def model_and_rows():
    """An XGBoost model that looks at five of six named columns, and rows."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(9000, 6)).astype(np.float32), columns=NAMES)
    X["unused"] = 1.0
    y = X.to_numpy() @ [2.0, 1.5, 1.2, 1.0, 0.8, 0.0] + rng.normal(size=9000) > 1
    model = xgboost.XGBClassifier(n_estimators=60, max_depth=2, learning_rate=0.3, n_jobs=1)
    return model.fit(X[:2000], y[:2000]), X


@cache
def classifier():
    """The model optimised with COSTS on rows 2,000 to 6,000."""
    model, X = model_and_rows()
    return qwyc.optimize(model, X[2000:6000], **FAST, feature_costs=COSTS)


def needs_of(ensemble):
    """(T, n_features) which trees look at which features, node by node."""
    trees = ensemble.base_models.trees
    needs = np.zeros((ensemble.n_models, ensemble.schema.n_features), dtype=bool)
    for t in range(ensemble.n_models):
        for node in range(trees.node_begin[t], trees.node_begin[t + 1]):
            needs[t, trees.feature[node]] = True
    return needs


def by_hand(ensemble, order, steps, costs):
    """Features that each row needs, (N,), and what they cost, (N,): each row is walked step by step."""
    needs = needs_of(ensemble)
    counts, paid = np.zeros(len(steps)), np.zeros(len(steps))
    for i, n in enumerate(steps):
        seen = needs[order[:n]].any(axis=0)
        counts[i], paid[i] = seen.sum(), costs[seen].sum()
    return counts, paid
