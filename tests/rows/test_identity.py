"""Hashes of rows: equal for equal numbers, whatever holds them, and different otherwise."""

import numpy as np
import pytest

from qwyc.rows import identity
from qwyc.rows.identity import row_hashes

RECORDED = ["0xcd2f88cecce42525", "0xb4c0c181485b5f86", "0xdcc8ae1197daf3b2"]


def test_hashes_are_the_same_on_every_machine():
    rows = np.array([[0.0, 1.5, -2.0], [np.nan, np.inf, -np.inf], [1e-300, 3.0, 7.0]])
    assert [hex(h) for h in row_hashes(rows)] == RECORDED
    assert [hex(h) for h in row_hashes(rows.astype(">f8"))] == RECORDED


@pytest.mark.parametrize("blocks", [1 << 14, 7])
def test_hash_depends_on_the_row_alone(blocks, monkeypatch):
    monkeypatch.setattr(identity, "BLOCK", blocks)
    X = np.random.default_rng(0).normal(size=(100, 5)).astype(np.float32)
    hashes = row_hashes(X)
    np.testing.assert_array_equal(row_hashes(X[::-1]), hashes[::-1])
    np.testing.assert_array_equal(row_hashes(np.asfortranarray(X)), hashes)
    np.testing.assert_array_equal(row_hashes(X.astype(np.float64)), hashes)
    np.testing.assert_array_equal(row_hashes(X[40:60]), hashes[40:60])
    assert len(np.unique(hashes)) == 100
    assert len(np.unique(row_hashes(X[:, ::-1]))) == 100
    assert not set(row_hashes(X[:, ::-1])) & set(hashes)


def test_zeros_and_missing_values_are_alike():
    quiet, negative = np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(float)
    rows = np.array([[0.0, quiet], [-0.0, negative], [0.0, np.nan], [0.0, 1.0]])
    hashes = row_hashes(rows)
    assert hashes[0] == hashes[1] == hashes[2] != hashes[3]


def test_rows_are_compared_as_the_base_models_see_them():
    rows = np.array([[0.1], [np.float64(np.float32(0.1))], [1e300], [1e301]])
    assert len(np.unique(row_hashes(rows))) == 4
    assert len(np.unique(row_hashes(rows, "float32"))) == 2  # beyond float32 all is infinite


def test_rows_of_small_whole_numbers_do_not_collide():
    """Such numbers differ in their highest bits only, which a weak hash does not spread."""
    grid = np.stack(np.meshgrid(*[np.arange(12.0)] * 5), axis=-1).reshape(-1, 5)  # 248,832 rows
    hashes = row_hashes(grid)
    assert len(np.unique(hashes)) == len(grid)
    share = np.bincount((hashes >> np.uint64(60)).astype(int), minlength=16) / len(grid)
    np.testing.assert_allclose(share, 1 / 16, atol=0.003)  # uniform, as sketches need
