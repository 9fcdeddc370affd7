"""Optimal stopping: native sweeps against the oracle, the order, and what a path must be."""

import warnings

import numpy as np
import pytest

import oracle
import qwyc
from qwyc import _native
from qwyc.errors import QwycWarning
from qwyc.policy.fit import orders, stopping
from qwyc.policy.fit.problem import Problem
from qwyc_experiments.brute_force import general_instance


def sample(seed, N=400, T=8, threshold=0.2, dtype=np.float64, ties=False):
    rng = np.random.default_rng(seed)
    F = general_instance(rng, N, T)
    if ties:
        F = np.round(F * 2) / 2
    return qwyc.ScoreMatrix.from_array(F.astype(dtype), base=0.1, threshold=threshold)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("quit", ["both", "negative", "positive"])
@pytest.mark.parametrize("seed", range(4))
def test_sweeps_choose_the_same_thresholds_as_the_oracle(seed, quit, ties):
    matrix = sample(seed, ties=ties, dtype=np.float32 if seed % 2 else np.float64)
    rng = np.random.default_rng(seed)
    order, costs = rng.permutation(8).astype(np.int32), rng.choice([1.0, 2.0], 8)
    settings = stopping.Settings(most_bins=5, forecast_share=0.3) if seed == 3 else stopping.DEFAULT
    assert_sweeps_equal(matrix, order, costs, quit, settings, threads=1 + seed % 2)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_so_do_sweeps_over_many_rows_and_steps(seed, ties):
    """Rows sorted on a grid and all bins in use; steps in several segments and groups."""
    matrix = sample(seed, N=5000, T=40, ties=ties, dtype=np.float32 if seed else np.float64)
    rng = np.random.default_rng(seed)
    order, costs = rng.permutation(40).astype(np.int32), rng.choice([1.0, 2.0], 40)
    assert_sweeps_equal(matrix, order, costs, "both", stopping.DEFAULT, threads=2)


def assert_sweeps_equal(matrix, order, costs, quit, settings, threads):
    problem = Problem(matrix, 0.2, qwyc.Costs(costs), quit)
    fit = stopping.stopping_fit(problem, order, settings)
    lower, upper = np.full(len(order), -np.inf), np.full(len(order), np.inf)
    forecasts = {}
    for penalties in ((2000.0, 2000.0), (300.0, 200.0), (60.0, 90.0), (10.0, 10.0)):
        found = fit.sweep(*penalties, threads)
        oracle.sweep(
            matrix.values.astype(float),
            matrix.base,
            matrix.full,
            0.2,
            order,
            costs,
            quit,
            penalties,
            lower,
            upper,
            forecasts,
            settings,
        )
        np.testing.assert_array_equal(found[0], lower)
        np.testing.assert_array_equal(found[1], upper)
        done = qwyc.Policy(order, lower, upper, 0.2, costs).apply(matrix)
        assert found[2:] == (np.sum(done.label != matrix.positive), done.steps.sum())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(4))
def test_the_correlation_order_equals_its_definition(seed, dtype):
    matrix = sample(seed, dtype=dtype)
    costs = np.random.default_rng(seed).choice([1.0, 3.0], 8) if seed % 2 else np.ones(8)
    width, ridge = (0.4, 0.3) if seed < 3 else (1.0, 0.0)
    full = matrix.values.sum(axis=1, dtype=float) + 0.1
    expected = oracle.correlation_order(matrix.values.astype(float), full, 0.2, costs, width, ridge)
    problem = Problem(matrix, 0.2, qwyc.Costs(costs), "both")
    found = orders.correlation(problem, weight_width=width, ridge=ridge)
    np.testing.assert_array_equal(found, expected)


@pytest.fixture(scope="module")
def fitted():
    matrix, new = sample(0, N=6000, T=20), sample(1, N=6000, T=20)
    problem = Problem(matrix, 0.2, qwyc.Costs(np.ones(20)), "both")
    return stopping.fit_path(problem, orders.correlation(problem)), matrix, new


def test_a_path_goes_from_never_to_at_once(fitted):
    path, _, new = fitted
    done = path.sums(new).counts()
    differences, models, cost = done.differences, done.mean_models, done.mean_cost
    some = path.sums(new, rows=np.arange(100, 900))
    part = path.sums(new.take(np.arange(100, 900)))
    np.testing.assert_array_equal(some.differences, part.differences)
    assert differences[0].sum() == 0
    assert models[0] == 20
    assert models[-1] < 3
    np.testing.assert_allclose(cost, models)
    # Nested but for wobbles: cautious members risk less and take longer than bold ones.
    share = differences.sum(axis=1) / 6000
    assert np.all(np.diff(share) > -0.004)
    assert np.all(np.diff(models) < 0.5)
    assert share[stopping.WIDER.index(0.1) + 1] <= share[len(stopping.WIDER) + 1]


def test_it_takes_fewer_base_models_than_algorithm_2_on_new_rows(fitted):
    path, matrix, new = fitted

    def at_one_percent(points):
        share, models = np.array(sorted(points)).T
        return np.interp(0.01, share, models)

    done = path.sums(new).counts()
    ours = at_one_percent(zip(done.differences.sum(axis=1) / 6000, done.mean_models, strict=True))
    points = []
    for alpha in (0.0, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.04):
        decisions = qwyc.fit_policy(matrix, alpha=alpha, order="natural").apply(new)
        points.append((np.mean(decisions.label != new.positive), decisions.steps.mean()))
    assert ours < at_one_percent(points)


def test_threads_change_nothing(fitted):
    path, matrix, _ = fitted
    again = stopping.fit_path(
        Problem(matrix, 0.2, qwyc.Costs(np.ones(20)), "both", threads=1), path.order
    )
    np.testing.assert_array_equal(path.lower, again.lower)
    np.testing.assert_array_equal(path.upper, again.upper)


@pytest.mark.parametrize("quit", ["both", "negative", "positive"])
@pytest.mark.parametrize("order", ["correlation", "natural", "joint"])
def test_fit_policy_keeps_alpha_in_the_sample(order, quit):
    matrix = sample(3, N=2000)
    policy = qwyc.fit_policy(matrix, alpha=0.01, order=order, rule="stopping", quit=quit)
    decisions = policy.apply(matrix)
    assert np.mean(decisions.label != matrix.positive) <= 0.01
    assert decisions.steps.mean() < 8
    if quit != "both":
        assert decisions.complete[decisions.label == (quit == "negative")].all()


def test_few_rows_and_few_base_models_are_no_trouble():
    for N, T in ((1, 1), (1, 5), (30, 3), (41, 2), (100, 1)):
        matrix = sample(0, N=N, T=T)
        policy = qwyc.fit_policy(matrix, alpha=0.1, order="correlation", rule="stopping")
        assert np.mean(policy.apply(matrix).label != matrix.positive) <= 0.1


def test_all_rows_alike():
    F = np.ones((100, 4))
    policy = qwyc.fit_policy(F, alpha=0.0, order="correlation", rule="stopping")
    assert (policy.apply(F).label == 1).all()


def test_wrong_arguments_do_not_reach_the_native_core():
    values = np.zeros((3, 5))
    with pytest.raises(ValueError, match="order"):
        _native.StoppingFit(
            values,
            0.0,
            np.zeros(5),
            0.0,
            np.zeros(3, np.int32),
            np.ones(3),
            True,
            True,
            fewest_rows=70,
            most_bins=96,
            rows_per_bin=10,
            pseudo_rows=50.0,
            trend_rows=20.0,
            forecast_share=0.5,
        )


@pytest.mark.parametrize("shape", [(), (3,)], ids=["two classes", "three classes"])
def test_samples_that_are_too_small_for_any_threshold_are_said(shape):
    rng = np.random.default_rng(5)
    many = rng.normal(size=(70, 8, *shape)) + rng.normal(size=(70, 1, *shape))
    few = many[:69]
    with pytest.warns(QwycWarning, match="needs 70 rows .* the sample has 69: no row will quit"):
        policy = qwyc.fit_policy(few, alpha=0.3, order="natural", rule="stopping")
    assert (policy.apply(few).steps == 8).all()
    with pytest.warns(QwycWarning, match="needs 70 rows"):
        qwyc.fit_path(few)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        qwyc.fit_policy(few, alpha=0.3, order="natural")
        qwyc.fit_path(many)
        policy = qwyc.fit_policy(many, alpha=0.3, order="natural", rule="stopping")
    assert (policy.apply(many).steps < 8).any()
