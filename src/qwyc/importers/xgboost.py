"""XGBoost: JSON and UBJSON model files, `Booster` and `XGBClassifier`.

The model document is read as it stands; XGBoost itself is not needed for that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import ModelError
from qwyc.importers import files, live
from qwyc.importers.column_order import refuse_other_outputs
from qwyc.importers.flatten import NodeTable, flatten, offsets
from qwyc.importers.wire import ubjson
from qwyc.model.ensemble import Ensemble, Sample, Source
from qwyc.model.link import Link
from qwyc.model.trees import NodeFlag, Summation, tree_ensemble
from qwyc.rows.schema import Category, Schema
from qwyc.target.boundary import smallest_positive

LIVE_KINDS = "XGBoost (Booster, XGBClassifier, XGBRFClassifier)"
FILE_KINDS = "XGBoost (.json, .ubj)"
_SUPPORTED = (
    "supported are binary models of decision trees: binary:logistic, reg:logistic, "
    "binary:logitraw and binary:hinge with the gbtree or dart booster"
)
_REMEDY = "save it again with Booster.save_model('model.ubj')"
_LOGISTIC = ("binary:logistic", "reg:logistic")
_LINK = Link("logistic", dtype="float32")
LOADING_ERROR = 0.0
_EPSILON = np.float32(1e-6)  # base scores are kept this far from 0 and 1

Document = Mapping[str, Any]


def looks_like(head: bytes) -> bool:
    """Whether a file that starts with `head` may be an XGBoost JSON or UBJSON model."""
    return head.lstrip()[:1] == b"{" and b"learner" in head[:512]


def is_live(model: object) -> bool:
    """Whether `model` is an object of the xgboost library."""
    return live.made_by(model, "xgboost")


def read_file(path: Path) -> Ensemble:
    """The model in a JSON or UBJSON file."""
    content = files.read_bytes(path)
    with files.reading(str(path), "XGBoost model", _REMEDY):
        head = content[:512].lstrip()
        if head[:1] != b"{":
            raise ModelError(
                "expected an XGBoost model in JSON or UBJSON, which starts with '{', but it starts "
                f"with {content[:8]!r}; load it with the version that wrote it and {_REMEDY}"
            )
        is_json = head[1:].lstrip()[:1] in (b'"', b"}")
        document = json.loads(content) if is_json else ubjson.decode(content)
        # XGBClassifier.save_model leaves this mark, Booster.save_model does not.
        by_classifier = "scikit_learn" in (document["learner"].get("attributes") or ())
        return _ensemble(document, by_classifier=by_classifier, missing=float("nan"))


def read_live(model: Any) -> Ensemble:
    """The model in an `xgboost.Booster`, `XGBClassifier` or `XGBRFClassifier`."""
    kind = type(model).__name__
    with files.reading(kind, "XGBoost model", "train it again"):
        if live.derives_from(model, "XGBClassifier"):
            try:
                booster = model.get_booster()
            except Exception as error:
                raise ModelError(f"the model is not fitted yet ({error}); fit it first") from None
            by_classifier, missing = True, float(np.float32(model.missing))
        elif live.derives_from(model, "Booster"):
            booster, by_classifier, missing = model, False, float("nan")
        else:
            raise ModelError("this is not a classifier; take an XGBClassifier or a Booster")
        document = ubjson.decode(bytes(booster.save_raw("ubj")))
        return _ensemble(document, by_classifier=by_classifier, missing=missing)


def live_predictions(model: Any, sample: Sample) -> live.Predictions:
    """The model's own decisions and scores. ParityError where it takes columns by position that are in
    another order: it compares the names of pandas frames, but not those of other tables."""
    assert sample.ensemble.schema is not None
    own = live.derives_from(model, "XGBClassifier")
    refuse_other_outputs(
        sample.given,
        sample.ensemble.schema.names,
        "XGBoost",
        "model.feature_names_in_" if own else "model.feature_names",
        partial(model.predict, output_margin=True) if own else model.inplace_predict,
        sample.rows,
    )
    return live.Predictions.of(live_labels(model, sample), live_scores(model, sample))


def live_labels(model: Any, sample: Sample) -> npt.NDArray[Any]:
    """The classes, (N,), that the live model itself gives the rows X."""
    if live.derives_from(model, "XGBClassifier"):
        return np.asarray(live.predict_on(model.predict, sample))
    # A Booster gives probabilities (margins for logitraw, 0 or 1 for hinge); its classes are those
    # that XGBClassifier makes of them.
    outputs = np.asarray(live.predict_on(partial(_booster_outputs, model), sample))
    return np.asarray(sample.ensemble.classes[(outputs > 0.5).astype(np.intp)])


def live_scores(model: Any, sample: Sample) -> npt.NDArray[Any]:
    """The live model's own margins, (N,)."""
    if live.derives_from(model, "XGBClassifier"):
        return np.asarray(live.predict_on(partial(model.predict, output_margin=True), sample))
    return np.asarray(live.predict_on(partial(_booster_outputs, model, margin=True), sample))


def load(path: Path) -> Any:
    """The model in a file as XGBoost loads it: a classifier where one wrote it."""
    import xgboost

    booster = xgboost.Booster(model_file=str(path))
    if not booster.attr("scikit_learn"):
        return booster
    classifier = xgboost.XGBClassifier()
    classifier.load_model(str(path))
    return classifier


def _booster_outputs(booster: Any, rows: Any, margin: bool = False) -> Any:
    import xgboost

    own = {"feature_names": booster.feature_names, "feature_types": booster.feature_types}
    try:
        described = {} if hasattr(rows, "columns") else own
        matrix = xgboost.DMatrix(rows, enable_categorical=True, **described)
        return booster.predict(matrix, output_margin=margin)
    except ValueError:  # a DMatrix takes no infinities; this does
        return booster.inplace_predict(rows, predict_type="margin" if margin else "value")


def _ensemble(document: Document, *, by_classifier: bool, missing: float) -> Ensemble:
    """The ensemble that `Booster.predict` evaluates or, `by_classifier`, `XGBClassifier.predict`:
    that one quits at the best iteration, and rounds the dart booster's sums differently."""
    learner = document["learner"]
    booster = learner["gradient_booster"]
    objective = str(learner["objective"]["name"])
    parameters = learner["learner_model_param"]
    _refuse_unsupported(objective, booster, parameters)

    base = _base_margin(objective, str(parameters["base_score"]))
    model = booster["gbtree"]["model"] if booster["name"] == "dart" else booster["model"]
    best = (learner.get("attributes") or {}).get("best_iteration") if by_classifier else None
    table = _node_table(model["trees"][: _trees_in_use(model, best)])
    if objective not in _LOGISTIC or _in_parallel(model):
        table = replace(table, weight=None)
    if booster["name"] == "dart":
        weight = np.asarray(booster["weight_drop"], dtype=np.float32)
        table = _weigh(table, weight, base if by_classifier else None)
    return tree_ensemble(
        flatten(table),
        schema=_inputs(learner, model.get("cats"), int(parameters["num_feature"]), missing),
        summation=Summation.FLOAT32,
        less_equal=False,
        truncates=False,
        base=float(base),
        divisor=1.0,
        threshold=_threshold(objective),
        link=_LINK if objective in _LOGISTIC else Link("none"),
        classes=np.array([0, 1]),
        source=Source("xgboost", ".".join(str(v) for v in document["version"]), objective),
        weighs="curvature",
    )


def _refuse_unsupported(objective: str, booster: Document, parameters: Document) -> None:
    name = booster["name"]
    if name not in ("gbtree", "dart"):
        raise ModelError(f"the model's booster is {name}, not trees; {_SUPPORTED}")
    n_classes = int(parameters.get("num_class", 0))
    if n_classes > 1:
        raise ModelError(f"the model is {objective} with {n_classes} classes; {_SUPPORTED}")
    if objective not in (*_LOGISTIC, "binary:logitraw", "binary:hinge"):
        raise ModelError(f"the model's objective is {objective}; {_SUPPORTED}")
    n_targets = int(parameters.get("num_target", 1))
    if n_targets > 1:
        raise ModelError(f"the model is {objective} with {n_targets} targets; {_SUPPORTED}")


def _base_margin(objective: str, base_score: str) -> np.float32:
    """The margin before any tree: "[2.4E-1]", or "2.4E-1" in older files."""
    score = np.float32(base_score.strip("[]"))
    if objective not in _LOGISTIC:
        return score
    p = min(max(score, _EPSILON), np.float32(1) - _EPSILON)
    return np.float32(-_native.log_f32(float(np.float32(1) / p - np.float32(1))))


@cache
def _threshold(objective: str) -> float:
    """The smallest margin for which XGBClassifier.predict says 1: its output exceeds 0.5."""
    if objective == "binary:hinge":  # the output is 1 where the margin is > 0
        return smallest_positive(lambda margin: margin > 0, np.float32)
    if objective == "binary:logitraw":  # the output is the margin
        return smallest_positive(lambda margin: margin > 0.5, np.float32)

    return smallest_positive(lambda margin: _LINK.probability(margin) > 0.5, np.float32)


def _trees_in_use(model: Document, best_iteration: str | None) -> int:
    """How many trees predict: all, or those up to the best iteration."""
    total = len(model["trees"])
    counted = int(model["gbtree_model_param"]["num_trees"])
    if counted != total:
        raise ModelError(f"the model should have {counted} trees but holds {total}; {_REMEDY}")
    if np.any(np.asarray(model["tree_info"])):
        raise ModelError(f"the model's trees belong to several outputs; {_SUPPORTED}")
    if best_iteration is None:
        return total
    after = int(best_iteration) + 1
    if "iteration_indptr" in model:
        ends = [int(end) for end in model["iteration_indptr"]]
    else:
        per_iteration = max(1, int(model["gbtree_model_param"].get("num_parallel_tree", 1)))
        ends = list(range(0, total + 1, per_iteration))
    if not 0 < after < len(ends) or not 0 < ends[after] <= total:
        raise ModelError(f"the best iteration is {best_iteration}, which the model does not have")
    return ends[after]


def _in_parallel(model: Document) -> bool:
    """Whether a round has several trees, as in forests."""
    return int(model["gbtree_model_param"].get("num_parallel_tree", 1)) > 1


def _node_table(trees: Sequence[Document]) -> NodeTable:
    if not trees:
        raise ModelError("the model has no trees; train it for one round at least")

    def column(name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        pieces = [np.asarray(tree[name], dtype=dtype) for tree in trees]
        if any(piece.shape != (size,) for piece, size in zip(pieces, sizes, strict=True)):
            raise ModelError(f"a tree's {name} has not one entry per node")
        return np.concatenate(pieces)

    for tree in trees:
        if int(tree["tree_param"].get("size_leaf_vector", 0)) > 1:
            raise ModelError(f"the model's leaves are vectors; {_SUPPORTED}")
    sizes = [len(tree["left_children"]) for tree in trees]
    begin = offsets(sizes)
    left = column("left_children", np.int64)
    # Inner nodes hold their threshold here, leaves their value.
    condition = column("split_conditions", np.float32)
    flags = np.where(column("default_left", np.int64) != 0, NodeFlag.DEFAULT_LEFT, 0)
    if "split_type" in trees[0]:
        categorical = column("split_type", np.int64) == 1
    else:  # written before there were categories
        categorical = np.zeros(len(left), dtype=bool)
    flags |= np.where(categorical, NodeFlag.CATEGORICAL, 0)
    set_begin, set_codes = _category_sets(trees, begin)
    return NodeTable(
        begin=begin,
        left=left,
        right=column("right_children", np.int64),
        feature=column("split_indices", np.int64),
        threshold=np.where(categorical, np.float32(0), condition),
        flags=flags.astype(np.uint8),
        value=condition.astype(np.float64),
        weight=_curvature(trees, sizes),
        set_begin=set_begin,
        set_codes=set_codes,
    )


def _curvature(trees: Sequence[Document], sizes: Sequence[int]) -> npt.NDArray[np.float64] | None:
    """The sum of p (1 - p) over the training rows at each node, (n,); None where a tree does not say."""
    pieces = [np.asarray(tree.get("sum_hessian", ()), dtype=np.float64) for tree in trees]
    if any(piece.shape != (size,) for piece, size in zip(pieces, sizes, strict=True)):
        return None
    return np.concatenate(pieces)


def _weigh(table: NodeTable, weight: npt.NDArray[np.float32], base: np.float32 | None) -> NodeTable:
    """Leaves of the dart booster, which gives every tree a weight, (T,) or more.

    XGBClassifier.predict adds weight * ((base + leaf) - base), Booster.predict weight * leaf.
    """
    sizes = np.diff(table.begin)
    leaf = table.value.astype(np.float32)
    if base is not None:
        leaf = (base + leaf) - base
    value = leaf * np.repeat(weight[: len(sizes)], sizes)
    # Dropped trees had no part in the probabilities that the leaves' weights are made of.
    return replace(table, value=value.astype(np.float64), weight=None)


def _category_sets(
    trees: Sequence[Document], begin: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Every node's category codes one after the other, and where each node's begin, (n + 1,)."""
    sizes = np.zeros(begin[-1], dtype=np.int64)  # (n,) codes in the node's set
    codes = []
    for first, end, tree in zip(begin[:-1], begin[1:], trees, strict=True):
        if len(tree.get("categories_nodes", ())) == 0:
            continue
        nodes, starts, counts, values = (
            np.asarray(tree["categories" + name], dtype=np.int64)
            for name in ("_nodes", "_segments", "_sizes", "")
        )
        if (
            not len(nodes) == len(starts) == len(counts)
            or np.any(np.diff(nodes) <= 0)  # written in the order of the nodes, without gaps
            or not 0 <= nodes[0] <= nodes[-1] < end - first
            or counts.min() < 0
            or not np.array_equal(starts, np.cumsum(counts) - counts)
            or counts.sum() != len(values)
        ):
            raise ModelError("a tree's category sets do not fit its nodes")
        sizes[first + nodes] = counts
        codes.append(values)
    return offsets(sizes), np.concatenate(codes) if codes else np.empty(0, dtype=np.int64)


def _inputs(learner: Document, cats: Document | None, n_features: int, missing: float) -> Schema:
    names = [str(name) for name in learner.get("feature_names") or ()]
    if names and len(names) != n_features:
        raise ModelError(f"the model has {n_features} features but names {len(names)}; {_REMEDY}")
    encodings = cats["enc"] if cats else []
    if len(encodings) > max(0, n_features):
        raise ModelError(f"the model has {n_features} features but encodes {len(encodings)}")
    values = {i: _category_values(encoding) for i, encoding in enumerate(encodings)}
    categories = {i: known for i, known in values.items() if known}
    if categories and missing >= 0 and missing == int(missing):
        raise ModelError(
            f"missing={missing:g} could be a category's code, and XGBoost then goes by how each table "
            "numbers its categories; train with missing=nan"
        )
    return Schema(
        n_features=n_features,
        names=tuple(names) or None,
        dtype="float32",
        categories=categories,
        unseen="error",  # what XGBoost means to do; 3.1 and 3.2 may take a neighbour instead
        missing=missing,
    )


def _category_values(encoding: Document) -> tuple[Category, ...]:
    """A feature's categories in the order of their codes; none where they are not sure."""
    if "offsets" not in encoding:
        return tuple(int(value) for value in encoding.get("values", ()))
    text = (np.asarray(encoding["values"], dtype=np.int64) & 0xFF).astype(np.uint8).tobytes()
    # From pandas, XGBoost up to 3.2 cuts names by their number of characters, not of bytes, so that
    # beyond ASCII the names in the file are not those of the data.
    if not text.isascii():
        return ()
    begin = [int(offset) for offset in encoding["offsets"]]
    if begin and (begin[0] != 0 or begin[-1] > len(text) or begin != sorted(begin)):
        raise ModelError("a feature's category names are damaged")
    return tuple(text[a:b].decode("ascii") for a, b in pairwise(begin))
