"""A threshold is a score or a probability, and a number that could be either is refused."""

import numpy as np
import pytest
import xgboost
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier

import qwyc


@pytest.fixture(scope="module")
def trained():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 5)).astype(np.float32)
    y = np.where(X[:, 0] + X[:, 1] * X[:, 2] > 0.4, "yes", "no")
    boosted = xgboost.XGBClassifier(n_estimators=30, max_depth=3, n_jobs=1)
    forest = RandomForestClassifier(n_estimators=20, max_depth=5, random_state=0)
    return X, boosted.fit(X[:2000], y[:2000] == "yes"), forest.fit(X[:2000], y[:2000])


def test_a_number_that_could_be_either_is_refused(trained):
    X, boosted, _ = trained
    with pytest.raises(qwyc.OptionError) as caught:
        qwyc.optimize(boosted, X[2000:], alpha=0.02, threshold=0.3)
    message = str(caught.value)
    assert message.startswith("threshold=0.3 could be a score or a probability")
    assert "a score of 0.3 is a probability of 0.5744" in message
    assert message.endswith("threshold=qwyc.Score(0.3) or threshold=qwyc.Probability(0.3)")


def test_both_ways_to_write_it(trained):
    X, boosted, _ = trained
    proba, new = boosted.predict_proba(X[2000:])[:, 1], X[2000:]
    by_score = qwyc.optimize(boosted, alpha=0, threshold=qwyc.Score(0.3))
    by_share = qwyc.optimize(boosted, alpha=0, threshold=qwyc.Probability(0.3))
    margin = boosted.predict(new, output_margin=True)
    np.testing.assert_array_equal(by_score.predict(new), margin >= np.float32(0.3))
    np.testing.assert_array_equal(by_share.predict(new), proba >= np.float32(0.3))
    assert (by_score.predict(new) != by_share.predict(new)).any()


@pytest.mark.parametrize("number", [-1.5, 0.0, 1.0, 2.5])
def test_numbers_that_are_no_probability_are_scores(trained, number):
    _, boosted, _ = trained
    fast = qwyc.optimize(boosted, alpha=0, threshold=number)
    assert fast.policy.threshold == number


def test_scores_of_forests_are_probabilities(trained):
    X, _, forest = trained
    bare = qwyc.optimize(forest, alpha=0, threshold=0.3)
    named = qwyc.optimize(forest, alpha=0, threshold=qwyc.Score(0.3))
    as_share = qwyc.optimize(forest, alpha=0, threshold=qwyc.Probability(0.3))
    labels = bare.predict(X)
    np.testing.assert_array_equal(labels, named.predict(X))
    assert (
        np.mean(labels != as_share.predict(X)) < 1e-3
    )  # shares next to 0.3 are summed differently
    np.testing.assert_array_equal(
        as_share.predict(X) == "yes", forest.predict_proba(X)[:, 1] >= 0.3
    )


@pytest.mark.parametrize("number", [30, -0.3])
def test_numbers_that_no_probability_can_be_are_refused(trained, number):
    X, _, forest = trained
    with pytest.raises(qwyc.OptionError, match="probabilities, from 0 to 1"):
        qwyc.optimize(forest, X[2000:], alpha=0.02, threshold=number)


def test_models_without_probabilities_of_the_score(trained):
    X, _, _ = trained
    y = X[:, 0] > 0.2
    with_links = AdaBoostClassifier(n_estimators=5, random_state=0).fit(X[:2000], y[:2000])
    with pytest.raises(qwyc.OptionError, match=r"could be a score or a probability"):
        qwyc.optimize(with_links, alpha=0, threshold=0.2)
    plain = [lambda rows, j=j: rows[:, j] for j in range(3)]
    fast = qwyc.optimize(plain, X, alpha=0.05, threshold=0.3, progress=False)
    assert fast.policy.threshold == 0.3  # callables have no probabilities


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "0.3", None])
def test_scores_are_finite_numbers(value):
    with pytest.raises(qwyc.OptionError, match="a score"):
        qwyc.Score(value)


def test_the_positive_class_is_said(trained):
    X, _, forest = trained
    fast = qwyc.optimize(forest, X[2000:], alpha=0.02, progress=False)
    assert "yes (the positive class) where score >= " in str(fast)
    from qwyc.report import inspection

    assert inspection.inspect(fast)["positive_class"] == "yes"
    assert "  positive   class yes: the second of the model's two classes" in inspection.describe(
        fast
    )


def test_alpha_has_the_same_default_everywhere(trained):
    X, _, forest = trained
    assert qwyc.optimize(forest, X[2000:], progress=False).certificate.alpha == 0.005
    made = qwyc.EarlyExitClassifier(forest).fit(X[2000:])
    assert made.certificate_.alpha == 0.005
    by_class = qwyc.optimize(forest, X[2000:], by_class={"yes": 0.05}, progress=False)
    assert by_class.certificate.alpha is None
    alone = qwyc.EarlyExitClassifier(forest, by_class={"yes": 0.05}).fit(X[2000:])
    assert alone.certificate_.alpha is None
    near = qwyc.optimize(forest, X[2000:], tolerance=0.2, progress=False)
    assert near.certificate.alpha == 0.005


def test_the_advice_for_an_approximation_can_be_followed(trained):
    X, boosted, _ = trained
    near = qwyc.optimize(boosted, X[2000:], alpha=0.05, tolerance=0.1, progress=False)
    with pytest.raises(qwyc.InfeasibleError) as caught:
        near.at(alpha=1e-5)
    assert "recertify" not in str(caught.value)
    assert "Optimise the model again, on more rows" in str(caught.value)
