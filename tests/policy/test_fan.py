"""Fan's rule: the native hash table against the oracle, and how gamma and alpha go together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import qwyc


def sample(seed, N=400, T=6, dtype=np.float64):
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(N, 1))
    values = (shared + rng.normal(size=(N, T))).astype(dtype)
    return qwyc.ScoreMatrix.from_array(values, base=0.25, threshold=0.4)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    gamma=st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    bin_width=st.sampled_from([0.01, 0.1, 1.0]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_native_equals_the_oracle(seed, gamma, bin_width, dtype):
    matrix, new = sample(seed, dtype=dtype), sample(seed + 1, N=150, dtype=dtype)
    policy = qwyc.fit_policy(
        matrix, rule="fan", order="random", seed=seed, gamma=gamma, bin_width=bin_width
    )
    decisions = policy.apply(new)
    positive, steps = oracle.fit_and_apply_fan(
        matrix.values,
        matrix.base,
        matrix.full,
        new.values,
        new.full,
        policy.order,
        0.4,
        gamma,
        bin_width,
    )
    np.testing.assert_array_equal(decisions.steps, steps)
    np.testing.assert_array_equal(decisions.label, positive)
    np.testing.assert_array_equal(decisions.complete, steps == 6)
    np.testing.assert_array_equal(decisions.score[decisions.complete], new.full[decisions.complete])


def test_a_bin_never_seen_is_evaluated_in_full():
    matrix = sample(0)
    policy = qwyc.fit_policy(matrix, rule="fan", order="natural", gamma=0.0)
    far = qwyc.ScoreMatrix.from_array(np.full((3, 6), 50.0), base=0.25, threshold=0.4)
    assert policy.apply(far).complete.all()
    huge = qwyc.ScoreMatrix.from_array(np.full((3, 6), 1e300), threshold=0.4)
    assert policy.apply(huge).complete.all()


@pytest.mark.parametrize("order", ["joint", "natural", "random", "individual-mse", "greedy-mse"])
@pytest.mark.parametrize("quit", ["both", "negative", "positive"])
def test_without_gamma_alpha_holds_in_the_sample(order, quit):
    matrix = sample(3)
    labels = matrix.positive
    policy = qwyc.fit_policy(
        matrix, alpha=0.02, rule="fan", order=order, quit=quit, labels=labels, bin_width=0.2
    )
    decisions = policy.apply(matrix)
    assert 0 < policy.gamma < np.inf
    assert np.mean(decisions.label != matrix.positive) <= 0.02
    assert decisions.steps.mean() < 6
    if quit != "both":
        other = 1 if quit == "negative" else 0
        assert decisions.complete[decisions.label == other].all()


def test_a_path_over_gamma_goes_from_bold_to_cautious():
    matrix = sample(5, N=2000)
    gammas = [0.0, 0.5, 1, 2, 4]
    path = qwyc.fit_fan_path(matrix, gammas, order="natural", bin_width=0.1)
    steps = [policy.apply(matrix).steps.mean() for policy in path]
    assert [policy.gamma for policy in path] == gammas
    assert steps == sorted(steps)
    alone = qwyc.fit_policy(matrix, rule="fan", order="natural", gamma=2, bin_width=0.1)
    np.testing.assert_array_equal(alone.apply(matrix).steps, path[3].apply(matrix).steps)


def test_the_default_bin_width_goes_with_the_scores():
    matrix = sample(0)
    scaled = qwyc.ScoreMatrix.from_array(1000 * matrix.values, base=250, threshold=400)
    widths = [
        qwyc.fit_policy(m, rule="fan", order="natural", gamma=1).bin_width for m in (matrix, scaled)
    ]
    assert widths[1] == pytest.approx(1000 * widths[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "alpha is needed"),
        ({"gamma": -1}, "gamma must be a number of at least 0"),
        ({"gamma": "1"}, "gamma must be"),
        ({"gamma": 1, "bin_width": 0}, "bin_width must be a finite number above 0"),
        ({"gamma": 1, "bin_width": 1e-300}, "too small"),
        ({"gamma": 1, "order": "joint"}, "alpha is needed"),
        ({"alpha": 0.1, "rule": "threshold", "gamma": 1}, 'belong to rule="fan"'),
        (
            {"alpha": 0.1, "order": "joint-fan"},
            "pass gamma, such as 1.5; fit_fan_path takes several",
        ),
        ({"gamma": 1, "order": "joint-fan", "rule": "threshold"}, "alpha is needed"),
        ({"gamma": -1, "order": "joint-fan"}, "gamma must be a number of at least 0"),
        ({"gamma": 1, "order": "joint-fan", "bin_width": 1e-8}, "pass a bin_width of at least"),
        ({"gamma": 1, "order": "joint-fan", "bin_width": 1e-300}, "pass a bin_width of at least"),
        ({"gamma": 1, "order": [0, 0]}, "one of 'joint', 'joint-fan', 'natural'"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(qwyc.OptionError, match=message):
        qwyc.fit_policy(sample(0), **({"rule": "fan", "order": "natural"} | options))


def test_the_path_needs_a_fixed_order():
    with pytest.raises(qwyc.OptionError, match="order must be one of 'natural'"):
        qwyc.fit_fan_path(sample(0), [1.0], order="joint")
