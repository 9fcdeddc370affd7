"""Outputs within a tolerance: native sweeps and estimates against the oracle, and what a path must be."""

import numpy as np
import pytest

import oracle
import qwyc
from qwyc.errors import OptionError
from qwyc.policy.estimate_policy import EstimatePolicy
from qwyc.policy.estimates import Estimates
from qwyc.policy.fit import tolerance
from qwyc.policy.fit.problem import Problem
from qwyc.policy.fit.stopping import Settings
from qwyc.target.within import Within
from qwyc_experiments.brute_force import general_instance


def logistic(scores):
    return 1 / (1 + np.exp(-scores))


def sample(seed, N=600, T=8, dtype=np.float64, ties=False):
    F = general_instance(np.random.default_rng(seed), N, T)
    if ties:
        F = np.round(F * 2) / 2
    return qwyc.ScoreMatrix.from_array(F.astype(dtype), base=0.1)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_sweeps_choose_the_same_thresholds_as_the_oracle(seed, ties):
    dtype = np.float32 if seed % 2 else np.float64
    matrix = sample(seed, dtype=dtype, ties=ties, N=3000 if seed == 3 else 600)
    rng = np.random.default_rng(seed)
    order, costs = rng.permutation(8).astype(np.int32), rng.choice([1.0, 2.0], 8)
    within = Within(0.1 if seed else 0.5, logistic if seed else np.array)
    bounds = tolerance.Bounds.of(within, matrix.full)
    settings = Settings(most_bins=16)
    problem = Problem(matrix, 0.0, qwyc.Costs(costs), "both")
    fit = tolerance.tolerance_fit(problem, bounds, order, settings)
    lower, upper, forecasts = np.full(8, -np.inf), np.full(8, np.inf), {}
    table = (bounds.start, bounds.width, bounds.low, bounds.high)
    estimates = None
    for penalty in (2000.0, 200.0, None, 200.0, 60.0):
        if penalty is None:
            estimates = Estimates(*fit.freeze(1))
            lower[:], upper[:] = -np.inf, np.inf
            continue
        found = fit.sweep(penalty, 1 + seed % 2)
        oracle.tolerance_sweep(
            matrix.values.astype(float),
            matrix.base,
            matrix.full,
            table,
            order,
            costs,
            penalty,
            lower,
            upper,
            forecasts,
            settings,
            frozen=estimates is not None,
        )
        np.testing.assert_array_equal(found[0], lower)
        np.testing.assert_array_equal(found[1], upper)
    policy = EstimatePolicy(order, lower, upper, 0.0, costs, estimates, within)
    done = policy.apply(matrix)
    assert found[3] == done.steps.sum()
    off = within.is_off(done.score, matrix.full)
    assert abs(found[2] - off.sum()) <= 3  # the fit looks bounds up in a table


@pytest.mark.parametrize("threads", [1, 2])
def test_estimates_equal_their_definition(threads):
    rng = np.random.default_rng(0)
    slope, begin = rng.normal(size=4), np.array([0, 1, 1, 5, 8])
    knots = np.concatenate([np.sort(rng.normal(size=n)) for n in (1, 4, 3)])
    offsets = rng.normal(size=8)
    estimates = Estimates(slope, begin, knots, offsets)
    steps = rng.choice([1, 3, 4], 5000).astype(np.int32)
    sums = np.where(rng.random(5000) < 0.1, rng.choice(knots, 5000), 2 * rng.normal(size=5000))
    found = estimates.scores(steps, sums, threads=threads)
    for i in range(500):
        if steps[i] == 4:
            assert found[i] == sums[i]  # complete
            continue
        expected = oracle.estimate(slope, begin, knots, offsets, steps[i], sums[i])
        assert found[i] == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_estimates_that_are_not_sound_are_refused():
    sound = {
        "slope": np.ones(2),
        "begin": np.array([0, 2, 2]),
        "knots": np.array([0.0, 1.0]),
        "offsets": np.zeros(2),
    }
    assert Estimates(**sound).known.tolist() == [True, False]
    for name, wrong in (
        ("begin", [0, 1, 3]),
        ("begin", [0, 3, 2]),
        ("knots", [1.0, 0.0]),
        ("knots", [0.0, np.nan]),
        ("offsets", [0.0]),
        ("slope", [np.inf, 0.0]),
    ):
        with pytest.raises(OptionError):
            Estimates(**(sound | {name: np.array(wrong)}))


def test_rows_do_not_quit_where_nothing_is_estimated():
    estimates = Estimates(np.ones(3), np.array([0, 1, 1, 1]), np.zeros(1), np.zeros(1))
    never, order = np.full(3, np.inf), np.arange(3)
    within = Within(0.1, logistic)
    bounds = never.copy()
    bounds[0] = 0.5
    EstimatePolicy(order, -never, bounds, 0.0, np.ones(3), estimates, within)
    bounds[1] = 0.5
    with pytest.raises(OptionError, match="without an estimate"):
        EstimatePolicy(order, -never, bounds, 0.0, np.ones(3), estimates, within)


def test_within_compares_outputs():
    within = Within(0.25, lambda scores: np.clip(scores, 0, 1).astype(np.float32))
    full = np.array([0.0, 0.5, 5.0, 0.5, np.inf])
    estimated = np.array([0.25, 0.76, 1.5, np.nan, np.inf])
    assert within.is_off(estimated, full).tolist() == [False, True, False, True, False]
    for wrong in (0, -1.0, np.inf, np.nan, "x"):
        with pytest.raises(OptionError, match="tolerance"):
            Within(wrong, logistic)


@pytest.mark.parametrize("link", [logistic, np.array, np.exp])
def test_a_path_goes_from_never_to_bold_and_counts_what_its_policies_do(link):
    matrix = sample(1, N=4000, T=20)
    within = Within(0.2, link)
    problem = Problem(matrix, 0.0, qwyc.Costs(np.ones(20)), "both")
    path = tolerance.fit_tolerance_path(problem, within)
    rows = np.arange(0, 4000, 3)
    sums = path.sums(matrix, rows=rows)
    assert sums.steps[0] == 20 * len(rows)
    assert sums.differences[0, 0] == 0
    assert sums.steps[-1] < sums.steps[0] / 2
    assert np.mean(np.diff(sums.steps) <= 0) > 0.9
    for k in (1, len(path) // 2, len(path) - 1):
        done = path[k].apply(matrix)
        off = np.abs(link(done.score) - link(matrix.full)) > 0.2
        assert sums.differences[k, 0] == off[rows].sum()
        assert sums.steps[k] == done.steps[rows].sum()
        complete = done.steps == 20
        np.testing.assert_array_equal(done.score[complete], matrix.full[complete])


def test_the_same_path_on_any_number_of_threads():
    problem = Problem(sample(2, N=5000, T=20), 0.0, qwyc.Costs(np.ones(20)), "both", threads=1)
    many = Problem(problem.matrix, 0.0, problem.costs, "both", threads=3)
    one, other = (tolerance.fit_tolerance_path(p, Within(0.1, logistic)) for p in (problem, many))
    np.testing.assert_array_equal(one.lower, other.lower)
    np.testing.assert_array_equal(one.upper, other.upper)
    np.testing.assert_array_equal(one.estimates.offsets, other.estimates.offsets)
