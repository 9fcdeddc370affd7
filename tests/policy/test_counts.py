"""Counts add up over parts of a data set, and the means are those of all rows."""

import numpy as np
import pytest

import qwyc
from qwyc.policy.counts import Counts, Sums, exit_bins, sum_over_rows


@pytest.fixture
def path_and_scores():
    rng = np.random.default_rng(0)
    F = rng.normal(size=(3000, 8)).astype(np.float32)
    scores = qwyc.ScoreMatrix.from_array(F)
    return qwyc.fit_path(scores, costs=1.0 + np.arange(8)), scores


def test_sums_of_parts_add_up_to_those_of_the_whole(path_and_scores):
    path, scores = path_and_scores
    whole = path.sums(scores)
    parts = [
        path.sums(scores.take(np.arange(a, b))) for a, b in ((0, 700), (700, 701), (701, 3000))
    ]
    total = Sums.from_vector(np.sum([part.vector() for part in parts], axis=0), path.target, 8)
    np.testing.assert_array_equal(whole.differences, total.differences)
    np.testing.assert_array_equal(whole.by_class, total.by_class)
    np.testing.assert_array_equal(whole.steps, total.steps)
    np.testing.assert_array_equal(whole.cost, total.cost)  # whole numbers, so exactly
    np.testing.assert_array_equal(whole.exits, total.exits)
    assert len(whole.vector()) == Sums.size(path.target, 8, len(path))


def test_counts_are_what_decisions_say(path_and_scores):
    path, scores = path_and_scores
    counts, full = path.sums(scores).counts(), scores.positive
    for k in range(0, len(path), 5):
        policy, seen = path[k], counts[k]
        decisions = policy.apply(scores)
        assert seen.rows == 3000
        bins = [(1, 1), (2, 2), (3, 4), (5, 7), (8, 8)]
        assert exit_bins(8) == bins
        stopped = [int(((decisions.steps >= a) & (decisions.steps <= b)).sum()) for a, b in bins]
        assert seen.exits == tuple(stopped)
        assert seen.by_class == (int((~full).sum()), int(full.sum()))
        assert seen.disagreements == int((decisions.label != full).sum())
        assert seen.differences[0] == int((full & (decisions.label == 0)).sum())
        assert seen.mean_models == decisions.steps.mean()
        assert seen.mean_cost == policy.mean_cost(decisions.steps)


def test_one_policy_is_counted_like_a_path_of_one(path_and_scores):
    path, scores = path_and_scores
    policy = path[len(path) // 2]
    decisions = policy.apply(scores)
    full = policy.target.decide(scores.full)
    one = sum_over_rows(policy, decisions.label, full, decisions.steps)
    np.testing.assert_array_equal(one.differences[0], path.sums(scores).differences[len(path) // 2])


def test_a_policy_without_rows_evaluates_everything(path_and_scores):
    path, _ = path_and_scores
    nothing = Counts.without_rows(path[1])
    assert (nothing.rows, nothing.disagreements, nothing.observed) == (0, 0, 0.0)
    assert nothing.mean_models == 8
    assert nothing.mean_cost == 36
