"""Bounds that count the choice of the policy, room for a later verification, and the three outcomes."""

import numpy as np
import pytest
from scipy import stats

import qwyc
from qwyc.policy.counts import Counts
from qwyc.promise.budget import budget_of
from qwyc_experiments.validity import column_models, world

MODELS = column_models(12)


def counts(differ, rows):
    return Counts((rows // 2, rows - rows // 2), (differ, 0), 3.0, 3.0)


@pytest.fixture(scope="module")
def new():
    return world(np.random.default_rng(10**6), 200_000)


def test_bounds_hold_although_the_policy_was_chosen(new):
    full = new.sum(axis=1) >= 0
    missed = np.zeros(3, dtype=int)
    for seed in range(100):
        X = world(np.random.default_rng(seed), 3_000)
        fast = qwyc.optimize(MODELS, X, alpha=0.01, seed=seed)
        differs = fast.policy.apply(new).label.astype(bool) != full
        seen = fast.certificate
        assert seen.upper_bound == 0.01
        by_class = [np.mean(differs[full == c]) for c in (False, True)]
        missed[0] += np.mean(differs) > seen.upper_bound
        for c, loss in enumerate(seen.classes):
            missed[c + 1] += by_class[c] > loss.upper_bound
    assert (stats.binom.sf(missed - 1, 100, 0.05) > 1e-3).all()  # no more than luck allows


def test_without_a_limit_on_all_rows_the_bound_holds_for_the_whole_path(new):
    X = world(np.random.default_rng(0), 20_000)
    seen = qwyc.optimize(MODELS, X, by_class={0: 0.01, 1: 0.01}).certificate
    risk = 0.05 / seen.policies
    exact = stats.binomtest(seen.disagreements, seen.rows).proportion_ci(
        1 - 2 * risk, method="exact"
    )
    assert seen.upper_bound == pytest.approx(exact.high)
    assert seen.policies > 10


def test_a_classifier_that_never_quits_has_nothing_to_bound():
    X = world(np.random.default_rng(0), 4_000)
    seen = qwyc.optimize(MODELS, X, alpha=0.02, evaluation="full").certificate
    assert seen.upper_bound == 0
    assert [loss.upper_bound for loss in seen.classes] == [0, 0]
    filtered = qwyc.optimize(MODELS, X, alpha=0.02, quit="negative").certificate
    assert filtered.classes[0].upper_bound == 0  # no negative can be lost
    assert filtered.classes[1].upper_bound > 0


@pytest.mark.parametrize(
    ("differ", "rows", "outcome"),
    [
        (0, 598, "pass"),
        (0, 597, "undecided"),
        (0, 200, "undecided"),
        (38, 10_000, "pass"),
        (39, 10_000, "undecided"),
        (50, 10_000, "undecided"),
        (62, 10_000, "undecided"),
        (63, 10_000, "fail"),
        (1, 2, "fail"),
    ],
)
def test_outcomes_are_those_of_exact_tests(differ, rows, outcome):
    budget, seen = budget_of(0.005), counts(differ, rows)
    above = stats.binomtest(differ, rows, 0.005, alternative="greater").pvalue <= 0.05
    below = stats.binomtest(differ, rows, 0.005, alternative="less").pvalue <= 0.05
    assert (outcome == "pass") == below == budget.passes(seen, 0.95)
    assert (outcome == "fail") == above == budget.fails(seen, 0.95)


def test_one_difference_contradicts_a_proof():
    assert budget_of(0).fails(counts(1, 10**6), 0.95)
    assert not budget_of(0).fails(counts(0, 10**6), 0.95)


def test_the_rows_that_are_missing_are_about_right():
    limit = budget_of(0.005).limits[0]
    for observed in (0.0, 0.001, 0.004):
        n = limit.rows_at(observed, 0.95)
        assert limit.passes(counts(int(observed * n), n), 0.95)
        assert not limit.passes(counts(int(np.ceil(observed * 0.8 * n)), int(0.8 * n)), 0.95)
    assert limit.rows_at(0.005, 0.95) is None


def test_undecided_says_how_many_more_rows_it_takes(new):
    fast = qwyc.optimize(MODELS, world(np.random.default_rng(0), 8_000), alpha=0.01)
    found = qwyc.verify(fast, new[:200])
    assert found.outcome == "undecided"
    assert not found.passed
    assert str(found).startswith("UNDECIDED: ")
    differ = qwyc.verify(fast, new).observed
    assert differ < 0.01
    assert qwyc.verify(fast, new).outcome == "pass"
    assert qwyc.verify(fast, new, alpha=differ / 2).outcome == "fail"
    found = qwyc.verify(fast, new[:2000], alpha=differ * 1.05)
    assert found.outcome == "undecided"
    assert found.as_dict()["outcome"] == "undecided"
    assert found.more_rows is None or found.more_rows > 0


def test_headroom_makes_a_later_verification_pass(new):
    passed, plain = 0, 0
    for seed in range(40):
        X = world(np.random.default_rng(seed), 12_000)
        fast = qwyc.optimize(MODELS, X, alpha=0.01, seed=seed)
        roomy = fast.at(alpha=0.01, headroom=5_000)
        assert roomy.certificate.headroom == 5_000
        assert roomy.certificate.mean_models >= fast.certificate.mean_models
        fresh = new[5_000 * seed : 5_000 * (seed + 1)]
        plain += qwyc.verify(fast, fresh).passed
        passed += qwyc.verify(roomy, fresh).passed
    assert plain < 36 <= passed  # 90% is what it leaves room for
    assert "A verification on 5,000 other rows is expected to pass" in str(roomy.certificate)
    with pytest.raises(qwyc.OptionError, match="needs 299 rows"):
        fast.at(alpha=0.01, headroom=200)
    with pytest.raises(qwyc.OptionError, match="headroom can only be used with"):
        qwyc.optimize(MODELS, X, alpha=0.01, headroom=100, method="joint")


def test_a_certificate_says_what_a_batch_may_show():
    fast = qwyc.optimize(MODELS, world(np.random.default_rng(0), 8_000), alpha=0.005)
    most = int(stats.binom.ppf(0.95, 1000, 0.005))
    assert f"among 1,000 of them, up to {most} may differ by chance" in str(fast.certificate)
