"""Budgets of many classes: what they allow, need and say."""

import pytest

import qwyc
from qwyc.policy.counts import Counts
from qwyc.promise.binomial import tail
from qwyc.promise.budget import TotalBudget, budget_of
from qwyc.target.many_classes import ManyClasses
from qwyc.target.two_classes import TwoClasses

THREE = ManyClasses(3)


def counts(by_class, differences):
    return Counts(by_class, differences, 3.0, 3.0)


def test_a_total_counts_all_ways_to_differ():
    budget = budget_of(0.006, target=THREE)
    assert budget == TotalBudget(0.006, THREE) != TotalBudget(0.006)
    assert repr(budget) == repr(TotalBudget(0.006))
    seen = counts((5000, 4000, 1000), (20, 15, 5))
    assert budget.limits[0].counted(seen) == (40, 10_000)
    assert tail(40, 10_000, 0.006) <= 0.05
    assert budget.passes(seen, 0.95)
    assert not budget.passes(counts((5000, 4000, 1000), (20, 15, 35)), 0.95)
    assert budget.penalty_weights((5, 4, 1)) == (1.0, 1.0, 1.0)
    assert budget.allowed("both") == "both"


def test_a_share_of_a_class_counts_its_own_rows_only():
    budget = budget_of(0.01, {2: 0.02, 0: 0.5}, THREE)
    assert [limit.counted(counts((50, 40, 10), (7, 3, 1))) for limit in budget.limits] == [
        (11, 100),
        (7, 50),
        (1, 10),
    ]
    assert str(budget) == (
        "1% of all rows and 50% of the rows called class 0 and 2% of the rows called class 2"
    )
    assert "calls c are decided" in budget.statement(("a", "b", "c"))
    assert budget.allowed("both") == "both"
    lost = budget.penalty_weights((500, 400, 100))
    assert lost[2] == max(lost)
    assert lost[0] == lost[1]
    shortfall = budget.shortfall(counts((5000, 4000, 10), (0, 0, 0)), 0.95, ("a", "b", "c"))
    assert shortfall == (
        "at least 149 certifying rows that the full ensemble calls c; there are 10, enough for a share "
        "of 0.26"
    )


def test_room_for_a_verification_keeps_the_target():
    budget = budget_of(0.01, {2: 0.05}, THREE)
    smaller = budget.with_room(20_000, 0.95, counts((5000, 4000, 1000), (0, 0, 0)))
    assert smaller.target == THREE
    for less, limit in zip(smaller.limits, budget.limits, strict=True):
        assert 0 < less.share < limit.share
        assert less.differences == limit.differences


def test_every_class_has_a_limit_where_rows_may_quit():
    with pytest.raises(qwyc.OptionError, match="every class"):
        budget_of(None, {0: 0.01, 1: 0.01}, THREE).allowed("both")
    assert budget_of(None, dict.fromkeys(range(3), 0.01), THREE).allowed("both") == "both"


def test_what_is_for_two_classes_is_refused():
    with pytest.raises(qwyc.OptionError, match="two classes"):
        budget_of({"negative": 0.01, "positive": 0.01}, target=THREE)
    with pytest.raises(qwyc.OptionError, match="there are 3"):
        budget_of(0.01, {3: 0.01}, THREE)


def test_two_classes_are_the_default():
    assert budget_of(0.01).target is TwoClasses
    assert budget_of(None, {1: 0.01}).target is TwoClasses
    assert budget_of({"negative": 0.01, "positive": 0.02}).target is TwoClasses
