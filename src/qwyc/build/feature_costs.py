"""What features cost: given by the user, or what the engine itself spends on a feature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError
from qwyc.model.ensemble import Ensemble
from qwyc.policy.costs import Costs
from qwyc.rows.column_names import quoted_names, similar_names
from qwyc.rows.schema import Schema
from qwyc.runtime.arguments import is_number

Floats = npt.NDArray[np.float64]

ENGINE_FEATURE_COST = 0.0  # in base models; docs/research.md has what other values would change


def engine_feature_cost() -> float:
    """What the engine spends on a feature when a row first needs it, in base models. `optimize` counts it
    where neither costs nor feature costs are given; at 0, orders do not depend on features."""
    return ENGINE_FEATURE_COST


def costs_of_features(given: Any, ensemble: Ensemble, costs: Any) -> Floats | None:
    """What each feature costs, (n_features,); None where features do not count. `given` is what the user
    passed, and `costs` are those of the base models."""
    schema, models = ensemble.schema, ensemble.base_models
    known = schema is not None and ensemble.transform is None and models.feature_needs() is not None
    if given is None:
        engine = engine_feature_cost()
        if costs is not None or not known or engine == 0:
            return None
        assert schema is not None
        return np.full(schema.n_features, engine)
    if ensemble.transform is not None:
        raise OptionError(
            "feature_costs are about the columns that base models look at, and a pipeline makes those from "
            "others: optimise its last step, pipeline[-1], on the rows that pipeline[:-1].transform gives"
        )
    if not known or schema is None:
        raise OptionError(
            f"feature_costs need base models that say which columns they look at, and "
            f"{models.description} do not: pass costs=qwyc.Costs(own, parts, needs), with columns as parts"
        )
    return check_feature_costs(given, schema)


def check_feature_costs(given: Any, schema: Schema) -> Floats:
    """`feature_costs` as (n_features,) numbers of at least 0, from that many numbers or from a mapping of
    column names or positions."""
    n = schema.n_features
    if isinstance(given, Mapping):
        costs = np.zeros(n)
        seen: dict[int, Any] = {}
        for key, value in given.items():
            j = _feature(key, schema)
            if j in seen:
                raise OptionError(f"feature_costs has feature {j} twice: {seen[j]!r} and {key!r}")
            seen[j] = key
            costs[j] = _cost(value, key)
        return _read_only(costs)
    wanted = (
        f"feature_costs must be {n} numbers, one per feature, or a mapping from column to cost, such "
        f"as {{{_example(schema)!r}: 5.0}}"
    )
    try:
        array = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(f"{wanted}; got {_shown(given)}") from None
    if array.shape != (n,) or isinstance(given, (str, bytes)):
        got = f"shape {array.shape}" if array.ndim else _shown(given)
        raise OptionError(f"{wanted}; got {got}")
    for j, value in enumerate(array.tolist()):
        _cost(value, j if schema.names is None else schema.names[j])
    return _read_only(array)


def with_features(costs: Costs, ensemble: Ensemble, feature_costs: Floats | None) -> Costs:
    """The costs of base models, with every feature that costs something as a part that they share."""
    pairs = ensemble.base_models.feature_needs()
    if feature_costs is None or pairs is None:
        return costs
    costly = np.flatnonzero(feature_costs)
    part = np.full(len(feature_costs), -1)
    part[costly] = np.arange(len(costly))
    models, parts = pairs[0], part[pairs[1]]
    needs = np.zeros((costs.n_models, len(costly)), dtype=bool)
    needs[models[parts >= 0], parts[parts >= 0]] = True
    return costs.with_parts(feature_costs[costly], needs)


def _feature(key: Any, schema: Schema) -> int:
    """The position of a feature that a user names."""
    n, names = schema.n_features, schema.names
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        if 0 <= key < n:
            return int(key)
        raise OptionError(
            f"feature_costs has feature {key}; the model has features 0 to {n - 1}, counted from 0"
        )
    if not isinstance(key, str):
        raise OptionError(f"feature_costs must be by column name or position; got {key!r}")
    if names is None:
        raise OptionError(
            f"feature_costs names {key!r}, but the model does not know its columns by name: use positions "
            f"from 0 to {n - 1}"
        )
    for spelling in (key, key.replace(" ", "_")):  # LightGBM stores names with underscores
        if spelling in names:
            return names.index(spelling)
    similar = similar_names([key], names)
    hint = f"; did you mean {quoted_names(similar)}?" if similar else ""
    raise OptionError(
        f"feature_costs names {key!r}, which the model was not trained on (it has: {quoted_names(names)})"
        f"{hint}"
    )


def _cost(value: Any, key: Any) -> float:
    if not is_number(value) or not np.isfinite(value) or value < 0:
        raise OptionError(
            f"feature_costs must be finite numbers of at least 0; that of {key!r} is {value!r}"
        )
    return float(value)


def _example(schema: Schema) -> Any:
    return 0 if schema.names is None else schema.names[0]


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _read_only(costs: Floats) -> Floats:
    costs.flags.writeable = False
    return costs
