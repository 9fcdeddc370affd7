"""How each family of base models is kept in a file. A family that can be saved has an entry here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qwyc.errors import ArtifactError
from qwyc.files.container import Tensors
from qwyc.files.values import flag, number, text
from qwyc.model.base_models import BaseModels
from qwyc.model.class_trees import ClassTreeModels
from qwyc.model.combined_trees import Combinations, CombinedTreeModels
from qwyc.model.lattices.models import LatticeArrays, LatticeModels
from qwyc.model.trees import Summation, TreeModels, Trees
from qwyc.rows.schema import Schema
from qwyc.target.ties import CODES, Ties

TensorTypes = Mapping[str, tuple[int, tuple[str, ...]]]  # name -> number of axes, allowed dtypes

REAL = ("float32", "float64")


@dataclass(frozen=True)
class Family:
    """What a file holds of base models of one kind, and how they are made from it."""

    tensors: TensorTypes  # names are `kind.name`
    read: Callable[[dict[str, Any], Tensors, Schema], BaseModels]


def _read_trees(facts: dict[str, Any], tensors: Tensors, schema: Schema) -> TreeModels:
    trees = Trees(**{name: tensors[f"trees.{name}"] for name in Trees.decisive()})
    if schema.dtype != trees.threshold.dtype.name:
        raise ArtifactError("the schema's dtype is not the dtype of the thresholds")
    models = TreeModels(
        trees,
        schema.n_features,
        summation=Summation[text(facts["summation"]).upper()],
        less_equal=flag(facts["less_equal"]),
        truncates=flag(facts["truncates"]),
        start=number(facts["base"]),
        divisor=number(facts["divisor"]),
        scale=number(facts.get("scale", 1.0)),
    )
    _ = models.native  # checks every array
    return models


def _read_lattices(facts: dict[str, Any], tensors: Tensors, schema: Schema) -> LatticeModels:
    fields = LatticeArrays.__dataclass_fields__
    arrays = LatticeArrays(**{name: tensors[f"lattices.{name}"] for name in fields})
    for name in ("point", "output", "missing_value", "missing_output", "other_output", "vertex"):
        if getattr(arrays, name).dtype.name != schema.dtype:
            raise ArtifactError(f"the schema's dtype is not the dtype of lattices.{name}")
    models = LatticeModels(
        arrays, schema.n_features, start=number(facts["base"]), mean=flag(facts["mean"])
    )
    _ = models.native  # checks every array
    return models


def _read_class_trees(facts: dict[str, Any], tensors: Tensors, schema: Schema) -> ClassTreeModels:
    t = {name: tensors[f"{ClassTreeModels.kind}.{name}"] for name in (*TREES, *CLASS_TREES)}
    trees = Trees(**{name: t[name] for name in TREES})
    if schema.dtype != trees.threshold.dtype.name:
        raise ArtifactError("the schema's dtype is not the dtype of the thresholds")
    K, vector = len(t["start"]), t["leaf_vector"]
    leaves = vector if len(vector) else trees.leaf_value
    # Lengths first: everything else relies on them.
    if K < 2 or not len(trees.leaf_begin) or len(t["step_begin"]) < 2 or vector.shape[1] != K:
        raise ArtifactError("there are too few classes, trees or base models")
    if trees.leaf_begin[-1] != len(leaves) or len(trees.leaf_other):
        raise ArtifactError("the leaves of the trees are not those of the file")
    if not (np.isfinite(leaves).all() and np.isfinite(t["start"]).all()):
        raise ArtifactError("what leaves add must be finite")
    less_equal, truncates = flag(facts["less_equal"]), flag(facts["truncates"])
    plain = replace(trees, leaf_value=np.zeros(len(leaves)))
    rule = (Summation.FLOAT64, less_equal, truncates, 0.0, 1.0)
    _ = TreeModels(
        plain, schema.n_features, *rule
    ).native  # checks offsets before they are followed
    kind, dtype, scale = facts["ties"]
    if (kind, dtype) not in CODES:
        raise ArtifactError(f"{kind!r} in {dtype!r} is not a known rule for ties")
    models = ClassTreeModels(
        trees,
        t["tree_class"],
        vector,
        t["step_begin"],
        schema.n_features,
        summation=Summation[text(facts["summation"]).upper()],
        less_equal=less_equal,
        truncates=truncates,
        start=t["start"],
        divisor=number(facts["divisor"]),
        ties=Ties(kind, dtype, number(scale)),
        scale=number(facts.get("scale", 1.0)),
    )
    if models.divisor <= 0:
        raise ArtifactError("the sum of trees must be divided by a positive number")
    models.score_full(
        np.empty((0, schema.n_features), schema.dtype)
    )  # lays out what evaluates rows
    return models


def _read_combined(
    read: Callable[[dict[str, Any], Tensors, Schema], TreeModels | ClassTreeModels], kind: str
) -> Callable[[dict[str, Any], Tensors, Schema], CombinedTreeModels]:
    """What reads trees of a kind and the combinations that some of their columns are made from."""

    def read_both(facts: dict[str, Any], tensors: Tensors, schema: Schema) -> CombinedTreeModels:
        own = {name.removeprefix("combined-"): array for name, array in tensors.items()}
        made = Combinations(**{name: own[f"{kind}.{name}"] for name in COMBINATIONS})
        _ = made.native  # checks every array
        if schema.dtype != "float64" or made.n_features != schema.n_features:
            raise ArtifactError("the combinations are for different rows")
        _check_codes(made, schema)
        inner = replace(schema, n_features=made.n_columns, dtype="float32")
        return CombinedTreeModels(read(facts, own, inner), made)

    return read_both


def _check_codes(made: Combinations, schema: Schema) -> None:
    """Refuse combinations in which codes stand for other hashes than in the schema."""
    for j in range(schema.n_features):
        known = [value for value in schema.categories.get(j, ()) if value is not None]
        own = made.code_hash[made.code_begin[j] : made.code_begin[j + 1]]
        if bool(made.is_category[j]) != (j in schema.categories) or own.tolist() != known:
            raise ArtifactError("the combinations are for different categories")


TREES: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "node_begin": (1, ("int64",)),
    "leaf_begin": (1, ("int64",)),
    "feature": (1, ("int32",)),
    "threshold": (1, REAL),
    "left": (1, ("int32",)),
    "right": (1, ("int32",)),
    "flags": (1, ("uint8",)),
    "category_begin": (1, ("int64",)),
    "category_words": (1, ("uint32",)),
    "leaf_value": (1, ("float64",)),
    "leaf_other": (1, ("float64",)),
}
CLASS_TREES: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "tree_class": (1, ("int32",)),
    "leaf_vector": (2, ("float64",)),  # (n_leaves, K), or (0, K)
    "step_begin": (1, ("int64",)),
    "start": (1, ("float64",)),  # (K,)
}


COMBINATIONS: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "code_begin": (1, ("int64",)),  # (n_features + 1,)
    "code_hash": (1, ("uint32",)),
    "is_category": (1, ("uint8",)),  # (n_features,)
    "part_begin": (1, ("int64",)),
    "part_kind": (1, ("uint8",)),
    "part_feature": (1, ("int32",)),
    "part_value": (1, ("float64",)),
    "table_of": (1, ("int32",)),
    "key_begin": (1, ("int64",)),
    "key": (1, ("uint64",)),
    "column_table": (1, ("int32",)),
    "value_begin": (1, ("int64",)),
    "value": (1, ("float32",)),
}


def _named(kind: str, tensors: TensorTypes) -> TensorTypes:
    return {f"{kind}.{name}": of for name, of in tensors.items()}


FAMILIES: Mapping[str, Family] = {
    TreeModels.kind: Family(_named(TreeModels.kind, TREES), _read_trees),
    ClassTreeModels.kind: Family(
        _named(ClassTreeModels.kind, {**TREES, **CLASS_TREES}), _read_class_trees
    ),
    "combined-trees": Family(
        _named("combined-trees", {**TREES, **COMBINATIONS}), _read_combined(_read_trees, "trees")
    ),
    "combined-class-trees": Family(
        _named("combined-class-trees", {**TREES, **CLASS_TREES, **COMBINATIONS}),
        _read_combined(_read_class_trees, "class-trees"),
    ),
    LatticeModels.kind: Family(
        {
            "lattices.calibrator_kind": (1, ("uint8",)),
            "lattices.calibrator_feature": (1, ("int32",)),
            "lattices.point_begin": (1, ("int64",)),
            "lattices.point": (1, REAL),
            "lattices.output": (1, REAL),
            "lattices.has_missing": (1, ("uint8",)),
            "lattices.missing_value": (1, REAL),
            "lattices.missing_output": (1, REAL),
            "lattices.other_output": (1, REAL),
            "lattices.interpolation": (1, ("uint8",)),
            "lattices.weight": (1, ("float64",)),
            "lattices.input_begin": (1, ("int64",)),
            "lattices.input": (1, ("int32",)),
            "lattices.size": (1, ("int32",)),
            "lattices.vertex_begin": (1, ("int64",)),
            "lattices.vertex": (1, REAL),
        },
        _read_lattices,
    ),
}
