"""alpha=0 for a filter: no scores within the bounds are lost."""

import numpy as np
import pytest

from qwyc.model.base_models import Bounds
from qwyc.policy.costs import Costs
from qwyc.policy.scores import ScoreMatrix
from qwyc.promise.proof import provable_filter


def bounds_of(rng, T, K):
    centre, half = rng.normal(size=(T, K)) * 0.3, rng.uniform(0.01, 1, (T, 1)) * rng.random((T, K))
    half *= 0.7 ** np.arange(T)[:, None]  # later base models add little
    return Bounds(centre - half, centre + half, 1e-12)


def rows_within(rng, bounds, N):
    """Half of the rows have base models at their bounds."""
    T, K = bounds.least.shape
    corner = rng.integers(0, 2, (N, T, K))
    share = np.where(np.arange(N)[:, None, None] % 2 == 0, corner, rng.random((N, T, K)))
    return np.clip(bounds.least + share * (bounds.most - bounds.least), bounds.least, bounds.most)


@pytest.mark.parametrize("K", [2, 3, 7])
def test_no_row_within_the_bounds_is_lost(K):
    left = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        bounds, only = bounds_of(rng, 10, K), seed % K
        policy = provable_filter(bounds, only=only, costs=Costs.of(rng.choice([1.0, 2.0], 10), 10))
        matrix = ScoreMatrix.from_array(rows_within(rng, bounds, 4000))
        done, full = policy.apply(matrix), matrix.full.argmax(axis=1)
        np.testing.assert_array_equal(done.label == only, full == only)
        left.append(np.mean(~done.complete))
    assert np.mean(left) > 0.3  # it says something


@pytest.mark.parametrize("seed", range(3))
def test_the_class_at_its_best_does_not_catch_up(seed):
    """After each step, the class at its most and the others at their least from there on."""
    rng = np.random.default_rng(seed)
    T, K, only = 6, 4, 1
    bounds = bounds_of(rng, T, K)
    policy = provable_filter(bounds, only=only, costs=Costs.of(None, T))
    inside, left = rows_within(rng, bounds, 500), 0
    for r in range(T - 1):
        F = np.array(inside)
        for t in policy.order[r + 1 :]:
            F[:, t] = bounds.least[t]
            F[:, t, only] = bounds.most[t, only]
        matrix = ScoreMatrix.from_array(F)
        done = policy.apply(matrix)
        np.testing.assert_array_equal(done.label == only, matrix.full.argmax(axis=1) == only)
        left += np.sum(done.steps == r + 1)
    assert left > 0
