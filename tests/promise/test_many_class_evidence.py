"""Certifying a policy for many classes: evidence, choice and certificate on score arrays."""

import warnings

import numpy as np
import pytest

import qwyc
from qwyc.policy.counts import PathCounts
from qwyc.policy.scores import ScoreMatrix
from qwyc.promise.budget import budget_of
from qwyc.promise.certificate import observed_certificate
from qwyc.promise.doubtful import warn_of_rare_classes
from qwyc.promise.evidence import Choices, Evidence
from qwyc.target.many_classes import ManyClasses

THREE = ManyClasses(3)


def sample(seed, N):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(N, 12, 3)) + 0.8 * rng.normal(size=(N, 1, 3)) + np.array([0.2, 0.1, -0.3])
    return ScoreMatrix.from_array(F)


@pytest.fixture(scope="module")
def choices():
    fit, held_out = sample(0, 4000), sample(1, 4000)
    path = qwyc.fit_path(fit)
    counts = path.sums(held_out).counts()
    seen = Evidence(counts, 4000, path.sums(fit).differences, 0, fit.digest)
    return Choices(path, seen)


def test_a_total_is_certified_and_kept_on_new_rows(choices):
    policy, certificate = choices.choose(budget_of(0.03, target=THREE), 0.95)
    assert isinstance(policy, qwyc.LeadPolicy)
    new = sample(2, 20_000)
    done = policy.apply(new)
    assert np.mean(done.label != new.target.decide(new.full)) <= 0.03
    assert done.steps.mean() < 11
    assert certificate.upper_bound == 0.03
    assert [loss.name for loss in certificate.classes] == ["class 0", "class 1", "class 2"]
    assert sum(loss.lost for loss in certificate.classes) == certificate.disagreements
    text = str(certificate)
    assert "With 95% confidence, at most 3% of new rows are decided differently" in text
    assert "class 2:" in text
    facts = certificate.as_dict()
    assert "full_positive" not in facts
    assert len(facts["classes"]) == 3


def test_a_class_with_a_limit_loses_no_more(choices):
    budget = budget_of(0.05, {2: 0.02}, THREE)
    policy, certificate = choices.choose(budget, 0.95)
    new = sample(3, 20_000)
    full = new.target.decide(new.full)
    mine = full == 2
    assert np.mean(policy.apply(new).label[mine] != 2) <= 0.02
    assert certificate.by_class == {"class 2": 0.02}
    assert certificate.classes[2].upper_bound == 0.02
    assert all(loss.upper_bound > 0 for loss in certificate.classes)
    bold, _ = choices.choose(budget_of(0.05, target=THREE), 0.95)
    assert choices.path.index_of(policy) < choices.path.index_of(bold)


def test_shares_that_can_be_certified_grow_bolder(choices):
    found = list(choices.evidence.boldest_at_each((0.0001, 0.01, 0.02, 0.05), 0.95))
    assert [share for share, _ in found] == [0.01, 0.02, 0.05]
    assert sorted(k for _, k in found) == [k for _, k in found]


def test_too_few_rows_of_a_class_are_named(choices):
    with pytest.raises(qwyc.InfeasibleError, match="calls class 2; there are"):
        choices.choose(budget_of(0.05, {2: 0.001}, THREE), 0.95)


def test_a_policy_that_never_quits_loses_nothing(choices):
    never = choices.path[0]
    certificate = choices.member(0, budget_of(0.03, target=THREE), 0.95)[1]
    assert never.quit == certificate.quit == "never"
    assert [loss.upper_bound for loss in certificate.classes] == [0, 0, 0]
    assert certificate.upper_bound == 0


def test_what_a_policy_did_on_its_own_rows_is_no_promise(choices):
    fit = sample(0, 4000)
    policy = qwyc.fit_policy(fit, alpha=0.01)
    seen = observed_certificate("in-sample", budget_of(0.01, target=THREE), policy, fit)
    assert seen.disagreements <= 40
    assert "In-sample" in str(seen)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_rare_classes(seen, [])


@pytest.mark.parametrize("by_class", [None, {2: 0.06}])
def test_promises_are_broken_no_more_often_than_stated(choices, by_class):
    """Certifying rows are drawn from a population in which every policy's share is known."""
    population = sample(4, 20_000)
    full = population.target.decide(population.full)
    path = choices.path
    differs = [path[k].apply(population).label != full for k in range(len(path))]
    budget, rng, broken, bold = budget_of(0.03, by_class, THREE), np.random.default_rng(0), 0, 0
    for _ in range(400):
        rows = rng.integers(0, len(full), 1500)
        counted = [np.bincount(full[rows[wrong[rows]]], minlength=3) for wrong in differs]
        classes = tuple(np.bincount(full[rows], minlength=3).tolist())
        means = np.zeros(len(path))
        counts = PathCounts(classes, np.array(counted), means, means)
        k = Evidence(counts, 0, np.array(counted), 0, "").boldest(budget, 0.9)
        shares = [np.mean(differs[k]), np.mean(differs[k][full == 2])]
        broken += shares[0] > 0.03 or (by_class is not None and shares[1] > by_class[2])
        bold += shares[0] > 0.01
    assert broken <= 0.1 * 400 + 3 * np.sqrt(400 * 0.1 * 0.9)
    assert bold > 200  # it does not hold because nothing quits
