"""YDF (Yggdrasil Decision Forests): live gradient boosted trees, random forests, CART models and isolation
forests.

The trees are taken through the model's own Python objects; its files only YDF itself reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import ModelError
from qwyc.importers import files, live
from qwyc.importers.comparisons import with_one_rule
from qwyc.importers.flatten import NodeTable, flatten, flatten_vectors, offsets
from qwyc.model.class_trees import class_tree_ensemble
from qwyc.model.ensemble import Ensemble, Sample, Source
from qwyc.model.link import Link
from qwyc.model.output import BY_TIES, Output
from qwyc.model.trees import NodeFlag, Summation, tree_ensemble
from qwyc.rows.schema import Category, Schema
from qwyc.target.boundary import smallest_positive
from qwyc.target.ties import BY_SCORES, Ties

LIVE_KINDS = "YDF (boosted trees, random forests, CART, isolation forests)"
_SUPPORTED = (
    "supported are gradient boosted trees, random forests and CART for classes, regression and ranking, "
    "and isolation forests, on numerical, discretized numerical, boolean and categorical features"
)
_VALUES = ("REGRESSION", "RANKING", "ANOMALY_DETECTION")  # tasks without classes
_POISSON = 7  # the number of a loss whose values are exponentials (loss.proto)
_NEAR = 2e-6  # probabilities are float32
_LINK = Link("logistic", dtype="float32")
_SHARE = Output("share", "float32")  # a share that rounding has put above 1 is given as 1
_BY_PROBABILITY = Ties("exponentials", "float32")

Array = npt.NDArray[Any]


def is_live(model: object) -> bool:
    """Whether `model` is an object of the ydf library."""
    return live.made_by(model, "ydf")


def read_live(model: Any) -> Ensemble:
    with files.reading(type(model).__name__, "YDF model", "train it again"):
        return _ensemble(model)


def live_predictions(model: Any, sample: Sample) -> live.Predictions:
    """The model's own decisions and scores."""
    return live.Predictions.of(live_labels(model, sample), live_scores(model, sample))


def live_labels(model: Any, sample: Sample) -> Array:
    """The classes, (N,), that the live model itself gives the rows X."""
    slow = not model.list_compatible_engines()
    return np.asarray(model.predict_class(_dataset(model, sample), use_slow_engine=slow))


def live_scores(model: Any, sample: Sample) -> Array:
    """Scores, (N,) or (N, K), to compare with: ours where ours has the probability that the model gives,
    and otherwise the model's, as far as it can be told from that."""
    slow = not model.list_compatible_engines()
    outputs = model.predict(_dataset(model, sample), use_slow_engine=slow)
    p = np.asarray(outputs, np.float64)
    ensemble = sample.ensemble
    ours = ensemble.score_full(sample)
    if ensemble.by_class:
        if not hasattr(model, "output_logits"):  # shares, which are cut at 1
            return np.asarray(np.where(p == np.minimum(ours, 1.0), ours, p))
        if model.output_logits():
            return p
        power = np.exp(ours - ours.max(axis=1, keepdims=True))
        expected = power / power.sum(axis=1, keepdims=True)
        # Probabilities leave open what is added to all scores.
        theirs = np.log(np.maximum(p, 1e-37)) - np.log(np.maximum(expected, 1e-37)) + ours
        reach = live.softmax_error(ours.shape[1])
        near = (np.abs(p - expected) <= reach).all(axis=1, keepdims=True)
        return np.asarray(np.where(near, ours, theirs))
    if ensemble.link.kind == "logistic":
        expected = 1 / (1 + np.exp(-np.clip(ours, -80, 80)))
        near = np.clip(p, 1e-37, 1 - 1e-16)
        theirs = np.log(near) - np.log1p(-near)
    else:
        # A forest's share that rounding has put above 1 is given as 1.
        expected = np.minimum(ours, 1.0) if ensemble.link.kind == "identity" else ours
        theirs = p
    return np.asarray(np.where(np.abs(p - expected) <= _NEAR, ours, theirs))


def _dataset(model: Any, sample: Sample) -> Any:
    """Rows as YDF takes them: a pandas frame as it is, or a dictionary of columns."""
    X, schema = sample.given, sample.ensemble.schema
    if type(X).__module__.split(".")[0] == "pandas" and hasattr(X, "columns"):
        return X
    assert schema is not None
    matrix, names = sample.rows, schema.names
    assert names is not None
    columns: dict[str, Array] = {}
    booleans = _of_kind(model, "BOOLEAN")
    for j, name in enumerate(names):
        known = schema.categories.get(j)
        if known is None:
            values = matrix[:, j]
            columns[name] = values > 0.5 if name in booleans else values
            continue
        texts = np.array([*(str(value) for value in known), ""], dtype=object)
        code = np.where(np.isnan(matrix[:, j]), len(known), matrix[:, j]).astype(np.intp)
        columns[name] = texts[code].astype(np.str_)
    return columns


def _of_kind(model: Any, kind: str) -> set[str]:
    return {f.name for f in model.input_features() if f.semantic.name == kind}


def _ensemble(model: Any) -> Ensemble:
    if not hasattr(model, "get_all_trees") or not hasattr(model, "label_classes"):
        raise ModelError(f"this is not a model of trees; {_SUPPORTED}")
    if model.task().name in _VALUES:
        return _of_values(model)
    if model.task().name != "CLASSIFICATION":
        raise ModelError(f"the model's task is {model.task().name}; {_SUPPORTED}")
    classes = np.array(model.label_classes())
    if len(classes) < 2:
        raise ModelError(f"the model has {len(classes)} classes; {_SUPPORTED}")
    boosted = hasattr(model, "initial_predictions")
    if not boosted and not hasattr(model, "winner_takes_all"):
        raise ModelError(f"the model is a {model.name()}; {_SUPPORTED}")
    trees = list(model.iter_trees())
    if not trees:
        raise ModelError("the model has no trees")
    inputs, column = _inputs(model)
    leaf: _Leaf = _boosted_leaf
    if not boosted:
        votes = bool(model.winner_takes_all())
        leaf = partial(_shares if len(classes) > 2 else _share, len(trees), votes)
    reader = _Nodes(model, column, leaf)
    for tree in trees:
        reader.add(tree.root)
    table, less_equal = with_one_rule(reader.table(), np.array(reader.operator))
    source = Source("ydf", "", str(model.name()))
    if len(classes) > 2:
        return _of_many_classes(model, table, less_equal, reader, inputs, classes, source)
    base, summation, link = 0.0, Summation.FLOAT32, Link("identity")
    threshold, output = 0.5, None
    if not boosted:
        output = _SHARE
    else:
        base = float(np.float32(model.initial_predictions()[0]))
        summation = _summation(model)
        link = Link("none") if model.output_logits() else _LINK
        threshold = 0.5 if model.output_logits() else _boundary()
    return tree_ensemble(
        flatten(table),
        schema=inputs,
        summation=summation,
        less_equal=less_equal,
        truncates=False,
        base=base,
        divisor=1.0,
        threshold=threshold,
        classes=classes,
        source=source,
        link=link,
        output=output,
    )


def _of_values(model: Any) -> Ensemble:
    """A regression, a ranking or an isolation forest."""
    trees = list(model.iter_trees())
    if not trees:
        raise ModelError("the model has no trees")
    boosted = hasattr(model, "initial_predictions")
    isolates = model.task().name == "ANOMALY_DETECTION"
    if not (boosted or isolates or hasattr(model, "winner_takes_all")):
        raise ModelError(f"the model is a {model.name()}; {_SUPPORTED}")
    inputs, column = _inputs(model)
    leaf = _boosted_leaf if boosted else partial(_mean_leaf, len(trees))
    reader = _Nodes(model, column, partial(_isolated_leaf, len(trees)) if isolates else leaf)
    for tree in trees:
        reader.add(tree.root)
    table, less_equal = with_one_rule(reader.table(), np.array(reader.operator))
    output = Output("identity", "float32")
    if isolates:
        rows = int(model.num_examples_per_tree())
        if rows < 2:
            raise ModelError(
                "the model's trees were grown on one row each, so that nothing is left"
            )
        output = Output("halving", "float32", _path_length(rows))
    elif boosted and _loss(model) == _POISSON:
        output = Output("exponential", "float32")
    return tree_ensemble(
        flatten(table),
        schema=inputs,
        summation=_summation(model) if boosted else Summation.FLOAT32,
        less_equal=less_equal,
        truncates=False,
        base=float(np.float32(model.initial_predictions()[0])) if boosted else 0.0,
        divisor=1.0,
        threshold=0.0,
        classes=np.empty(0),
        source=Source("ydf", "", str(model.name())),
        link=Link("none"),
        output=output,
    )


def _loss(model: Any) -> int:
    """The number of the loss of boosted trees, which only the model's own object in C++ has."""
    try:
        return int(model._model.loss())
    except Exception:
        raise ModelError(
            "this version of YDF does not say which loss the model has, so that it is not known whether "
            "its values are exponentials"
        ) from None


def _path_length(rows: int) -> float:
    """The mean length of a path among so many rows, in float32."""
    if rows <= 2:
        return float(rows == 2)
    n, one, two = np.float32(rows), np.float32(1), np.float32(2)
    harmonic = np.float32(_native.log_f32(float(n - one))) + np.float32(0.5772156649)
    return float(two * harmonic - two * (n - one) / n)


def _of_many_classes(
    model: Any,
    table: NodeTable,
    less_equal: bool,
    reader: _Nodes,
    inputs: Schema,
    classes: Array,
    source: Source,
) -> Ensemble:
    """Boosted trees, one for each class in every round, or forests, whose leaves hold all shares."""
    build = partial(
        class_tree_ensemble,
        schema=inputs,
        classes=classes,
        source=source,
        less_equal=less_equal,
        truncates=False,
    )
    if not hasattr(model, "initial_predictions"):
        trees, vectors = flatten_vectors(table, np.array(reader.vectors))
        return build(trees, summation=Summation.FLOAT32, leaf_vector=vectors, output=_SHARE)
    trees, K = flatten(table), len(classes)
    if model.num_trees_per_iteration() != K or trees.n_trees % K:
        raise ModelError(
            f"the model has {model.num_trees_per_iteration()} trees a round for {K} classes; {_SUPPORTED}"
        )
    return build(
        trees,
        summation=_summation(model),
        start=np.asarray(model.initial_predictions(), dtype=np.float32),
        tree_class=np.arange(trees.n_trees) % K,
        ties=BY_SCORES if model.output_logits() else _BY_PROBABILITY,
        output=None if model.output_logits() else Output(BY_TIES, "float32"),
    )


def _summation(model: Any) -> Summation:
    """The engines that walk trees add the initial prediction last."""
    engines = [str(engine) for engine in model.list_compatible_engines()]  # the best first
    quick = bool(engines) and "QuickScorer" in engines[0]
    return Summation.FLOAT32 if quick else Summation.FLOAT32_LATE


@cache
def _boundary() -> float:
    """The smallest score whose probability is at least a half, in float32."""
    return smallest_positive(lambda score: _LINK.probability(score) >= 0.5, np.float32)


def _inputs(model: Any) -> tuple[Schema, dict[int, int]]:
    """What rows look like, and the column of every attribute of the model's own numbering."""
    features = model.input_features()
    specification = model.data_spec()
    categories: dict[int, tuple[Category, ...]] = {}
    for j, feature in enumerate(features):
        kind = feature.semantic.name
        if kind not in ("NUMERICAL", "BOOLEAN", "CATEGORICAL", "DISCRETIZED_NUMERICAL"):
            raise ModelError(f"the feature {feature.name!r} is {kind.lower()}; {_SUPPORTED}")
        if kind == "CATEGORICAL":
            categories[j] = _categories(specification.columns[feature.column_idx], feature.name)
    inputs = Schema(
        n_features=len(features),
        names=tuple(str(feature.name) for feature in features),
        dtype="float32",
        categories=categories,
        arrays_hold_values=bool(categories),
        unseen="first",
    )
    return inputs, {feature.column_idx: j for j, feature in enumerate(features)}


def _categories(column: Any, name: str) -> tuple[Category, ...]:
    """A feature's values in the order of their codes; the first stands for all that are not known."""
    facts = column.categorical
    if facts.is_already_integerized:
        raise ModelError(f"the feature {name!r} holds codes of its own; pass its values as text")
    values: list[Category] = ["<OOD>"] * int(facts.number_of_unique_values)
    for key, item in facts.items.items():
        values[item.index] = str(key)
    if _holds_integers(column) and all(_is_integer(value) for value in values[1:]):
        numbers = [int(str(value)) for value in values[1:]]
        return (min(numbers, default=0) - 1, *numbers)  # the first is not known either
    return tuple(values)


def _holds_integers(column: Any) -> bool:
    """Whether the training rows had integers: they were turned into text."""
    name = column.DESCRIPTOR.fields_by_name["dtype"].enum_type.values_by_number[column.dtype].name
    return "INT" in name


def _is_integer(value: object) -> bool:
    return str(value).removeprefix("-").isdigit()


# What a leaf adds, given its value and its depth: a number, or one for each class.
_Leaf = Callable[[Any, int], Sequence[float]]


class _Nodes:
    """Nodes of all trees, parents first."""

    def __init__(self, model: Any, column: dict[int, int], leaf: _Leaf) -> None:
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
            raise ModelError("a tree looks at a column that is no feature")
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
            raise ModelError(f"the trees split on {name!r} by a {kind}; {_SUPPORTED}")

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


def _boosted_leaf(value: Any, depth: int) -> Sequence[float]:
    return (float(np.float32(value.value)),)


def _mean_leaf(n_trees: int, value: Any, depth: int) -> Sequence[float]:
    """The value of a forest's leaf over the number of trees."""
    return (float(np.float32(value.value) / np.float32(n_trees)),)


def _isolated_leaf(n_trees: int, value: Any, depth: int) -> Sequence[float]:
    """The length of the path to a leaf of an isolation forest over the number of trees."""
    length = np.float32(depth) + np.float32(_path_length(int(value.num_examples_without_weight)))
    return (float(length / np.float32(n_trees)),)


def _share(n_trees: int, votes: bool, value: Any, depth: int) -> Sequence[float]:
    """The positive share of a forest's leaf, or its vote, over the number of trees."""
    share = value.probability
    positive = float(share[1] > share[0]) if votes else float(share[1])
    return (float(np.float32(positive / n_trees)),)


def _shares(n_trees: int, votes: bool, value: Any, depth: int) -> Sequence[float]:
    """The same for all classes."""
    shares = np.asarray(value.probability, dtype=np.float64)  # (K,)
    if votes:
        shares = (np.arange(len(shares)) == np.argmax(shares)).astype(np.float64)
    return tuple(float(share) for share in (shares / n_trees).astype(np.float32))
