"""How each family of base models is kept in a file. A family that can be saved has an entry here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from qwyc.errors import ArtifactError
from qwyc.files.container import Tensors
from qwyc.files.values import flag, number, text
from qwyc.model.base_models import BaseModels
from qwyc.model.lattices.models import LatticeArrays, LatticeModels
from qwyc.model.trees import Summation, TreeModels, Trees
from qwyc.rows.schema import Schema

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


FAMILIES: Mapping[str, Family] = {
    TreeModels.kind: Family(
        {
            "trees.node_begin": (1, ("int64",)),
            "trees.leaf_begin": (1, ("int64",)),
            "trees.feature": (1, ("int32",)),
            "trees.threshold": (1, REAL),
            "trees.left": (1, ("int32",)),
            "trees.right": (1, ("int32",)),
            "trees.flags": (1, ("uint8",)),
            "trees.category_begin": (1, ("int64",)),
            "trees.category_words": (1, ("uint32",)),
            "trees.leaf_value": (1, ("float64",)),
            "trees.leaf_other": (1, ("float64",)),
        },
        _read_trees,
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
