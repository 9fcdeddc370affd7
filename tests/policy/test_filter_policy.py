"""Filters for one of K classes: natively as by the oracle, how they are fitted, and what they refuse."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import oracle
import qwyc
from qwyc.errors import InputError, OptionError
from qwyc.policy.costs import Costs
from qwyc.policy.filter_policy import best_others
from qwyc.policy.fit import stopping
from qwyc.policy.fit.filters import USUAL_MODELS, along, fit_filter_path
from qwyc.policy.fit.lead_problem import LeadProblem
from qwyc.policy.fit.problem import Problem
from qwyc.policy.rule import GO_ON
from qwyc.policy.scores import ScoreMatrix
from qwyc.target.many_classes import ManyClasses
from qwyc.target.ties import Ties


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
    gap = np.round(rng.uniform(-3, 8, T) * 4) / 4  # on the grid of tied scores
    gap[rng.random(T) < never] = np.inf
    return qwyc.FilterPolicy(rng.permutation(T), gap, np.ones(T), int(rng.integers(K)), K)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("N", "T", "K"), [(1, 1, 2), (200, 7, 2), (700, 9, 3), (90, 5, 40), (20, 3, 900)]
)
def test_rows_are_decided_as_by_the_oracle(N, T, K, dtype, ties):
    for seed in range(4):
        matrix = sample(seed, N, T, K, dtype, ties)
        policy = policy_for(matrix, seed)
        values = matrix.values.astype(float)
        label, steps, score = oracle.filters.apply_filter(
            values, matrix.base, matrix.full, policy.order, policy.gap, policy.only
        )
        for threads in (1, 3):
            found = policy.apply(matrix, threads=threads)
            np.testing.assert_array_equal(found.label, label)
            np.testing.assert_array_equal(found.steps, steps)
            np.testing.assert_array_equal(found.score, score)
            np.testing.assert_array_equal(found.complete, steps == T)


def test_outcomes_are_those_of_one_step():
    policy = qwyc.FilterPolicy([0, 1], [0.5, np.inf], np.ones(2), 1, 3)
    sums = np.array([[1.0, 0.0, 1.0], [0.2, 0.0, 0.4], [0.0, 3.0, 1.0], [0.0, 0.0, 0.6]])
    assert policy.outcomes(0, sums).tolist() == [0, GO_ON, GO_ON, 2]
    assert policy.outcomes(1, sums).tolist() == [GO_ON] * 4
    with pytest.raises(InputError, match="rows by 3 classes"):
        policy.outcomes(0, sums[:, :2])
    other, ahead = best_others(np.array([[5.0, -np.inf]]), 0)
    assert other.tolist() == [1]
    assert ahead.tolist() == [-np.inf]


def test_of_two_classes_it_is_a_policy_that_quits_negative():
    matrix = sample(3, N=400, K=2, ties=True)  # differences are exact
    difference = ScoreMatrix.from_array(
        matrix.values[:, :, 1] - matrix.values[:, :, 0], base=matrix.base[1] - matrix.base[0]
    )
    policy = replace(policy_for(matrix, 1), only=1)
    tiny = np.finfo(float).tiny
    same = qwyc.Policy(policy.order, -policy.gap, np.full(7, np.inf), tiny, np.ones(7))
    found, expected = policy.apply(matrix), same.apply(difference)
    np.testing.assert_array_equal(found.label, expected.label)
    np.testing.assert_array_equal(found.steps, expected.steps)


def test_complete_rows_follow_the_rule_for_ties():
    matrix = replace(sample(1, K=3), ties=Ties("softmax", "float32"))
    matrix.full[:] = np.where(np.arange(3) == 2, 30.0 + 1e-7, 30.0)  # equal as probabilities
    never = qwyc.FilterPolicy(np.arange(7), np.full(7, np.inf), np.ones(7), 2, 3, matrix.ties)
    assert never.quit == "never"
    assert set(never.apply(matrix).label) == {0}
    assert set(never.target.decide(matrix.full)) == {0}


def test_it_goes_through_pickle_and_cannot_be_changed():
    policy = policy_for(sample(0), 0)
    again = pickle.loads(pickle.dumps(policy))
    np.testing.assert_array_equal(again.gap, policy.gap)
    assert (again.only, again.n_classes) == (policy.only, policy.n_classes)
    with pytest.raises(ValueError, match="read-only"):
        again.gap[0] = 1
    assert "others leave early" in repr(policy)
    assert "no row leaves early" in repr(policy.without_quitting())


def test_what_is_wrong_is_refused():
    good = policy_for(sample(0), 0)
    for change, match in (
        ({"gap": np.ones(3)}, "one entry per base model"),
        ({"gap": np.full(7, np.nan)}, "gap must be numbers"),
        ({"gap": np.full(7, -np.inf)}, "gap must be numbers"),
        ({"gap": ["x"] * 7}, "must be numbers"),
        ({"order": np.zeros(7, int)}, "every base model exactly once"),
        ({"costs": np.zeros(7)}, "costs must be positive"),
        ({"only": 4}, "only is class 4; there are 4 classes"),
        ({"only": -1}, "only"),
        ({"n_classes": 1}, "n_classes"),
    ):
        with pytest.raises(OptionError, match=match):
            replace(good, **change)
    with pytest.raises(OptionError, match="only is class 3; there are 3"):
        ManyClasses(3, only=3)


# ---- fitting ----------------------------------------------------------------------------------


def test_steps_add_up_to_the_distance_from_the_best_other_class():
    matrix = sample(2, ties=True)
    problem = LeadProblem.of(matrix, None, 1)
    order = np.random.default_rng(0).permutation(7).astype(np.int32)
    for only in range(4):
        made = along(problem, only, order)
        sums = oracle.leads.running_sums(matrix.values, matrix.base, order)  # (N, T, K)
        others = np.delete(sums, only, axis=2).max(axis=2)
        steps = made.matrix.base + np.cumsum(made.matrix.values, axis=1)
        np.testing.assert_array_equal(steps, sums[:, :, only] - others)
        decided = made.target.decide(made.matrix.full) == 1
        np.testing.assert_array_equal(decided, matrix.full.argmax(axis=1) == only)


def lost(policy, matrix):
    done = policy.apply(matrix)
    return np.mean((matrix.full.argmax(axis=1) == policy.only) & (done.label != policy.only)), done


@pytest.mark.parametrize("order", ["auto", "natural", "correlation", "random", [3, 1, 2, 0]])
@pytest.mark.parametrize("rule", ["stopping", "threshold"])
def test_fitted_filters_lose_no_more_than_alpha(rule, order):
    fit = sample(1, 3000, 4, 3)
    policy = qwyc.fit_policy(fit, alpha=0.01, order=order, rule=rule, only=1, progress=False)
    share, done = lost(policy, fit)
    assert share <= 0.01
    assert done.steps.mean() < 3.6
    assert not ((done.label == 1) & (fit.full.argmax(axis=1) != 1)).any()
    if isinstance(order, list):
        assert policy.order.tolist() == order


def test_a_path_goes_from_never_to_bold():
    fit = sample(1, 3000, 8, 3)
    path = qwyc.fit_path(fit, only=2, progress=False)
    assert isinstance(path, qwyc.FilterPath)
    assert path[0].quit == "never"
    assert path[-1].quit == "negative"
    assert path.index_of(path[3]) == 3
    sums = path.sums(fit).counts()
    assert sums.differences[:, :2].sum() == 0
    for k in (1, len(path) // 2, len(path) - 1):
        share, done = lost(path[k], fit)
        assert sums.differences[k, 2] == round(share * 3000)
        assert sums.mean_models[k] == pytest.approx(done.steps.mean())
    with pytest.raises(OptionError, match="not on this path"):
        path.index_of(replace(path[3], only=1))


def test_of_two_classes_the_path_is_that_of_two_classes():
    """On the difference of scores that are exact, quitting negative."""
    fit = sample(4, 2000, 6, 2, ties=True)
    path = qwyc.fit_path(fit, order="natural", only=1, progress=False)
    difference = ScoreMatrix.from_array(
        fit.values[:, :, 1] - fit.values[:, :, 0], base=fit.base[1] - fit.base[0]
    )
    tiny = np.finfo(float).tiny
    made = Problem.of(difference, tiny, None, "negative", 1)
    two = stopping.fit_path(made, path.order, weights=(6 / USUAL_MODELS,) * 2)
    np.testing.assert_array_equal(path.gap[:, :-1], -two.lower[:, :-1])
    np.testing.assert_array_equal(path.penalty, two.penalty * (6 / USUAL_MODELS))


def test_the_cheaper_order_is_taken():
    """The first base models say nothing."""
    matrix = sample(5, 3000, 12, 3)
    values = np.array(matrix.values)
    values[:, :6] *= 0.01
    path = qwyc.fit_path(values, only=0, progress=False)
    assert set(path.order[:6].tolist()) == set(range(6, 12))


def test_late_steps_are_left_out_where_rows_are_evaluated_anew():
    """A row that completes costs all base models once more: the cheapest cut, by trying all."""
    fit = sample(7, 2000, 10, 3)
    problem = LeadProblem.of(fit, None, 1)
    options = {"order": "natural", "seed": 0, "progress": False}
    whole = fit_filter_path(problem, 1, **options)
    cut = fit_filter_path(problem, 1, anew=True, **options)
    assert cut[0].quit == "never"
    shorter = 0
    for k in range(1, len(whole)):
        steps = whole[k].apply(fit).steps
        costs = [np.where(steps <= q, steps, q + 10).mean() for q in range(1, 10)]
        q = int(np.argmin(costs)) + 1
        np.testing.assert_array_equal(cut.gap[k, :q], whole.gap[k, :q])
        assert np.isinf(cut.gap[k, q:]).all()
        shorter += np.isfinite(whole.gap[k, q:]).any()
    assert shorter > 0


def test_costs_count_along_the_order():
    fit = sample(6, 3000, 6, 3)
    shared = Costs(np.ones(6), np.array([5.0]), np.array([[1], [1], [0], [0], [0], [0]], bool))
    path = qwyc.fit_path(fit, only=0, costs=shared, order=[0, 1, 2, 3, 4, 5], progress=False)
    assert path.costs.tolist() == [6, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"only": 3}, "only is class 3; scores have 3 classes"),
        ({"only": True}, "only"),
        ({"only": 1, "order": "joint"}, "order must be"),
        ({"only": 1, "order": "auto", "rule": "fan"}, "rule must be"),
        ({"only": 1, "order": "auto", "quit": "negative"}, "quit must be"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, match):
    with pytest.raises(OptionError, match=match):
        qwyc.fit_policy(sample(0, K=3), alpha=0.1, progress=False, **options)


def test_scores_of_two_classes_have_another_filter():
    for call in (qwyc.fit_path, lambda scores, **more: qwyc.fit_policy(scores, alpha=0.1, **more)):
        with pytest.raises(OptionError, match='quit="negative" is such a filter'):
            call(np.random.default_rng(0).normal(size=(200, 5)), only=1)
