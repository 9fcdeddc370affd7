"""scikit-learn's forests and boosted trees, read from the fitted objects' own arrays.

scikit-learn is never imported here: a live model has brought it along.
"""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.border import smallest_positive, smallest_sum_above_zero
from qwyc.ensemble import Ensemble, Inputs, Link, NodeFlag, Source, Summation, Trees
from qwyc.errors import ModelError

SUPPORTED = (
    "RandomForestClassifier, ExtraTreesClassifier, GradientBoostingClassifier and "
    "HistGradientBoostingClassifier"
)

_ADVICE = {
    "Pipeline": "pass the classifier at its end, and rows as they reach it",
    "GridSearchCV": "pass its best_estimator_",
    "RandomizedSearchCV": "pass its best_estimator_",
    "FrozenEstimator": "pass its estimator",
}

# Forests whose class shares are closer than this can be decided by the order of summation.
_TIE = 1e-9


def is_live(model: Any) -> bool:
    """Whether `model` is an estimator of scikit-learn's own, or derives from one."""
    return bool(_names(model))


def _names(model: Any) -> list[str]:
    """The scikit-learn classes that `model` derives from, but for the base classes and mixins that
    other libraries' estimators share."""
    return [
        base.__name__
        for base in type(model).__mro__
        if base.__module__.startswith("sklearn.")
        and base.__module__.split(".")[1] not in ("base", "utils")
    ]


def read_live(model: Any) -> Ensemble:
    """Read a fitted binary classifier; ModelError where it is none, or of a kind not supported."""
    for name in _names(model):
        if name in _READERS:
            _check_fitted(model, name)
            return _READERS[name](model, name)
    name = type(model).__name__
    if any("Regressor" in base.__name__ for base in type(model).__mro__):
        raise ModelError(
            f"{name} is a regression model; qwyc supports binary classifiers: {SUPPORTED}"
        )
    advice = next((f"; {_ADVICE[n]}" for n in _names(model) if n in _ADVICE), "")
    raise ModelError(
        f"scikit-learn's {name} is not supported yet; qwyc supports {SUPPORTED}{advice}"
    )


def _check_fitted(model: Any, name: str) -> None:
    trees = "_predictors" if name.startswith("Hist") else "estimators_"
    if not hasattr(model, trees) or not hasattr(model, "classes_"):
        raise ModelError(f"this {name} is not fitted; call fit first")
    if getattr(model, "n_outputs_", 1) != 1:
        raise ModelError(f"this {name} has {model.n_outputs_} outputs; qwyc supports one")
    if len(model.classes_) != 2:
        raise ModelError(
            f"this {name} has {len(model.classes_)} class{'es' * (len(model.classes_) != 1)}; "
            "qwyc supports two"
        )
    if not len(getattr(model, trees)):
        raise ModelError(f"this {name} has no trees")


# ---- one reader per kind ---------------------------------------------------------------------


def _read_forest(model: Any, name: str) -> Ensemble:
    """Random forests and extra trees: every tree votes with its leaf's class shares."""
    trees = [estimator.tree_ for estimator in model.estimators_]
    shares = np.concatenate([tree.value[:, 0, :] for tree in trees])  # (n, 2) as predict_proba has
    return Ensemble(
        trees=_split_trees(trees, shares[:, 1], shares[:, 0]),
        inputs=_inputs(
            model,
            "float32",
            accepts_missing=bool(model.estimators_[0]._support_missing_values(np.empty((0, 0)))),
            accepts_infinity=False,
        ),
        summation=Summation.SHARES,
        less_equal=True,
        truncates=False,
        base=0.0,
        divisor=float(len(trees)),
        threshold=float(np.nextafter(0.5, 1.0)),  # a tie goes to the first class
        classes=np.asarray(model.classes_),
        source=_source(name),
        link=Link("identity"),
    )


def _read_boosting(model: Any, name: str) -> Ensemble:
    """GradientBoostingClassifier: the prior's log-odds plus learning_rate times every leaf."""
    trees = [estimator.tree_ for estimator in model.estimators_[:, 0]]
    value = np.concatenate([tree.value[:, 0, 0] for tree in trees])  # (n,)
    return Ensemble(
        trees=_split_trees(trees, model.learning_rate * value),
        inputs=_inputs(model, "float32", accepts_missing=False, accepts_infinity=False),
        summation=Summation.FLOAT64,
        less_equal=True,
        truncates=False,
        base=_initial_score(model),
        divisor=1.0,
        threshold=0.0,  # its predict is score >= 0, with either loss
        classes=np.asarray(model.classes_),
        source=_source(name),
    )


def _initial_score(model: Any) -> float:
    """What every row starts from; only an init that looks at no row can be read."""
    init = model.init_
    constant = isinstance(init, str) or (
        type(init).__name__ == "DummyClassifier"
        and init.strategy in ("prior", "most_frequent", "constant")
    )
    if not constant:
        raise ModelError(
            f"this GradientBoostingClassifier starts from an estimator of its own "
            f"(init={type(init).__name__}), which is not supported; qwyc supports init=None and "
            "init='zero'"
        )
    raw = model._raw_predict_init(np.zeros((1, model.n_features_in_), np.float32))  # (1, 1)
    return float(raw[0, 0])


def _read_hist(model: Any, name: str) -> Ensemble:
    """HistGradientBoostingClassifier: its rows are float64, and its splits may be category sets."""
    predictors = [stage[0] for stage in model._predictors]
    nodes = np.concatenate([predictor.nodes for predictor in predictors])  # (n,) records
    begin = _offsets([len(predictor.nodes) for predictor in predictors])
    inner = nodes["is_leaf"] == 0
    in_sets = inner & (nodes["is_categorical"] != 0)
    # Infinities in training can leave a threshold NaN: nothing is <= that, nothing in an empty set.
    nowhere = inner & ~in_sets & np.isnan(nodes["num_threshold"])
    flags = np.where(nodes["missing_go_to_left"] != 0, NodeFlag.DEFAULT_LEFT, 0)
    flags = flags | np.where(in_sets | nowhere, NodeFlag.CATEGORICAL | NodeFlag.IN_SET_LEFT, 0)
    set_begin = _offsets([len(predictor.raw_left_cat_bitsets) for predictor in predictors])
    sets = np.concatenate([p.raw_left_cat_bitsets for p in predictors])  # (n_sets, 8) words
    set_of = nodes["bitset_idx"] + np.repeat(set_begin[:-1], np.diff(begin))  # (n,)
    order, categories = _columns(model)
    trees = _flat_trees(
        begin=begin,
        left=np.where(inner, nodes["left"].astype(np.int64), -1),
        right=nodes["right"].astype(np.int64),
        feature=order[np.where(inner, nodes["feature_idx"], 0)],
        threshold=np.where(in_sets | nowhere, 0.0, nodes["num_threshold"]),
        flags=flags,
        value=nodes["value"],
        sets=sets[set_of[in_sets]],
        has_set=in_sets,
    )
    base = float(np.asarray(model._baseline_prediction).item())
    return Ensemble(
        trees=trees,
        inputs=_inputs(model, "float64", categories=categories),
        summation=Summation.FLOAT64,
        less_equal=True,
        truncates=False,
        base=base,
        divisor=1.0,
        threshold=_hist_threshold(model, trees.leaf_value, base),
        classes=np.asarray(model.classes_),
        source=_source(name),
    )


def _columns(model: Any) -> tuple[npt.NDArray[np.int64], dict[int, tuple[Any, ...]]]:
    """Which of X's columns every feature of the trees is, and the categories of X's columns.

    The model's own preprocessor encodes categories and puts their columns first.
    """
    if getattr(model, "_preprocessor", None) is None:
        return np.arange(model.n_features_in_), {}
    categorical = np.asarray(model.is_categorical_, bool)  # (n_features,) in X's order
    columns = np.flatnonzero(categorical)
    encoder = model._preprocessor.named_transformers_["encoder"]
    categories = {
        int(j): tuple(_category(value, int(j)) for value in values if not _is_nan(value))
        for j, values in zip(columns, encoder.categories_, strict=True)
    }
    return np.concatenate([columns, np.flatnonzero(~categorical)]), categories


def _category(value: Any, j: int) -> Any:
    """One category as a plain Python value. None is one where the training rows were Polars frames
    or arrays of objects: scikit-learn counts only NaN as missing."""
    plain = value.item() if isinstance(value, np.generic) else value
    if plain is not None and not isinstance(plain, (str, int, float)):
        raise ModelError(
            f"column {j} has the category {plain!r} ({type(plain).__name__}); qwyc supports "
            "categories that are text or numbers"
        )
    return plain


def _is_nan(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) and bool(value != value)


def _hist_threshold(model: Any, values: npt.NDArray[np.float64], base: float) -> float:
    """Its predict is score > 0, or in older versions argmax of the probabilities, which rounding
    makes equal a little above 0 still: a copy of the model without trees tells."""
    probe = copy.copy(model)
    probe._predictors = []
    probe._preprocessor = None
    probe.__dict__.pop("feature_names_in_", None)
    row = np.zeros((1, model.n_features_in_))

    def is_positive(score: float) -> bool:
        probe._baseline_prediction = np.array([[score]])
        return bool(probe.predict(row)[0] == model.classes_[1])

    if is_positive(float(np.finfo(np.float64).tiny)):
        return smallest_sum_above_zero(values, base)
    return smallest_positive(is_positive, np.float64)


_READERS: dict[str, Callable[[Any, str], Ensemble]] = {
    "RandomForestClassifier": _read_forest,
    "ExtraTreesClassifier": _read_forest,
    "GradientBoostingClassifier": _read_boosting,
    "HistGradientBoostingClassifier": _read_hist,
}


# ---- the parts of an Ensemble ----------------------------------------------------------------


def _source(name: str) -> Source:
    version = str(getattr(sys.modules.get("sklearn"), "__version__", ""))
    return Source(library="scikit-learn", version=version, kind=name)


def _inputs(model: Any, dtype: str, **rest: Any) -> Inputs:
    names = getattr(model, "feature_names_in_", None)
    return Inputs(
        n_features=int(model.n_features_in_),
        names=None if names is None else tuple(str(name) for name in names),
        dtype=dtype,
        arrays_hold_values=bool(rest.get("categories")),
        unseen="missing",
        **rest,
    )


def _split_trees(
    trees: Sequence[Any],
    value: npt.NDArray[np.float64],
    other: npt.NDArray[np.float64] | None = None,
) -> Trees:
    """sklearn.tree's trees, whose rows are float32 and whose splits are numeric."""
    left_of_missing = np.concatenate([tree.missing_go_to_left for tree in trees]) != 0
    n_nodes = len(left_of_missing)
    return _flat_trees(
        begin=_offsets([tree.node_count for tree in trees]),
        left=np.concatenate([tree.children_left for tree in trees]),
        right=np.concatenate([tree.children_right for tree in trees]),
        feature=np.concatenate([tree.feature for tree in trees]),
        threshold=_round_down(np.concatenate([tree.threshold for tree in trees])),
        flags=np.where(left_of_missing, NodeFlag.DEFAULT_LEFT, 0),
        value=value,
        other=other,
        sets=np.empty((0, 0), np.uint32),
        has_set=np.zeros(n_nodes, bool),
    )


def _round_down(threshold: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """The largest float32 <= threshold: the same split for every row of float32."""
    with np.errstate(over="ignore"):
        near = threshold.astype(np.float32)
        return np.where(near > threshold, np.nextafter(near, np.float32(-np.inf)), near)


def _flat_trees(
    *,
    begin: npt.NDArray[np.int64],  # (T + 1,) tree t owns nodes begin[t]:begin[t+1], root first
    left: npt.NDArray[Any],  # (n,) counted within the tree; < 0 at leaves
    right: npt.NDArray[Any],  # (n,)
    feature: npt.NDArray[Any],  # (n,)
    threshold: npt.NDArray[Any],  # (n,)
    flags: npt.NDArray[Any],  # (n,)
    value: npt.NDArray[np.float64],  # (n,)
    sets: npt.NDArray[np.uint32],  # (n_sets, words) bit sets of the nodes that have one, in order
    has_set: npt.NDArray[np.bool_],  # (n,)
    other: npt.NDArray[np.float64] | None = None,  # (n,)
) -> Trees:
    """Number inner nodes and leaves apart. scikit-learn already has parents before children."""
    is_leaf = left < 0
    inner = np.flatnonzero(~is_leaf)  # (n_nodes,)
    leaves = np.flatnonzero(is_leaf)  # (n_leaves,)
    node_begin = np.searchsorted(inner, begin).astype(np.int64)
    leaf_begin = np.searchsorted(leaves, begin).astype(np.int64)
    tree_of = np.repeat(np.arange(len(begin) - 1), np.diff(begin))  # (n,)
    number = np.empty(len(left), np.int32)  # (n,) a node's new number within its tree; ~leaf
    number[inner] = np.arange(len(inner)) - node_begin[tree_of[inner]]
    number[leaves] = ~(np.arange(len(leaves)) - leaf_begin[tree_of[leaves]])
    first = begin[tree_of[inner]]
    return Trees(
        node_begin=node_begin,
        leaf_begin=leaf_begin,
        feature=feature[inner].astype(np.int32),
        threshold=threshold[inner],
        left=number[first + left[inner]],
        right=number[first + right[inner]],
        flags=flags[inner].astype(np.uint8),
        category_begin=_offsets(has_set[inner] * sets.shape[1]),
        category_words=np.ascontiguousarray(sets, np.uint32).ravel(),
        leaf_value=np.ascontiguousarray(value[leaves]),
        leaf_other=np.empty(0) if other is None else np.ascontiguousarray(other[leaves]),
    )


def _offsets(sizes: Any) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


# ---- the live model's own answer -------------------------------------------------------------


def live_labels(model: Any, X: Any, ensemble: Ensemble) -> npt.NDArray[Any]:
    """The model's own labels, (N,). A forest with many threads adds its trees up in whatever order
    they finish; rows close to a tie are decided again in tree order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as: X does not have valid feature names
        labels = np.asarray(_predict(model, X, ensemble))
        if ensemble.summation == Summation.SHARES and getattr(model, "n_jobs", 1) != 1:
            matrix = ensemble.matrix(X)
            score = ensemble.score_full(matrix)
            close = np.flatnonzero(np.abs(score - 0.5) < _TIE)
            if close.size:
                single = copy.copy(model)
                single.n_jobs = 1
                labels[close] = single.predict(matrix[close])
    return labels


def _predict(model: Any, X: Any, ensemble: Ensemble) -> Any:
    """Predict X as it stands where the model may take it, so that scikit-learn does its own
    conversion; otherwise its matrix, which holds the same values unless there are categories."""
    rows = _as_fitted(X, ensemble.inputs)
    if ensemble.inputs.categories:
        return model.predict(rows)
    if rows is not None:
        try:
            return model.predict(rows)
        except (TypeError, ValueError):
            pass
    return model.predict(ensemble.matrix(X))


def _as_fitted(X: Any, inputs: Inputs) -> Any:
    """X in a form that scikit-learn reads as qwyc does: the columns that it knows in their order,
    no masked or Arrow arrays. None where only the matrix will do."""
    if isinstance(X, np.ma.MaskedArray):
        return X.filled(np.nan) if X.dtype.kind in "fO" else None
    if isinstance(X, (np.ndarray, list, tuple)):
        return X
    if type(X).__module__.split(".")[0] == "pyarrow":
        X = X.to_pandas()
    if inputs.names is not None and hasattr(X, "columns"):
        return X[list(inputs.names)] if set(inputs.names) <= set(X.columns) else None
    return X
