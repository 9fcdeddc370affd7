"""alpha=0 for many classes: no scores within the bounds are decided differently."""

import itertools

import numpy as np
import pytest

import qwyc
from qwyc.model.base_models import Bounds
from qwyc.policy.costs import Costs
from qwyc.policy.scores import ScoreMatrix
from qwyc.promise.proof import provable_lead_policy


def bounds_of(rng, T, K):
    centre, half = rng.normal(size=(T, K)) * 0.3, rng.uniform(0.01, 1, (T, 1)) * rng.random((T, K))
    half *= 0.7 ** np.arange(T)[:, None]  # later base models add little
    return Bounds(centre - half, centre + half, 1e-12)


def rows_within(rng, bounds, N):
    """Half of the rows have base models at their bounds."""
    T, K = bounds.least.shape
    share = rng.random((N, T, K))
    corner = rng.integers(0, 2, (N, T, K))
    share = np.where(np.arange(N)[:, None, None] % 2 == 0, corner, share)
    inside = np.clip(bounds.least + share * (bounds.most - bounds.least), bounds.least, bounds.most)
    return ScoreMatrix.from_array(inside)


@pytest.mark.parametrize("K", [2, 3, 7])
@pytest.mark.parametrize("seed", range(5))
def test_no_scores_within_the_bounds_differ(seed, K):
    rng = np.random.default_rng(seed)
    bounds = bounds_of(rng, 10, K)
    policy = provable_lead_policy(bounds, costs=Costs.of(rng.choice([1.0, 2.0], 10), 10))
    matrix = rows_within(rng, bounds, 4000)
    done = policy.apply(matrix)
    np.testing.assert_array_equal(done.label, matrix.target.decide(matrix.full))
    assert done.steps.mean() < 9.8  # it says something


@pytest.mark.parametrize("seed", range(3))
def test_a_class_that_does_its_best_does_not_catch_up(seed):
    """After each step, the others at their bounds from there on: the worst that can happen."""
    rng = np.random.default_rng(seed)
    T, K = 6, 4
    bounds = bounds_of(rng, T, K)
    policy = provable_lead_policy(bounds, costs=Costs.of(None, T))
    inside = rows_within(rng, bounds, 500).values
    quits = 0
    for r, leader in itertools.product(range(T - 1), range(K)):
        F = np.array(inside)
        for t in policy.order[r + 1 :]:
            F[:, t] = bounds.most[t]
            F[:, t, leader] = bounds.least[t, leader]
        matrix = ScoreMatrix.from_array(F)
        done = policy.apply(matrix)
        np.testing.assert_array_equal(done.label, matrix.target.decide(matrix.full))
        quits += np.sum((done.steps == r + 1) & (done.label == leader))
    assert quits > 100


def test_thresholds_are_tight():
    """A lead that another class can just make up does not quit, and a slightly larger one does."""
    bounds = Bounds(np.array([[0, 0], [0, -0.5]]), np.array([[4, 4], [1, 0.25]]), 0.0)
    policy = provable_lead_policy(bounds, costs=Costs.of(None, 2))
    np.testing.assert_array_equal(policy.order, [0, 1])
    # Class 1 gains at most 0.25 - 0 on class 0, which gains at most 1 + 0.5 on class 1.
    np.testing.assert_allclose(policy.lead, [[0.25, 1.5], [np.inf, np.inf]], atol=1e-12)
    assert (policy.lead[0] >= [0.25, 1.5]).all()


def test_what_bounds_do_not_cover_is_refused():
    sound = Bounds(np.zeros((2, 3)), np.ones((2, 3)), 0.0)
    costs = Costs.of(None, 2)
    assert provable_lead_policy(sound, costs=costs).quit == "both"
    for wrong, match in (
        (Bounds(sound.least, sound.most * np.inf, 0.0), "overflow"),
        (Bounds(sound.least, sound.most, np.nan), "overflow"),
        (Bounds(sound.most, sound.least, 0.0), "least <= most"),
        (Bounds(np.zeros(2), np.ones(2), 0.0), "base models by classes"),
        (Bounds(np.zeros((2, 1)), np.ones((2, 1)), 0.0), "base models by classes"),
        (Bounds(np.zeros((2, 3)), np.ones((2, 2)), 0.0), "base models by classes"),
    ):
        with pytest.raises(qwyc.OptionError, match=match):
            provable_lead_policy(wrong, costs=costs)
