"""Algorithms 1 and 2: native against the oracle, the paper's example, and what must always hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import qwyc
from qwyc.runtime.arguments import allowed_disagreements


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    N, T = draw(st.integers(1, 50)), draw(st.integers(1, 8))
    values = rng.normal(size=(N, T)) * rng.choice([1e-3, 1.0, 1e3])
    if draw(st.booleans()):
        values = np.round(values * 2) / 2  # many ties
    values = values.astype(draw(st.sampled_from([np.float32, np.float64])))
    base, threshold = (float(v) for v in rng.choice([0.0, 0.5, -1.25], 2))
    costs = rng.choice([0.5, 1.0, 3.0], T) if draw(st.booleans()) else np.ones(T)
    scores = qwyc.ScoreMatrix.from_array(values, base=base, threshold=threshold)
    alpha = draw(st.sampled_from([0.0, 0.02, 0.1, 0.3, 0.9]))
    return scores, alpha, draw(st.sampled_from(["both", "negative", "positive"])), costs


@settings(max_examples=300, deadline=None)
@given(problems())
def test_native_equals_the_oracle_to_the_last_bit(problem):
    scores, alpha, quit, costs = problem
    budget = allowed_disagreements(alpha, len(scores.full))
    joint = qwyc.fit_policy(scores, alpha=alpha, quit=quit, costs=costs)
    order, lower, upper = oracle.optimize_order(
        scores.values, scores.base, scores.positive, costs, budget, quit
    )
    np.testing.assert_array_equal(joint.order, order)
    np.testing.assert_array_equal(joint.lower, lower)
    np.testing.assert_array_equal(joint.upper, upper)

    fixed = np.random.default_rng(0).permutation(len(costs))
    given_order = qwyc.fit_policy(scores, alpha=alpha, quit=quit, costs=costs, order=fixed)
    lower, upper = oracle.thresholds_along(
        scores.values, scores.base, scores.positive, fixed, budget, quit
    )
    np.testing.assert_array_equal(given_order.order, fixed)
    np.testing.assert_array_equal(given_order.lower, lower)
    np.testing.assert_array_equal(given_order.upper, upper)

    decisions = joint.apply(scores)
    positive, steps, score = oracle.apply_policy(
        scores.values,
        scores.base,
        scores.full,
        joint.order,
        joint.lower,
        joint.upper,
        joint.threshold,
    )
    np.testing.assert_array_equal(decisions.label, positive)
    np.testing.assert_array_equal(decisions.steps, steps)
    np.testing.assert_array_equal(decisions.score, score)


@settings(max_examples=200, deadline=None)
@given(problems(), st.sampled_from(["joint", "natural", "random"]))
def test_what_always_holds(problem, order):
    scores, alpha, quit, costs = problem
    policy = qwyc.fit_policy(scores, alpha=alpha, quit=quit, costs=costs, order=order)
    decisions = policy.apply(scores)
    T = policy.n_models
    assert np.mean(decisions.label != scores.positive) <= alpha
    assert (policy.lower <= policy.upper).all()
    assert policy.lower[-1] == -np.inf
    assert policy.upper[-1] == np.inf
    assert ((decisions.steps >= 1) & (decisions.steps <= T)).all()
    np.testing.assert_array_equal(decisions.complete, decisions.steps == T)
    complete = decisions.complete
    np.testing.assert_array_equal(decisions.score[complete], scores.full[complete])
    np.testing.assert_array_equal(decisions.label[complete], scores.positive[complete])
    if quit == "negative":  # a filter: whatever is accepted has its full score
        assert decisions.complete[decisions.label == 1].all()
    if quit == "positive":
        assert decisions.complete[decisions.label == 0].all()
    # No threshold lies on a sum that was compared with it.
    added = scores.values[:, policy.order].astype(float)
    added[:, 0] += scores.base
    sums = np.cumsum(added, axis=1)
    for r in range(T):
        compared = sums[decisions.steps > r, r]
        assert policy.lower[r] not in compared
        assert policy.upper[r] not in compared


@settings(max_examples=60, deadline=None)
@given(problems(), st.randoms(use_true_random=False))
def test_rows_in_another_order_change_nothing(problem, random):
    scores, alpha, quit, costs = problem
    rows = list(range(len(scores.full)))
    random.shuffle(rows)
    shuffled = qwyc.ScoreMatrix(
        np.asfortranarray(scores.values[rows]), scores.base, scores.threshold, scores.full[rows]
    )
    a = qwyc.fit_policy(scores, alpha=alpha, quit=quit, costs=costs)
    b = qwyc.fit_policy(shuffled, alpha=alpha, quit=quit, costs=costs)
    np.testing.assert_array_equal(a.order, b.order)
    np.testing.assert_array_equal(a.lower, b.lower)
    np.testing.assert_array_equal(a.upper, b.upper)


@settings(max_examples=60, deadline=None)
@given(problems())
def test_costs_scale_out_and_threads_change_nothing(problem):
    scores, alpha, quit, costs = problem
    a = qwyc.fit_policy(scores, alpha=alpha, quit=quit, costs=costs, threads=1)
    b = qwyc.fit_policy(scores, alpha=alpha, quit=quit, costs=costs * 8, threads=3)
    np.testing.assert_array_equal(a.order, b.order)
    np.testing.assert_array_equal(a.lower, b.lower)


def appendix_example():
    F = np.zeros((8, 3))
    F[[0, 1], 0] = 1, -1
    F[[2, 3, 4], 1] = 1, 1, -1
    F[[4, 5, 6, 7], 2] = -1, 1, -1, -1
    return F


def test_the_papers_appendix_example():
    F = appendix_example()
    policy = qwyc.fit_policy(F, alpha=0.0)
    decisions = policy.apply(F)
    assert policy.order[0] == 2  # f_3 first
    np.testing.assert_array_equal(decisions.label, F.sum(axis=1) >= 0)
    assert policy.mean_cost(decisions.steps) == 12 / 8  # better than the text's 7/4: decision 4


def test_costs_decide_between_equals():
    F = np.array([[1.0, 1.0], [-1.0, -1.0]])
    assert qwyc.fit_policy(F, alpha=0).order.tolist() == [0, 1]
    assert qwyc.fit_policy(F, alpha=0, costs=[2, 1]).order.tolist() == [1, 0]


def test_orders():
    F = np.random.default_rng(0).normal(size=(40, 6))
    assert qwyc.fit_policy(F, alpha=0.1, order="natural").order.tolist() == list(range(6))
    random = [
        qwyc.fit_policy(F, alpha=0.1, order="random", seed=s).order.tolist() for s in (1, 1, 2)
    ]
    assert random[0] == random[1] != random[2]
    assert qwyc.fit_policy(F, alpha=0.1, order=[5, 4, 3, 2, 1, 0]).order.tolist() == [
        5,
        4,
        3,
        2,
        1,
        0,
    ]


@pytest.mark.parametrize(("alpha", "n", "allowed"), [(0.29, 100, 29), (0.0, 7, 0), (0.005, 200, 1)])
def test_allowed_disagreements_is_exact(alpha, n, allowed):
    assert allowed_disagreements(alpha, n) == allowed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": -0.1}, "alpha is a share"),
        ({"alpha": 1.0}, "alpha is a share"),
        ({"alpha": float("nan")}, "alpha is a share"),
        ({"alpha": "0.1"}, "alpha must be a number"),
        ({"alpha": 0.1, "order": "best"}, "order must be one of 'joint'"),
        ({"alpha": 0.1, "order": [0, 0, 1]}, "permutation of 0 to 2"),
        ({"alpha": 0.1, "order": [0, 1]}, "permutation of 0 to 2"),
        ({"alpha": 0.1, "rule": "guess"}, "rule must be one of"),
        ({"alpha": 0.1, "budget": "all"}, "budget must be one of"),
        ({"alpha": 0.1, "costs": "size"}, "ensemble.costs"),
        ({}, "alpha is needed"),
        ({"alpha": 0.1, "quit": "maybe"}, "quit must be one of 'both'"),
        ({"alpha": 0.1, "threshold": float("inf")}, "threshold must be a finite number"),
        ({"alpha": 0.1, "costs": [1, 2]}, "3 numbers, one per base model"),
        ({"alpha": 0.1, "costs": [1, 2, 0]}, "positive"),
        ({"alpha": 0.1, "threads": 0}, "threads must be"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(qwyc.OptionError, match=message):
        qwyc.fit_policy(np.ones((4, 3)), **options)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.ones(3), "table of N rows by T base models"),
        (np.ones((3, 0)), "T at least 1"),
        (np.ones((0, 3)), "no rows"),
        (np.array([["a"]]), "numbers"),
        (np.array([[1.0, np.nan]]), "row 0, base model 1 is nan"),
        (np.array([[1.0], [np.inf]]), "row 1, base model 0 is inf"),
    ],
)
def test_wrong_scores(scores, message):
    with pytest.raises(qwyc.InputError, match=message):
        qwyc.fit_policy(scores, alpha=0.1)


def test_progress_reports_every_step_and_can_stop_the_fit():
    F = np.random.default_rng(0).normal(size=(200, 5))
    seen = []
    qwyc.fit_policy(F, alpha=0.0, progress=lambda what, done, total: seen.append((done, total)))
    assert seen[-1] == (5, 5)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)

    def stop(what, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        qwyc.fit_policy(F, alpha=0.0, progress=stop)


def test_a_bar_is_shown_when_asked_for(capsys):
    qwyc.fit_policy(np.random.default_rng(0).normal(size=(50, 3)), alpha=0.1, progress=True)
    assert "Fitting order and thresholds" in capsys.readouterr().err


def test_a_policy_is_checked_and_frozen():
    policy = qwyc.fit_policy(np.ones((4, 3)), alpha=0.1)
    with pytest.raises(ValueError, match="read-only"):
        policy.order[0] = 1
    with pytest.raises(qwyc.OptionError, match="exceed"):
        qwyc.Policy([0, 1], [1.0, 0.0], [0.0, 0.0], 0.0, [1, 1])
    with pytest.raises(qwyc.InputError, match="2 base models; the policy has 3"):
        policy.apply(np.ones((4, 2)))
