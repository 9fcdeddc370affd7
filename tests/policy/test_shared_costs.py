"""Costs of base models that share parts: what they are along an order, and how orders use them."""

import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import qwyc
from qwyc import _native
from qwyc.model.base_models import Bounds
from qwyc.policy.costs import MarginalCosts
from qwyc.policy.fit import orders
from qwyc.policy.fit.problem import Problem
from qwyc.promise.proof import provable_policy
from qwyc.runtime.arguments import allowed_disagreements
from qwyc_experiments.brute_force import general_instance


def random_costs(rng, T, P):
    """Costs whose sums are exact in any order, with parts that are often dearer than base models."""
    own, parts = rng.choice([0.5, 1.0, 3.0], T), rng.choice([0.0, 0.25, 2.0, 8.0], P)
    return qwyc.Costs(own, parts, rng.random((T, P)) < rng.choice([0.1, 0.5]))


def shared(costs):
    return costs.parts, costs.needs


# ---- costs along an order ---------------------------------------------------------------------


def test_the_first_to_need_a_part_pays_for_it():
    costs = qwyc.Costs([1, 2, 3], [10, 100], [[1, 0], [1, 1], [0, 1]])
    assert costs.along([0, 1, 2]).tolist() == [11, 102, 3]
    assert costs.along([2, 1, 0]).tolist() == [1, 12, 103]
    assert costs.along([1, 0, 2]).tolist() == [1, 112, 3]
    assert repr(costs) == "Costs(3 base models, 2 shared parts)"


def test_a_large_table_is_copied_once():
    needs = np.zeros((1000, 4000), dtype=bool)
    needs[:, 0] = True
    tracemalloc.start()
    costs = qwyc.Costs(np.ones(1000), np.ones(4000), needs)
    along = costs.along(np.arange(1000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert along.tolist() == [2.0, *[1.0] * 999]
    assert peak < 1.5 * needs.nbytes
    assert costs.needs is not needs
    assert not costs.needs.flags.writeable


def test_costs_without_parts_do_not_depend_on_the_order():
    costs = qwyc.Costs([1.5, 2, 3])
    for order in ([0, 1, 2], [2, 0, 1]):
        np.testing.assert_array_equal(costs.along(order), [1.5, 2, 3])
    assert repr(costs) == "Costs(3 base models)"
    assert not costs.all_one
    assert qwyc.Costs([1, 1]).all_one
    assert qwyc.Costs([1, 1], [5], [[0], [0]]).all_one  # nobody needs the part
    assert not qwyc.Costs([1, 1], [5], [[0], [1]]).all_one


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), T=st.integers(1, 9), P=st.integers(0, 6))
def test_along_and_marginal_costs_equal_the_oracle(seed, T, P):
    rng = np.random.default_rng(seed)
    costs, order = random_costs(rng, T, P), rng.permutation(T)
    along = costs.along(order)
    np.testing.assert_array_equal(along, oracle.costs_along(costs.own, shared(costs), order))
    marginal, needed = MarginalCosts(costs), costs.needs.any(axis=0)
    for r, k in enumerate(order):
        expected = [oracle.marginal_cost(costs.own, shared(costs), order[:r], t) for t in range(T)]
        np.testing.assert_array_equal(marginal.now, expected)
        marginal.choose(k)
    assert along.sum() == costs.own.sum() + costs.parts[needed].sum()


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_search_and_the_whole_order_agree_to_the_last_bit(seed):
    rng = np.random.default_rng(seed)
    costs = qwyc.Costs(rng.random(8) + 0.1, rng.random(12), rng.random((8, 12)) < 0.5)
    order, found, marginal = rng.permutation(8), np.empty(8), MarginalCosts(costs)
    for k in order:
        found[k] = marginal.now[k]
        marginal.choose(k)
    np.testing.assert_array_equal(found, costs.along(order))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None,), "own must be one positive number per base model"),
        (([],), "own must be one positive number per base model"),
        (([1, 0],), "positive"),
        (([1, np.nan],), "positive"),
        ((["a"],), "1 numbers, one per base model"),
        (([[1, 2]],), "one per base model; got shape"),
        (([1, 2], [-1], [[0], [1]]), "parts must be numbers of at least 0"),
        (([1, 2], [np.inf], [[0], [1]]), "parts must be numbers of at least 0"),
        (
            ([1, 2], [1]),
            r"each of 2 base models and a column for each of 1 parts; got shape \(0, 0\)",
        ),
        (([1, 2], [1], [[0, 1]]), r"got shape \(1, 2\)"),
        (([1, 2], [], [[0], [1]]), r"got shape \(2, 1\)"),
        (([1, 2], [1], [[0], [2]]), "needs must be booleans"),
        (([1, 2], [1], [["x"], ["y"]]), "needs must be booleans"),
        (([1, 2], [1, 1], [[0], [1, 1]]), "a table of booleans"),
        (([1, 2], ["x"], [[0], [1]]), "parts must be numbers"),
    ],
)
def test_costs_that_do_not_work(arguments, message):
    with pytest.raises(qwyc.OptionError, match=message):
        qwyc.Costs(*arguments)


def test_costs_are_for_a_number_of_base_models_and_never_change():
    costs = qwyc.Costs([1, 2], [3], [[0], [1]])
    with pytest.raises(qwyc.OptionError, match="costs are for 2 base models; there are 3 here"):
        qwyc.fit_policy(np.ones((4, 3)), alpha=0.1, costs=costs)
    for wrong in ([0, 0], [0], [0, 2], [[0, 1], [1, 0]]):
        with pytest.raises(qwyc.OptionError, match="permutation of 0 to 1"):
            costs.along(wrong)
    for array in (costs.own, costs.parts, costs.needs):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    again = pickle.loads(pickle.dumps(costs))
    np.testing.assert_array_equal(again.along([1, 0]), costs.along([1, 0]))


# ---- orders -----------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    N=st.integers(1, 50),
    T=st.integers(1, 8),
    P=st.integers(0, 5),
    alpha=st.sampled_from([0.0, 0.05, 0.3]),
    quit=st.sampled_from(["both", "negative", "positive"]),
    ties=st.booleans(),
)
def test_algorithm_1_counts_what_a_base_model_adds(seed, N, T, P, alpha, quit, ties):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(N, T))
    F = np.round(F * 2) / 2 if ties else F
    matrix, costs = qwyc.ScoreMatrix.from_array(F, threshold=0.25), random_costs(rng, T, P)
    policy = qwyc.fit_policy(matrix, alpha=alpha, quit=quit, costs=costs)
    order, lower, upper = oracle.optimize_order(
        F,
        0.0,
        matrix.positive,
        costs.own,
        allowed_disagreements(alpha, N),
        quit,
        shared=shared(costs),
    )
    np.testing.assert_array_equal(policy.order, order)
    np.testing.assert_array_equal(policy.lower, lower)
    np.testing.assert_array_equal(policy.upper, upper)
    np.testing.assert_array_equal(policy.costs, oracle.costs_along(costs.own, shared(costs), order))


@pytest.mark.parametrize("seed", range(6))
def test_the_correlation_order_counts_what_a_base_model_adds(seed):
    rng = np.random.default_rng(seed)
    matrix = qwyc.ScoreMatrix.from_array(general_instance(rng, 400, 10), threshold=0.2)
    costs = random_costs(rng, 10, 5)
    found = orders.correlation(Problem(matrix, 0.2, costs, "both"))
    settings = (orders.WEIGHT_WIDTH, orders.RIDGE)
    expected = oracle.correlation_order(
        matrix.values, matrix.full, 0.2, costs.own, *settings, shared(costs)
    )
    np.testing.assert_array_equal(found, expected)
    path = qwyc.fit_path(matrix, threshold=0.2, costs=costs)
    np.testing.assert_array_equal(path.order, expected)
    np.testing.assert_array_equal(path.costs, costs.along(expected))
    np.testing.assert_array_equal(path[3].costs, path.costs)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), T=st.integers(1, 9), P=st.integers(0, 6))
def test_a_proof_takes_the_widest_range_for_what_a_base_model_adds(seed, T, P):
    rng = np.random.default_rng(seed)
    costs, width = random_costs(rng, T, P), rng.choice([0.0, 0.5, 1.0, 2.0], T)
    bounds = Bounds(-width / 2, width / 2, 1e-9)
    policy = provable_policy(bounds, threshold=0.0, costs=costs, quit="both")
    expected = oracle.widest_first(width, costs.own, shared(costs))
    np.testing.assert_array_equal(policy.order, expected)
    np.testing.assert_array_equal(policy.costs, costs.along(expected))


@pytest.mark.parametrize("options", [
    {"alpha": 0.05, "order": "natural"},
    {"alpha": 0.05, "order": "random", "rule": "stopping"},
    {"alpha": 0.05, "order": "correlation", "rule": "fan"},
    {"alpha": 0.05, "order": "joint", "rule": "stopping"},
    {"alpha": 0.05, "order": [4, 3, 2, 1, 0], "rule": "fan"},
])  # fmt: skip
def test_every_rule_has_the_costs_along_its_order(options):
    rng = np.random.default_rng(0)
    F, costs = general_instance(rng, 300, 5), random_costs(rng, 5, 3)
    policy = qwyc.fit_policy(F, costs=costs, **options)
    np.testing.assert_array_equal(policy.costs, costs.along(policy.order))


@pytest.mark.parametrize("parts", [[], [0.0, 0.0]])
def test_parts_that_cost_nothing_change_nothing(parts):
    """Neither a bit of a threshold, nor a base model in an order."""
    rng = np.random.default_rng(1)
    F, own = general_instance(rng, 2000, 12), rng.choice([1.0, 2.0], 12)
    costs = qwyc.Costs(own, parts, rng.random((12, len(parts))) < 0.5)
    for fit, options in (
        (qwyc.fit_policy, {"alpha": 0.01}),
        (qwyc.fit_policy, {"alpha": 0.01, "order": "correlation", "rule": "stopping"}),
        (qwyc.fit_path, {}),
    ):
        a, b = (fit(F, costs=c, **options) for c in (own, costs))
        for name in ("order", "lower", "upper", "costs"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_a_path_weighs_what_going_on_costs_along_the_order():
    rng = np.random.default_rng(2)
    F, costs = general_instance(rng, 1500, 8), random_costs(rng, 8, 4)
    order = rng.permutation(8)
    shared_path = qwyc.fit_path(F, order=order, costs=costs)
    fixed_path = qwyc.fit_path(F, order=order, costs=costs.along(order))
    np.testing.assert_array_equal(shared_path.lower, fixed_path.lower)
    np.testing.assert_array_equal(shared_path.upper, fixed_path.upper)


def test_the_native_search_refuses_needs_that_are_not_sound():
    values, positive = np.ones((2, 3)), np.ones(3, dtype=np.uint8)

    def search(need_begin, need):
        return _native.fit_thresholds(
            values, 0.0, positive, np.ones(2), np.ones(2), np.array(need_begin, dtype=np.int64),
            np.array(need, dtype=np.int32), np.empty(0, dtype=np.int32), 0, True, True, False, 1,
            lambda done: None,
        )  # fmt: skip

    assert len(search([0, 1, 2], [0, 1])[0]) == 2
    for begin in ([0, 2], [1, 1, 2], [0, 1, 3], [0, 3, 2]):
        with pytest.raises(ValueError, match="need_begin must"):
            search(begin, [0, 1])
    for need in ([0, 2], [-1, 0]):
        with pytest.raises(ValueError, match="need must name parts"):
            search([0, 1, 2], need)


# ---- what it is for ---------------------------------------------------------------------------


def grouped(seed, N=8000, groups=6, size=5):
    """Base models in groups: those of a group need the same dear part."""
    rng = np.random.default_rng(seed)
    T = groups * size
    group = rng.permutation(np.repeat(np.arange(groups), size))
    signal = rng.normal(size=(N, 1))
    weight = np.random.default_rng(99).uniform(0.6, 1.0, T)
    F = weight * (0.4 * signal + rng.normal(size=(N, T)))
    needs = group[:, None] == np.arange(groups)
    return F, qwyc.Costs(np.ones(T), np.full(groups, 12.0), needs)


def cost_by_hand(costs, order, steps):
    """Mean cost of rows, each of which is walked step by step."""
    total = 0.0
    for n in steps:
        paid = set()
        for k in order[:n]:
            total += costs.own[k]
            for part in np.flatnonzero(costs.needs[k]):
                total += 0.0 if part in paid else costs.parts[part]
                paid.add(part)
    return total / len(steps)


@pytest.mark.parametrize("method", ["path", "joint"])
def test_knowing_what_is_shared_costs_less_on_rows_held_out(method):
    """Against fixed costs: each base model's own and all of its parts, as if it ran alone."""
    F, costs = grouped(0)
    fit, held_out = F[:4000], F[4000:]
    alone = costs.own + costs.needs @ costs.parts
    full = held_out.sum(axis=1) >= 0

    def points(given):
        if method == "path":
            path = qwyc.fit_path(fit, costs=given)
            policies = [path[k] for k in range(len(path))]
        else:
            alphas = (0.0, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08)
            policies = [qwyc.fit_policy(fit, alpha=alpha, costs=given) for alpha in alphas]
        done = [(policy, policy.apply(held_out)) for policy in policies]
        share = [np.mean(decisions.label != full) for _, decisions in done]
        true = [cost_by_hand(costs, policy.order, d.steps[:400]) for policy, d in done]
        at = np.argsort(share)
        return policies[-1].order, np.interp(0.02, np.array(share)[at], np.array(true)[at])

    (order, cost), (fixed_order, fixed_cost) = points(costs), points(alone)
    assert not np.array_equal(order, fixed_order)
    assert cost < 0.9 * fixed_cost


def test_the_mean_cost_is_that_of_a_count_by_hand():
    F, costs = grouped(3, N=1500)
    for policy in (
        qwyc.fit_policy(F, alpha=0.01, costs=costs),
        qwyc.fit_path(F, costs=costs)[-3],
        qwyc.fit_policy(F, alpha=0.02, costs=costs, order="correlation", rule="fan"),
    ):
        steps = policy.apply(F).steps
        assert 1 < steps.mean() < F.shape[1]
        by_hand = cost_by_hand(costs, policy.order, steps)
        assert policy.mean_cost(steps) == pytest.approx(by_hand, rel=1e-12)
