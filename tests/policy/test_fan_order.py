"""Algorithm 1 with Fan's rule: native against the oracle, and how it is called."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import qwyc
from qwyc import _native


def sample(seed, N=200, T=6):
    rng = np.random.default_rng(seed)
    useful = rng.uniform(0, 1, T)
    values = rng.normal(size=(N, 1)) * useful + 0.5 * rng.normal(size=(N, T))
    return qwyc.ScoreMatrix.from_array(values, base=0.25, threshold=0.4)


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    N, T = draw(st.integers(1, 60)), draw(st.integers(1, 8))
    values = rng.normal(size=(N, 1)) * rng.normal(size=T) + rng.normal(size=(N, T))
    values *= rng.choice([1e-3, 1.0, 1e3])
    if draw(st.booleans()):
        values = np.round(values * 2) / 2  # many ties
    values = values.astype(draw(st.sampled_from([np.float32, np.float64])))
    base, threshold = (float(v) for v in rng.choice([0.0, 0.5, -1.25], 2))
    scores = qwyc.ScoreMatrix.from_array(values, base=base, threshold=threshold)
    costs = rng.choice([0.5, 1.0, 3.0], T)
    parts = np.round(rng.uniform(0, 2, draw(st.integers(0, 3))), 1)
    needs = rng.random((T, len(parts))) < 0.5
    width = float(np.std(scores.full) or 1.0) * draw(st.sampled_from([0.01, 0.1, 1.0, 30.0]))
    return scores, qwyc.Costs(costs, parts, needs), width


@settings(max_examples=300, deadline=None)
@given(
    problems(),
    st.sampled_from([0.0, 0.5, 1.0, 2.0, 5.0]),
    st.sampled_from(["both", "negative", "positive"]),
    st.integers(1, 3),
)
def test_native_equals_the_oracle(problem, gamma, quit, threads):
    scores, costs, width = problem
    policy = qwyc.fit_policy(
        scores,
        order="joint-fan",
        rule="fan",
        gamma=gamma,
        bin_width=width,
        quit=quit,
        costs=costs,
        threads=threads,
    )
    expected = oracle.fan_order(
        scores.values,
        scores.base,
        scores.full,
        scores.threshold,
        gamma,
        width,
        costs.own,
        quit,
        (costs.parts, costs.needs),
    )
    np.testing.assert_array_equal(policy.order, expected)
    np.testing.assert_array_equal(policy.costs, costs.along(expected))


@pytest.mark.parametrize("quit", ["both", "negative", "positive"])
def test_more_rows_than_are_kept_in_place(quit):
    # Half of the rows quit on the way, so that the others are moved; bins have many rows each.
    scores = sample(0, N=3000, T=9)
    policy = qwyc.fit_policy(scores, order="joint-fan", rule="fan", gamma=1.0, quit=quit)
    expected = oracle.fan_order(
        scores.values, 0.25, scores.full, 0.4, 1.0, policy.bin_width, np.ones(9), quit
    )
    np.testing.assert_array_equal(policy.order, expected)
    assert policy.apply(scores).complete.mean() < (0.5 if quit == "both" else 0.9)


def test_any_number_of_threads_finds_the_same_order():
    scores = sample(1, N=2000, T=12)
    orders = {
        tuple(
            qwyc.fit_policy(
                scores, order="joint-fan", rule="fan", gamma=1.0, threads=threads
            ).order.tolist()
        )
        for threads in (1, 2, 5, None)
    }
    assert len(orders) == 1


def test_bins_are_fitted_to_all_rows_along_the_order():
    scores = sample(2)
    found = qwyc.fit_policy(scores, order="joint-fan", rule="fan", gamma=1.0)
    again = qwyc.fit_policy(scores, order=found.order, rule="fan", gamma=1.0)
    assert not np.array_equal(found.order, np.arange(6))
    for name in ("bin_begin", "bin", "mean", "deviation", "bin_width", "gamma", "threshold"):
        np.testing.assert_array_equal(getattr(found, name), getattr(again, name))


def test_a_path_has_an_order_for_each_gamma():
    scores = sample(6, N=1000, T=10)
    gammas = [0.3, 1.0, 3.0]
    path = qwyc.fit_fan_path(scores, iter(gammas), order="joint-fan", bin_width=0.1)
    for policy, gamma in zip(path, gammas, strict=True):
        alone = qwyc.fit_policy(scores, order="joint-fan", rule="fan", gamma=gamma, bin_width=0.1)
        assert policy.gamma == gamma
        np.testing.assert_array_equal(policy.order, alone.order)
        np.testing.assert_array_equal(policy.lower, alone.lower)
    assert len({tuple(policy.order.tolist()) for policy in path}) > 1


@pytest.mark.parametrize("rule", ["threshold", "stopping"])
def test_other_rules_take_the_order_too(rule):
    scores = sample(3, N=1000)
    order = qwyc.fit_policy(scores, order="joint-fan", rule="fan", gamma=1.0, bin_width=0.2).order
    found = qwyc.fit_policy(
        scores, alpha=0.02, order="joint-fan", rule=rule, gamma=1.0, bin_width=0.2
    )
    fixed = qwyc.fit_policy(scores, alpha=0.02, order=order, rule=rule)
    assert isinstance(found, qwyc.Policy)
    for name in ("order", "lower", "upper"):
        np.testing.assert_array_equal(getattr(found, name), getattr(fixed, name))


def test_where_no_row_quits_the_order_stays_as_it_is():
    scores = sample(4)
    for gamma in (1e6, np.inf):
        policy = qwyc.fit_policy(
            scores, order="joint-fan", rule="fan", gamma=gamma, bin_width=100.0
        )
        assert policy.order.tolist() == list(range(6))


def test_progress_reports_every_step_and_can_stop_the_search():
    seen = []
    scores = sample(5, T=4)
    options = {"order": "joint-fan", "rule": "fan", "gamma": 1.0}
    qwyc.fit_policy(scores, **options, progress=lambda *report: seen.append(report))
    assert {what for what, _, _ in seen} == {"Searching an order for gamma 1"}
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)
    assert seen[0][1:] == (0, 4)
    assert seen[-1][1:] == (4, 4)

    def stop(what, done, total):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        qwyc.fit_policy(scores, **options, progress=stop)
    seen.clear()
    qwyc.fit_fan_path(
        scores, [1, 2], order="joint-fan", progress=lambda *report: seen.append(report)
    )
    assert {what for what, _, _ in seen} == {f"Searching an order for gamma {g}" for g in (1, 2)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"full": np.zeros(3)}, "full must have one entry per row"),
        ({"costs": np.ones(3)}, "costs one per base model"),
        ({"gamma": np.inf}, "gamma must be a number of at least 0"),
        ({"bin_width": 0.0}, "bin_width be positive"),
        ({"bin_width": 1e-7}, "bin_width is too small"),
        ({"bin_width": 1e-300}, "bin_width is too small"),
        ({"need_begin": np.zeros(2, dtype=np.int64)}, "need_begin"),
        ({"values": np.empty((0, 4))}, "must be a base model and a row"),
    ],
)
def test_the_native_search_refuses_what_is_not_sound(changes, message):
    arguments = {
        "values": np.arange(8.0).reshape(2, 4),
        "base": 0.0,
        "full": np.arange(4.0),
        "costs": np.ones(2),
        "parts": np.empty(0),
        "need_begin": np.zeros(3, dtype=np.int64),
        "need": np.empty(0, dtype=np.int32),
        "threshold": 0.0,
        "gamma": 1.0,
        "bin_width": 1.0,
        "quit_negative": True,
        "quit_positive": True,
        "threads": 1,
        "progress": lambda done: None,
    }
    assert sorted(_native.fan_order(**arguments)) == [0, 1]
    with pytest.raises(ValueError, match=message):
        _native.fan_order(**(arguments | changes))
