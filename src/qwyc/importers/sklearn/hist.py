"""scikit-learn's HistGradientBoostingClassifier and HistGradientBoostingRegressor."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.importers.flatten import offsets
from qwyc.importers.sklearn.trees import as_sklearn, flat_trees, inputs_of
from qwyc.model.class_trees import class_tree_ensemble
from qwyc.model.ensemble import Ensemble
from qwyc.model.link import Link
from qwyc.model.output import IDENTITY, Output
from qwyc.model.trees import NodeFlag, tree_ensemble
from qwyc.target.boundary import smallest_positive, smallest_sum_above_zero
from qwyc.target.ties import BY_SCORES, Ties


def read_hist(model: Any, name: str) -> Ensemble:
    """HistGradientBoostingClassifier: its rows are float64, and its splits may be category sets.
    Of more than two classes, every round has a tree for each."""
    K = len(model._predictors[0])
    predictors = [predictor for stage in model._predictors for predictor in stage]
    nodes = np.concatenate([predictor.nodes for predictor in predictors])  # (n,) records
    begin = offsets([len(predictor.nodes) for predictor in predictors])
    inner = nodes["is_leaf"] == 0
    in_sets = inner & (nodes["is_categorical"] != 0)
    # Infinities in training can leave a threshold NaN: nothing is <= that, nothing in an empty set.
    nowhere = inner & ~in_sets & np.isnan(nodes["num_threshold"])
    flags = np.where(nodes["missing_go_to_left"] != 0, NodeFlag.DEFAULT_LEFT, 0)
    flags = flags | np.where(in_sets | nowhere, NodeFlag.CATEGORICAL | NodeFlag.IN_SET_LEFT, 0)
    set_begin = offsets([len(predictor.raw_left_cat_bitsets) for predictor in predictors])
    sets = np.concatenate([p.raw_left_cat_bitsets for p in predictors])  # (n_sets, 8) words
    set_of = nodes["bitset_idx"] + np.repeat(set_begin[:-1], np.diff(begin))  # (n,)
    order, categories = _columns(model)
    trees = flat_trees(
        begin=begin,
        left=np.where(inner, nodes["left"].astype(np.int64), -1),
        right=nodes["right"].astype(np.int64),
        feature=order[np.where(inner, nodes["feature_idx"], 0)],
        threshold=np.where(in_sets | nowhere, 0.0, nodes["num_threshold"]),
        flags=flags,
        value=nodes["value"],
        sets=sets[set_of[in_sets]],
        has_set=in_sets,
        weight=nodes["count"].astype(np.float64),
    )
    schema = inputs_of(model, "float64", categories=categories)
    start = np.asarray(model._baseline_prediction, dtype=np.float64).ravel()  # (1,) or (K,)
    if K > 1:
        return class_tree_ensemble(
            trees,
            schema,
            classes=np.asarray(model.classes_),
            **as_sklearn(name),
            start=start,
            tree_class=np.tile(np.arange(K), len(model._predictors)),
            ties=_ties(model, K),
            output=Output("numpy softmax by column"),
        )
    base = float(start.item())
    if not hasattr(model, "classes_"):
        return tree_ensemble(
            trees,
            schema=schema,
            **as_sklearn(name),
            base=base,
            divisor=1.0,
            threshold=0.0,
            classes=np.empty(0),
            link=Link("none"),
            output=_value_output(model, name),
        )
    return tree_ensemble(
        trees,
        schema=schema,
        **as_sklearn(name),
        base=base,
        divisor=1.0,
        threshold=_hist_threshold(model, trees.leaf_value, base),
        classes=np.asarray(model.classes_),
    )


def _value_output(model: Any, name: str) -> Output:
    """What predict makes of scores, by the loss's link."""
    link = type(model._loss.link).__name__
    outputs = {"IdentityLink": IDENTITY, "LogLink": Output("numpy exponential")}
    if link not in outputs:
        raise ModelError(f"this {name} has the link {link}, which is not supported")
    return outputs[link]


def _columns(model: Any) -> tuple[npt.NDArray[np.int64], dict[int, tuple[Any, ...]]]:
    """Which of X's columns every feature of the trees is, and the categories of X's columns.

    The model's own preprocessor encodes categories and puts their columns first.
    """
    if getattr(model, "_preprocessor", None) is None:
        return np.arange(model.n_features_in_), {}
    categorical = np.asarray(model.is_categorical_, bool)  # (n_features,) in X's order
    columns = np.flatnonzero(categorical)
    encoder = model._preprocessor.named_transformers_["encoder"]
    names = getattr(model, "feature_names_in_", range(model.n_features_in_))
    categories = {
        int(j): tuple(_category(value, names[j]) for value in values if not _is_nan(value))
        for j, values in zip(columns, encoder.categories_, strict=True)
    }
    return np.concatenate([columns, np.flatnonzero(~categorical)]), categories


def _category(value: Any, column: Any) -> Any:
    """One category as a plain Python value. None is one where the training rows were Polars frames
    or arrays of objects: scikit-learn counts only NaN as missing."""
    plain = value.item() if isinstance(value, np.generic) else value
    if plain is not None and not isinstance(plain, (str, int, float)):
        raise ModelError(
            f"column {column!r} has the category {plain!r} ({type(plain).__name__}); qwyc supports "
            "categories that are text or numbers: convert the column to text and train again"
        )
    return plain


def _is_nan(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) and bool(value != value)


def _hist_threshold(model: Any, values: npt.NDArray[np.float64], base: float) -> float:
    """Its predict is score > 0, or in older versions argmax of the probabilities, which rounding
    makes equal a little above 0 still."""

    def is_positive(score: float) -> bool:
        return bool(_decided(model, [score]) == model.classes_[1])

    if is_positive(float(np.finfo(np.float64).tiny)):
        return smallest_sum_above_zero(values, base)
    return smallest_positive(is_positive, np.float64)


def _ties(model: Any, K: int) -> Ties:
    """Its predict compares scores, or in older versions their softmax, which makes these equal."""
    scores = np.zeros(K)
    scores[-1] = np.finfo(np.float64).tiny
    by_scores = _decided(model, scores) == model.classes_[-1]
    return BY_SCORES if by_scores else Ties("softmax", "float64")


def _decided(model: Any, scores: npt.ArrayLike) -> Any:
    """The class that these raw scores decide: a copy of the model without trees tells."""
    probe = copy.copy(model)
    probe._predictors = []
    probe._preprocessor = None
    probe.__dict__.pop("feature_names_in_", None)
    probe._baseline_prediction = np.atleast_2d(np.asarray(scores, dtype=np.float64))
    return probe.predict(np.zeros((1, model.n_features_in_)))[0]
