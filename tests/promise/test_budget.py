"""Budgets: what each form of alpha allows, needs and says."""

import math

import numpy as np
import pytest

import qwyc
from qwyc.policy.counts import Counts
from qwyc.promise.binomial import tail
from qwyc.promise.budget import Budget, BudgetByDifference, TotalBudget, budget_of


def counts(lost, gained, rows=10_000):
    return Counts((rows // 2, rows - rows // 2), (lost, gained), 3.0, 3.0)


def test_a_number_is_a_share_of_all_rows():
    budget = budget_of(0.005)
    assert budget == TotalBudget(0.005)
    assert budget.alpha == 0.005
    assert str(budget) == "0.5%"
    assert budget.value(("late", "on time")) == "0.5%"
    assert budget.share_of("negative", (9, 1)) == budget.share_of("positive", (9, 1)) == 0.005
    assert budget.penalty_weights((9, 1)) == (1.0, 1.0)
    assert budget.rows_allowed(1000) == 5


def test_a_mapping_is_a_share_for_each_way_to_differ():
    budget = budget_of({"positive": 0.01, "negative": 0.002})
    assert budget == BudgetByDifference((0.002, 0.01))
    assert budget.alpha == {"negative": 0.002, "positive": 0.01}
    assert str(budget) == "0.2% negative and 1% positive"
    assert budget.share_of("negative", (5, 5)) == 0.002
    lost, gained = budget.penalty_weights((5, 5))
    assert lost / gained == pytest.approx(5)
    with pytest.raises(qwyc.OptionError, match="method='auto'"):
        budget.rows_allowed(1000)


@pytest.mark.parametrize("alpha", [0.005, 0.02, {"negative": 0.004, "positive": 0.03}])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
def test_the_rows_needed_are_the_fewest_that_pass(alpha, confidence):
    budget = budget_of(alpha)
    n = budget.rows_needed(confidence)
    assert budget.passes(counts(0, 0, n), confidence)
    assert not budget.passes(counts(0, 0, n - 1), confidence)


def test_a_total_passes_by_the_sum_and_parts_pass_each_by_itself():
    both = counts(20, 20)
    assert tail(40, 10_000, 0.006) <= 0.05
    assert budget_of(0.006).passes(both, 0.95)
    assert not budget_of({"negative": 0.002, "positive": 0.02}).passes(both, 0.95)
    assert budget_of({"negative": 0.004, "positive": 0.004}).passes(both, 0.95)


def test_zero_is_proven_and_one_difference_contradicts_it():
    budget = budget_of(0)
    assert budget.is_zero
    assert budget.rows_needed(0.95) == 1
    assert budget.passes(counts(0, 0), 0.95)
    assert not budget.passes(counts(1, 0), 0.95)
    assert not budget_of(0.1).is_zero


def test_covers_tells_what_was_seen_from_what_is_shown():
    assert budget_of(0.005).covers(counts(25, 25))
    assert not budget_of(0.005).covers(counts(26, 25))
    assert budget_of({"negative": 0.01, "positive": 0.001}).covers(counts(100, 10))
    assert not budget_of({"negative": 0.01, "positive": 0.001}).covers(counts(0, 11))


@pytest.mark.parametrize(
    ("alpha", "said"),
    [
        (1e-12, "less than any sample"),
        (-0.1, "at least 0"),
        (1, "below 1"),
        (True, "must be a number"),
        ("0.1", "must be a number"),
        (math.nan, "at least 0"),
        ({"negative": 0.1}, "needs both"),
        ({"negative": 0.1, "positive": 0.1, "other": 1}, "needs both"),
        ({"negative": 0.0, "positive": 0.1}, "above 0"),
    ],
)
def test_what_is_no_budget_is_refused(alpha, said):
    with pytest.raises(qwyc.OptionError, match=said):
        budget_of(alpha)


def test_a_budget_is_taken_as_it_is():
    budget = budget_of(np.float32(0.25))
    assert budget_of(budget) is budget
    assert isinstance(budget, Budget)


def test_statements_read_well():
    assert budget_of(0.005).statement(("no", "yes")) == (
        "at most 0.5% of new rows are decided differently"
    )
    assert budget_of({"negative": 0.001, "positive": 0.02}).statement(("no", "yes")) == (
        "at most 0.1% of new rows are decided as no instead of yes, and 2% the other way round"
    )
