"""Algorithm 1 against the best order there is, and what relabelling may change."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import oracle
import qwyc
from qwyc.runtime.arguments import allowed_disagreements
from qwyc_experiments.brute_force import best_cost, cost, general_instance, pipeline_instance

seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=150, deadline=None)
@given(seed=seeds, n_models=st.integers(1, 5), n_rows=st.integers(1, 40), equal=st.booleans())
def test_the_joint_order_is_within_four_times_the_best_on_pipeline_problems(
    seed, n_models, n_rows, equal
):
    rng = np.random.default_rng(seed)
    scores = pipeline_instance(rng, n_rows, n_models)
    costs = np.ones(n_models) if equal else rng.choice([1.0, 2.0, 5.0], n_models)
    best = best_cost(scores, costs)
    assert best - 1e-12 <= cost(scores, "joint", costs) <= 4 * best


@pytest.mark.parametrize("seed", range(3))
def test_six_base_models_against_all_720_orders(seed):
    scores = pipeline_instance(np.random.default_rng(seed), 30, 6)
    assert cost(scores, "joint", np.ones(6)) <= 4 * best_cost(scores, np.ones(6))


@settings(max_examples=25, deadline=None)
@given(seed=seeds)
def test_at_alpha_zero_no_thresholds_beat_those_of_algorithm_2(seed):
    # Every pair of cuts at both steps that can quit, tried one by one, on a tiny problem.
    rng = np.random.default_rng(seed)
    F = np.round(general_instance(rng, 7, 3), 1)
    y = F.sum(axis=1) >= 0
    full = qwyc.ScoreMatrix.from_array(F).positive
    assume(np.array_equal(full, y))
    sums = np.cumsum(F, axis=1)

    def choices(s):
        cuts = np.concatenate([[-np.inf], np.sort(np.unique(s)), [np.inf]])
        return [(a, b) for a in cuts for b in cuts if a <= b]

    best = np.inf
    for (a1, b1), (a2, b2) in itertools.product(choices(sums[:, 0]), choices(sums[:, 1])):
        first = (sums[:, 0] < a1) | (sums[:, 0] > b1)
        second = ~first & ((sums[:, 1] < a2) | (sums[:, 1] > b2))
        label = np.where(first, sums[:, 0] > b1, np.where(second, sums[:, 1] > b2, y))
        if np.array_equal(label, y):
            best = min(best, np.mean(np.where(first, 1, np.where(second, 2, 3))))
    assert cost(F, [0, 1, 2], np.ones(3)) <= best + 1e-12


@settings(max_examples=80, deadline=None)
@given(seed=seeds, alpha=st.sampled_from([0.0, 0.05, 0.2]))
def test_relabelling_the_base_models_changes_nothing_but_the_labels(seed, alpha):
    rng = np.random.default_rng(seed)
    F = general_instance(rng, 60, 5)
    F = np.round(F * 1024) / 1024  # sums are exact in any order, so full scores stay the same
    costs = 1 + rng.random(5)  # no ties: those go to the lowest label
    policy = qwyc.fit_policy(F, alpha=alpha, costs=costs)
    finite = np.isfinite(policy.lower) | np.isfinite(policy.upper)
    undecided = [(policy.apply(F).steps > r).any() for r in range(4)]
    assume(finite[:4][undecided].all())  # nor steps at which nobody can quit
    rank = rng.permutation(5)
    again = qwyc.fit_policy(F[:, rank], alpha=alpha, costs=costs[rank])
    steps = int(sum(undecided))
    np.testing.assert_array_equal(rank[again.order][:steps], policy.order[:steps])
    np.testing.assert_array_equal(again.lower, policy.lower)
    np.testing.assert_array_equal(again.upper, policy.upper)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.004, 0.05])
@pytest.mark.parametrize("split", [False, True])
def test_large_samples_are_cut_at_the_same_sums_as_the_oracle(ties, alpha, split):
    rng = np.random.default_rng(7)
    F = general_instance(rng, 12_000, 4).astype(np.float32)
    if ties:
        F = np.round(F * 8) / 8
    matrix = qwyc.ScoreMatrix.from_array(F, threshold=0.3)
    budget = allowed_disagreements(alpha, len(F))
    policy = qwyc.fit_policy(matrix, alpha=alpha, budget="split" if split else "paper")
    order, lower, upper = oracle.optimize_order(
        F, 0.0, matrix.positive, np.ones(4), budget, "both", split
    )
    np.testing.assert_array_equal(policy.order, order)
    np.testing.assert_array_equal(policy.lower, lower)
    np.testing.assert_array_equal(policy.upper, upper)


def test_splitting_the_budget_leaves_half_for_positive_quits():
    F = general_instance(np.random.default_rng(0), 4000, 5)
    full = F.sum(axis=1) >= 0

    def differences(budget):
        label = qwyc.fit_policy(F, alpha=0.02, order="natural", budget=budget).apply(F).label
        return np.sum((label == 0) & full), np.sum((label == 1) & ~full)

    assert differences("paper") == (80, 0)
    negative, positive = differences("split")
    assert 40 <= negative < 80
    assert negative + positive <= 80
    assert positive > 0
