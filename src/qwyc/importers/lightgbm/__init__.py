"""LightGBM: text model files, `Booster` and `LGBMClassifier`.

The model's text is read as it stands; LightGBM itself is not needed for that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.importers import files, live
from qwyc.importers.column_order import refuse_by_position
from qwyc.importers.lightgbm.inputs import inputs
from qwyc.importers.lightgbm.trees import REMEDY, Fields, trees_of
from qwyc.model.class_trees import class_tree_ensemble
from qwyc.model.ensemble import Ensemble, Sample, Source
from qwyc.model.link import Link
from qwyc.model.output import IDENTITY, PROBABILITIES, Output
from qwyc.model.trees import Summation, tree_ensemble
from qwyc.target.boundary import smallest_positive
from qwyc.target.ties import Ties

LIVE_KINDS = "LightGBM (Booster, LGBMClassifier, LGBMRegressor, LGBMRanker)"
FILE_KINDS = "LightGBM (.txt)"
_BINARY = ("binary", "cross_entropy")
_BY_CLASS = ("multiclass", "multiclassova")
_EXPONENTIAL = Output("exponential")
# Objectives of values, and what predict makes of scores. "custom" is what has no name in a file.
_VALUES = {
    "regression": IDENTITY,
    "regression_l1": IDENTITY,
    "huber": IDENTITY,
    "fair": IDENTITY,
    "quantile": IDENTITY,
    "mape": IDENTITY,
    "poisson": _EXPONENTIAL,
    "gamma": _EXPONENTIAL,
    "tweedie": _EXPONENTIAL,
    "cross_entropy_lambda": Output("log of 1 + exponential"),
    "lambdarank": IDENTITY,
    "rank_xendcg": IDENTITY,
    "custom": IDENTITY,
}
_SUPPORTED = (
    f"supported are decision trees for classes ({', '.join((*_BINARY, *_BY_CLASS))}) or values "
    f"({', '.join(_VALUES)})"
)
LOADING_ERROR = 0.0
_ANY_SHAPE = "predict_disable_shape_check"

Array = npt.NDArray[Any]


def looks_like(head: bytes) -> bool:
    """Whether a file that starts with `head` may be a LightGBM text model."""
    return head.split(None, 1)[:1] == [b"tree"] and b"=" in head


def is_live(model: object) -> bool:
    """Whether `model` is an object of the lightgbm library."""
    return live.made_by(model, "lightgbm")


def read_file(path: Path) -> Ensemble:
    """The model in a text file."""
    content = files.read_bytes(path)
    with files.reading(str(path), "LightGBM model", REMEDY):
        if content.split(None, 1)[:1] != [b"tree"]:
            raise ModelError(
                "expected a LightGBM model in text, which starts with the line 'tree', but it "
                f"starts with {content[:8]!r}; {REMEDY}"
            )
        text = content.decode("utf-8", "surrogateescape")
        return _ensemble(text, None, "float32 objects")  # it is loaded as a Booster


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
                    "the model has pred_early_stop, so its decisions do not use all of its trees; "
                    "pass it after model.set_params(pred_early_stop=False)"
                )
        elif live.derives_from(model, "LGBMRegressor") or live.derives_from(model, "LGBMRanker"):
            try:
                booster, classes, integers = model.booster_, np.empty(0), "float32"
            except Exception as error:
                raise ModelError(f"the model is not fitted yet ({error}); fit it first") from None
        elif live.derives_from(model, "Booster"):
            booster, classes, integers = model, None, "float32 objects"
        else:
            raise ModelError(
                "this is not a model; use a Booster, LGBMClassifier, LGBMRegressor or LGBMRanker"
            )
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


def live_labels(model: Any, sample: Sample) -> Array:
    """The classes, (N,), that the live model itself gives the rows X."""
    outputs = np.asarray(live.predict_on(model.predict, sample))
    if live.derives_from(model, "LGBMClassifier"):
        return outputs
    decided = outputs.argmax(axis=1) if outputs.ndim > 1 else (outputs > 0.5).astype(np.intp)
    return np.asarray(sample.ensemble.classes[decided])


def live_scores(model: Any, sample: Sample) -> Array:
    """The live model's own scores, (N,) or (N, K); of a random forest LightGBM gives the sum."""
    scores = live.predict_on(partial(model.predict, raw_score=True), sample)
    ensemble = sample.ensemble
    return np.asarray(scores) / (ensemble.n_models if ensemble.base_models.average else 1.0)


def load(path: Path) -> Any:
    """The model in a file as LightGBM loads it."""
    import lightgbm

    return lightgbm.Booster(model_file=str(path))


def _ensemble(text: str, classes: Array | None, integers: str) -> Ensemble:
    """The model in a text, with the labels of a classifier, which are none of a regressor; a Booster and a
    file have numbers."""
    body, tail = _body_and_tail(text.replace("\r\n", "\n"))
    header_text, *tree_texts = body.split("\nTree=")
    header = _fields(header_text)
    trees = [_fields(tree_text) for tree_text in tree_texts]
    objective = _objective(header)
    if any(int(tree.get("is_linear", 0)) for tree in trees):
        raise ModelError(f"the model's leaves are linear models (linear_tree); {_SUPPORTED}")
    K = objective.n_outputs
    if classes is None:
        classes = np.arange(0 if objective.name in _VALUES else max(2, K))
    of_values = not len(classes)
    if not of_values and objective.name in _VALUES:
        raise ModelError(
            f"a classifier of {objective.name} makes no decision by itself; pass model.booster_"
        )
    if of_values and objective.name in _BY_CLASS:
        raise ModelError(f"a regressor of {objective.name} gives no values; use an LGBMClassifier")
    if not of_values and classes.shape != (max(2, K),):
        raise ModelError(
            f"the model was fitted on {classes.size} classes and decides among {max(2, K)}; train it "
            "without num_class, or pass model.booster_, whose classes are numbers"
        )
    announced = len(header["tree_sizes"].split()) if "tree_sizes" in header else len(trees)
    if announced != len(trees):
        raise ModelError(f"the model should have {announced} trees but holds {len(trees)}")
    if not trees:
        raise ModelError("the model has no trees; train it for one round at least")
    if len(trees) % K:
        raise ModelError(
            f"the model has {len(trees)} trees, which do not make whole rounds of {K}; {REMEDY}"
        )
    divisor = float(len(trees) // K) if "average_output" in header else 1.0
    source = Source("lightgbm", "", header.get("objective", "custom objective"))
    if K > 1:
        ova = objective.name == "multiclassova"
        return class_tree_ensemble(
            trees_of(trees),
            inputs(header, tail, integers),
            classes=classes,
            source=source,
            summation=Summation.FLOAT64,
            less_equal=True,
            truncates=True,
            divisor=divisor,
            tree_class=np.arange(len(trees)) % K,
            ties=Ties("sigmoid", scale=objective.sigmoid) if ova else Ties("softmax"),
            output=IDENTITY if of_values else PROBABILITIES,
            start=np.zeros(K),
        )
    return tree_ensemble(
        trees_of(trees),
        schema=inputs(header, tail, integers),
        summation=Summation.FLOAT64,
        less_equal=True,
        truncates=True,
        base=0.0,
        divisor=divisor,
        threshold=0.0 if of_values else _threshold(objective.sigmoid),
        classes=classes,
        source=source,
        link=Link("none") if of_values else Link("logistic", scale=objective.sigmoid),
        output=objective.output,
    )


def _body_and_tail(text: str) -> tuple[str, str]:
    """The header and the trees, and what follows; ModelError where the model is cut off. Version 2
    wrote no line "end of trees", but the size of every tree."""
    body, end, tail = text.partition("\nend of trees")
    if not end:
        head, first, trees = text.partition("\nTree=")
        fields = _fields(head)
        sizes = [int(size) for size in fields.get("tree_sizes", "").split()]
        # The sizes count bytes, and what LightGBM writes of trees is ASCII.
        if fields.get("version") == "v2" and sizes and len(first + trees) >= sum(sizes):
            length = len(head) + sum(sizes)
            return text[:length], text[length:]
    if not end or ("\nparameters:" in tail and "\nend of parameters" not in tail):
        raise ModelError(f"the model is cut off before its end; {REMEDY}")
    return body, tail


def _fields(text: str) -> Fields:
    """The key=value lines; a line without "=" is a key with an empty value."""
    pairs = (line.partition("=") for line in text.split("\n"))
    return {key.strip(): value for key, _, value in pairs}


@dataclass(frozen=True)
class _Objective:
    name: str
    n_outputs: int  # scores a row: 1, or one for each class
    sigmoid: float  # the sigmoid's factor
    output: Output  # probabilities, or values


def _objective(header: Fields) -> _Objective:
    """The objective; ModelError where it is not known."""
    n_classes, n_outputs = int(header["num_class"]), int(header["num_tree_per_iteration"])
    name, *options = header.get("objective", "custom").split() or ["custom"]
    if name not in (*_BINARY, *_BY_CLASS, *_VALUES):
        raise ModelError(f"the model's objective is {name}; {_SUPPORTED}")
    by_class = name in _BY_CLASS or (name == "custom" and n_outputs > 1)
    if n_outputs != n_classes or (n_outputs > 1) != by_class:
        raise ModelError(
            f"the model is {name} with {n_classes} classes and {n_outputs} trees a round; {_SUPPORTED}"
        )
    settings = dict(option.split(":", 1) for option in options if ":" in option)
    sigmoid = float(settings.get("sigmoid", 1.0))
    if not 0 < sigmoid < math.inf:
        raise ModelError(f"the sigmoid's factor is {sigmoid}, not a positive number; {REMEDY}")
    output = _VALUES.get(name, Output("logistic", scale=sigmoid))
    if name == "regression" and "sqrt" in options:
        output = Output("signed square")
    return _Objective(name, n_outputs, sigmoid, output)


@cache
def _threshold(sigmoid: float) -> float:
    """The smallest score for which LGBMClassifier.predict gives the second class."""

    link = Link("logistic", scale=sigmoid)
    return smallest_positive(
        lambda score: link.probability(score) > 1.0 - link.probability(score), np.float64
    )
