"""Tests after every row: against the slow twin, as a supermartingale, and by simulation."""

from itertools import product

import numpy as np
import pytest

from oracle.sequential import evidence as oracle_evidence
from qwyc.promise import sequential
from qwyc.promise.binomial import lower_bound, upper_bound
from qwyc.promise.sequential import RateTest, Starts, TestState, rate_interval

TestState.__test__ = False  # a name that pytest would take for a test


def seen(test, differs):
    return test.after(test.start, np.asarray(differs, dtype=bool))[0]


@pytest.mark.parametrize("share", [0.3, 0.05, 1e-4])
def test_it_is_the_slow_twin(share):
    test = RateTest(share)
    differs = np.random.default_rng(1).random(70) < max(0.1, share)
    expected = oracle_evidence(differs, share, test.multiples)
    found = [test.evidence(seen(test, differs[: n + 1])) for n in range(len(differs))]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_rows_may_come_in_any_parts():
    test, differs = RateTest(0.05), np.random.default_rng(2).random(500) < 0.08
    state = test.start
    for part in np.split(differs, [1, 16, 17, 40, 333, 333]):
        state, _ = test.after(state, part)
    whole = seen(test, differs)
    assert (state.rows, state.count) == (500, differs.sum())
    assert test.evidence(state) == test.evidence(whole)


def states_of(kind, test, prefix):
    """States that a test can be in: after some rows, or after a merge."""
    one = seen(test, prefix)
    if kind == "one":
        return one
    return test.merge(one, test.merge(seen(test, [1, 0, 0]), seen(test, [0] * 20)))


@pytest.mark.parametrize("kind", ["one", "merged"])
@pytest.mark.parametrize("share", [0.4, 0.1, 0.01])
@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_the_evidence_does_not_grow_on_average(kind, share, rate):
    """One more row of a rate within the share: the expected evidence is at most the evidence now. All
    outcomes of six rows, before and after a moment at which a change may begin."""
    test = RateTest(share)
    for length in (0, 13):
        for outcome in product([0, 1], repeat=6):
            state = states_of(kind, test, [0] * length + list(outcome))
            p = rate * share
            more, less = (test.after(state, np.array([x], dtype=bool))[0] for x in (1, 0))
            expected = p * test.evidence(more) + (1 - p) * test.evidence(less)
            assert expected <= test.evidence(state) * (1 + 1e-12)
            if rate == 1:
                assert expected == pytest.approx(test.evidence(state), rel=1e-9)


def test_the_evidence_starts_at_one_alone_and_merged():
    test = RateTest(0.02)
    assert test.evidence(test.start) == pytest.approx(1)
    assert test.evidence(test.merge(test.start, test.start)) == pytest.approx(1)


def test_the_expected_evidence_of_a_merge_is_at_most_one():
    """All outcomes of five rows at each of two workers, at the rate of the share."""
    test, share = RateTest(0.3), 0.3
    states = [
        (share ** sum(x) * (1 - share) ** (5 - sum(x)), seen(test, x))
        for x in product([0, 1], repeat=5)
    ]
    total = sum(p * q * test.evidence(test.merge(a, b)) for p, a in states for q, b in states)
    assert total == pytest.approx(1, rel=1e-9)


def test_a_merge_does_not_depend_on_the_order():
    test, rng = RateTest(0.02), np.random.default_rng(3)
    a, b, c = (seen(test, rng.random(n) < 0.04) for n in (100, 40, 333))
    one, other = test.merge(test.merge(a, b), c), test.merge(c, test.merge(b, a))
    assert (one.rows, one.count, one.parts) == (other.rows, other.count, 3)
    assert test.evidence(one) == pytest.approx(test.evidence(other), rel=1e-12)


def test_evidence_is_reported_after_the_row_that_brings_it():
    test, differs = RateTest(0.01), np.zeros(400, dtype=bool)
    differs[200:] = np.arange(200) % 4 == 0
    running = [test.evidence(seen(test, differs[:n])) for n in range(1, 401)]
    first = int(np.argmax(np.array(running) >= 20)) + 1
    assert 200 < first < 300
    assert differs[first - 1]
    assert test.after(test.start, differs, 20.0)[1] == first
    assert test.after(test.start, differs, 1e9 * max(running))[1] is None


def test_endless_differences_and_endless_quiet_stay_finite():
    test = RateTest(1e-9)
    for rate in (1.0, 0.0):
        state = seen(test, np.full(20_000, rate, dtype=bool))
        state = test.merge(state, test.merge(state, state))
        assert np.isfinite(test.evidence(state))
        assert (np.isfinite(state.joint.value) & (state.joint.value <= sequential.LARGEST)).all()


def test_values_of_the_wrong_length_are_refused():
    test = RateTest(0.1)
    bad = Starts(np.zeros(2), 1.0)
    with pytest.raises(ValueError, match="one value per alternative"):
        test.after(TestState(0, 0, 1, bad, bad), np.array([True]))


# ---- by simulation ----------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [1.0, 0.6])
def test_false_alarms_are_rare_however_long_one_looks(rate):
    share, streams, risk = 0.02, 600, 0.1
    test, rng = RateTest(share), np.random.default_rng(4)
    alarms = sum(
        test.after(test.start, rng.random(10_000) < rate * share, 1 / risk)[1] is not None
        for _ in range(streams)
    )
    assert alarms <= risk * streams + 3 * np.sqrt(risk * (1 - risk) * streams)


@pytest.mark.parametrize(("quiet", "within"), [(0, 250), (10_000, 900), (60_000, 1_200)])
def test_a_change_is_found_soon_even_after_a_long_time(quiet, within):
    test, rng = RateTest(0.01), np.random.default_rng(5)
    found = []
    for _ in range(40):
        before, after = rng.random(quiet) < 0.005, rng.random(3_000) < 0.05
        at = test.after(test.start, np.concatenate([before, after]), 20.0)[1]
        found.append(np.inf if at is None else at - quiet)
    assert np.median(found) < within


def excluded(count, rows, rate, confidence):
    """Whether the interval after `rows` rows leaves a rate out, by its definition; for arrays too."""
    slopes = sequential.SLOPES.reshape(-1, *([1] * np.ndim(rows)))
    low = slopes * count - rows * np.log1p(rate * np.expm1(slopes))
    high = slopes * (rows - count) - rows * np.log1p((1 - rate) * np.expm1(slopes))
    needed = np.log(2 / (1 - confidence)) + np.log(len(slopes))
    return (np.logaddexp.reduce(low) >= needed) | (np.logaddexp.reduce(high) >= needed)


@pytest.mark.parametrize("shape", ["constant", "rising", "alternating"])
def test_the_interval_covers_the_average_rate_at_every_row(shape):
    streams, n = 300, 1_000
    rows = np.arange(1, n + 1)
    rate = {
        "constant": np.full(n, 0.05),
        "rising": np.linspace(0.01, 0.2, n),
        "alternating": np.where(rows // 50 % 2, 0.2, 0.01),
    }[shape]
    average, rng, missed = np.cumsum(rate) / rows, np.random.default_rng(6), 0
    for _ in range(streams):
        missed += excluded(np.cumsum(rng.random(n) < rate), rows, average, 0.9).any()
    assert missed <= 0.1 * streams + 3 * np.sqrt(0.09 * streams)


@pytest.mark.parametrize(("count", "rows"), [(0, 50), (7, 400), (90, 100), (400, 10**5)])
def test_the_ends_of_the_interval_are_where_it_leaves_rates_out(count, rows):
    low, high = rate_interval(count, rows, 0.9)
    assert not excluded(count, rows, high * (1 - 1e-9), 0.9)
    assert excluded(count, rows, min(1.0, high * (1 + 1e-9)), 0.9)
    if count:
        assert excluded(count, rows, low * (1 - 1e-9), 0.9)
        assert not excluded(count, rows, low * (1 + 1e-9), 0.9)


@pytest.mark.parametrize(
    ("count", "rows"), [(0, 1), (1, 1), (0, 300), (3, 1000), (500, 1000), (5000, 10**6)]
)
def test_the_interval_contains_the_exact_one_and_is_not_much_wider(count, rows):
    low, high = rate_interval(count, rows, 0.95)
    exact = lower_bound(count, rows, 0.975), upper_bound(count, rows, 0.975)
    assert 0 <= low <= exact[0] <= count / rows <= exact[1] <= high <= 1
    if rows >= 300:
        assert high - low < 2.2 * (exact[1] - exact[0])


def test_the_interval_of_no_rows_says_nothing():
    assert rate_interval(0, 0, 0.95) == (0.0, 1.0)
