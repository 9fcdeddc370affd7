"""YDF (Yggdrasil Decision Forests): live gradient boosted trees, random forests, CART models and isolation
forests.

The trees are taken through the model's own Python objects; its files only YDF itself reads.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.importers import files, live
from qwyc.importers.comparisons import with_one_rule
from qwyc.importers.flatten import NodeTable, flatten, flatten_vectors
from qwyc.importers.ydf.nodes import (
    SUPPORTED,
    Leaf,
    Nodes,
    boosted_leaf,
    isolated_leaf,
    mean_leaf,
    path_length,
    share,
    shares,
)
from qwyc.model.class_trees import class_tree_ensemble
from qwyc.model.ensemble import Ensemble, Sample, Source
from qwyc.model.link import Link
from qwyc.model.output import BY_TIES, Output
from qwyc.model.trees import Summation, tree_ensemble
from qwyc.rows.schema import Category, Schema
from qwyc.target.boundary import smallest_positive
from qwyc.target.ties import BY_SCORES, Ties

LIVE_KINDS = "YDF (boosted trees, random forests, CART, isolation forests)"
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
        raise ModelError(f"this is not a model of trees; {SUPPORTED}")
    if model.task().name in _VALUES:
        return _of_values(model)
    if model.task().name != "CLASSIFICATION":
        raise ModelError(f"the model's task is {model.task().name}; {SUPPORTED}")
    classes = np.array(model.label_classes())
    if len(classes) < 2:
        raise ModelError(f"the model has {len(classes)} classes; {SUPPORTED}")
    boosted = hasattr(model, "initial_predictions")
    if not boosted and not hasattr(model, "winner_takes_all"):
        raise ModelError(f"the model is a {model.name()}; {SUPPORTED}")
    trees = list(model.iter_trees())
    if not trees:
        raise ModelError("the model has no trees")
    inputs, column = _inputs(model)
    leaf: Leaf = boosted_leaf
    if not boosted:
        votes = bool(model.winner_takes_all())
        leaf = partial(shares if len(classes) > 2 else share, len(trees), votes)
    reader = Nodes(model, column, leaf)
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
        output = None if model.output_logits() else Output("plain logistic", "float32")
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
        raise ModelError(f"the model is a {model.name()}; {SUPPORTED}")
    inputs, column = _inputs(model)
    leaf = boosted_leaf if boosted else partial(mean_leaf, len(trees))
    reader = Nodes(model, column, partial(isolated_leaf, len(trees)) if isolates else leaf)
    for tree in trees:
        reader.add(tree.root)
    table, less_equal = with_one_rule(reader.table(), np.array(reader.operator))
    output = Output("identity", "float32")
    if isolates:
        rows = int(model.num_examples_per_tree())
        if rows < 2:
            raise ModelError("the model's trees were grown on one row each, so nothing is left")
        output = Output("halving", "float32", path_length(rows))
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
            "this version of YDF does not say which loss the model has, so qwyc cannot know whether "
            "its values are exponentials"
        ) from None


def _of_many_classes(
    model: Any,
    table: NodeTable,
    less_equal: bool,
    reader: Nodes,
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
            f"the model has {model.num_trees_per_iteration()} trees a round for {K} classes; {SUPPORTED}"
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
            raise ModelError(f"the feature {feature.name!r} is {kind.lower()}; {SUPPORTED}")
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
