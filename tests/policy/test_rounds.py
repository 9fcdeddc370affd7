"""Rounds of fetching features: the cheapest division of the steps, against all divisions."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwyc.policy.counts import Counts, count_exits
from qwyc.policy.features import FeatureUse, reaching
from qwyc.policy.rounds import plan_rounds, survival


def cost_of(begins, use, share, round_cost):
    """What fetching costs a row on average where rounds are made before these steps, from the definition:
    features come with the last round before the step that needs them."""
    total = sum(share[begin] * round_cost for begin in begins)
    for first, cost in zip(use.first, use.costs, strict=True):
        if first < use.n_models:
            total += share[max(begin for begin in begins if begin <= first)] * cost
    return total


def cheapest(use, share, round_cost):
    """Over all divisions of the steps that need a feature for the first time."""
    starts = sorted({int(s) for s in use.first if s < use.n_models})
    if not starts:
        return 0.0
    return min(
        cost_of([starts[0], *more], use, share, round_cost)
        for n in range(len(starts))
        for more in itertools.combinations(starts[1:], n)
    )


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    T=st.integers(1, 9),
    D=st.integers(1, 7),
    round_cost=st.sampled_from([0.0, 0.5, 1.0, 4.0, 100.0]),
)
def test_the_rounds_are_the_cheapest(seed, T, D, round_cost):
    rng = np.random.default_rng(seed)
    use = FeatureUse(rng.integers(0, T + 1, D), rng.choice([0.5, 1.0, 8.0], D), T)
    share = np.sort(np.append(rng.random(T - 1), 1.0))[::-1]
    rounds = plan_rounds(use, share, round_cost)
    fetching = [r for r in rounds if len(r.features)]
    found = sum(share[r.begin] * (round_cost + use.costs[r.features].sum()) for r in fetching)
    assert found == pytest.approx(cheapest(use, share, round_cost), rel=1e-12)
    # Steps follow each other from the first to the last, and every feature comes in time, once.
    assert rounds[0].begin == 0
    assert rounds[-1].end == T
    assert [r.end for r in rounds[:-1]] == [r.begin for r in rounds[1:]]
    every = np.concatenate([r.features for r in rounds])
    assert sorted(every.tolist()) == np.flatnonzero(use.first < T).tolist()
    for r in rounds:
        assert (use.first[r.features] >= r.begin).all()
        assert (use.first[r.features] < r.end).all()


def test_features_that_cost_nothing_come_first():
    use = FeatureUse(np.array([0, 3, 5, 6]), np.array([0.0, 2.0, 0.0, 9.0]), 8)
    rounds = plan_rounds(use, np.linspace(1, 0.3, 8), 0.1)
    assert rounds[0].features.tolist() == [0, 2]
    assert [r.features.tolist() for r in rounds[1:]] == [[1], [3]]


def test_one_round_where_rows_do_not_quit_or_rounds_are_dear():
    use = FeatureUse(np.arange(6), np.ones(6), 6)
    assert len(plan_rounds(use, np.ones(6), 0.0)) == 1  # of equal costs, the fewest rounds
    assert len(plan_rounds(use, np.linspace(1, 0.5, 6), 0.0)) == 6
    assert len(plan_rounds(use, np.linspace(1, 0.5, 6), 1e6)) == 1


def test_steps_that_need_no_feature_need_no_round():
    nothing = FeatureUse(np.array([4, 4]), np.ones(2), 4)
    (only,) = plan_rounds(nothing, np.ones(4), 1.0)
    assert (only.begin, only.end, len(only.features)) == (0, 4, 0)
    late = FeatureUse(np.array([2, 4]), np.ones(2), 4)
    first, second = plan_rounds(late, np.ones(4), 1.0)
    assert (first.begin, first.end, len(first.features)) == (0, 2, 0)
    assert (second.begin, second.end, second.features.tolist()) == (2, 4, [0])


def test_the_survival_curve_is_as_exact_as_what_was_counted():
    rng = np.random.default_rng(0)
    steps = np.minimum(rng.geometric(0.1, 5000), 40).astype(np.int32)
    stops = np.bincount(steps - 1, minlength=40)
    true = np.array([(steps > s).mean() for s in range(40)])
    np.testing.assert_allclose(reaching(stops)[:-1] / 5000, true)
    binned = tuple(count_exits(steps, 40).tolist())
    counts = Counts((5000, 0), (0, 0), float(steps.mean()), 0.0, binned, stops=tuple(stops))
    np.testing.assert_allclose(survival(counts, 40), true)
    bins = Counts((5000, 0), (0, 0), float(steps.mean()), 0.0, binned)
    np.testing.assert_allclose(survival(bins, 40), true, atol=0.06)
    mean = Counts((5000, 0), (0, 0), float(steps.mean()), 0.0)
    np.testing.assert_allclose(survival(mean, 40), true, atol=0.06)
