"""Repeated rows: which rows count together, and that independent draws are left alone."""

import numpy as np
import pytest

from qwyc.promise import repeats
from qwyc.promise.repeats import MOST_EFFECT, beyond_chance, units
from qwyc.rows.identity import row_hashes

SAMPLES = 1000  # simulated samples for each kind of model
FALSE_FLAGS = 3  # of those; none has been seen


def stumps(X, rng, n_stumps):
    """Scores of stumps on random columns at random quantiles, (N, n_stumps)."""
    columns = rng.integers(X.shape[1], size=n_stumps)
    cuts = np.quantile(X, rng.uniform(0.02, 0.98, n_stumps), axis=0)[np.arange(n_stumps), columns]
    return (X[:, columns] > cuts) * rng.normal(size=n_stumps)


def draw(kind, rng, n):
    """Rows of independent draws, (n, 6)."""
    if kind == "continuous":
        return rng.normal(size=(n, 6))
    if kind == "counts":  # heavy ties, a few frequent values and many rare ones
        return rng.negative_binomial(0.5, 0.1, size=(n, 6)).astype(float)
    if kind == "categories":
        return rng.choice(40, size=(n, 6), p=1 / np.arange(1, 41) / (1 / np.arange(1, 41)).sum())
    if kind == "mixture":  # some rows of few values among continuous ones
        few = rng.random(n) < 0.3
        return np.where(few[:, None], rng.integers(3, size=(n, 6)), rng.normal(size=(n, 6)))
    raise ValueError(kind)


@pytest.mark.parametrize("kind", ["continuous", "counts", "categories", "mixture"])
def test_models_that_cannot_tell_rows_apart_are_not_flagged(kind):
    rng = np.random.default_rng(5)
    flagged = 0
    for _ in range(SAMPLES):
        n, T = int(rng.integers(300, 4000)), int(rng.integers(1, 40))
        X = draw(kind, rng, n)
        values = row_hashes(stumps(X, rng, T) if rng.random() < 0.7 else X)
        flagged += beyond_chance(np.unique(values, return_counts=True)[1])
    assert flagged <= FALSE_FLAGS


@pytest.mark.parametrize("copies", [2, 5, 20])
@pytest.mark.parametrize("trees", [8, 40])
def test_copies_that_differ_in_an_unused_column_are_found(copies, trees):
    rng = np.random.default_rng(copies)
    X = np.repeat(rng.normal(size=(2000, 6)), copies, axis=0)
    scores = row_hashes(stumps(X, rng, trees))
    rows = np.column_stack([X, np.arange(len(X))])
    shuffled = rng.permutation(len(X))
    found = units(row_hashes(rows)[shuffled], scores[shuffled])
    assert found.reason == "scores"
    of_row = found.group[np.argsort(shuffled)].reshape(-1, copies)
    assert (of_row == of_row[:, :1]).all()
    assert "the same as another row to every base model" in found.warning
    assert "repeats='independent'" in found.warning


def test_rows_of_which_some_are_doubled_are_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6))
    X = np.concatenate([X, X[:900]])
    scores = row_hashes(stumps(X, rng, 60))
    found = units(row_hashes(np.column_stack([X, np.arange(len(X))])), scores)
    assert found.reason == "scores"
    assert found.repeated >= 1800


@pytest.mark.parametrize("copies", [5, 20])
def test_equal_rows_are_one_unit(copies):
    rng = np.random.default_rng(1)
    X = np.tile(rng.normal(size=(500, 3)), (copies, 1))
    found = units(row_hashes(X), row_hashes(stumps(X, rng, 50)))
    assert (found.reason, found.distinct, found.largest) == ("values", 500, copies)
    assert found.repeated == found.rows == 500 * copies
    np.testing.assert_array_equal(found.group[:500], found.group[-500:])
    assert len(np.unique(found.group)) == 500
    assert f"{500 * copies:,} of {500 * copies:,} rows equal another row" in found.warning
    assert f"500 distinct rows, and the most frequent occurs {copies} times" in found.warning


def test_few_repeats_change_nothing():
    X = np.random.default_rng(2).normal(size=(2000, 3))
    few = units(row_hashes(np.concatenate([X, X[:50]])), None)  # design effect 1.049
    more = units(row_hashes(np.concatenate([X, X[:60]])), None)
    assert (few.group, few.reason, few.warning, few.repeated) == (None, "", "", 100)
    assert (more.reason, more.repeated) == ("values", 120)


def test_neglected_repeats_hardly_change_the_level_of_the_test():
    """At the largest design effect that is neglected, counts of 20,000 rows pass a test of 5% at most
    5.5% of the time although the share is at its limit."""
    rng = np.random.default_rng(3)
    n, share, repeats = 20_000, 0.005, 200_000
    doubled = int(n * (MOST_EFFECT - 1) / 2)  # pairs
    counts = rng.binomial(n - 2 * doubled, share, repeats) + 2 * rng.binomial(
        doubled, share, repeats
    )
    independent = rng.binomial(n, share, repeats)
    limit = np.quantile(independent, 0.05, method="lower") - 1  # rejects at most 5%
    level, changed = (independent <= limit).mean(), (counts <= limit).mean()
    assert level <= 0.05
    assert changed <= level + 0.006


def test_scores_alone_do_for_rows_that_are_no_matrix():
    rng = np.random.default_rng(4)
    scores = np.repeat(rng.normal(size=(300, 4)), 3, axis=0)
    assert units(None, row_hashes(scores)).reason == "scores"
    assert units(None, row_hashes(scores[::3])).group is None


@pytest.mark.parametrize("size", [1, 7, 1 << 16])
def test_values_are_counted_in_parts(monkeypatch, size):
    monkeypatch.setattr(repeats, "PART", size)
    rng = np.random.default_rng(3)
    for hashes in (rng.integers(0, 40, 100), np.arange(21), np.zeros(9), np.zeros(0)):
        hashes = hashes.astype(np.uint64)
        _, times = np.unique(hashes, return_counts=True)
        found = units(hashes, None)
        assert (found.rows, found.distinct) == (len(hashes), len(times))
        assert found.repeated == times[times > 1].sum()
        assert found.largest == times.max(initial=0)
        together = (times**2).sum() > MOST_EFFECT * max(len(hashes), 1)
        assert (found.group is not None) == together
