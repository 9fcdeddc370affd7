"""Origins: the rows that a classifier was made from are recognised, other rows are not."""

import numpy as np
import pytest

from qwyc.promise.origin import SIZE, Origin
from qwyc.rows.identity import row_hashes


def hashes_of(rng, n, columns=5):
    return row_hashes(rng.normal(size=(n, columns)))


@pytest.mark.parametrize("n", [300, SIZE, 100_000])
def test_sketch_is_bounded_sorted_and_complete_up_to_its_limit(n):
    hashes = hashes_of(np.random.default_rng(0), n)
    origin = Origin.of(hashes)
    assert len(origin.hashes) == min(n, SIZE)
    assert (np.diff(origin.hashes) > 0).all()
    assert origin.rows == n
    np.testing.assert_array_equal(np.sort(hashes[hashes <= np.uint64(origin.limit)]), origin.hashes)


@pytest.mark.parametrize("n", [500, 20_000, 100_000])
def test_rows_are_recognised_in_any_order_and_part(n):
    rng = np.random.default_rng(1)
    hashes = hashes_of(rng, n)
    origin = Origin.of(hashes)
    for part in (hashes, hashes[::-1], hashes[1:], rng.choice(hashes, n // 10)):
        assert origin.found(part).refused
        assert origin.overlap(part) == 1.0
    # 80 rows of 100,000, of which the sketch holds one in twelve.
    refused = [origin.found(rng.choice(hashes, 80, replace=False)).refused for _ in range(200)]
    assert np.mean(refused) > 0.95


def test_new_rows_are_not_refused():
    rng = np.random.default_rng(2)
    origin = Origin.of(hashes_of(rng, 50_000))
    seen = origin.found(hashes_of(rng, 200_000))
    assert (seen.found, seen.refused, seen.doubtful) == (0, False, False)


def test_mixed_rows_are_refused_or_doubtful_by_their_share():
    rng = np.random.default_rng(3)
    sample = hashes_of(rng, 50_000)
    origin = Origin.of(sample)

    def mixed(old):
        return origin.found(np.concatenate([sample[:old], hashes_of(rng, 50_000 - old)]))

    assert mixed(5000).refused
    assert mixed(5000).share == pytest.approx(0.1, abs=0.02)
    assert mixed(500).doubtful
    assert not mixed(500).refused
    assert not mixed(0).doubtful


@pytest.mark.parametrize("n", [300, 3000, 30_000, 200_000])
@pytest.mark.parametrize("kind", ["few", "skewed", "one frequent", "many"])
def test_rows_that_repeat_by_chance_are_not_refused(n, kind):
    rng = np.random.default_rng([n, len(kind)])

    def draw(size):
        if kind == "few":
            return rng.integers(4, size=(size, 3)).astype(float)
        if kind == "skewed":
            return rng.zipf(1.3, size=(size, 2)).clip(max=10_000).astype(float)
        if kind == "one frequent":  # which may be in the sketch, or not
            return rng.normal(size=(size, 2)) * (rng.random(size) > 0.4)[:, None]
        return rng.integers(30, size=(size, 3)).astype(float)

    refused = 0
    for _ in range(20):
        origin = Origin.of(row_hashes(draw(n)))
        refused += origin.found(row_hashes(draw(n))).refused
    assert refused == 0


def test_copies_within_the_sample_do_not_pass_for_chance():
    hashes = np.repeat(hashes_of(np.random.default_rng(4), 2000), 5)
    origin = Origin.of(hashes)
    assert origin.chance == 0.0
    assert origin.found(hashes[:300]).refused
