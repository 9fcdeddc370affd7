"""Orders and Algorithms 1 and 2 on leads, and what fit_policy and fit_path do with scores of classes."""

import itertools

import numpy as np
import pytest

import oracle
import qwyc
from qwyc import _native
from qwyc.policy.fit import lead_orders, leads
from qwyc.policy.fit.lead_problem import LeadProblem
from qwyc.policy.scores import ScoreMatrix


def sample(seed, N=300, T=7, K=4, dtype=np.float64, ties=False):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(N, T, K)) * rng.uniform(0.3, 2, (1, T, 1)) + rng.normal(size=(N, 1, K))
    if ties:
        F = np.round(F * 2) / 2
    return ScoreMatrix.from_array(F.astype(dtype), base=np.arange(K) / 4)


def decisions_differ(policy, matrix):
    winner = matrix.target.decide(matrix.full)
    return int(np.sum(policy.apply(matrix).label != winner))


def shared_costs(rng, T):
    parts, needs = rng.uniform(0, 3, 3), rng.random((T, 3)) < 0.4
    return qwyc.Costs(rng.choice([1.0, 2.0], T), parts, needs), (parts, needs)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("allowed", [0, 1, 7, 40, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_algorithms_1_and_2_equal_the_oracle(seed, allowed, ties):
    matrix = sample(seed, K=2 + seed, ties=ties, dtype=np.float32 if seed == 1 else np.float64)
    rng = np.random.default_rng(seed)
    costs, shared = shared_costs(rng, 7)
    problem = LeadProblem.of(matrix, costs, 1 + seed)
    values, given = matrix.values.astype(float), rng.permutation(7).astype(np.int32)
    for order in (None, given):
        policy = leads.search(problem, order, allowed)
        expected, thresholds = oracle.leads.search_leads(
            values, matrix.base, problem.winner, costs.own, allowed, order, shared
        )
        np.testing.assert_array_equal(policy.order, expected)
        np.testing.assert_array_equal(policy.lead, np.repeat(thresholds[:, None], 2 + seed, axis=1))
        np.testing.assert_array_equal(policy.costs, costs.along(expected))
        assert decisions_differ(policy, matrix) <= allowed


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(4))
def test_the_order_by_pairs_equals_its_definition(seed, dtype):
    """It is the order by correlation of two classes, on every pair of winner and runner-up in both
    directions."""
    matrix = sample(seed, dtype=dtype)
    costs = np.random.default_rng(seed).choice([1.0, 3.0], 7) if seed % 2 else np.ones(7)
    problem = LeadProblem.of(matrix, costs, None)
    Z, distance = oracle.leads.pairs(matrix.values.astype(float), matrix.base, matrix.full)
    width, ridge = (0.4, 0.3) if seed < 3 else (1.0, 0.0)
    expected = oracle.correlation_order(Z, distance, 0.0, costs, width, ridge)
    found = lead_orders.lead_correlation(problem, weight_width=width, ridge=ridge)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("rule", ["threshold", "stopping"])
@pytest.mark.parametrize(
    "order", ["joint", "auto", "natural", "random", "correlation", [6, 5, 4, 3, 2, 1, 0]]
)
def test_fit_policy_keeps_alpha_in_the_sample(order, rule):
    matrix = sample(3, N=2000)
    policy = qwyc.fit_policy(matrix, alpha=0.01, order=order, rule=rule)
    assert isinstance(policy, qwyc.LeadPolicy)
    assert decisions_differ(policy, matrix) <= 20
    assert policy.apply(matrix).steps.mean() < 7
    again = qwyc.fit_policy(matrix, alpha=0.01, order=order, rule=rule, threads=1)
    np.testing.assert_array_equal(again.order, policy.order)
    np.testing.assert_array_equal(again.lead, policy.lead)
    if order == "natural":
        np.testing.assert_array_equal(policy.order, np.arange(7))


@pytest.mark.parametrize("rule", ["threshold", "stopping"])
def test_auto_is_the_cheaper_of_two_orders(rule):
    for seed in range(3):
        matrix = sample(seed, N=1500)
        cost = {}
        for order in ("natural", "correlation", "auto"):
            policy = qwyc.fit_policy(matrix, alpha=0.02, order=order, rule=rule)
            cost[order] = policy.apply(matrix).steps.mean()
        assert cost["auto"] == min(cost["natural"], cost["correlation"])


def test_fit_path_takes_the_better_order_by_default():
    rng = np.random.default_rng(0)
    F = rng.normal(size=(3000, 12, 3)) * np.linspace(0.1, 2, 12)[:, None]  # the last ones matter
    path = qwyc.fit_path(F)
    assert isinstance(path, qwyc.LeadPath)
    np.testing.assert_array_equal(path.order, qwyc.fit_path(F, order="correlation").order)
    assert path.order[0] > path.order[-1]
    assert len(qwyc.fit_path(F, order="natural")) == len(qwyc.fit_path(F, order="natural").penalty)


def test_costs_count_in_searches():
    matrix = sample(0, N=800)
    dear = np.ones(7)
    first = qwyc.fit_policy(matrix, alpha=0.01).order[0]
    dear[first] = 100
    assert qwyc.fit_policy(matrix, alpha=0.01, costs=dear).order[0] != first


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"threshold": 0.5}, "threshold is for two classes"),
        ({"threshold": 0.0}, "threshold is for two classes"),
        ({"quit": "negative"}, 'quit must be "both"'),
        ({"quit": None}, 'quit must be "both"'),
        ({"rule": "fan"}, 'rule must be "threshold" or "stopping"'),
        ({"rule": "margin"}, "rule must be one of"),
        ({"budget": "split"}, 'budget must be "paper"'),
        ({"labels": [0, 1]}, "labels are for two classes"),
        ({"gamma": 1.0}, "Fan's rule"),
        ({"bin_width": 1.0}, "Fan's rule"),
        ({"order": "individual-mse"}, "order must be one of"),
        ({"order": "greedy-mse"}, "order must be one of"),
        ({"order": "joint-fan"}, "order must be one of"),
        ({"order": [0, 1]}, "permutation of 0 to 6"),
        ({"order": None}, "permutation of 0 to 6"),
        ({"alpha": None}, "alpha is needed"),
        ({"alpha": 1.5}, "alpha is a share"),
        ({"costs": [1, 2]}, "costs"),
        ({"seed": -1}, "seed"),
    ],
)
def test_options_that_make_no_sense_are_refused_in_one_sentence(options, match):
    with pytest.raises(qwyc.OptionError, match=match) as caught:
        qwyc.fit_policy(sample(0), **({"alpha": 0.01} | options))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"order": "joint"}, "order must be one of 'auto', 'natural'"),
        ({"threshold": 0.0}, "threshold is for two classes"),
        ({"quit": "positive"}, 'quit must be "both"'),
        ({"labels": [0]}, "labels are for two classes"),
    ],
)
def test_so_are_those_of_a_path(options, match):
    with pytest.raises(qwyc.OptionError, match=match):
        qwyc.fit_path(sample(0), **options)


def test_auto_is_for_classes():
    with pytest.raises(qwyc.OptionError, match="order must be one of"):
        qwyc.fit_policy(np.zeros((5, 3)), alpha=0.1, order="auto")
    with pytest.raises(qwyc.InputError, match="expected one score"):
        qwyc.fit_fan_path(sample(0), [1.0], order="natural")


def test_no_rows_and_numbers_that_overflow_are_refused():
    with pytest.raises(qwyc.InputError, match="no rows"):
        qwyc.fit_path(np.empty((0, 3, 4)))
    huge = np.zeros((5, 3, 4))
    huge[0, 0, 0] = 1e200
    with pytest.raises(qwyc.InputError, match="too large"):
        qwyc.fit_path(huge)
    with pytest.raises(qwyc.InputError, match="70,000 classes"):
        qwyc.fit_path(np.zeros((1, 1, 70_000)))
    hidden = sample(0)
    hidden.values[3, 2, 1] = np.nan
    with pytest.raises(qwyc.InputError, match="base model 2"):
        qwyc.fit_policy(hidden, alpha=0.1)


def test_progress_is_reported():
    done = []
    matrix = sample(0)
    values = matrix.by_model
    winner = matrix.target.decide(matrix.full).astype(np.int32)
    none, begin = np.empty(0), np.zeros(8, np.int64)
    needs = np.empty(0, np.int32)
    order = np.arange(7, dtype=np.int32)
    _native.search_leads(
        values, matrix.base, winner, np.ones(7), none, begin, needs, order, 0, 1, done.append
    )
    assert done[-1] == 7
    assert all(a <= b for a, b in itertools.pairwise(done))
    for changes in ({"budget": -1}, {"winner": winner[:3]}, {"order": order * 0}):
        arguments = {"winner": winner, "order": order, "budget": 0} | changes
        with pytest.raises(ValueError, match="must"):
            _native.search_leads(
                values=values,
                base=matrix.base,
                costs=np.ones(7),
                parts=none,
                need_begin=begin,
                need=needs,
                threads=1,
                progress=done.append,
                **arguments,
            )
