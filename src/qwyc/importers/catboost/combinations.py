"""CatBoost's statistics of combinations of features, as columns that are computed from the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qwyc.errors import ModelError
from qwyc.importers.catboost.ctr import Combination, Ctr
from qwyc.importers.catboost.document import Document
from qwyc.importers.flatten import offsets
from qwyc.limits import MAX_CATEGORY_WORDS
from qwyc.model.combined_trees import (
    ABOVE,
    ABOVE_OR_MISSING,
    CATEGORY,
    IS_CATEGORY,
    Combinations,
)
from qwyc.rows.schema import Schema


def combinations_of(document: Document, ctrs: Sequence[Ctr], schema: Schema) -> Combinations:
    """The columns of statistics, each of which is a column of the trees, in this order."""
    n_values = sum(len(ctr.keys) + 1 for ctr in ctrs)
    if n_values > MAX_CATEGORY_WORDS:
        raise ModelError(
            f"the statistics of combinations have {n_values:,} values; at most {MAX_CATEGORY_WORDS:,} are "
            "held: train with a smaller max_ctr_complexity"
        )
    number = {of: i for i, of in enumerate(dict.fromkeys(ctr.of for ctr in ctrs))}
    # Tables of one combination follow each other: its key is then computed once for a row.
    tables = {ctr.table: ctr for ctr in sorted(ctrs, key=lambda ctr: number[ctr.of])}
    order = {name: np.argsort(ctr.keys) for name, ctr in tables.items()}
    place = {name: t for t, name in enumerate(tables)}
    parts = [_parts(document, of) for of in number]
    flat = [part for each in parts for part in each]
    known = [
        [value for value in schema.categories.get(j, ()) if value is not None]
        for j in range(schema.n_features)
    ]
    values = [np.append(ctr.values()[order[ctr.table]], ctr.default) for ctr in ctrs]
    keys = [ctr.keys[order[name]] for name, ctr in tables.items()]
    return Combinations(
        code_begin=offsets([len(hashes) for hashes in known]),
        code_hash=np.array([value for hashes in known for value in hashes], np.uint32),
        is_category=np.array([j in schema.categories for j in range(schema.n_features)], np.uint8),
        part_begin=offsets([len(each) for each in parts]),
        part_kind=np.array([kind for kind, _, _ in flat], np.uint8),
        part_feature=np.array([column for _, column, _ in flat], np.int32),
        part_value=np.array([value for _, _, value in flat], np.float64),
        table_of=np.array([number[ctr.of] for ctr in tables.values()], np.int32),
        key_begin=offsets([len(each) for each in keys]),
        key=np.concatenate([np.empty(0, np.uint64), *keys]),
        column_table=np.array([place[ctr.table] for ctr in ctrs], np.int32),
        value_begin=offsets([len(each) for each in values]),
        value=np.concatenate([np.empty(0, np.float32), *values]).astype(np.float32),
    )


def _parts(document: Document, of: Combination) -> list[tuple[int, int, Any]]:
    """The parts of a combination in the order of its key: kind, column, and a border or a hash."""
    categorical = [f.column for f in document.others if f.kind == "categorical"]
    parts: list[tuple[int, int, Any]] = [(CATEGORY, categorical[i], 0.0) for i in of.categories]
    for i, border in of.above:
        feature = document.floats[i]
        kind = ABOVE_OR_MISSING if feature.missing_is_high else ABOVE
        parts.append((kind, feature.column, border))
    return parts + [(IS_CATEGORY, categorical[i], float(value)) for i, value in of.equal]
