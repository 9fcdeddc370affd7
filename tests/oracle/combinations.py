"""CatBoost's statistics of combinations, row by row: the twin of native/core/combinations.cpp."""

from __future__ import annotations

import numpy as np

FACTOR, MASK = 0x4906BA494954CB65, (1 << 64) - 1
FIRST_HASH = 1 << 24  # a cell from here on is this plus a hash; below, the position of a hash


def expand(made, rows):
    """Rows (N, n_features) with a column for each statistic, (N, n_columns) float32."""
    return np.array([expand_row(made, row) for row in rows], np.float32)


def expand_row(made, row):
    """One row: numbers, codes (-1 for hashes that have none), and statistics."""
    plain = [
        -1.0 if made.is_category[j] and not cell < FIRST_HASH else np.float32(cell)
        for j, cell in enumerate(row)
    ]
    return plain + [statistic(made, d, row) for d in range(len(made.column_table))]


def statistic(made, d, row):
    """The number of the row's key in the table of column d, or the last one."""
    table = made.column_table[d]
    keys = made.key[made.key_begin[table] : made.key_begin[table + 1]].tolist()
    values = made.value[made.value_begin[d] : made.value_begin[d + 1]]
    key = key_of(made, made.table_of[table], row)
    return values[keys.index(key)] if key in keys else values[-1]


def key_of(made, combination, row):
    """The key of a combination: every part goes into it after those before it."""
    key = 0
    for i in range(made.part_begin[combination], made.part_begin[combination + 1]):
        part = part_of(made, i, row)
        key = FACTOR * (key + FACTOR * part) & MASK
    return key


def part_of(made, i, row):
    """A hash with its sign, or whether something holds."""
    kind, j, value = made.part_kind[i], made.part_feature[i], made.part_value[i]
    if kind in (1, 2):
        number = np.float32(row[j])
        return int(kind == 2) if np.isnan(number) else int(number > np.float32(value))
    hashed = hash_of(made, j, row[j])
    return int(hashed == value) if kind == 3 else hashed - (hashed >> 31 << 32)


def hash_of(made, j, cell):
    known = made.code_hash[made.code_begin[j] : made.code_begin[j + 1]]
    if cell >= FIRST_HASH:
        return int(cell) - FIRST_HASH
    return int(known[int(cell)]) if 0 <= cell < len(known) else 0
