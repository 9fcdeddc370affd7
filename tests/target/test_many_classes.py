"""Decisions and differences of many classes, by hand."""

import numpy as np
import pytest

import qwyc
from qwyc.target.many_classes import ManyClasses


def test_the_largest_score_decides_and_the_first_of_equal_ones():
    full = np.array([[1.0, 2.0, 0.0], [3.0, 3.0, 3.0], [0.0, 1.0, 1.0], [-np.inf, -2.0, -1.0]])
    np.testing.assert_array_equal(ManyClasses(3).decide(full), [1, 0, 1, 2])


def test_differences_are_counted_by_the_full_decision():
    target = ManyClasses(4)
    full, decided = np.array([0, 0, 1, 3, 3, 3]), np.array([0, 1, 2, 3, 0, 1])
    np.testing.assert_array_equal(target.count_classes(full), [2, 1, 0, 3])
    np.testing.assert_array_equal(target.count_differences(decided, full), [1, 1, 0, 2])
    rows, ways = target.differing(decided, full)
    np.testing.assert_array_equal(rows, [1, 2, 4, 5])
    np.testing.assert_array_equal(ways, [0, 1, 3, 3])
    assert [target.lost_from(k) for k in range(4)] == [(0,), (1,), (2,), (3,)]
    assert len(target.differences) == target.n_classes == 4


def test_no_rows_have_no_differences():
    none = np.empty(0, dtype=np.intp)
    target = ManyClasses(3)
    assert target.decide(np.empty((0, 3))).shape == (0,)
    np.testing.assert_array_equal(target.count_differences(none, none), [0, 0, 0])


def test_targets_are_equal_by_their_number_of_classes():
    assert ManyClasses(3) == ManyClasses(np.int64(3)) != ManyClasses(4)
    assert hash(ManyClasses(3)) == hash(ManyClasses(3))


@pytest.mark.parametrize("wrong", [1, 0, -1, 2.5, True, "3", None])
def test_fewer_than_two_classes_are_refused(wrong):
    with pytest.raises(qwyc.OptionError, match="n_classes"):
        ManyClasses(wrong)
