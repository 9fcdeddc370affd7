"""Optimal stopping on leads: native sweeps against the oracle, and what a path must be."""

import numpy as np
import pytest

import oracle
import qwyc
from qwyc import _native
from qwyc.policy.fit import lead_stopping, stopping
from qwyc.policy.fit.lead_problem import LeadProblem
from qwyc.policy.lead_path import LeadPath
from qwyc.policy.scores import ScoreMatrix
from qwyc.runtime import memory


def sample(seed, N=600, T=8, K=4, dtype=np.float64, ties=False):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(N, T, K)) + 0.8 * rng.normal(size=(N, 1, K))
    if ties:
        F = np.round(F * 2) / 2
    return ScoreMatrix.from_array(F.astype(dtype), base=np.arange(K) / 8)


def problem_for(matrix, costs=None, threads=None):
    return LeadProblem.of(matrix, costs, threads)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_sweeps_choose_the_same_thresholds_as_the_oracle(seed, by_class, ties):
    K = (3, 4, 2, 6)[seed]
    matrix = sample(seed, K=K, ties=ties, dtype=np.float32 if seed % 2 else np.float64)
    weights = np.linspace(0.5, 2, K) if by_class else None
    settings = stopping.Settings(most_bins=5, forecast_share=0.3) if seed == 3 else stopping.DEFAULT
    assert_sweeps_equal(matrix, seed, weights, settings, threads=1 + seed % 2)


def test_so_do_sweeps_over_many_rows_and_steps():
    """All bins in use, and steps that are prepared in several parts."""
    matrix = sample(5, N=5000, T=21, K=5)
    assert_sweeps_equal(matrix, 5, None, stopping.DEFAULT, threads=3)
    assert_sweeps_equal(matrix, 6, [1, 1, 1, 4, 1], stopping.DEFAULT, threads=2)


def assert_sweeps_equal(matrix, seed, weights, settings, threads):
    rng = np.random.default_rng(seed)
    _, T, K = matrix.values.shape
    order, costs = rng.permutation(T).astype(np.int32), rng.choice([1.0, 2.0], T)
    problem = problem_for(matrix, costs)
    fit, pool = lead_stopping.lead_fit(problem, order, weights, settings)
    expected, forecasts = np.full((T, pool.max() + 1), np.inf), {}
    quitting = 0
    for penalty in (2000.0, 300.0, 60.0, 10.0):
        found, differing, steps = fit.sweep(penalty, threads)
        oracle.leads.lead_sweep(
            matrix.values.astype(float),
            matrix.base,
            matrix.full,
            order,
            costs,
            pool,
            np.ones(K) if weights is None else np.asarray(weights, float),
            penalty,
            expected,
            forecasts,
            settings,
        )
        np.testing.assert_array_equal(found, expected)
        done = qwyc.LeadPolicy(order, found[:, pool], costs).apply(matrix)
        assert differing == np.sum(done.label != matrix.target.decide(matrix.full))
        assert steps == done.steps.sum()
        quitting += np.isfinite(found).sum()
    assert quitting > T  # thresholds were compared


@pytest.fixture(scope="module")
def fitted():
    matrix, new = sample(0, N=6000, T=20), sample(1, N=6000, T=20)
    problem = problem_for(matrix)
    path = lead_stopping.fit_lead_path(problem, np.arange(20, dtype=np.int32))
    return path, matrix, new


def test_a_path_goes_from_never_to_early(fitted):
    path, _, new = fitted
    done = path.sums(new).counts()
    share = done.differences.sum(axis=1) / 6000
    assert share[0] == 0
    assert done.mean_models[0] == 20
    assert done.mean_models[-1] < 8
    np.testing.assert_allclose(done.mean_cost, done.mean_models)
    # Nested but for wobbles: cautious members risk less and take longer than bold ones.
    assert np.all(np.diff(share) > -0.006)
    assert np.all(np.diff(done.mean_models) < 0.6)
    rows = np.arange(100, 900)
    part = path.sums(new.take(rows))
    np.testing.assert_array_equal(path.sums(new, rows=rows).differences, part.differences)
    assert path.index_of(path[3]) == 3
    assert path.target.n_classes == 4
    with pytest.raises(qwyc.OptionError, match="not on this path"):
        path.index_of(qwyc.LeadPolicy(path.order, np.full((20, 4), 0.123), path.costs))


def test_it_takes_fewer_base_models_than_algorithm_2_on_new_rows(fitted):
    path, matrix, new = fitted
    winner = new.target.decide(new.full)

    def at_two_percent(points):
        share, models = np.array(sorted(points)).T
        return np.interp(0.02, share, models)

    done = path.sums(new).counts()
    ours = at_two_percent(zip(done.differences.sum(axis=1) / 6000, done.mean_models, strict=True))
    points = []
    for alpha in (0.0, 0.0025, 0.005, 0.01, 0.02, 0.04):
        decisions = qwyc.fit_policy(matrix, alpha=alpha, order="natural").apply(new)
        points.append((np.mean(decisions.label != winner), decisions.steps.mean()))
    assert ours < at_two_percent(points)


def test_threads_change_nothing(fitted):
    path, matrix, _ = fitted
    again = lead_stopping.fit_lead_path(problem_for(matrix, threads=1), path.order)
    np.testing.assert_array_equal(path.lead, again.lead)


def test_equal_weights_share_thresholds_and_others_do_not(fitted):
    path, matrix, _ = fitted
    problem = problem_for(matrix.take(np.arange(1500)))
    order = path.order
    shared = lead_stopping.fit_lead_path(problem, order)
    equal = lead_stopping.fit_lead_path(problem, order, weights=[2, 2, 2, 2])
    assert (shared.lead == shared.lead[:, :, :1]).all()
    assert (equal.lead == equal.lead[:, :, :1]).all()
    own = lead_stopping.fit_lead_path(problem, order, weights=[1, 1, 1, 5])
    assert not (own.lead == own.lead[:, :, :1]).all()
    for wrong in ([1, 1], [1, 1, 1, 0], [1, 1, 1, np.nan]):
        with pytest.raises(qwyc.OptionError, match="one per class"):
            lead_stopping.fit_lead_path(problem, order, weights=wrong)


def test_a_heavier_class_loses_fewer_rows():
    matrix, new = sample(0, N=8000, T=12), sample(1, N=8000, T=12)
    order = np.arange(12, dtype=np.int32)

    def lost(weights):
        path = lead_stopping.fit_lead_path(problem_for(matrix), order, weights=weights)
        counts = path.sums(new).counts()
        share = counts.differences.sum(axis=1) / 8000
        k = int(np.argmin(np.abs(share - 0.03)))
        return counts.differences[k, 0] / counts.differences[k].sum()

    assert lost([8.0, 1.0, 1.0, 1.0]) < 0.7 * lost(None)


def test_few_rows_and_few_base_models_are_no_trouble():
    for N, T, K in ((1, 1, 2), (1, 5, 3), (30, 3, 2), (100, 2, 30), (100, 1, 4)):
        matrix = sample(0, N=N, T=T, K=K)
        for order in ("natural", "correlation", "joint", "auto"):
            policy = qwyc.fit_policy(matrix, alpha=0.1, order=order, rule="stopping")
            winner = matrix.target.decide(matrix.full)
            assert np.mean(policy.apply(matrix).label != winner) <= 0.1


def test_a_fit_that_needs_too_much_memory_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "memory_available", lambda: 100_000)
    with pytest.raises(qwyc.CapacityError, match="20 base models on 1,000 rows"):
        qwyc.fit_path(sample(0, N=1000, T=20))
    assert len(qwyc.fit_path(sample(0, N=100, T=20))) > 1


def test_all_rows_alike():
    for value in (0.0, 1.0):
        F = np.zeros((200, 4, 3))
        F[:, :, 2] = value
        path = qwyc.fit_path(F)
        assert isinstance(path, LeadPath)
        for k in range(len(path)):
            assert (path[k].apply(F).label == (2 if value else 0)).all()


def test_wrong_arguments_do_not_reach_the_native_core():
    values, smoothing = np.zeros((3, 5, 4)), stopping.DEFAULT

    def make(**changes):
        arguments = {
            "values": values,
            "base": np.zeros(4),
            "full": np.zeros((5, 4)),
            "order": np.arange(3, dtype=np.int32),
            "costs": np.ones(3),
            "pool": np.zeros(4, np.int32),
            "weight": np.ones(4),
            "threads": 1,
        }
        names = ("fewest_rows", "most_bins", "rows_per_bin", "pseudo_rows", "trend_rows")
        settings = {name: getattr(smoothing, name) for name in (*names, "forecast_share")}
        return _native.LeadFit(**(arguments | changes), **settings)

    assert make().sweep(1.0, 1)[1:] == (0, 15)
    for changes in (
        {"order": np.zeros(3, np.int32)},
        {"base": np.zeros(3)},
        {"full": np.zeros((5, 3))},
        {"costs": np.ones(2)},
        {"pool": np.full(4, -1, np.int32)},
        {"pool": np.full(4, 4, np.int32)},
        {"weight": np.ones(1)},
    ):
        with pytest.raises(ValueError, match="must"):
            make(**changes)
