"""Shares of exponentials in float32: which class wins where they are equal, too large or too small."""

from __future__ import annotations

import math

import numpy as np
import pytest

from qwyc.target.ties import BY_SCORES, Ties

TIES = Ties("exponentials", "float32")
NEXT = float(np.nextafter(np.float32(0.01), np.float32(1)))


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([1.0, 2.0, 0.0], 1),
        ([0.01, NEXT, 0.0], 0),  # their exponentials are the same float32
        ([50.0, 89.0, 90.0], 1),  # both are infinite, and their shares NaN: the first of these
        ([0.0, 1.0, 88.7, 88.6], 0),  # only the sum is infinite: all shares are 0
        ([-300.0, -200.0, -250.0], 0),  # all exponentials are 0
    ],
)
def test_the_class_that_wins(scores, expected):
    assert TIES.decide(np.array([scores])).tolist() == [expected]
    assert int(np.argmax(TIES.probabilities(np.array(scores)))) == expected


def test_all_rows_are_decided_by_their_probabilities():
    rng = np.random.default_rng(0)
    full = rng.normal(size=(3000, 4)).astype(np.float32).astype(np.float64)
    full[:1500, 1] = np.nextafter(full[:1500, 0].astype(np.float32), np.float32(9))
    full[::7] *= 100
    expected = [int(np.argmax(TIES.probabilities(row))) for row in full]
    decided = TIES.decide(full)
    np.testing.assert_array_equal(decided, expected)
    assert (decided != np.argmax(full, axis=1)).any()


def test_the_margin_of_equal_scores():
    assert BY_SCORES.margin(1e9) == 0.0
    assert 0 < TIES.margin(10.0) < 1e-3
    assert TIES.margin(100.0) == math.inf
    assert TIES.margin(math.nan) == math.inf
    assert Ties("sigmoid").margin(1.0) == math.inf
