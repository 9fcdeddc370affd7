"""The paper's fixed orders, against plain definitions."""

import numpy as np
import pytest

import oracle
import qwyc
from qwyc import _native
from qwyc.policy.fit import orders


def sample(seed=0, N=300, T=7, average=False):
    rng = np.random.default_rng(seed)
    y = rng.random(N) < 0.4
    values = 0.4 * np.where(y, 1, -1)[:, None] * rng.random(T) + rng.normal(size=(N, T))
    if average:
        values = (1 / (1 + np.exp(-values))) / T
    matrix = qwyc.ScoreMatrix.from_array(
        values, base=0.0 if average else 0.3, threshold=0.5 if average else 0.1, average=average
    )
    return matrix, y


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_greedy_mse_takes_the_best_next_base_model(seed, average):
    matrix, y = sample(seed, average=average)
    policy = qwyc.fit_policy(matrix, alpha=0.1, order="greedy-mse", labels=y)
    target = orders.mse_target(matrix, y, matrix.threshold, "greedy-mse")
    expected = oracle.greedy_mse(matrix.values, target, average)
    np.testing.assert_array_equal(policy.order, expected)


@pytest.mark.parametrize("average", [False, True])
def test_individual_mse_sorts_by_each_ones_own_error(average):
    matrix, y = sample(average=average)
    policy = qwyc.fit_policy(matrix, alpha=0.1, order="individual-mse", labels=y.astype(int))
    votes = matrix.values * (matrix.values.shape[1] if average else 1)
    partial = votes + matrix.base
    side = np.where(y, 1, -1)
    size = np.mean(side * (matrix.full - matrix.threshold))
    truth = y.astype(float) if average else size * side + matrix.threshold
    errors = ((partial - truth[:, None]) ** 2).mean(axis=0)
    np.testing.assert_array_equal(policy.order, np.argsort(errors))


def test_labels_may_be_booleans_zero_one_or_plus_minus_one():
    matrix, y = sample()
    found = {
        tuple(qwyc.fit_policy(matrix, alpha=0.1, order="greedy-mse", labels=labels).order)
        for labels in (y, y.astype(int), np.where(y, 1, -1), list(y), y.astype(float))
    }
    assert len(found) == 1


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, "pass labels, one per row"),
        (np.zeros(3), "300 values, one per row"),
        (np.arange(300), "labels must be 0 and 1"),
    ],
)
@pytest.mark.parametrize("order", ["individual-mse", "greedy-mse"])
def test_labels_that_do_not_work(order, labels, message):
    matrix, _ = sample()
    with pytest.raises(qwyc.OptionError, match=message):
        qwyc.fit_policy(matrix, alpha=0.1, order=order, labels=labels)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 7, 512, 1300])
def test_the_gram_matrix(n, dtype):
    values = np.random.default_rng(n).normal(size=(9, n)).astype(dtype)
    one, three = (_native.gram(values, None, None, threads) for threads in (1, 3))
    np.testing.assert_array_equal(one, three)  # to the last bit
    np.testing.assert_array_equal(one, one.T)
    np.testing.assert_allclose(
        one, values.astype(float) @ values.T.astype(float), rtol=1e-12, atol=1e-9
    )
