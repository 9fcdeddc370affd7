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
from qwyc.importers.live import Predictions, predict_on
from qwyc.importers.sklearn.boosting import read_ada_boost, read_boosting
from qwyc.importers.sklearn.hist import read_hist
from qwyc.importers.sklearn.regressors import (
    read_bagging_regressor,
    read_forest_regressor,
    read_isolation_forest,
)
from qwyc.importers.sklearn.voting import read_bagging, read_forest
from qwyc.model.ensemble import Ensemble, Sample
from qwyc.policy.lead_policy import leaders
from qwyc.rows.selection import take
from qwyc.rows.sparse import is_sparse

_SUPPORTED = (
    "RandomForest, ExtraTrees, GradientBoosting, HistGradientBoosting, DecisionTree and ExtraTree "
    "-Classifier and -Regressor, Bagging of trees, AdaBoostClassifier of trees, and IsolationForest"
)
LIVE_KINDS = f"scikit-learn ({_SUPPORTED})"

_ADVICE = {
    "VotingClassifier": "qwyc.optimize takes it apart into base models, but it cannot be read as trees",
    "StackingClassifier": "qwyc.optimize takes it apart into base models, but it cannot be read as trees",
    "BaseSearchCV": "fit it, with refit=True, or pass the estimator that it found",
    "TunedThresholdClassifierCV": "pass its estimator_, and threshold=qwyc.Probability(best_threshold_)",
    "FixedThresholdClassifier": "pass its estimator_, and its threshold as qwyc.Probability",
    "AdaBoostRegressor": "its answer is the weighted median of its trees, which is no sum",
    "VotingRegressor": "pass its members one by one",
    "StackingRegressor": "pass its members one by one",
    "CalibratedClassifierCV": "calibrated scores are no sum of trees: pass the classifier inside",
}

# Where a fitted model has its trees, if not in estimators_.
_TREES = {
    "HistGradientBoostingClassifier": "_predictors",
    "HistGradientBoostingRegressor": "_predictors",
    "DecisionTreeClassifier": "tree_",
    "ExtraTreeClassifier": "tree_",
    "DecisionTreeRegressor": "tree_",
    "ExtraTreeRegressor": "tree_",
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
    """Read a fitted model; ModelError where it is none, or of a kind not supported."""
    for name in _names(model):
        if name in _READERS:
            _check_fitted(model, name)
            return _READERS[name](model, name)
    name = type(model).__name__
    advice = next((f"; {_ADVICE[n]}" for n in _names(model) if n in _ADVICE), "")
    raise ModelError(
        f"scikit-learn's {name} is not supported yet; qwyc supports {_SUPPORTED}{advice}"
    )


def _check_fitted(model: Any, name: str) -> None:
    trees = _TREES.get(name, "estimators_")
    if not hasattr(model, trees) or ("Classifier" in name and not hasattr(model, "classes_")):
        raise ModelError(f"this {name} is not fitted; call fit first")
    if trees != "tree_" and not len(getattr(model, trees)):
        raise ModelError(f"this {name} has no trees")
    if "Classifier" not in name:
        return
    if getattr(model, "n_outputs_", 1) != 1:
        raise ModelError(f"this {name} has {model.n_outputs_} outputs; qwyc supports one")
    if len(model.classes_) < 2:
        raise ModelError(
            f"this {name} has one class, so there is nothing to decide; qwyc supports two or more"
        )


_READERS: dict[str, Callable[[Any, str], Ensemble]] = {
    "RandomForestClassifier": read_forest,
    "ExtraTreesClassifier": read_forest,
    "DecisionTreeClassifier": read_forest,
    "ExtraTreeClassifier": read_forest,
    "GradientBoostingClassifier": read_boosting,
    "HistGradientBoostingClassifier": read_hist,
    "BaggingClassifier": read_bagging,
    "AdaBoostClassifier": read_ada_boost,
    "RandomForestRegressor": read_forest_regressor,
    "ExtraTreesRegressor": read_forest_regressor,
    "DecisionTreeRegressor": read_forest_regressor,
    "ExtraTreeRegressor": read_forest_regressor,
    "GradientBoostingRegressor": read_boosting,
    "HistGradientBoostingRegressor": read_hist,
    "BaggingRegressor": read_bagging_regressor,
    "IsolationForest": read_isolation_forest,
}


# ---- the live model's own predictions --------------------------------------------------------


def live_predictions(model: Any, sample: Sample) -> Predictions:
    """The model's own decisions and scores; of an isolation forest, whose scores are no sums, decisions."""
    if "IsolationForest" in _names(model):
        return Predictions(live_labels(model, sample))
    return Predictions.of(live_labels(model, sample), live_scores(model, sample), TOLERANCE)


def live_labels(model: Any, sample: Sample) -> npt.NDArray[Any]:
    """The model's own labels, (N,). A forest with many threads adds its trees up in whatever order
    they finish; rows close to a tie are decided again in tree order."""
    labels = np.asarray(predict_on(model.predict, sample))
    ensemble = sample.ensemble
    if ensemble.base_models.average and getattr(model, "n_jobs", 1) != 1:
        matrix = sample.rows
        score = ensemble.score_full(sample)
        lead = leaders(score)[1] if ensemble.by_class else np.abs(score - 0.5)
        close = np.flatnonzero(lead < _TIE)
        if close.size:
            single = copy.copy(model)
            single.n_jobs = 1
            some = take(sample.given, close) if is_sparse(sample.given) else matrix[close]
            labels[close] = predict_on(single.predict, ensemble.sample(some))
    return labels


def live_scores(model: Any, sample: Sample) -> npt.NDArray[Any]:
    """The model's own scores: its decision function, (N,) or (N, K); or the positive class's share, (N,),
    or all shares, (N, K)."""
    if hasattr(model, "decision_function"):
        return np.asarray(predict_on(model.decision_function, sample))
    shares = np.asarray(predict_on(model.predict_proba, sample))
    return shares if sample.ensemble.by_class else shares[:, 1]
