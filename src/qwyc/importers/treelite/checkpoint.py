"""Treelite's checkpoints: what they say of the model, and the nodes of its trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.importers.flatten import NodeTable, offsets
from qwyc.model.trees import NodeFlag

REMEDY = "save it again with model.serialize('model.tl')"
_SUPPORTED = (
    "supported are classifiers with one target (two classes with one score, or scores by class), "
    "regressors, rankers and isolation forests"
)
_TASKS = ("binary classifier", "regressor", "multi-class classifier", "ranker", "isolation forest")
_OPERATORS = np.array(["none", "==", "<", "<=", ">", ">="])
_MAX_OPTIONAL = 1000

Array = npt.NDArray[Any]


class Reader:
    """Values one after the other; arrays and texts are preceded by their length."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def scalar(self, dtype: str) -> Any:
        """The next number."""
        return self._take(dtype, 1)[0].item()

    def array(self, dtype: str) -> Array:
        """The next numbers, after how many they are."""
        return self._take(dtype, self.scalar("<u8"))

    def text(self) -> str:
        """The next text."""
        return self.array("u1").tobytes().decode("utf-8", "replace")

    def skip_optional(self) -> None:
        """Pass over fields that other versions may have added."""
        for _ in range(self._count()):
            self.text()
            self._take("u1", self.scalar("<u8") * self.scalar("<u8"))

    def _count(self) -> int:
        count: int = self.scalar("<i4")
        if not 0 <= count <= _MAX_OPTIONAL:
            raise ModelError("the checkpoint is damaged")
        return count

    def _take(self, dtype: str, count: int) -> Array:
        kind = np.dtype(dtype)
        if count * kind.itemsize > len(self.content) - self.at:
            raise ModelError("the checkpoint is cut off")
        values = np.frombuffer(self.content, kind, count, self.at)
        self.at += count * kind.itemsize
        return values


@dataclass(frozen=True)
class Header:
    """What a checkpoint says before its trees."""

    version: str
    real: str  # of thresholds and leaves: "<f4" or "<f8"
    n_trees: int
    n_features: int
    task: str
    average: bool  # of the trees, rather than their sum
    values: bool  # it gives values, not classes
    n_classes: int  # or targets that have a score each; 1: one score, which may decide between two
    vectors: bool  # leaves hold a number for each class
    tree_class: Array  # (n_trees,) the class that each tree adds to; not for vectors
    postprocessor: str
    alpha: float  # of the postprocessor: of a sigmoid
    ratio: float  # of an isolation forest
    bases: list[float]

    @property
    def shares(self) -> bool:
        """Whether it averages two shares in float64, as scikit-learn's forests do."""
        plain = self.average and not self.narrow and not any(self.bases) and not self.values
        return self.n_classes == 2 and self.vectors and plain

    @property
    def narrow(self) -> bool:
        """Whether thresholds and leaves are float32."""
        return self.real == "<f4"


def read_header(reader: Reader) -> Header:
    """What a checkpoint says before its trees; ModelError for models that are not read."""
    version = [reader.scalar("<i4") for _ in range(3)]
    if version[0] != 4:
        raise ModelError(
            f"the checkpoint is of Treelite {version[0]}, not of 4; load it with a Treelite that reads "
            f"it and {REMEDY}"
        )
    kinds = {2: "<f4", 3: "<f8"}
    threshold_kind, leaf_kind = (kinds.get(reader.scalar("u1")) for _ in range(2))
    if threshold_kind is None or threshold_kind != leaf_kind:
        raise ModelError(f"thresholds and leaves must both be float32 or both float64; {REMEDY}")
    n_trees, n_features = reader.scalar("<u8"), reader.scalar("<i4")
    task, average, n_targets = reader.scalar("u1"), reader.scalar("u1"), reader.scalar("<i4")
    n_classes, leaf_shape = reader.array("<i4").tolist(), reader.array("<i4").tolist()
    tree_target = reader.array("<i4")  # of each tree; -1 for all
    tree_class = reader.array("<i4")  # its class; -1 for all
    postprocessor, alpha = reader.text(), reader.scalar("<f4")
    ratio = reader.scalar("<f4")
    bases = reader.array("<f8").tolist()
    reader.text()
    reader.skip_optional()
    name = _TASKS[task] if task < len(_TASKS) else f"task {task}"
    values = task in (1, 3, 4) and n_targets == len(n_classes) and set(n_classes) == {1}
    if not values and (n_targets != 1 or len(n_classes) != 1):
        raise ModelError(f"the model is a {name} with {n_targets} targets; {_SUPPORTED}")
    K = n_targets if values else int(n_classes[0])
    if values:
        tree_class = tree_target
        leaf_shape = leaf_shape[::-1]  # of (targets, classes)
    elif K < 1 or task not in (0, 2) or (K == 1) != (task == 0 and leaf_shape == [1, 1]):
        raise ModelError(f"the model is a {name} with {K} outputs; {_SUPPORTED}")
    if n_trees < 1 or n_trees > len(reader.content):
        raise ModelError("the model has no trees")
    if len(tree_class) != n_trees or len(bases) != K:
        raise ModelError(
            "the checkpoint does not have a class for each tree and a base for each class"
        )
    vectors = K > 1 and leaf_shape == [1, K]
    if K > 1 and not vectors and leaf_shape != [1, 1]:
        raise ModelError(
            f"the leaves hold {leaf_shape} numbers; expected one, or one for each class"
        )
    known = (tree_class >= 0) & (tree_class < K)
    if K > 1 and not np.all(tree_class == -1 if vectors else known):
        raise ModelError("the trees do not say which classes they add to")
    return Header(
        version=".".join(str(part) for part in version),
        real=threshold_kind,
        n_trees=n_trees,
        n_features=n_features,
        task=name,
        average=bool(average),
        values=values,
        n_classes=K,
        vectors=vectors,
        tree_class=tree_class,
        postprocessor=postprocessor,
        alpha=float(alpha),
        ratio=float(ratio),
        bases=bases,
    )


def read_tree(reader: Reader, real: str) -> dict[str, Array]:
    """The arrays of one tree, by name."""
    n_nodes = reader.scalar("<i4")
    reader.scalar("u1")
    fields = {
        "type": "i1",
        "left": "<i4",
        "right": "<i4",
        "feature": "<i4",
        "default_left": "u1",
        "value": real,
        "threshold": real,
        "operator": "i1",
        "set_is_right": "u1",
        "vector": real,
        "vector_begin": "<u8",
        "vector_end": "<u8",
        "codes": "<u4",
        "codes_begin": "<u8",
        "codes_end": "<u8",
        "data_count": "<u8",
        "data_count_present": "u1",
        "sum_hess": "<f8",
        "sum_hess_present": "u1",
        "gain": "<f8",
        "gain_present": "u1",
    }
    tree = {name: reader.array(dtype) for name, dtype in fields.items()}
    reader.skip_optional()
    reader.skip_optional()
    for name in ("type", "left", "right", "feature", "default_left", "value", "threshold"):
        if len(tree[name]) != n_nodes:
            raise ModelError(f"a tree's {name} does not have one entry per node")
    for name in ("operator", "set_is_right", "codes_begin", "codes_end"):
        if len(tree[name]) != n_nodes:
            raise ModelError(f"a tree's {name} does not have one entry per node")
    return tree


def node_table(
    trees: list[dict[str, Array]], header: Header, vectors: Array | None
) -> tuple[NodeTable, npt.NDArray[np.str_]]:
    """All nodes, and when each goes left. `vectors` (n, K) is what leaves hold, if not one number."""

    def column(name: str) -> Array:
        return np.concatenate([tree[name] for tree in trees])  # (n,)

    kind, operator = column("type"), column("operator")
    if np.any((kind < 0) | (kind > 2)):
        raise ModelError("a node is of an unknown kind")
    if np.any((operator < 0) | (operator >= len(_OPERATORS))):
        raise ModelError("a node compares in an unknown way")
    is_leaf, categorical = kind == 0, kind == 2
    flags = np.where(column("default_left") != 0, NodeFlag.DEFAULT_LEFT, 0)
    flags |= np.where(categorical, NodeFlag.CATEGORICAL, 0)
    flags |= np.where(categorical & (column("set_is_right") == 0), NodeFlag.IN_SET_LEFT, 0)
    set_begin, set_codes = _category_sets(trees)
    value, other = column("value").astype(np.float64), None
    if header.shares:
        assert vectors is not None
        other, value = vectors.T
    table = NodeTable(
        begin=offsets([len(tree["type"]) for tree in trees]),
        left=np.where(is_leaf, -1, column("left")).astype(np.int64),
        right=column("right").astype(np.int64),
        feature=column("feature").astype(np.int64),
        threshold=np.where(kind == 1, column("threshold"), 0).astype(header.real.replace("<", "=")),
        flags=flags.astype(np.uint8),
        value=value,
        other=other,
        weight=_data_counts(trees, is_leaf),
        set_begin=set_begin,
        set_codes=set_codes,
    )
    return table, _OPERATORS[operator]


def _data_counts(
    trees: list[dict[str, Array]], is_leaf: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64] | None:
    """Training rows at each node, (n,); None where a leaf does not say."""
    for name in ("data_count", "data_count_present"):
        if any(len(tree[name]) != len(tree["type"]) for tree in trees):
            return None
    present = np.concatenate([tree["data_count_present"] for tree in trees])
    if not present[is_leaf].all():
        return None
    return np.concatenate([tree["data_count"] for tree in trees]).astype(np.float64)


def _category_sets(trees: list[dict[str, Array]]) -> tuple[Array, Array]:
    """Where every node's category codes begin, (n + 1,), and the codes one after the other."""
    sizes, codes = [], [np.empty(0, np.int64)]
    for tree in trees:
        begin, end = tree["codes_begin"].astype(np.int64), tree["codes_end"].astype(np.int64)
        if np.any((begin > end) | (begin < 0) | (end > len(tree["codes"]))):
            raise ModelError("a tree's category lists do not fit its nodes")
        at = np.where(tree["type"] == 2, end - begin, 0)
        if at.sum() > len(tree["codes"]):
            raise ModelError("a tree's category lists overlap")
        sizes.append(at)
        codes += [tree["codes"][b : b + n].astype(np.int64) for b, n in zip(begin, at, strict=True)]
    return offsets(np.concatenate(sizes)), np.concatenate(codes)


def leaf_vectors(trees: list[dict[str, Array]], K: int) -> Array:
    """What every node's leaf holds for each class, (n, K)."""
    return np.concatenate([_leaf_vectors(tree, K) for tree in trees]).astype(np.float64)


def _leaf_vectors(tree: dict[str, Array], K: int) -> Array:
    begin, is_leaf = tree["vector_begin"].astype(np.int64), tree["type"] == 0
    if len(begin) != len(is_leaf) or len(tree["vector_end"]) != len(begin):
        raise ModelError("a tree's leaf vectors do not fit its nodes")
    first = begin[is_leaf]
    if np.any(tree["vector_end"].astype(np.int64)[is_leaf] - first != K) or (
        first.size and not 0 <= first.min() <= first.max() <= len(tree["vector"]) - K
    ):
        raise ModelError(f"a leaf does not have a number for each of {K} classes")
    if first.size * K > len(tree["vector"]):
        raise ModelError("a tree's leaf vectors overlap")
    vectors = np.zeros((len(begin), K))
    vectors[is_leaf] = tree["vector"][first[:, np.newaxis] + np.arange(K)]
    return vectors
