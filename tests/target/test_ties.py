"""Which of K classes wins where probabilities are equal and scores are not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from qwyc.target.ties import Ties

KINDS = [
    Ties(),
    Ties("softmax", "float32"),
    Ties("softmax", "float64"),
    Ties("sigmoid"),
    Ties("sigmoid", scale=0.01),
    Ties("sigmoid", scale=30.0),
]


def close_scores(dtype, seed=0, rows=4000):
    """Scores (rows, K) of every size, of which some are equal and some differ in their last bits."""
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 12))
    best = rng.normal(size=(rows, 1)) * 10.0 ** rng.integers(-2, 4, (rows, 1))
    gap = 10.0 ** rng.integers(-17, 1, (rows, K)) * rng.integers(0, 2, (rows, K))
    return (best - gap * np.abs(best)).astype(dtype).astype(np.float64)


@pytest.mark.parametrize("ties", KINDS, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_the_greatest_probability_wins_and_the_first_of_equal_ones(ties, seed):
    full = close_scores(ties.dtype, seed)
    compared = full
    if ties.kind != "scores":
        compared = np.array([ties.probabilities(row) for row in full])
        assert (compared.argmax(axis=1) != full.argmax(axis=1)).any()
    np.testing.assert_array_equal(ties.decide(full), compared.argmax(axis=1))


def test_powers_are_added_one_after_the_other():
    """Thirty powers of 1e-17 leave a sum of 1 as it is; any more exact sum has them."""
    scores = np.array([0.0] + [math.log(1e-17)] * 30)
    assert Ties("softmax").probabilities(scores)[0] == 1.0


def test_a_sigmoid_of_a_score_far_below_zero_is_zero():
    assert Ties("sigmoid").probabilities(np.array([-1e4, 0.0, 1e4])).tolist() == [0.0, 0.5, 1.0]
