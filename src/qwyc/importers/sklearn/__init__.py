"""scikit-learn's forests and boosted trees, read from the fitted objects' own arrays.

scikit-learn is never imported here: a live model has brought it along.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.importers.flatten import offsets
from qwyc.importers.live import Predictions, predict_on
from qwyc.importers.sklearn.trees import flat_trees, inputs_of, source, split_trees
from qwyc.model.ensemble import Ensemble, Sample
from qwyc.model.link import Link
from qwyc.model.trees import NodeFlag, Summation, Trees, tree_ensemble
from qwyc.target.boundary import smallest_positive, smallest_sum_above_zero

_SUPPORTED = (
    "RandomForestClassifier, ExtraTreesClassifier, GradientBoostingClassifier, "
    "HistGradientBoostingClassifier, DecisionTreeClassifier, ExtraTreeClassifier, and "
    "BaggingClassifier and AdaBoostClassifier of trees"
)
LIVE_KINDS = f"scikit-learn ({_SUPPORTED})"

_ADVICE = {
    "VotingClassifier": "qwyc.optimize takes it apart into base models, but it cannot be read as trees",
    "StackingClassifier": "qwyc.optimize takes it apart into base models, but it cannot be read as trees",
    "BaseSearchCV": "fit it, with refit=True, or pass the estimator that it found",
    "TunedThresholdClassifierCV": "pass its estimator_, and threshold=qwyc.Probability(best_threshold_)",
    "FixedThresholdClassifier": "pass its estimator_, and its threshold as qwyc.Probability",
    "CalibratedClassifierCV": "calibrated scores are no sum of trees: pass the classifier inside",
}

# Where a fitted model has its trees, if not in estimators_.
_TREES = {
    "HistGradientBoostingClassifier": "_predictors",
    "DecisionTreeClassifier": "tree_",
    "ExtraTreeClassifier": "tree_",
}

# Forests whose class shares are closer than this can be decided by the order of summation.
_TIE = 1e-9

TOLERANCE = 1e-12  # with several threads, forests add up in whatever order their trees finish


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
            f"{name} is a regression model; qwyc supports binary classifiers: {_SUPPORTED}"
        )
    advice = next((f"; {_ADVICE[n]}" for n in _names(model) if n in _ADVICE), "")
    raise ModelError(
        f"scikit-learn's {name} is not supported yet; qwyc supports {_SUPPORTED}{advice}"
    )


def _check_fitted(model: Any, name: str) -> None:
    trees = _TREES.get(name, "estimators_")
    if not hasattr(model, trees) or not hasattr(model, "classes_"):
        raise ModelError(f"this {name} is not fitted; call fit first")
    if getattr(model, "n_outputs_", 1) != 1:
        raise ModelError(f"this {name} has {model.n_outputs_} outputs; qwyc supports one")
    if len(model.classes_) != 2:
        raise ModelError(
            f"this {name} has {len(model.classes_)} class{'es' * (len(model.classes_) != 1)}; "
            "qwyc supports two"
        )
    if trees != "tree_" and not len(getattr(model, trees)):
        raise ModelError(f"this {name} has no trees")


# ---- one reader per kind ---------------------------------------------------------------------


def _read_forest(model: Any, name: str) -> Ensemble:
    """Random forests, extra trees and single trees: each votes with its leaf's class shares."""
    estimators = getattr(model, "estimators_", [model])
    trees = [estimator.tree_ for estimator in estimators]
    shares = np.concatenate([tree.value[:, 0, :] for tree in trees])  # (n, 2) as predict_proba has
    return _voting(model, name, estimators[0], split_trees(trees, shares[:, 1], shares[:, 0]))


def _voting(model: Any, name: str, first: Any, trees: Trees) -> Ensemble:
    """Trees whose class shares are averaged; `first` is one of the estimators."""
    return tree_ensemble(
        trees,
        schema=inputs_of(
            model,
            "float32",
            accepts_missing=bool(first._support_missing_values(np.empty((0, 0)))),
            accepts_infinity=False,
        ),
        summation=Summation.SHARES,
        less_equal=True,
        truncates=False,
        base=0.0,
        divisor=float(trees.n_trees),
        threshold=float(np.nextafter(0.5, 1.0)),  # a tie goes to the first class
        classes=np.asarray(model.classes_),
        source=source(name),
        link=Link("identity"),
    )


def _read_boosting(model: Any, name: str) -> Ensemble:
    """GradientBoostingClassifier: the prior's log-odds plus learning_rate times every leaf."""
    trees = [estimator.tree_ for estimator in model.estimators_[:, 0]]
    value = np.concatenate([tree.value[:, 0, 0] for tree in trees])  # (n,)
    return tree_ensemble(
        split_trees(trees, model.learning_rate * value),
        schema=inputs_of(model, "float32", accepts_missing=False, accepts_infinity=False),
        summation=Summation.FLOAT64,
        less_equal=True,
        truncates=False,
        base=_initial_score(model),
        divisor=1.0,
        threshold=0.0,  # its predict is score >= 0, with either loss
        classes=np.asarray(model.classes_),
        source=source(name),
        link=Link("logistic", scale=2.0 if model.loss == "exponential" else 1.0),
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
    base = float(np.asarray(model._baseline_prediction).item())
    return tree_ensemble(
        trees,
        schema=inputs_of(model, "float64", categories=categories),
        summation=Summation.FLOAT64,
        less_equal=True,
        truncates=False,
        base=base,
        divisor=1.0,
        threshold=_hist_threshold(model, trees.leaf_value, base),
        classes=np.asarray(model.classes_),
        source=source(name),
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


def has_tree_bases(model: Any) -> bool:
    """Whether a fitted BaggingClassifier or AdaBoostClassifier is one of single decision trees."""
    bases = getattr(model, "estimators_", ())
    return len(bases) > 0 and all(
        type(base).__name__ in ("DecisionTreeClassifier", "ExtraTreeClassifier")
        and type(base).__module__.startswith("sklearn.tree")
        for base in bases
    )


def _check_bases(model: Any, name: str) -> None:
    if not has_tree_bases(model):
        base = type(model.estimators_[0]).__name__
        raise ModelError(
            f"this {name} is one of {base}, not of decision trees: qwyc.optimize takes it apart "
            "into base models, but it cannot be read as trees"
        )


def _read_bagging(model: Any, name: str) -> Ensemble:
    """BaggingClassifier of trees: a forest whose trees may each see columns of their own."""
    _check_bases(model, name)
    trees = [estimator.tree_ for estimator in model.estimators_]
    shares = [np.zeros((tree.node_count, 2)) for tree in trees]
    for share, estimator, tree in zip(shares, model.estimators_, trees, strict=True):
        # Labels are encoded as 0 and 1; a tree may have seen one of them only.
        classes = np.asarray(estimator.classes_, np.intp)
        share[:, classes] = tree.value[:, 0, : len(classes)]
    both = np.concatenate(shares)  # (n, 2)
    split = split_trees(trees, both[:, 1], both[:, 0], model.estimators_features_)
    return _voting(model, name, model.estimators_[0], split)


def _read_ada_boost(model: Any, name: str) -> Ensemble:
    """AdaBoostClassifier of trees: each adds its weight to its class and takes it from the other,
    and the score is the difference, twice the one."""
    _check_bases(model, name)
    if getattr(model, "algorithm", "") == "SAMME.R":
        raise ModelError(
            "this AdaBoostClassifier has algorithm='SAMME.R', which scikit-learn has dropped since; "
            "qwyc supports SAMME"
        )
    trees = [estimator.tree_ for estimator in model.estimators_]
    total = float(model.estimator_weights_.sum())
    if not 0 < total < np.inf:
        raise ModelError(f"this AdaBoostClassifier's weights add up to {total}, not above 0")
    values = []
    for estimator, weight in zip(model.estimators_, model.estimator_weights_, strict=False):
        says = np.argmax(estimator.tree_.value[:, 0, :], axis=1)  # (n,)
        positive = np.asarray(estimator.classes_)[says] == model.classes_[1]
        values.append(np.where(positive, 2 * weight, -2 * weight))
    value = np.concatenate(values)
    return tree_ensemble(
        split_trees(trees, value),
        schema=inputs_of(model, "float32", accepts_missing=False, accepts_infinity=False),
        summation=Summation.FLOAT64,
        less_equal=True,
        truncates=False,
        base=0.0,
        divisor=total,
        threshold=smallest_sum_above_zero(value, 0.0) / total,
        classes=np.asarray(model.classes_),
        source=source(name),
        link=Link("logistic", form="softmax"),
    )


_READERS: dict[str, Callable[[Any, str], Ensemble]] = {
    "RandomForestClassifier": _read_forest,
    "ExtraTreesClassifier": _read_forest,
    "DecisionTreeClassifier": _read_forest,
    "ExtraTreeClassifier": _read_forest,
    "GradientBoostingClassifier": _read_boosting,
    "HistGradientBoostingClassifier": _read_hist,
    "BaggingClassifier": _read_bagging,
    "AdaBoostClassifier": _read_ada_boost,
}


# ---- the live model's own predictions --------------------------------------------------------


def live_predictions(model: Any, sample: Sample) -> Predictions:
    """The model's own decisions and scores."""
    return Predictions.of(live_labels(model, sample), live_scores(model, sample), TOLERANCE)


def live_labels(model: Any, sample: Sample) -> npt.NDArray[Any]:
    """The model's own labels, (N,). A forest with many threads adds its trees up in whatever order
    they finish; rows close to a tie are decided again in tree order."""
    labels = np.asarray(predict_on(model.predict, sample))
    ensemble = sample.ensemble
    if ensemble.base_models.average and getattr(model, "n_jobs", 1) != 1:
        matrix = sample.rows
        score = ensemble.score_full(sample)
        close = np.flatnonzero(np.abs(score - 0.5) < _TIE)
        if close.size:
            single = copy.copy(model)
            single.n_jobs = 1
            labels[close] = predict_on(single.predict, ensemble.sample(matrix[close]))
    return labels


def live_scores(model: Any, sample: Sample) -> npt.NDArray[Any]:
    """The model's own scores, (N,): its decision function, or the positive class's share."""
    if hasattr(model, "decision_function"):
        return np.asarray(predict_on(model.decision_function, sample))
    return np.asarray(predict_on(model.predict_proba, sample))[:, 1]
