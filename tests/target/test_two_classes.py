"""The decision rule, and the kinds of difference, by hand and against the native core."""

import numpy as np
import pytest

from qwyc import _native
from qwyc.target.two_classes import NEGATIVE, POSITIVE, TwoClasses


def test_a_score_on_the_threshold_is_positive():
    full = np.array([0.5, np.nextafter(0.5, 0), np.nextafter(0.5, 1), -np.inf, np.inf])
    np.testing.assert_array_equal(TwoClasses(0.5).decide(full), [1, 0, 1, 0, 1])


def test_differences_are_named_after_the_early_decision():
    target = TwoClasses(0.0)
    full = np.array([1, 1, 1, 0, 0])
    decided = np.array([0, 0, 1, 1, 0])
    assert dict(zip(target.differences, target.count_differences(decided, full), strict=True)) == {
        "negative": 2,
        "positive": 1,
    }
    np.testing.assert_array_equal(target.count_classes(full), [2, 3])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_native_core_decides_by_the_same_rule(dtype):
    values = np.array([[0.25, -0.5, 0.0, 0.5]], dtype=dtype)  # (T, N)
    full = np.array([0.25, -0.5, 0.0, 0.5])
    for threshold in (-0.5, 0.0, 0.25, 0.5, 0.75):
        never = np.array([np.inf])
        decided, _, _ = _native.apply_policy(
            values, 0.0, full, np.array([0], np.int32), -never, never, threshold, 1
        )
        np.testing.assert_array_equal(decided, TwoClasses(threshold).decide(full))
    assert (NEGATIVE, POSITIVE) == (0, 1)
