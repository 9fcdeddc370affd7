"""YDF's trees: conditions, which send a row left where they hold, and what leaves add."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from qwyc import _native
from qwyc.errors import ModelError
from qwyc.importers.flatten import NodeTable, offsets
from qwyc.model.trees import NodeFlag

SUPPORTED = (
    "supported are gradient boosted trees, random forests and CART for classes, regression and ranking, "
    "and isolation forests, on numerical, discretized numerical, boolean and categorical features"
)

# What a leaf adds, given its value and its depth: a number, or one for each class.
Leaf = Callable[[Any, int], Sequence[float]]


class Nodes:
    """Nodes of all trees, parents first."""

    def __init__(self, model: Any, column: dict[int, int], leaf: Leaf) -> None:
        self.specification, self.column, self.leaf = model.data_spec(), column, leaf
        self.begin = [0]
        self.children: list[list[int]] = []
        self.feature: list[int] = []
        self.threshold: list[float] = []
        self.flags: list[int] = []
        self.operator: list[str] = []
        self.vectors: list[Sequence[float]] = []  # (n, 1 or K)
        self.sets: list[Sequence[int]] = []
        self.weight: list[float] = []

    def add(self, root: Any) -> None:
        """Append a tree, level by level."""
        waiting, inner = [(root, 0)], []
        for node, depth in waiting:
            if hasattr(node, "condition"):
                self._append(node.condition)
                self.children.append([len(waiting), len(waiting) + 1])
                waiting += [(node.pos_child, depth + 1), (node.neg_child, depth + 1)]
                inner.append(len(self.vectors))
                self.vectors.append(())
                self.weight.append(0.0)
                continue
            self.children.append([-1, -1])
            self._put(0, 0.0, 0, "", ())
            self.vectors.append(self.leaf(node.value, depth))
            self.weight.append(float(getattr(node.value, "num_examples", np.nan)))
        for at in inner:
            self.vectors[at] = (0.0,) * len(self.vectors[-1])  # the last node is a leaf
        self.begin.append(len(self.vectors))

    def _append(self, condition: Any) -> None:
        """A condition; where it holds, a row goes left."""
        kind = type(condition).__name__
        if not hasattr(condition, "attribute"):
            names = [self.specification.columns[i].name for i in condition.attributes]
            listed = ", ".join(repr(name) for name in names)
            raise ModelError(
                f"the trees split on sums of several features ({listed}), by a {kind}, which qwyc does not "
                "read; train with split_axis='AXIS_ALIGNED'"
            )
        if condition.attribute not in self.column:
            raise ModelError("a tree looks at a column that is not a feature")
        flags = int(NodeFlag.DEFAULT_LEFT) if condition.missing else 0
        at = self.column[condition.attribute]
        if kind == "NumericalHigherThanCondition":
            self._put(at, condition.threshold, flags, ">=", ())
        elif kind == "DiscretizedNumericalHigherThanCondition":
            column = self.specification.columns[condition.attribute]
            bounds = column.discretized_numerical.boundaries
            self._put(at, bounds[condition.threshold_idx - 1], flags, ">=", ())
        elif kind == "IsTrueCondition":
            self._put(at, 0.5, flags, ">=", ())
        elif kind == "IsMissingInCondition":
            self._put(at, np.inf, int(NodeFlag.DEFAULT_LEFT), ">", ())
        elif kind == "CategoricalIsInCondition":
            flags |= NodeFlag.CATEGORICAL | NodeFlag.IN_SET_LEFT
            self._put(at, 0.0, flags, "", condition.mask)
        else:
            name = self.specification.columns[condition.attribute].name
            raise ModelError(f"the trees split on {name!r} by a {kind}; {SUPPORTED}")

    def _put(self, at: int, threshold: float, flags: int, operator: str, codes: Any) -> None:
        self.feature.append(at)
        self.threshold.append(threshold)
        self.flags.append(flags)
        self.operator.append(operator)
        self.sets.append(codes)

    def table(self) -> NodeTable:
        children = np.array(self.children, np.int64)
        return NodeTable(
            begin=np.array(self.begin, np.int64),
            left=children[:, 0],
            right=children[:, 1],
            feature=np.array(self.feature, np.int64),
            threshold=np.array(self.threshold, np.float32),
            flags=np.array(self.flags, np.uint8),
            value=np.array([vector[0] for vector in self.vectors]),
            weight=None if np.isnan(self.weight).any() else np.array(self.weight),
            set_begin=offsets([len(codes) for codes in self.sets]),
            set_codes=np.array([c for codes in self.sets for c in codes], np.int64),
        )


def boosted_leaf(value: Any, depth: int) -> Sequence[float]:
    return (float(np.float32(value.value)),)


def mean_leaf(n_trees: int, value: Any, depth: int) -> Sequence[float]:
    """The value of a forest's leaf over the number of trees."""
    return (float(np.float32(value.value) / np.float32(n_trees)),)


def isolated_leaf(n_trees: int, value: Any, depth: int) -> Sequence[float]:
    """The length of the path to a leaf of an isolation forest over the number of trees."""
    length = np.float32(depth) + np.float32(path_length(int(value.num_examples_without_weight)))
    return (float(length / np.float32(n_trees)),)


def share(n_trees: int, votes: bool, value: Any, depth: int) -> Sequence[float]:
    """The positive share of a forest's leaf, or its vote, over the number of trees."""
    share = value.probability
    positive = float(share[1] > share[0]) if votes else float(share[1])
    return (float(np.float32(positive / n_trees)),)


def shares(n_trees: int, votes: bool, value: Any, depth: int) -> Sequence[float]:
    """The same for all classes."""
    shares = np.asarray(value.probability, dtype=np.float64)  # (K,)
    if votes:
        shares = (np.arange(len(shares)) == np.argmax(shares)).astype(np.float64)
    return tuple(float(share) for share in (shares / n_trees).astype(np.float32))


def path_length(rows: int) -> float:
    """The mean length of a path among so many rows, in float32."""
    if rows <= 2:
        return float(rows == 2)
    n, one, two = np.float32(rows), np.float32(1), np.float32(2)
    harmonic = np.float32(_native.log_f32(float(n - one))) + np.float32(0.5772156649)
    return float(two * harmonic - two * (n - one) / n)
