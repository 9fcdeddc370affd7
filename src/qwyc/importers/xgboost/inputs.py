"""The columns of an XGBoost model, and their categories."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from qwyc.errors import ModelError
from qwyc.importers.xgboost.trees import REMEDY
from qwyc.rows.schema import MISSING, Category, Schema

Document = Mapping[str, Any]


def inputs(learner: Document, cats: Document | None, n_features: int, missing: float) -> Schema:
    """What rows must look like."""
    names = [str(name) for name in learner.get("feature_names") or ()]
    if names and len(names) != n_features:
        raise ModelError(f"the model has {n_features} features but names {len(names)}; {REMEDY}")
    encodings = cats["enc"] if cats else []
    if len(encodings) > max(0, n_features):
        raise ModelError(f"the model has {n_features} features but encodes {len(encodings)}")
    values = {i: _category_values(encoding) for i, encoding in enumerate(encodings)}
    categories = {i: known for i, known in values.items() if known}
    if categories and missing >= 0 and missing == int(missing):
        raise ModelError(
            f"missing={missing:g} could be a category's code, and XGBoost then goes by how each table "
            "numbers its categories; train with missing=nan"
        )
    return Schema(
        n_features=n_features,
        names=tuple(names) or None,
        dtype="float32",
        categories=categories,
        unseen="error",  # what XGBoost means to do; 3.1 and 3.2 may take a neighbour instead
        missing=missing,
        absent=MISSING,
    )


def _category_values(encoding: Document) -> tuple[Category, ...]:
    """A feature's categories in the order of their codes; none where they are not sure."""
    if "offsets" not in encoding:
        return tuple(int(value) for value in encoding.get("values", ()))
    text = (np.asarray(encoding["values"], dtype=np.int64) & 0xFF).astype(np.uint8).tobytes()
    # From pandas, XGBoost up to 3.2 cuts names by their number of characters, not of bytes, so that
    # beyond ASCII the names in the file are not those of the data.
    if not text.isascii():
        return ()
    begin = [int(offset) for offset in encoding["offsets"]]
    if begin and (begin[0] != 0 or begin[-1] > len(text) or begin != sorted(begin)):
        raise ModelError("a feature's category names are damaged")
    return tuple(text[a:b].decode("ascii") for a, b in pairwise(begin))
