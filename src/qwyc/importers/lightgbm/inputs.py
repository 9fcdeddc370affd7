"""The columns of a LightGBM model, and their categories."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from itertools import accumulate

from qwyc.errors import ModelError
from qwyc.importers.lightgbm.trees import REMEDY, Fields
from qwyc.rows.schema import ZERO, Category, Schema

_MAX_CHOICES = 1_000_000  # features times ordered columns


def inputs(header: Fields, tail: str, integers: str) -> Schema:
    """What rows must look like."""
    n_features = int(header["max_feature_idx"]) + 1
    names = header["feature_names"].split()
    if len(names) != n_features:
        raise ModelError(f"the model has {n_features} features but names {len(names)}; {REMEDY}")
    automatic = all(name == f"Column_{i}" for i, name in enumerate(names))
    return Schema(
        n_features=n_features,
        names=None if automatic else tuple(names),
        dtype="float64",
        categories=_categories(header.get("feature_infos", "").split(), tail),
        integers=integers,
        absent=ZERO,
    )


def _categories(infos: Sequence[str], tail: str) -> dict[int, tuple[Category, ...]]:
    """Category values of the features that were pandas categories, where that can be told.

    The model has the values of every pandas category column, in the columns' order, but not which
    columns those were. They are all categorical features and, from ordered categories, some
    numerical ones; only if one choice alone fits the ranges in the model, it is made.
    """
    found = re.findall(r"^pandas_categorical:(.*)$", tail, re.MULTILINE)
    values = json.loads(found[-1]) if found else None
    if not values:
        return {}
    if any(not isinstance(value, Category) for known in values for value in known):
        raise ModelError(f"pandas_categorical holds something else than categories; {REMEDY}")
    listed = re.search(r"^\[categorical_feature: ([0-9,]*)\]$", tail, re.MULTILINE)
    categorical = {int(token) for token in listed[1].split(",") if token} if listed else set()
    categorical |= {i for i, info in enumerate(infos) if info[0] not in "[n"}
    spare = len(values) - len(categorical)  # how many columns were ordered
    if spare < 0 or spare * len(infos) > _MAX_CHOICES:
        return {}
    n_codes = [_least_categories(info) for info in infos]  # (n_features,)
    before = list(accumulate((i in categorical for i in range(len(infos))), initial=0))

    # ways[i][s]: in how many ways (0, 1, or 2 for more) features i.. can have had the values that
    # are left, where s of the features before i were ordered.
    ways = [[0] * (spare + 2) for _ in range(len(infos) + 1)]
    ways[-1][spare] = 1
    for i in reversed(range(len(infos))):
        for s in range(spare + 1):
            k = before[i] + s
            fits = k < len(values) and n_codes[i] <= len(values[k])
            if i in categorical:
                ways[i][s] = ways[i + 1][s] * fits
            else:
                ways[i][s] = min(2, ways[i + 1][s] + ways[i + 1][s + 1] * fits)
    if ways[0][0] != 1:
        return {}
    matched: dict[int, tuple[Category, ...]] = {}
    for i in range(len(infos)):
        s = len(matched) - before[i]
        if i in categorical or not ways[i + 1][s]:
            matched[i] = tuple(values[len(matched)])
    return matched


def _least_categories(info: str) -> float:
    """How many categories a feature must have had at least; infinity where it cannot have any.

    "[0:7]" is a range of numbers, "-1:0:2:1" a list of category codes (-1 is any other), "none" a
    feature without use, of either kind.
    """
    if info == "none":
        return 0
    numbers = [float(number) for number in info.strip("[]").split(":")]
    if info[0] == "[" and (min(numbers) < 0 or any(number % 1 for number in numbers)):
        return math.inf
    return max(numbers) + 1
