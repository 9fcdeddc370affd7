"""Treelite: checkpoint files of version 4, and live `treelite.Model` objects.

The checkpoint is read as it stands; Treelite itself is not needed for that. What a Treelite model
decides is what its own reference, GTIL, says: the class with the larger output, or probability > 0.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.importers import files, live
from qwyc.importers.comparisons import with_one_rule
from qwyc.importers.flatten import NodeTable, flatten, offsets
from qwyc.model.ensemble import Ensemble, Sample, Source
from qwyc.model.link import Link
from qwyc.model.trees import NodeFlag, Summation, tree_ensemble
from qwyc.rows.schema import Schema
from qwyc.target.boundary import smallest_positive

LIVE_KINDS = "Treelite (Model)"
FILE_KINDS = "Treelite (checkpoints)"
_SUPPORTED = "supported are binary classifiers with one score, or forests of two class shares"
_REMEDY = "save it again with model.serialize('model.tl')"
LOADING_ERROR = 0.0
_TASKS = ("binary classifier", "regressor", "multi-class classifier", "ranker", "isolation forest")
_OPERATORS = np.array(["none", "==", "<", "<=", ">", ">="])
_MAX_OPTIONAL = 1000

Array = npt.NDArray[Any]


def looks_like(head: bytes) -> bool:
    """Whether a file that starts with `head` may be a Treelite checkpoint: three numbers of a version
    and two types."""
    version = np.frombuffer(head[:12].ljust(12, b"\xff"), "<i4")
    return (
        len(head) > 22
        and 3 <= version[0] <= 9
        and all(0 <= part < 100 for part in version[1:])
        and head[12] in (1, 2, 3)
        and head[13] in (1, 2, 3)
    )


def is_live(model: object) -> bool:
    """Whether `model` is an object of the treelite library."""
    return live.made_by(model, "treelite")


def read_file(path: Path) -> Ensemble:
    """The model in a checkpoint file."""
    content = files.read_bytes(path)
    with files.reading(str(path), "Treelite checkpoint", _REMEDY):
        return _ensemble(content)


def read_live(model: Any) -> Ensemble:
    """A `treelite.Model`."""
    with files.reading(type(model).__name__, "Treelite model", "import it again"):
        if not hasattr(model, "serialize_bytes"):
            raise ModelError("this is not a treelite.Model")
        return _ensemble(model.serialize_bytes())


def live_predictions(model: Any, sample: Sample) -> live.Predictions:
    """The model's own decisions and scores."""
    return live.Predictions.of(live_labels(model, sample), live_scores(model, sample))


def live_labels(model: Any, sample: Sample) -> Array:
    """The classes, (N,), that Treelite's own reference gives the rows X."""
    import treelite

    outputs = treelite.gtil.predict(model, sample.rows)[:, 0, :]
    positive = outputs[:, 0] > 0.5 if outputs.shape[1] == 1 else outputs[:, 1] > outputs[:, 0]
    return np.asarray(sample.ensemble.classes[positive.astype(np.intp)])


def live_scores(model: Any, sample: Sample) -> Array:
    """The scores, (N,), that Treelite's own reference gives the rows X."""
    import treelite

    outputs = treelite.gtil.predict(model, sample.rows, pred_margin=True)[:, 0, :]
    if outputs.shape[1] == 1:
        return np.asarray(outputs[:, 0])
    # As in an ensemble of shares: near a half, on its decision's side.
    above = np.nextafter(0.5, 1.0)
    high = outputs[:, 1] > outputs[:, 0]
    low = np.minimum(outputs[:, 1], 0.5)
    return np.asarray(np.where(high, np.maximum(outputs[:, 1], above), low))


def load(path: Path) -> Any:
    """The model in a file as Treelite loads it."""
    import treelite

    return treelite.Model.deserialize(path)


class _Reader:
    """Values one after the other; arrays and texts are preceded by their length."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def scalar(self, dtype: str) -> Any:
        return self._take(dtype, 1)[0].item()

    def array(self, dtype: str) -> Array:
        return self._take(dtype, self.scalar("<u8"))

    def text(self) -> str:
        return self.array("u1").tobytes().decode("utf-8", "replace")

    def skip_optional(self) -> None:
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
class _Header:
    """What a checkpoint says before its trees."""

    version: str
    real: str  # of thresholds and leaves: "<f4" or "<f8"
    n_trees: int
    n_features: int
    task: str
    average: bool  # of the trees, rather than their sum
    shares: bool  # leaves hold both classes' shares
    postprocessor: str
    alpha: float  # of the postprocessor
    bases: list[float]

    @property
    def narrow(self) -> bool:
        return self.real == "<f4"


def _ensemble(content: bytes) -> Ensemble:
    reader = _Reader(content)
    header = _header(reader)
    summation, link, threshold = _rule(header)
    trees = [_tree(reader, header.real) for _ in range(header.n_trees)]
    table, less_equal = with_one_rule(*_table(trees, header.real, header.shares))
    return tree_ensemble(
        flatten(table),
        schema=Schema(header.n_features, None, "float32" if header.narrow else "float64"),
        summation=summation,
        less_equal=less_equal,
        truncates=False,
        base=0.0 if header.shares else float(header.bases[0]) + 0.0,  # no -0
        divisor=float(header.n_trees) if header.average else 1.0,
        threshold=threshold,
        classes=np.array([0, 1]),
        source=Source("treelite", header.version, header.task),
        link=link,
    )


def _header(reader: _Reader) -> _Header:
    version = [reader.scalar("<i4") for _ in range(3)]
    if version[0] != 4:
        raise ModelError(
            f"the checkpoint is of Treelite {version[0]}, not of 4; load it with a Treelite that reads "
            f"it and {_REMEDY}"
        )
    kinds = {2: "<f4", 3: "<f8"}
    threshold_kind, leaf_kind = (kinds.get(reader.scalar("u1")) for _ in range(2))
    if threshold_kind is None or threshold_kind != leaf_kind:
        raise ModelError(f"thresholds and leaves must both be float32 or both float64; {_REMEDY}")
    n_trees, n_features = reader.scalar("<u8"), reader.scalar("<i4")
    task, average, n_targets = reader.scalar("u1"), reader.scalar("u1"), reader.scalar("<i4")
    n_classes, leaf_shape = reader.array("<i4").tolist(), reader.array("<i4").tolist()
    reader.array("<i4")  # the target of each tree
    reader.array("<i4")  # its class
    postprocessor, alpha = reader.text(), reader.scalar("<f4")
    reader.scalar("<f4")
    bases = reader.array("<f8").tolist()
    reader.text()
    reader.skip_optional()
    shares = n_classes == [2] and leaf_shape == [1, 2]
    name = _TASKS[task] if task < len(_TASKS) else f"task {task}"
    if n_targets != 1 or not (shares or (n_classes == [1] and leaf_shape == [1, 1] and task == 0)):
        raise ModelError(f"the model is a {name} with {n_targets} targets; {_SUPPORTED}")
    if n_trees < 1 or n_trees > len(reader.content):
        raise ModelError("the model has no trees")
    return _Header(
        version=".".join(str(part) for part in version),
        real=threshold_kind,
        n_trees=n_trees,
        n_features=n_features,
        task=name,
        average=bool(average),
        shares=shares,
        postprocessor=postprocessor,
        alpha=float(alpha),
        bases=bases,
    )


def _rule(header: _Header) -> tuple[Summation, Link, float]:
    """How trees are added up, and the smallest score that is positive."""
    if header.shares:
        if header.narrow or not header.average or any(header.bases):
            raise ModelError(
                "the model adds class shares up in float32, without averaging, or from a base; supported "
                "are averages of float64 shares, as of scikit-learn's forests"
            )
        return Summation.SHARES, Link("identity"), float(np.nextafter(0.5, 1.0))
    link, threshold = _decision(header.postprocessor, header.alpha, header.narrow)
    if not header.average:
        late = Summation.FLOAT32_LATE if header.narrow else Summation.FLOAT64_LATE
        return late, link, threshold
    if header.narrow or header.bases != [0.0]:
        raise ModelError("the model averages its trees in float32, or adds to the average")
    return Summation.FLOAT64, link, threshold


@cache
def _decision(postprocessor: str, alpha: float, narrow: bool) -> tuple[Link, float]:
    """The link, and the smallest score whose output exceeds 0.5."""
    dtype = np.float32 if narrow else np.float64
    if postprocessor == "hinge":
        return Link("none"), smallest_positive(lambda score: score > 0, dtype)
    if postprocessor != "sigmoid" or not alpha > 0 or (narrow and alpha != 1):
        raise ModelError(
            f"the model's outputs are {postprocessor!r} (alpha {alpha:g}), which have no decision; "
            "supported are 'sigmoid' and 'hinge'"
        )
    link = Link("logistic", scale=alpha, dtype="float32" if narrow else "float64")
    return link, smallest_positive(lambda score: link.probability(score) > 0.5, dtype)


def _tree(reader: _Reader, real: str) -> dict[str, Array]:
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
            raise ModelError(f"a tree's {name} has not one entry per node")
    for name in ("operator", "set_is_right", "codes_begin", "codes_end"):
        if len(tree[name]) != n_nodes:
            raise ModelError(f"a tree's {name} has not one entry per node")
    return tree


def _table(
    trees: list[dict[str, Array]], real: str, shares: bool
) -> tuple[NodeTable, npt.NDArray[np.str_]]:
    """All nodes, and when each goes left."""

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
    if shares:
        other, value = np.concatenate([_pairs(tree) for tree in trees]).T
    table = NodeTable(
        begin=offsets([len(tree["type"]) for tree in trees]),
        left=np.where(is_leaf, -1, column("left")).astype(np.int64),
        right=column("right").astype(np.int64),
        feature=column("feature").astype(np.int64),
        threshold=np.where(kind == 1, column("threshold"), 0).astype(real.replace("<", "=")),
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


def _pairs(tree: dict[str, Array]) -> Array:
    """Both classes' shares of every leaf, (n, 2)."""
    begin, is_leaf = tree["vector_begin"].astype(np.int64), tree["type"] == 0
    if len(begin) != len(is_leaf) or len(tree["vector_end"]) != len(begin):
        raise ModelError("a tree's leaf vectors do not fit its nodes")
    first = begin[is_leaf]
    if np.any(tree["vector_end"].astype(np.int64)[is_leaf] - first != 2) or (
        first.size and not 0 <= first.min() <= first.max() <= len(tree["vector"]) - 2
    ):
        raise ModelError("a leaf has not two class shares")
    pairs = np.zeros((len(begin), 2))
    pairs[is_leaf] = np.stack([tree["vector"][first], tree["vector"][first + 1]], axis=1)
    return pairs
