"""Policies on the lead of many classes: natively as by the oracle, and what they refuse."""

import pickle

import numpy as np
import pytest

import oracle
import qwyc
from qwyc.policy.lead_policy import LeadPolicy, leaders
from qwyc.policy.rule import GO_ON
from qwyc.policy.scores import ScoreMatrix


def sample(seed, N=200, T=7, K=4, dtype=np.float64, ties=False):
    """Scores of rows that lean to a class of their own."""
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(N, T, K)) + 0.6 * rng.normal(size=(N, 1, K))
    if ties:
        F = np.round(F * 2) / 2
    base = np.round(rng.normal(size=K) * 4) / 8
    return ScoreMatrix.from_array(F.astype(dtype), base=base)


def policy_for(matrix, seed, never=0.3):
    rng = np.random.default_rng(seed)
    _, T, K = matrix.values.shape
    lead = np.round(rng.uniform(0, 8, (T, K)) * 4) / 4  # on the grid of tied scores
    lead[rng.random((T, K)) < never] = np.inf
    return LeadPolicy(rng.permutation(T), lead, np.ones(T))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("N", "T", "K"), [(1, 1, 2), (200, 7, 2), (700, 9, 3), (90, 5, 40), (20, 3, 5000)]
)
def test_rows_are_decided_as_by_the_oracle(N, T, K, dtype, ties):
    for seed in range(4):
        matrix = sample(seed, N, T, K, dtype, ties)
        policy = policy_for(matrix, seed)
        values = matrix.values.astype(float)
        label, steps, score = oracle.leads.apply_leads(
            values, matrix.base, matrix.full, policy.order, policy.lead
        )
        for threads in (1, 3):
            found = policy.apply(matrix, threads=threads)
            np.testing.assert_array_equal(found.label, label)
            np.testing.assert_array_equal(found.steps, steps)
            np.testing.assert_array_equal(found.score, score)
            np.testing.assert_array_equal(found.complete, steps == T)


def test_outcomes_are_what_a_step_decides():
    matrix = sample(0, ties=True)
    policy = policy_for(matrix, 1)
    sums = oracle.leads.running_sums(matrix.values, matrix.base, policy.order)
    undecided = np.arange(len(sums))
    found = policy.apply(matrix)
    for r in range(policy.n_models - 1):
        outcome = policy.outcomes(r, sums[undecided, r])
        quits = outcome != GO_ON
        np.testing.assert_array_equal(found.label[undecided[quits]], outcome[quits])
        np.testing.assert_array_equal(found.steps[undecided[quits]], r + 1)
        undecided = undecided[~quits]
    assert found.complete[undecided].all()


def test_a_tie_never_quits_and_goes_to_the_first_class_in_full():
    F = np.array([[[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]], [[2.0, 1.0, 0.0], [0.0, 5.0, 0.0]]])
    done = LeadPolicy([0, 1], np.zeros((2, 3)), np.ones(2)).apply(F)
    np.testing.assert_array_equal(done.label, [0, 0])
    np.testing.assert_array_equal(done.steps, [2, 1])
    np.testing.assert_array_equal(done.score, [[1, 1, 0], [2, 1, 0]])


@pytest.mark.parametrize("seed", range(6))
def test_two_classes_are_a_policy_on_differences(seed):
    matrix = sample(seed, K=2, ties=True)  # halves and eighths: differences are exact
    policy = policy_for(matrix, seed)
    difference = ScoreMatrix.from_array(
        matrix.values[:, :, 1] - matrix.values[:, :, 0], base=matrix.base[1] - matrix.base[0]
    )
    smallest = float(np.nextafter(0.0, 1.0))
    plain = qwyc.Policy(policy.order, -policy.lead[:, 0], policy.lead[:, 1], smallest, policy.costs)
    found, expected = policy.apply(matrix), plain.apply(difference)
    np.testing.assert_array_equal(found.label, expected.label)
    np.testing.assert_array_equal(found.steps, expected.steps)
    np.testing.assert_array_equal(found.score[:, 1] - found.score[:, 0], expected.score)


def test_sums_without_a_distance_do_not_quit():
    F = np.full((2, 3, 3), 1.5e308)
    F[1] *= -1
    with np.errstate(over="ignore", invalid="ignore"):
        matrix = ScoreMatrix.from_array(F)
    done = LeadPolicy([0, 1, 2], np.zeros((3, 3)), np.ones(3)).apply(matrix)
    np.testing.assert_array_equal(done.steps, [3, 3])
    np.testing.assert_array_equal(done.label, [0, 0])


def test_leaders_are_the_oracle_s():
    sums = np.round(np.random.default_rng(0).normal(size=(300, 5)) * 2)
    for found, expected in zip(leaders(sums), oracle.leads.leaders(sums), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_members_of_a_stopping_rule():
    policy = LeadPolicy([1, 0, 2], [[np.inf] * 3, [1, 2, 3], [np.inf] * 3], [1, 2, 4])
    assert (policy.n_models, policy.n_classes, policy.quit) == (3, 3, "both")
    assert policy.target.n_classes == 3
    assert policy.without_quitting().quit == "never"
    assert policy.mean_cost(np.array([1, 3])) == (2 + 7) / 2
    assert repr(policy) == "LeadPolicy(3 base models, 3 classes, quits early)"
    again = pickle.loads(pickle.dumps(policy))
    np.testing.assert_array_equal(again.lead, policy.lead)
    with pytest.raises(ValueError, match="read-only"):
        again.lead[0, 0] = 0


def test_no_rows_are_decided():
    done = LeadPolicy([0], [[0, 0]], [1]).apply(np.empty((0, 1, 2)))
    assert len(done) == 0
    assert done.score.shape == (0, 2)


@pytest.mark.parametrize(
    ("order", "lead", "costs", "match"),
    [
        ([], np.empty((0, 2)), [], "one entry"),
        ([0, 0], np.zeros((2, 2)), [1, 1], "exactly once"),
        ([0, 1], np.zeros((2, 1)), [1, 1], "two classes"),
        ([0, 1], np.zeros((1, 2)), [1, 1], "two classes"),
        ([0, 1], np.zeros(2), [1, 1], "two classes"),
        ([0, 1], [[0, 0], [0, np.nan]], [1, 1], "at least 0"),
        ([0, 1], [[0, 0], [0, -1]], [1, 1], "at least 0"),
        ([0, 1], np.zeros((2, 2)), [1, 0], "positive"),
        ([0, 1], np.zeros((2, 2)), [1], "one entry"),
        (["a", 1], np.zeros((2, 2)), [1, 1], "numbers"),
        ([0, 1], [[0, 0], [0]], [1, 1], "numbers"),
    ],
)
def test_unsound_policies_are_refused(order, lead, costs, match):
    with pytest.raises(qwyc.OptionError, match=match):
        LeadPolicy(order, lead, costs)


def test_scores_of_other_shapes_are_refused():
    policy = LeadPolicy([0, 1], np.zeros((2, 3)), [1, 1])
    with pytest.raises(qwyc.InputError, match=r"expected 3 scores .* there are one"):
        policy.apply(np.zeros((4, 2)))
    with pytest.raises(qwyc.InputError, match=r"expected 3 scores .* there are 4"):
        policy.apply(np.zeros((4, 2, 4)))
    with pytest.raises(qwyc.InputError, match="3 base models; the policy has 2"):
        policy.apply(np.zeros((4, 3, 3)))
    with pytest.raises(qwyc.InputError, match="by 3 classes"):
        policy.outcomes(0, np.zeros(5))
    plain = qwyc.Policy([0, 1], [0, 0], [0, 0], 0.0, [1, 1])
    with pytest.raises(qwyc.InputError, match=r"expected one score .* there are 3"):
        plain.apply(np.zeros((4, 2, 3)))
