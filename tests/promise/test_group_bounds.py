"""Bounds on what differs in groups, at the ends of their range."""

import numpy as np
import pytest

from qwyc.policy.grouped import Weighed
from qwyc.promise import betting


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("cap", [1, 7])
@pytest.mark.parametrize("n_groups", [1, 2, 40])
def test_bounds_where_all_rows_differ(n_groups, cap, known):
    weight = np.resize([1, 3 / cap if cap > 3 else 1], n_groups)
    prior = (0.5, 0.2, 0.5) if known else (None, 0.0, 1.0)
    groups = Weighed(weight, weight, cap, *prior)
    assert betting.upper_bound(groups, 0.05) == 1
    assert betting.lower_bound(groups, 0.05) < 1


@pytest.mark.parametrize(("share", "some"), [(0.11, True), (0.10001, False), (0.09, False)])
def test_groups_that_would_be_enough(share, some):
    differ = np.repeat([1.0, 0.0], [100, 900])
    groups = Weighed(np.ones(1000), differ, 2, None, 0.0, 1.0)
    enough = betting.groups_at(groups, share, 0.05)
    assert (enough is not None and enough > 1000) if some else enough is None
