"""LightGBM: text model files, `Booster` and `LGBMClassifier`.

The model's text is read as it stands; LightGBM itself is not needed for that.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.importers import files, live
from qwyc.importers.column_order import refuse_by_position
from qwyc.importers.flatten import MAX_CATEGORY, MAX_WORDS, offsets, to_int32
from qwyc.model.ensemble import Ensemble, Sample, Source
from qwyc.model.link import Link
from qwyc.model.trees import NodeFlag, Summation, Trees, tree_ensemble
from qwyc.rows.schema import Category, Schema
from qwyc.target.boundary import smallest_positive

LIVE_KINDS = "LightGBM (Booster, LGBMClassifier)"
FILE_KINDS = "LightGBM (.txt)"
_BINARY = ("binary", "cross_entropy")
_SUPPORTED = f"supported are binary classifiers ({' or '.join(_BINARY)}) of decision trees"
_REMEDY = "save it again with Booster.save_model('model.txt')"
LOADING_ERROR = 0.0
_ANY_SHAPE = "predict_disable_shape_check"
_MAX_CHOICES = 1_000_000  # features times ordered columns
_ZERO = float(np.float32(1e-35))  # LightGBM takes every |x| up to this for 0

Fields = Mapping[str, str]


def looks_like(head: bytes) -> bool:
    """Whether a file that starts with `head` may be a LightGBM text model."""
    return head.split(None, 1)[:1] == [b"tree"] and b"=" in head


def is_live(model: object) -> bool:
    """Whether `model` is an object of the lightgbm library."""
    return live.made_by(model, "lightgbm")


def read_file(path: Path) -> Ensemble:
    """The model in a text file."""
    content = files.read_bytes(path)
    with files.reading(str(path), "LightGBM model", _REMEDY):
        if content.split(None, 1)[:1] != [b"tree"]:
            raise ModelError(
                "expected a LightGBM model in text, which starts with the line 'tree', but it "
                f"starts with {content[:8]!r}; {_REMEDY}"
            )
        text = content.decode("utf-8", "surrogateescape")
        return _ensemble(text, np.array([0, 1]), "float32 objects")  # it is loaded as a Booster


def read_live(model: Any) -> Ensemble:
    """The model in a `lightgbm.Booster` or `LGBMClassifier`, as its own `predict` uses it."""
    with files.reading(type(model).__name__, "LightGBM model", "train it again"):
        if live.derives_from(model, "LGBMClassifier"):
            try:
                booster, classes = model.booster_, np.asarray(model.classes_)
                integers = "float32"
            except Exception as error:
                raise ModelError(f"the model is not fitted yet ({error}); fit it first") from None
            if _is_set(model, "pred_early_stop"):
                raise ModelError(
                    "the model has pred_early_stop, so that its decisions are not those of all its trees; "
                    "pass it after model.set_params(pred_early_stop=False)"
                )
        elif live.derives_from(model, "Booster"):
            booster, classes, integers = model, np.array([0, 1]), "float32 objects"
        else:
            raise ModelError("this is not a classifier; take an LGBMClassifier or a Booster")
        # Both this and predict stop at the best iteration where there is one.
        return _ensemble(booster.model_to_string(), classes, integers)


def _is_set(model: Any, option: str) -> bool:
    """Whether an option of an LGBMClassifier is true, in any of the ways that LightGBM reads."""
    options = model.get_params() if hasattr(model, "get_params") else {}
    return str(options.get(option, False)).lower() in ("true", "1", "+")


def live_predictions(model: Any, sample: Sample) -> live.Predictions:
    """The model's own decisions and scores. ParityError where it would take columns by position that are
    in another order."""
    code = "model.feature_name_" if hasattr(model, "feature_name_") else "model.feature_name()"
    assert sample.ensemble.schema is not None
    names, X = sample.ensemble.schema.names, sample.given
    # LightGBM refuses other numbers of columns, and prints that, so that it is not asked.
    if names is None or np.shape(X)[1:] == (len(names),) or _is_set(model, _ANY_SHAPE):
        refuse_by_position(X, names, "LightGBM", code, model.predict)
    return live.Predictions.of(live_labels(model, sample), live_scores(model, sample))


def live_labels(model: Any, sample: Sample) -> npt.NDArray[Any]:
    """The classes, (N,), that the live model itself gives the rows X."""
    outputs = np.asarray(live.predict_on(model.predict, sample))
    if live.derives_from(model, "LGBMClassifier"):
        return outputs
    return np.asarray(sample.ensemble.classes[(outputs > 0.5).astype(np.intp)])


def live_scores(model: Any, sample: Sample) -> npt.NDArray[Any]:
    """The live model's own scores, (N,); of a random forest LightGBM gives the sum."""
    scores = live.predict_on(partial(model.predict, raw_score=True), sample)
    ensemble = sample.ensemble
    return np.asarray(scores) / (ensemble.n_models if ensemble.base_models.average else 1.0)


def load(path: Path) -> Any:
    """The model in a file as LightGBM loads it."""
    import lightgbm

    return lightgbm.Booster(model_file=str(path))


def _ensemble(text: str, classes: npt.NDArray[Any], integers: str) -> Ensemble:
    body, end, tail = text.replace("\r\n", "\n").partition("\nend of trees")
    if not end or ("\nparameters:" in tail and "\nend of parameters" not in tail):
        raise ModelError(f"the model is cut off before its end; {_REMEDY}")
    header_text, *tree_texts = body.split("\nTree=")
    header = _fields(header_text)
    trees = [_fields(tree_text) for tree_text in tree_texts]
    sigmoid = _refuse_unsupported(header, trees)
    if classes.shape != (2,):
        raise ModelError(f"the model was fitted on {classes.size} classes; {_SUPPORTED}")
    announced = len(header["tree_sizes"].split()) if "tree_sizes" in header else len(trees)
    if announced != len(trees):
        raise ModelError(f"the model should have {announced} trees but holds {len(trees)}")
    if not trees:
        raise ModelError("the model has no trees; train it for one round at least")
    return tree_ensemble(
        _trees(trees),
        schema=_inputs(header, tail, integers),
        summation=Summation.FLOAT64,
        less_equal=True,
        truncates=True,
        base=0.0,
        divisor=float(len(trees)) if "average_output" in header else 1.0,
        threshold=_threshold(sigmoid),
        classes=classes,
        source=Source("lightgbm", "", header["objective"]),
        link=Link("logistic", scale=sigmoid),
    )


def _fields(text: str) -> Fields:
    """The key=value lines; a line without "=" is a key with an empty value."""
    pairs = (line.partition("=") for line in text.split("\n"))
    return {key.strip(): value for key, _, value in pairs}


def _refuse_unsupported(header: Fields, trees: Sequence[Fields]) -> float:
    """The sigmoid's factor; ModelError where the model is not a binary classifier of trees."""
    n_outputs = max(int(header["num_class"]), int(header["num_tree_per_iteration"]))
    if n_outputs > 1:
        objective = header.get("objective", "a custom objective").split(" ")[0]
        raise ModelError(f"the model is {objective} with {n_outputs} classes; {_SUPPORTED}")
    if "objective" not in header:
        raise ModelError(f"the model has a custom objective; {_SUPPORTED}")
    name, *options = header["objective"].split()
    if name not in _BINARY:
        raise ModelError(f"the model's objective is {name}; {_SUPPORTED}")
    if any(int(tree.get("is_linear", 0)) for tree in trees):
        raise ModelError(f"the model's leaves are linear models (linear_tree); {_SUPPORTED}")
    settings = dict(option.split(":", 1) for option in options)
    sigmoid = float(settings.get("sigmoid", 1.0))
    if not 0 < sigmoid < math.inf:
        raise ModelError(f"the sigmoid's factor is {sigmoid}, not a positive number; {_REMEDY}")
    return sigmoid


@cache
def _threshold(sigmoid: float) -> float:
    """The smallest score for which LGBMClassifier.predict gives the second class."""

    link = Link("logistic", scale=sigmoid)
    return smallest_positive(
        lambda score: link.probability(score) > 1.0 - link.probability(score), np.float64
    )


def _trees(trees: Sequence[Fields]) -> Trees:
    n_leaves = np.array([int(tree["num_leaves"]) for tree in trees], dtype=np.int64)  # (T,)
    if n_leaves.min() < 1:
        raise ModelError("a tree has no leaves")
    n_nodes = n_leaves - 1
    kind = _numbers(trees, "decision_type", n_nodes, int)  # (n,) bits, see below
    threshold = _numbers(trees, "threshold", n_nodes, float)
    category_begin, category_words = _category_sets(trees, n_nodes, kind, threshold)
    return Trees(
        node_begin=offsets(n_nodes),
        leaf_begin=offsets(n_leaves),
        feature=to_int32(_numbers(trees, "split_feature", n_nodes, int), "a split's feature"),
        threshold=_snap_to_zero(np.where(kind & 1, 0.0, threshold)),
        # Leaves are written as ~leaf, and nodes after their parents, just as Trees has them.
        left=to_int32(_numbers(trees, "left_child", n_nodes, int), "a child"),
        right=to_int32(_numbers(trees, "right_child", n_nodes, int), "a child"),
        flags=_flags(kind, threshold),
        category_begin=category_begin,
        category_words=category_words,
        leaf_value=_numbers(trees, "leaf_value", n_leaves, float),
        leaf_other=np.empty(0, dtype=np.float64),
        leaf_weight=_leaf_counts(trees, n_leaves),
    )


def _leaf_counts(
    trees: Sequence[Fields], n_leaves: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Training rows in each leaf, (n_leaves,); none where a tree does not say."""
    if any(
        len(tree.get("leaf_count", "").split()) != n
        for tree, n in zip(trees, n_leaves, strict=True)
    ):
        return np.empty(0)
    return np.asarray(_numbers(trees, "leaf_count", n_leaves, float))


def _numbers(
    trees: Sequence[Fields],
    name: str,
    sizes: npt.NDArray[np.int64],
    parse: type[int] | type[float],
) -> npt.NDArray[Any]:
    """One field of all trees, one after the other; `sizes` (T,) is what each tree must have."""
    texts = [tree.get(name, "").split() for tree in trees]
    if [len(text) for text in texts] != sizes.tolist():
        raise ModelError(f"a tree's {name} has too many or too few entries; {_REMEDY}")
    numbers = (parse(token) for text in texts for token in text)
    return np.fromiter(numbers, dtype=np.float64 if parse is float else np.int64)


def _flags(
    kind: npt.NDArray[np.int64], threshold: npt.NDArray[np.float64]
) -> npt.NDArray[np.uint8]:
    """NodeFlags, (n,), from LightGBM's decision_type: bit 0 is set for categorical splits, bit 1
    where missing goes left, and bits 2-3 say what is missing: 0 nothing, 1 zero and NaN, 2 NaN."""
    categorical = (kind & 1) != 0
    missing = (kind >> 2) & 3
    if np.any((missing == 3) | (kind < 0) | (kind > 15)):
        raise ModelError(f"a split's decision_type is not known; {_REMEDY}")
    # Where nothing is missing, NaN is 0.
    default_left = np.where(missing == 0, threshold >= 0.0, (kind & 2) != 0)
    # At a set of categories NaN always goes right.
    numerical = np.where(default_left, NodeFlag.DEFAULT_LEFT, 0)
    numerical |= np.where(missing == 1, NodeFlag.ZERO_IS_MISSING, 0)
    in_set = NodeFlag.CATEGORICAL | NodeFlag.IN_SET_LEFT
    return np.where(categorical, in_set, numerical).astype(np.uint8)


def _snap_to_zero(threshold: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Thresholds that put every |x| <= 1e-35 on the side of 0, as LightGBM rounds those x to 0."""
    tiny = np.abs(threshold) <= _ZERO
    moved = np.where(threshold < 0, np.nextafter(-_ZERO, -1.0), _ZERO)
    return np.where(tiny, moved, threshold)


def _category_sets(
    trees: Sequence[Fields],
    n_nodes: npt.NDArray[np.int64],
    kind: npt.NDArray[np.int64],
    threshold: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
    """Every node's bit set of category codes: where it begins, (n + 1,), and the words."""
    begin = offsets(n_nodes)  # (T + 1,)
    sizes = np.zeros(len(kind), dtype=np.int64)  # (n,) words in the node's set
    sets = [np.empty(0, dtype=np.uint32)]
    total = 0
    for first, end, tree in zip(begin[:-1], begin[1:], trees, strict=True):
        rows = first + np.flatnonzero(kind[first:end] & 1)  # the tree's categorical nodes
        if rows.size == 0:
            continue
        # Set k has words bounds[k]:bounds[k+1]; a categorical node's threshold is its set's number.
        bounds = np.array([int(token) for token in tree["cat_boundaries"].split()], dtype=np.int64)
        words = np.array([int(token) for token in tree["cat_threshold"].split()], dtype=np.uint32)
        number = threshold[rows].astype(np.int64)
        if (
            bounds.size < 2
            or bounds[0] != 0
            or np.any(np.diff(bounds) < 0)
            or bounds[-1] != len(words)
            or not 0 <= number.min() <= number.max() < len(bounds) - 1
        ):
            raise ModelError(f"a tree's category sets do not fit its nodes; {_REMEDY}")
        sizes[rows] = np.diff(bounds)[number]
        if sizes[rows].max() * 32 > MAX_CATEGORY:
            raise ModelError(f"the model has category codes from {MAX_CATEGORY} on; renumber them")
        total += int(sizes[rows].sum())
        if total > MAX_WORDS:
            raise ModelError(f"the category sets take {total * 4:,} bytes, too many to hold")
        sets += [words[bounds[k] : bounds[k + 1]] for k in number]
    return offsets(sizes), np.concatenate(sets)


def _inputs(header: Fields, tail: str, integers: str) -> Schema:
    n_features = int(header["max_feature_idx"]) + 1
    names = header["feature_names"].split()
    if len(names) != n_features:
        raise ModelError(f"the model has {n_features} features but names {len(names)}; {_REMEDY}")
    automatic = all(name == f"Column_{i}" for i, name in enumerate(names))
    return Schema(
        n_features=n_features,
        names=None if automatic else tuple(names),
        dtype="float64",
        categories=_categories(header.get("feature_infos", "").split(), tail),
        integers=integers,
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
        raise ModelError(f"pandas_categorical holds something else than categories; {_REMEDY}")
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
