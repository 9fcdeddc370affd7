"""What an XGBoost model's objective says: which models are read, where sums start, and how they decide."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import ModelError
from qwyc.model.link import Link
from qwyc.model.output import Output
from qwyc.target.boundary import smallest_positive
from qwyc.target.ties import BY_SCORES, Ties

LOGISTIC = ("binary:logistic", "reg:logistic")
TWO_CLASSES = (*LOGISTIC, "binary:logitraw", "binary:hinge")
# multi:softprob gives probabilities, whose greatest decides; multi:softmax gives the class of the greatest
# margin.
TIES = {"multi:softprob": Ties("softmax", "float32"), "multi:softmax": BY_SCORES}
_IDENTITY, _EXPONENTIAL = Output("identity", "float32"), Output("exponential", "float32")
# Objectives of values, and what predict makes of margins.
VALUES = {
    "reg:squarederror": _IDENTITY,
    "reg:linear": _IDENTITY,  # its name until version 0.83
    "reg:squaredlogerror": _IDENTITY,
    "reg:absoluteerror": _IDENTITY,
    "reg:pseudohubererror": _IDENTITY,
    "reg:quantileerror": _IDENTITY,
    "reg:expectileerror": _IDENTITY,
    "rank:pairwise": _IDENTITY,
    "rank:ndcg": _IDENTITY,
    "rank:map": _IDENTITY,
    "count:poisson": _EXPONENTIAL,
    "reg:gamma": _EXPONENTIAL,
    "reg:tweedie": _EXPONENTIAL,
    "survival:cox": _EXPONENTIAL,
    "survival:aft": Output("wide exponential", "float32"),
}
# How probabilities are made of margins; XGBClassifier takes other outputs for probabilities too.
PROBABILITIES = {
    "binary:logistic": Output("logistic", "float32"),
    "reg:logistic": Output("logistic", "float32"),
    "binary:logitraw": _IDENTITY,
    "binary:hinge": Output("sign", "float32"),
    "multi:softprob": Output("classes", "float32"),
    "multi:softmax": Output("numpy softmax", "float32"),  # by XGBClassifier, with SciPy
}
SUPPORTED = (
    f"supported are decision trees, with the gbtree or dart booster, for classes "
    f"({', '.join((*TWO_CLASSES, *TIES))}) or values ({', '.join(VALUES)})"
)
LINK = Link("logistic", dtype="float32")
_EPSILON = np.float32(1e-6)  # base scores are kept this far from 0 and 1

Document = Mapping[str, Any]


def refuse_unsupported(objective: str, booster: Document, parameters: Document) -> None:
    """ModelError where the model is not one of trees that is known."""
    name = booster["name"]
    if name not in ("gbtree", "dart"):
        raise ModelError(f"the model's booster is {name}, not trees; {SUPPORTED}")
    if objective not in (*TWO_CLASSES, *TIES, *VALUES):
        raise ModelError(f"the model's objective is {objective}; {SUPPORTED}")
    n_targets = int(parameters.get("num_target", 1))
    if n_targets > 1 and objective not in VALUES:
        raise ModelError(f"the model is {objective} with {n_targets} targets; {SUPPORTED}")
    n_classes = int(parameters.get("num_class", 0))
    if (n_classes > 1) != (objective in TIES):
        raise ModelError(f"the model is {objective} with {n_classes} classes; {SUPPORTED}")


def base_margins(objective: str, base_score: str, n_outputs: int) -> npt.NDArray[np.float32]:
    """The margins before any tree, (n_outputs,): "[2.4E-1]" with one number or one for each output, or
    "2.4E-1" in older files."""
    scores = np.array([np.float32(text) for text in base_score.strip("[]").split(",")])
    if len(scores) not in (1, n_outputs):
        raise ModelError(f"the model has {len(scores)} base scores for {n_outputs} outputs")
    if objective in LOGISTIC:
        scores = np.array([_log_odds(score) for score in scores])
    elif objective in VALUES and VALUES[objective] != _IDENTITY:
        scores = np.array([np.float32(_native.log_f32(float(score))) for score in scores])
    return np.broadcast_to(scores, (n_outputs,))


def _log_odds(score: np.float32) -> np.float32:
    p = min(max(score, _EPSILON), np.float32(1) - _EPSILON)
    return np.float32(-_native.log_f32(float(np.float32(1) / p - np.float32(1))))


@cache
def threshold(objective: str) -> float:
    """The smallest margin for which XGBClassifier.predict says 1: its output exceeds 0.5."""
    if objective == "binary:hinge":  # the output is 1 where the margin is > 0
        return smallest_positive(lambda margin: margin > 0, np.float32)
    if objective == "binary:logitraw":  # the output is the margin
        return smallest_positive(lambda margin: margin > 0.5, np.float32)

    return smallest_positive(lambda margin: LINK.probability(margin) > 0.5, np.float32)
