"""What is advised where a sample is too small: something that works."""

import re

import pytest

import qwyc
from qwyc.promise.budget import budget_of
from qwyc.promise.split import FEWEST_TO_FIT, check_enough_rows, with_few_rows


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
@pytest.mark.parametrize("n_rows", [300, 797, 5000])
def test_the_alpha_that_is_advised_has_enough_rows(n_rows, confidence):
    alpha = float(re.search(r"at least (\S+)\.$", with_few_rows(n_rows, confidence)).group(1))
    budget = budget_of(alpha)
    check_enough_rows(n_rows, budget.rows_needed(confidence), budget, confidence)
    smaller = budget_of(alpha * 0.8)
    with pytest.raises(qwyc.InfeasibleError, match="ask for a larger alpha"):
        check_enough_rows(n_rows, smaller.rows_needed(confidence), smaller, confidence)


@pytest.mark.parametrize("n_rows", [1, 143, FEWEST_TO_FIT, FEWEST_TO_FIT + 10])
def test_no_alpha_is_advised_where_none_is_useful(n_rows):
    assert "qwyc.read_model(model)" in with_few_rows(n_rows, 0.95)
    assert "larger alpha" not in with_few_rows(n_rows, 0.95)
