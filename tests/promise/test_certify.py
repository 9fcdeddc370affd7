"""alpha on new rows: exact bounds, the split, the choice along the path, and the promise itself."""

from dataclasses import replace

import lightgbm
import numpy as np
import pytest
import xgboost
from scipy import stats
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)

import qwyc
from forests import random_ensemble, random_rows
from qwyc.model.trees import Summation
from qwyc.policy.counts import Counts, PathCounts
from qwyc.policy.grouped import GroupCounts
from qwyc.promise.binomial import lower_bound, rows_needed, tail, upper_bound
from qwyc.promise.budget import budget_of
from qwyc.promise.certificate import Certificate
from qwyc.promise.evaluation import Speed
from qwyc.promise.evidence import Evidence
from qwyc.promise.group_labels import group_numbers
from qwyc.promise.split import split_sample

COUNTS = [(0, 10), (3, 100), (37, 5000), (400, 80_000), (9, 10), (10, 10), (2_000_000, 10**8)]


@pytest.mark.parametrize(("count", "rows"), COUNTS)
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_bounds_are_exact(count, rows, confidence):
    expected = stats.binomtest(count, rows).proportion_ci(2 * confidence - 1, method="exact")
    assert upper_bound(count, rows, confidence) == pytest.approx(expected.high, rel=1e-9)
    assert lower_bound(count, rows, confidence) == pytest.approx(expected.low, rel=1e-9, abs=1e-12)
    for share in (0.01, count / rows, expected.high, expected.low):
        chance = stats.binom.cdf(count, rows, share)
        assert tail(count, rows, share) == pytest.approx(
            chance, rel=1e-8 + 1e-14 * rows, abs=1e-300
        )


def test_rows_needed():
    assert rows_needed(0.005, 0.95) == 598
    assert rows_needed(0.001, 0.95) == 2995
    for alpha, confidence in ((0.01, 0.9), (0.0003, 0.99), (0.5, 0.5)):
        n = rows_needed(alpha, confidence)
        assert upper_bound(0, n, confidence) <= alpha
        assert n == 1 or upper_bound(0, n - 1, confidence) > alpha


@pytest.mark.parametrize(
    ("n", "fit"), [(2000, 1000), (40_000, 20_000), (500_000, 20_000), (900, 302)]
)
def test_the_split_leaves_to_certifying_what_fitting_does_not_need(n, fit):
    a, b = split_sample(n, budget_of(0.005), 0.95, None, 0)
    assert len(a) == fit
    np.testing.assert_array_equal(np.sort(np.concatenate([a, b])), np.arange(n))
    again, _ = split_sample(n, budget_of(0.005), 0.95, None, 0)
    np.testing.assert_array_equal(a, again)
    other, _ = split_sample(n, budget_of(0.005), 0.95, None, 1)
    assert not np.array_equal(a, other)


def test_groups_stay_on_one_side():
    groups = np.random.default_rng(0).integers(0, 700, 4000).astype(str)
    units = group_numbers(groups, 4000)
    a, b = split_sample(4000, budget_of(0.01), 0.95, units, 0)
    assert not set(groups[a]) & set(groups[b])
    assert len(set(groups[a])) == len(set(groups)) // 2  # whatever their sizes
    assert len(a) + len(b) == 4000
    with pytest.raises(qwyc.InfeasibleError, match="has 1 group, and the largest has 100%"):
        split_sample(4000, budget_of(0.01), 0.95, np.zeros(4000, dtype=np.intp), 0)


def test_too_few_rows_say_how_many_it_takes(toy):
    X, y = toy
    model = xgboost.XGBClassifier(n_estimators=10).fit(X, y)
    with pytest.raises(
        qwyc.InfeasibleError, match=r"needs at least 798 rows .* the sample has 600"
    ):
        qwyc.optimize(model, X, alpha=0.005)
    with pytest.raises(ValueError, match="3,195 rows"):
        qwyc.optimize(model, X, alpha=0.001)
    with pytest.raises(qwyc.InfeasibleError, match="to certify"):
        qwyc.optimize(model, X, alpha={"negative": 0.01, "positive": 0.004})


def evidence(differences, rows=10_000):
    differences = np.array(differences)
    zeros = np.zeros(len(differences))
    counts = PathCounts((rows - rows // 2, rows // 2), differences, zeros, zeros)
    return Evidence(counts, 100, differences, 0, "")


def test_the_sequence_stops_at_the_first_failure():
    # 38 of 10,000 pass for 0.5% at 95%, 39 and more do not.
    assert upper_bound(38, 10_000, 0.95) <= 0.005 < upper_bound(39, 10_000, 0.95)
    counts = [0, 5, 20, 38, 39, 10]
    assert evidence([[c, 0] for c in counts]).boldest(budget_of(0.005), 0.95) == 3
    assert evidence([[0, c] for c in counts[:3]]).boldest(budget_of(0.005), 0.95) == 2
    both = [[0, 0], [5, 5], [30, 2], [2, 30]]
    assert evidence(both).boldest(budget_of({"negative": 0.005, "positive": 0.002}), 0.95) == 2
    with pytest.raises(qwyc.InfeasibleError, match="598 certifying rows; there are 100"):
        evidence([[0, 0]], rows=100).boldest(budget_of(0.005), 0.95)


def world(rng, n, T=12):
    """Rows of a known world: what is drawn here is all there is to know about new rows."""
    return rng.normal(size=(n, 1)) + 1.5 * rng.normal(size=(n, T))


@pytest.mark.parametrize(("alpha", "confidence"), [(0.01, 0.9), (0.02, 0.95)])
def test_the_promise_holds_as_often_as_it_says(alpha, confidence):
    # 60 times: fit and certify on 2,000 rows, measure on 40,000 new ones.
    rng = np.random.default_rng(11)
    new = world(rng, 40_000)
    models = [lambda X, t=t: X[:, t] for t in range(12)]
    full = new.sum(axis=1) >= 0
    shares = []
    for seed in range(60):
        fast = qwyc.optimize(
            models, world(rng, 2_000), alpha=alpha, confidence=confidence, seed=seed
        )
        label = fast.policy.apply(new).label
        shares.append(np.mean(label != full))
        assert fast.certificate.upper_bound <= alpha
    broken = int(np.sum(np.array(shares) > alpha))
    assert stats.binom.sf(broken - 1, 60, 1 - confidence) > 1e-3  # no more than luck allows
    assert np.mean(shares) > 0.2 * alpha  # nor is the budget left lying about


def test_budgets_by_kind_hold_apart():
    rng = np.random.default_rng(5)
    models = [lambda X, t=t: X[:, t] for t in range(12)]
    budget = {"negative": 0.02, "positive": 0.004}
    fast = qwyc.optimize(models, world(rng, 8_000), alpha=budget)
    new = world(rng, 40_000)
    full, label = new.sum(axis=1) >= 0, fast.policy.apply(new).label
    assert np.mean((label == 0) & full) <= 0.02
    assert np.mean((label == 1) & ~full) <= 0.004
    assert fast.certificate.negative > fast.certificate.positive
    assert "at most 2% of new rows are decided as class 0 instead of class 1, and 0.4% the" in str(
        fast.certificate
    )


def test_another_alpha_without_fitting_again():
    rng = np.random.default_rng(6)
    models = [lambda X, t=t: X[:, t] for t in range(12)]
    fast = qwyc.optimize(models, world(rng, 6_000), alpha=0.01)
    costs = [fast.at(alpha=a).certificate.mean_models for a in (0.002, 0.005, 0.01, 0.03)]
    assert costs == sorted(costs, reverse=True)
    assert fast.at(alpha=0.01).certificate == fast.certificate
    assert fast.at(alpha=0.01, confidence=0.999).certificate.mean_models >= costs[2]
    with pytest.raises(qwyc.InfeasibleError, match="certifying rows"):
        fast.at(alpha=0.0001)


PROVABLE = {
    "xgboost": lambda: xgboost.XGBClassifier(n_estimators=30, max_depth=3),
    "lightgbm": lambda: lightgbm.LGBMClassifier(n_estimators=30, verbose=-1),
    "forest": lambda: RandomForestClassifier(31, max_depth=5, random_state=0),
    "extra trees, ties": lambda: ExtraTreesClassifier(10, random_state=0),
    "gradient boosting": lambda: GradientBoostingClassifier(n_estimators=30),
    "hist gradient boosting": lambda: HistGradientBoostingClassifier(max_iter=30),
}


@pytest.mark.parametrize("quit", ["both", "negative", "positive"])
@pytest.mark.parametrize("name", PROVABLE)
def test_alpha_zero_changes_no_decision_whatever_the_input(name, quit, toy):
    X, y = toy
    fast = qwyc.optimize(PROVABLE[name]().fit(X, y), alpha=0, quit=quit)
    rng = np.random.default_rng(0)
    new = rng.normal(size=(50_000, 6)).astype(np.float32) * rng.choice([0.1, 1, 10], (50_000, 1))
    decisions, full = fast.decide(new), fast.score_full(new)
    np.testing.assert_array_equal(decisions.label == 1, full >= fast.policy.threshold)
    assert fast.certificate.how == "proven"
    assert "no input whatsoever" in str(fast)
    if quit == "both":
        assert decisions.steps.mean() < fast.policy.n_models


@pytest.mark.parametrize("summation", list(Summation))
@pytest.mark.parametrize("seed", range(12))
def test_alpha_zero_on_random_forests_whose_full_scores_tie_with_the_threshold(seed, summation):
    ensemble = random_ensemble(seed, summation=summation, n_trees=9)
    rows = random_rows(seed, ensemble, n=3000)
    full = ensemble.score_full(rows)
    for beta in (ensemble.threshold, *np.quantile(full, [0.2, 0.5, 0.9], method="nearest")):
        fast = qwyc.optimize(ensemble, rows, alpha=0, threshold=qwyc.Score(float(beta)))
        np.testing.assert_array_equal(fast.predict(rows) == 1, full >= beta)


def test_alpha_zero_needs_trees_and_others_need_rows(toy):
    X, y = toy
    model = xgboost.XGBClassifier(n_estimators=5).fit(X, y)
    with pytest.raises(qwyc.OptionError, match="callables have none"):
        qwyc.optimize([lambda X: X[:, 0]], X, alpha=0)
    with pytest.raises(qwyc.InputError, match="a sample of rows is needed"):
        qwyc.optimize(model, alpha=0.01)
    with pytest.raises(qwyc.InputError, match="pass X"):
        qwyc.optimize(model, alpha=0, costs="size")
    assert qwyc.optimize(model, X, alpha=0, costs="size").certificate.rows == 600


def test_groups_of_any_kind_and_whatever_comes_first():
    groups = np.repeat(np.arange(601), [30_000, *[20] * 600])
    for seed in range(60):  # one large group drawn first must not shut out the others
        fit, rest = split_sample(42_000, budget_of(0.01), 0.95, groups, seed)
        assert not set(groups[fit]) & set(groups[rest])
        assert len(set(groups[fit])) == 300
    named = group_numbers(["b", "a", "b"], 3)
    np.testing.assert_array_equal(named, [0, 1, 0])
    for bad in ([[1], [1, 2]], ["a"]):
        with pytest.raises(qwyc.OptionError, match="groups must be"):
            group_numbers(bad, 2)
    for unknown in ([None, "a"], [1.0, float("nan")]):
        with pytest.raises(qwyc.InputError, match="groups must be known for every row"):
            group_numbers(unknown, 2)


def test_bounds_at_low_confidence_can_be_below_what_was_seen():
    assert upper_bound(10, 2000, 0.1) < 10 / 2000
    assert tail(10, 2000, upper_bound(10, 2000, 0.1)) == pytest.approx(0.9, abs=1e-6)


def test_a_certificate_with_groups_or_kinds_says_so():
    counts = Counts((600, 400), (3, 4), mean_models=2.0, mean_cost=2.0)
    facts = {"confidence": 0.95, "counts": counts, "full_cost": 5.0}
    facts |= {"how": "held-out", "fit_rows": 9, "seed": 0, "sample": "abc"}
    said = str(Certificate(budget_of(0.01), groups=25, **facts))
    assert "The rows come from 25 groups but were counted as independent draws" in said
    sizes = np.full((25, 2), (24, 16))
    at, differences = np.array([3, 7]), np.array([[3, 0], [0, 4]])
    grouped = replace(counts, groups=GroupCounts(sizes, at, differences))
    said = str(Certificate(budget_of(0.01), groups=25, **facts | {"counts": grouped}))
    assert "Groups of rows were counted (25 of them), not rows" in said
    assert "rows in new groups" in said
    both = str(Certificate(budget_of({"negative": 0.01, "positive": 0.02}), **facts))
    assert (
        "decided as negative instead of positive, and 2% the other way round. This is about" in both
    )


def test_alphas_that_nothing_could_show():
    with pytest.raises(qwyc.OptionError, match="less than any sample could show"):
        budget_of(1e-22)


def rare(share, n=6000):
    """Scores of a rare class: few rows are positive, and one base model out of three tells."""
    rng = np.random.default_rng(0)
    strong = np.where(rng.random(n) < share, 3.0, -3.0)
    return [lambda X: X[:, 0], lambda X: X[:, 1], lambda X: X[:, 2]], np.column_stack(
        [rng.normal(size=(n, 2)) / 10, strong]
    )


def test_an_alpha_that_a_whole_class_fits_in_is_warned_of():
    models, X = rare(0.002)
    with pytest.warns(qwyc.QwycWarning, match=r"up to [\d.]+% of the rows that .* puts in class "):
        fast = qwyc.optimize(models, X, alpha=0.02, progress=False)
    positives = int((X[:, 2] > 0).sum())
    found = qwyc.diagnose(fast, X)
    assert [share.rows for share in found.by_decision] == [len(X) - positives, positives]
    assert "by full decision" in str(found)
    with pytest.warns(qwyc.QwycWarning, match="pass by_class"):
        fast.at(alpha=0.01)


def test_other_alphas_are_not(recwarn):
    models, X = rare(0.3)
    fast = qwyc.optimize(models, X, alpha=0.02, progress=False)
    by_kind = {"negative": 0.02, "positive": 0.01}
    assert fast.at(alpha=by_kind).certificate.alpha == by_kind
    few, X = rare(0.002)
    qwyc.optimize(few, X, alpha=0.02, quit="positive", progress=False)  # no positive can be lost
    assert not [w for w in recwarn if issubclass(w.category, qwyc.QwycWarning)]


def test_a_classifier_that_never_quits_loses_no_class(recwarn):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3)).astype(np.float32)
    forest = random_ensemble(0, n_trees=20, n_features=3)
    low = np.quantile(forest.scores(X).full, 0.998)
    slow = Speed(quit=1.0, full=0.1, rows=4096)
    fast = qwyc.optimize(
        forest, X, alpha=0.02, threshold=low, evaluation=lambda *_: slow, progress=False
    )
    assert fast.policy.quit == "never"
    assert not [w for w in recwarn if issubclass(w.category, qwyc.QwycWarning)]
    with pytest.warns(qwyc.QwycWarning) as told:
        qwyc.optimize(forest, X, alpha=0.02, threshold=low, costs=np.ones(20), progress=False)
    assert told[0].filename == __file__  # it points at who asked


def test_confidence_next_to_certain():
    both = {"negative": 0.01, "positive": 0.01}
    needed = budget_of(both).rows_needed(float(np.nextafter(1, 0)))
    assert needed > budget_of(both).rows_needed(0.999)
