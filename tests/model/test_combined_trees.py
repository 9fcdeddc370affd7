"""Columns of combinations: the native core against its twin, and arrays that are not sound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import qwyc
from oracle import combinations as oracle
from qwyc.model.combined_trees import Combinations

HASHES = np.array([5, 1 << 31, (1 << 32) - 1, 77], np.uint32)


def make_rows(rng, n):
    """Two columns of numbers, on borders and beside them, and two of categories."""
    numbers = rng.choice([-1.0, 0.0, 0.1, 0.5, 1.0, 1e300, np.nan, np.inf, -np.inf], (n, 2))
    numbers[:, 0] = np.where(rng.random(n) < 0.3, 0.1 + 1e-12, numbers[:, 0])  # 0.1 in float32
    codes = rng.choice([0.0, 1.0, 2.0, *(oracle.FIRST_HASH + HASHES.astype(float)), -1.0], (n, 2))
    return np.column_stack([numbers[:, 0], codes, numbers[:, 1]])


def make_combinations(rng, rows, n_combinations=6):
    """Random combinations, whose tables have keys of some of the rows and others."""
    parts = []
    for _ in range(n_combinations):
        of = [(0, int(rng.choice([1, 2])), 0.0)]
        for _ in range(rng.integers(0, 4)):
            kind = int(rng.integers(0, 4))
            feature = int(rng.choice([0, 3] if kind in (1, 2) else [1, 2]))
            value = (
                rng.choice([0.0, np.float32(0.1), 0.5]) if kind in (1, 2) else rng.choice(HASHES)
            )
            of.append((kind, feature, float(value)))
        parts.append(of)
    flat = [part for of in parts for part in of]
    made = Combinations(
        code_begin=np.array([0, 0, 3, 5, 5]),
        code_hash=np.array([5, 1 << 31, 9, 77, 5], np.uint32),
        is_category=np.array([0, 1, 1, 0], np.uint8),
        part_begin=np.cumsum([0, *map(len, parts)]),
        part_kind=np.array([kind for kind, _, _ in flat], np.uint8),
        part_feature=np.array([feature for _, feature, _ in flat], np.int32),
        part_value=np.array([value for _, _, value in flat]),
        table_of=np.empty(0, np.int32),
        key_begin=np.zeros(1, np.int64),
        key=np.empty(0, np.uint64),
        column_table=np.empty(0, np.int32),
        value_begin=np.zeros(1, np.int64),
        value=np.empty(0, np.float32),
    )
    tables, keys, columns, values = [], [], [], []
    for t in range(2 * n_combinations):
        of = int(rng.integers(n_combinations))
        known = {oracle.key_of(made, of, row) for row in rows[rng.random(len(rows)) < 0.5]}
        known |= set(rng.integers(0, 1 << 60, 5).tolist()) if t else set()
        known = known if t != 1 else set()  # an empty table
        tables.append(of)
        keys.append(np.array(sorted(known), np.uint64))
        for _ in range(rng.integers(1, 3)):
            columns.append(t)
            values.append(rng.normal(size=len(known) + 1).astype(np.float32))
    return replace(
        made,
        table_of=np.array(tables, np.int32),
        key_begin=np.cumsum([0, *map(len, keys)]),
        key=np.concatenate(keys),
        column_table=np.array(columns, np.int32),
        value_begin=np.cumsum([0, *map(len, values)]),
        value=np.concatenate(values),
    )


@pytest.mark.parametrize("seed", range(3))
def test_columns_are_those_of_the_oracle(seed):
    rng = np.random.default_rng(seed)
    rows = make_rows(rng, 300)
    made = make_combinations(rng, rows[:40])
    with np.errstate(over="ignore"):
        expected = oracle.expand(made, rows)
    for layout in (rows, np.asfortranarray(rows), np.repeat(rows, 2, axis=0)[::2], rows[:1]):
        for threads in (1, 3):
            found = made.expand(layout, threads)
            np.testing.assert_array_equal(found, expected[: len(layout)])
    assert made.expand(rows[:0]).shape == (0, made.n_columns)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("code_begin", lambda a: a[:-1]),
        ("code_begin", lambda a: a[::-1]),
        ("part_begin", lambda a: a + 1),
        ("part_kind", lambda a: a + np.uint8(9)),
        ("part_feature", lambda a: a + np.int32(4)),
        ("part_feature", lambda a: a - np.int32(4)),
        ("part_feature", lambda a: np.zeros_like(a)),
        ("part_value", lambda a: a[:-1]),
        ("table_of", lambda a: a + np.int32(100)),
        ("table_of", lambda a: a[:-1]),
        ("key", lambda a: a[::-1].copy()),
        ("key_begin", lambda a: a - 1),
        ("key_begin", lambda a: a[:0]),
        ("column_table", lambda a: a - np.int32(1)),
        ("column_table", lambda a: a[:-1]),
        ("value_begin", lambda a: a[:-1]),
        ("value", lambda a: a[:-1]),
    ],
)
def test_arrays_that_are_not_sound_are_refused(name, change):
    rng = np.random.default_rng(0)
    made = make_combinations(rng, make_rows(rng, 40))
    bad = np.ascontiguousarray(change(getattr(made, name)))
    with pytest.raises(qwyc.ModelError, match="not valid"):
        _ = replace(made, **{name: bad}).native


def test_rows_of_another_width_are_refused():
    rng = np.random.default_rng(0)
    made = make_combinations(rng, make_rows(rng, 40))
    with pytest.raises(ValueError, match="columns"):
        made.expand(np.zeros((3, 5)))
