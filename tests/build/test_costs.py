"""Costs of base models, thresholds given as probabilities, and samples that are too large."""

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)

import oracle
import qwyc
from forests import random_ensemble, random_rows
from qwyc.runtime import memory as capacity


def lopsided(toy):
    """Ten stumps and then two deep trees, as boosting rounds of one model."""
    X, y = toy
    params = {"objective": "binary:logistic", "max_depth": 1, "eta": 0.3}
    data = xgboost.DMatrix(X, y)
    booster = xgboost.train(params, data, 10)
    return xgboost.train(params | {"max_depth": 8}, data, 2, xgb_model=booster), X


def test_size_counts_the_nodes_that_rows_visit(toy):
    booster, X = lopsided(toy)
    costs = qwyc.read_model(booster).costs(X, "size")
    np.testing.assert_array_equal(costs[:10], 2.0)  # a stump and its leaf
    assert (costs[10:] > 3).all()


@pytest.mark.parametrize("seed", range(5))
def test_size_equals_a_walk_by_hand(seed):
    ensemble = random_ensemble(seed, n_trees=4)
    rows = random_rows(seed, ensemble, n=40)
    trees, expected = ensemble.base_models.trees, []
    for t in range(4):
        visited = 0
        for row in rows:
            at = 0 if trees.node_begin[t + 1] > trees.node_begin[t] else -1
            while at >= 0:
                visited += 1
                node = trees.node_begin[t] + at
                left = oracle.goes_left(ensemble, node, row[[trees.feature[node]]])[0]
                at = trees.left[node] if left else trees.right[node]
        expected.append(1 + visited / len(rows))
    np.testing.assert_allclose(ensemble.costs(rows, "size"), expected)


def test_costs_enter_the_order_and_every_figure(toy):
    booster, X = lopsided(toy)
    fast = qwyc.optimize(booster, X, alpha=0.02, costs="size", method="joint")
    decisions = fast.decide(X)
    spent = np.concatenate([[0], np.cumsum(fast.policy.costs[fast.policy.order])])
    assert fast.certificate.mean_cost == pytest.approx(spent[decisions.steps].mean())
    assert fast.certificate.full_cost == pytest.approx(fast.policy.costs.sum())
    assert ", cost " in repr(fast)
    dear = np.ones(12)
    first = qwyc.optimize(booster, X, alpha=0.02, method="joint").policy.order[0]
    dear[first] = 1000
    assert (
        qwyc.optimize(booster, X, alpha=0.02, costs=dear, method="joint").policy.order[0] != first
    )


def test_measured_costs_are_a_positive_number_per_tree(toy):
    booster, X = lopsided(toy)
    costs = qwyc.read_model(booster).costs(X, "measured")
    assert (costs > 0).all()
    assert costs.shape == (12,)
    with pytest.raises(qwyc.OptionError, match="costs must be one of 'measured', 'size'"):
        qwyc.optimize(booster, X, alpha=0.02, costs="guessed")
    for kind in ("size", "measured"):
        with pytest.raises(qwyc.InputError, match="no rows"):
            qwyc.read_model(booster).costs(X[:0], kind)


MODELS = {
    "xgboost": lambda: xgboost.XGBClassifier(n_estimators=12, max_depth=3),
    "lightgbm": lambda: lightgbm.LGBMClassifier(n_estimators=12, verbose=-1),
    "lightgbm, sigmoid 2": lambda: lightgbm.LGBMClassifier(n_estimators=9, sigmoid=2.0, verbose=-1),
    "gradient boosting": lambda: GradientBoostingClassifier(n_estimators=12),
    "hist gradient boosting": lambda: HistGradientBoostingClassifier(max_iter=12),
    "forest": lambda: RandomForestClassifier(20, max_depth=4, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("p", [0.05, 0.3, 0.5, 0.9])
def test_a_threshold_as_a_probability(name, p, toy):
    X, y = toy
    model = MODELS[name]().fit(X, y)
    fast = qwyc.optimize(model, X, alpha=0.0, threshold=qwyc.Probability(p), method="joint")
    expected = model.predict_proba(X)[:, 1] >= p
    np.testing.assert_array_equal(fast.predict(X) == 1, expected)
    new = np.random.default_rng(5).normal(size=(3000, 6)).astype(np.float32)
    full = fast.score_full(new) >= fast.policy.threshold
    np.testing.assert_array_equal(full, model.predict_proba(new)[:, 1] >= p)


@pytest.mark.parametrize("p", [0, 1, -0.1, 1.5, "half", float("nan")])
def test_probabilities_lie_between_0_and_1(p):
    with pytest.raises(qwyc.OptionError, match="a probability"):
        qwyc.Probability(p)


def test_models_without_probabilities_say_so(toy):
    X, y = toy
    hinge = xgboost.XGBClassifier(n_estimators=5, objective="binary:hinge").fit(X, y)
    with pytest.raises(qwyc.OptionError, match="no probabilities"):
        qwyc.optimize(hinge, X, alpha=0.1, threshold=qwyc.Probability(0.3))
    with pytest.raises(qwyc.OptionError, match="gives no probabilities"):
        qwyc.optimize([lambda X: X[:, 0]], X, alpha=0.1, threshold=qwyc.Probability(0.3))


def test_more_rows_than_fit_are_refused_before_the_work(toy, monkeypatch):
    X, y = toy
    model = xgboost.XGBClassifier(n_estimators=50).fit(X, y)
    monkeypatch.setattr(capacity, "memory_available", lambda: 100_000)
    with pytest.raises(
        qwyc.CapacityError, match=r"50 base models on 600 rows .*Pass max_rows=(\d+)"
    ):
        qwyc.optimize(model, X, alpha=0.01)
    with pytest.raises(MemoryError) as refused:
        qwyc.optimize(model, X, alpha=0.01)
    fits = int(str(refused.value).split("max_rows=")[1].split()[0])
    assert (
        qwyc.optimize(model, X, alpha=0.1, max_rows=fits, method="joint").certificate.rows == fits
    )


def test_memory_needed_is_stated_for_the_largest_case():
    assert capacity.memory_needed(1_000_000, 2_000) < 13e9
    assert capacity.memory_available() > 1e6


def test_a_path_that_does_not_fit_is_refused_before_the_work(monkeypatch):
    scores = np.random.default_rng(0).normal(size=(600, 5))
    monkeypatch.setattr(capacity, "memory_available", lambda: 100_000)
    with pytest.raises(qwyc.CapacityError, match=r"5 base models on 600 rows .*Fit on (\d+) rows"):
        qwyc.fit_path(scores)
    assert capacity.memory_to_fit_path(1_000_000, 500) < 1e9


@pytest.mark.parametrize("as_frame", [False, True])
def test_max_rows_draws_by_seed(toy, as_frame):
    X, y = toy
    rows = pd.DataFrame(X, columns=list("abcdef")) if as_frame else X
    model = xgboost.XGBClassifier(n_estimators=20).fit(rows, y)
    policies = [
        qwyc.optimize(model, rows, alpha=0.02, max_rows=200, seed=seed, method="joint").policy
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(policies[0].lower, policies[1].lower)
    assert not np.array_equal(policies[0].lower, policies[2].lower)
    assert qwyc.optimize(model, rows, alpha=0.05, max_rows=10_000).certificate.rows == 300
    with pytest.raises(qwyc.OptionError, match="max_rows must be"):
        qwyc.optimize(model, rows, alpha=0.02, max_rows=0)
