"""Limits on the share of a class that is lost: by_class."""

import numpy as np
import pytest
from scipy import stats

import qwyc
from qwyc.policy.counts import Counts
from qwyc.promise.budget import BudgetByClass, TotalBudget, budget_of
from qwyc.promise.doubtful import lost_without_limit
from qwyc.promise.limits import Limit, least_share
from qwyc.promise.observed import ClassLoss
from qwyc.promise.requested import by_class_of

T = 12
MODELS = [lambda X, t=t: X[:, t] for t in range(T)]


def world(rng, n, shift=-2.3):
    """Rows of which about 2% are positive: what is drawn here is all there is to know about new rows."""
    return rng.normal(size=(n, 1)) + 1.5 * rng.normal(size=(n, T)) + shift


def lost(policy, X):
    """The share of each class, by the full decision, that is decided differently."""
    full, label = X.sum(axis=1) >= 0, policy.apply(X).label.astype(bool)
    return [float(np.mean(label[full == c] != c)) for c in (False, True)]


@pytest.fixture(scope="module")
def new():
    return world(np.random.default_rng(10**6), 200_000)


def counts(by_class, differences):
    return Counts(tuple(by_class), tuple(differences), 3.0, 3.0)


def test_a_class_is_counted_by_its_own_rows():
    budget = budget_of(None, {1: 0.02})
    assert budget == BudgetByClass(((1, 0.02),))
    assert budget.alpha is None
    assert budget.by_class == {1: 0.02}
    assert budget.limits == (Limit(0.02, (0,), 1),)
    assert str(budget) == "2% of the rows called positive"
    assert budget.limits[0].counted(counts((900, 100), (3, 50))) == (3, 100)
    assert budget.passes(counts((10**6, 149), (0, 999)), 0.95)  # 0.98 ** 149 < 5%
    assert not budget.passes(counts((10**6, 148), (0, 0)), 0.95)
    assert not budget.passes(counts((10**6, 149), (1, 0)), 0.95)


def test_limits_need_not_share_the_confidence():
    budget = budget_of(0.005, {1: 0.02})
    assert budget == BudgetByClass(((1, 0.02),), TotalBudget(0.005))
    seen = counts((9_851, 149), (0, 38))
    assert budget.passes(seen, 0.95)
    assert all(limit.passes(seen, 0.95) for limit in budget.limits)
    assert not budget.passes(counts((9_851, 149), (0, 39)), 0.95)
    assert not budget.passes(counts((9_852, 148), (0, 0)), 0.95)


def test_what_is_rare_costs_more_while_fitting():
    lose, gain = budget_of(0.005, {1: 0.01}).penalty_weights((980, 20))
    assert lose / gain == pytest.approx(0.005 / (0.01 * 0.02))
    assert budget_of(None, {1: 0.01}).penalty_weights((980, 20)) == (1.0, 1.0)
    assert np.isfinite(budget_of(0.005, {1: 0.01}).penalty_weights((1000, 0))).all()


def test_only_mistakes_with_a_limit_are_risked():
    assert budget_of(None, {1: 0.01}).allowed("both") == "negative"
    assert budget_of(None, {0: 0.01}).allowed("both") == "positive"
    assert budget_of(None, {0: 0.01, 1: 0.01}).allowed("both") == "both"
    assert budget_of(0.01, {1: 0.01}).allowed("both") == "both"
    with pytest.raises(qwyc.OptionError, match="name their class in by_class"):
        budget_of(None, {1: 0.01}).allowed("positive")


@pytest.mark.parametrize(
    ("by_class", "said"),
    [
        ({}, "names no class"),
        ({2: 0.1}, "names 2; the classes are"),
        ({1: 0.0}, "above 0"),
        ({1: 1.0}, "below 1"),
        ({1: "1%"}, "a share above 0 and below 1"),
        (0.01, "must be a mapping"),
    ],
)
def test_what_is_no_limit_is_refused(by_class, said):
    with pytest.raises(qwyc.OptionError, match=said):
        budget_of(None, by_class_of(by_class, np.array([0, 1])))


def test_alpha_is_half_a_percent_without_by_class_and_zero_goes_alone():
    with pytest.raises(qwyc.InfeasibleError, match=r"alpha = 0\.5% at confidence 0\.95 needs"):
        qwyc.optimize(MODELS, np.zeros((10, T)))
    with pytest.raises(qwyc.OptionError, match="leave out by_class"):
        budget_of(0, {1: 0.1})
    with pytest.raises(qwyc.OptionError, match="needs method='auto'"):
        qwyc.optimize(MODELS, np.ones((10, T)), by_class={1: 0.1}, method="joint")


def test_the_promise_about_a_class_holds_as_often_as_it_says(new):
    # 50 times: fit and certify on 30,000 rows, of which about 600 are positive.
    broken = 0
    for seed in range(50):
        X = world(np.random.default_rng(seed), 30_000)
        fast = qwyc.optimize(MODELS, X, by_class={1: 0.03}, confidence=0.9, seed=seed)
        assert fast.policy.quit == "negative"
        negative, positive = lost(fast.policy, new)
        assert negative == 0
        assert fast.certificate.classes[1].upper_bound == 0.03
        broken += positive > 0.03
    assert stats.binom.sf(broken - 1, 50, 0.1) > 1e-3  # no more than luck allows


def test_alone_and_with_alpha(new):
    X = world(np.random.default_rng(1), 60_000)
    kept = qwyc.optimize(MODELS, X, alpha=0.004, by_class={1: 0.02})
    with pytest.warns(qwyc.QwycWarning, match=r"puts in class 1 .*pass by_class"):
        plain = qwyc.optimize(MODELS, X, alpha=0.004)
    assert kept.policy.quit == plain.policy.quit == "both"
    assert lost(plain.policy, new)[1] > 0.05  # alpha alone gives away much of a rare class
    assert lost(kept.policy, new)[1] <= 0.02
    assert kept.certificate.mean_models > plain.certificate.mean_models
    assert "of the new rows that the full ensemble calls class 1" in str(kept.certificate)
    same = plain.at(alpha=0.004, by_class={1: 0.02}).certificate
    assert same.budget == kept.certificate.budget
    assert qwyc.verify(kept, new, by_class={1: 0.025}).outcome == "pass"
    assert qwyc.verify(kept, new).outcome != "fail"
    assert qwyc.verify(plain, new, by_class={1: 0.02}).outcome == "fail"
    assert qwyc.recertify(plain, new, by_class={1: 0.02}, alpha=0.01).certificate.rows == 200_000
    with pytest.raises(qwyc.OptionError, match="mistakes of one way only"):
        plain.at(by_class={1: 0.02})


def test_too_few_rows_of_a_class_say_how_many_it_takes():
    X = world(np.random.default_rng(2), 8_000)
    with pytest.raises(
        qwyc.InfeasibleError,
        match=r"needs at least 598 certifying rows that the full ensemble calls positive; there are \d+",
    ):
        qwyc.optimize(MODELS, X, by_class={1: 0.005})


def test_labels_are_those_of_the_model(toy):
    from sklearn.ensemble import RandomForestClassifier

    X, y = toy
    names = np.where(y == 1, "fraud", "fine")
    model = RandomForestClassifier(20, max_depth=3, random_state=0).fit(X, names)
    new = np.random.default_rng(0).normal(size=(4000, X.shape[1])).astype(np.float32)
    fast = qwyc.optimize(model, new, by_class={"fraud": 0.05, "fine": 0.05})
    other = np.random.default_rng(1).normal(size=new.shape).astype(np.float32)
    full = model.predict(other)
    assert fast.certificate.by_class == {"negative": 0.05, "positive": 0.05}
    assert fast.certificate.budget.by_class == {0: 0.05, 1: 0.05}
    label = list(model.classes_)
    assert [loss.rows for loss in qwyc.verify(fast, other).classes] == [
        int((full == name).sum()) for name in label
    ]
    with pytest.raises(qwyc.OptionError, match=r"names 1; the classes are \['fine', 'fraud'\]"):
        qwyc.optimize(model, new, by_class={1: 0.05})


def test_it_is_saved_and_loaded(tmp_path, toy):
    import xgboost

    X, y = toy
    model = xgboost.XGBClassifier(n_estimators=30).fit(X, y)
    rows = np.random.default_rng(0).normal(size=(4000, X.shape[1])).astype(np.float32)
    fast = qwyc.optimize(model, rows, alpha=0.05, by_class={1: 0.04}, evaluation="quit")
    fast.save(tmp_path / "a.qwyc")
    loaded = qwyc.load(tmp_path / "a.qwyc")
    assert loaded.certificate == fast.certificate
    assert loaded.certificate.classes == fast.certificate.classes
    assert str(loaded.certificate) == str(fast.certificate)
    assert (
        loaded.choices.evidence.counts.exits.tolist() == fast.choices.evidence.counts.exits.tolist()
    )


def test_the_smallest_share_that_rows_can_show():
    assert least_share(0, 0.95) == 1.0
    for rows in (1, 10, 66, 598, 100_000):
        share = least_share(rows, 0.95)
        assert 0.95 <= 1 - (1 - share) ** rows <= 1  # so many rows without a loss show it
        assert rows < 5 or 1 - (1 - 0.89 * share) ** rows < 0.95  # and hardly more is claimed


def test_verify_says_what_was_lost_of_a_class_without_a_limit():
    budget = budget_of(0.01)
    losses = (ClassLoss("negative", 9_900, 0, 0.0), ClassLoss("positive", 100, 60, 0.7))
    assert "60 of 100 rows called positive were decided differently" in lost_without_limit(
        budget, losses
    )
    few = (losses[0], ClassLoss("positive", 100, 1, 0.05))
    assert lost_without_limit(budget, few) == ""
