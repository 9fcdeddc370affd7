"""CatBoost: cbm and JSON model files, `CatBoostClassifier` and `CatBoost`.

The model document is read as it stands; CatBoost itself is not needed for that.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.importers import files, live
from qwyc.importers.catboost.combinations import combinations_of
from qwyc.importers.catboost.document import MAGIC, Document, from_cbm, from_json, scaled
from qwyc.importers.catboost.trees import Splits, splits_of, trees_of
from qwyc.model.class_trees import ClassTreeModels, class_tree_ensemble
from qwyc.model.combined_trees import CombinedTreeModels
from qwyc.model.ensemble import Ensemble, Sample, Source
from qwyc.model.link import Link
from qwyc.model.output import IDENTITY, Output
from qwyc.model.trees import Summation, TreeModels, Trees, tree_ensemble
from qwyc.rows.schema import ZERO, Schema
from qwyc.target.boundary import smallest_sum_above_zero

LIVE_KINDS = "CatBoost (CatBoostClassifier, CatBoostRegressor, CatBoostRanker)"
FILE_KINDS = "CatBoost (.cbm, .json)"
_BINARY = ("Logloss", "CrossEntropy", "Focal")
_BY_CLASS = ("MultiClass", "MultiClassOneVsAll")
# Objectives of values, of which predict gives the score, or its exponential.
_SCORES = (
    "RMSE",
    "MAE",
    "Quantile",
    "MAPE",
    "Lq",
    "Huber",
    "Expectile",
    "LogCosh",
    "MultiRMSE",
    "MultiQuantile",
    "QueryRMSE",
    "QuerySoftMax",
    "PairLogit",
    "PairLogitPairwise",
    "YetiRank",
    "YetiRankPairwise",
    "StochasticRank",
    "Cox",
    "LogLinQuantile",
    "SurvivalAft",
    "RMSEWithUncertainty",
)
_EXPONENTIALS = ("Poisson", "Tweedie")
_SUPPORTED = (
    f"supported are {', '.join((*_BINARY, *_BY_CLASS))} for classes, and "
    f"{', '.join((*_SCORES, *_EXPONENTIALS))} for values"
)
_REMEDY = "save it again with model.save_model('model.cbm')"
LOADING_ERROR = 1e-12  # reading its own JSON, CatBoost misses the last bits of numbers

Array = npt.NDArray[Any]


def looks_like(head: bytes) -> bool:
    """Whether a file that starts with `head` may be a CatBoost cbm or JSON model."""
    start = head.lstrip()
    keys = (b'"features_info"', b'"model_info"', b'"oblivious_trees"', b'"ctr_data"')
    return head[:4] == MAGIC or (start[:1] == b"{" and any(key in start[:200] for key in keys))


def is_live(model: object) -> bool:
    """Whether `model` is an object of the catboost library."""
    return live.made_by(model, "catboost")


def read_file(path: Path) -> Ensemble:
    """The model in a cbm or JSON file."""
    content = files.read_bytes(path)
    with files.reading(str(path), "CatBoost model", _REMEDY):
        if content[:4] == MAGIC:
            return _ensemble(from_cbm(content))
        if content[:512].lstrip()[:1] == b"{":
            return _ensemble(from_json(content))
        raise ModelError(
            "expected a CatBoost model, which starts with 'CBM1' or, as JSON, with '{', but it "
            f"starts with {content[:8]!r}; {_REMEDY}"
        )


def read_live(model: Any) -> Ensemble:
    """The model in a `CatBoostClassifier`, or in a `CatBoost` with the objective of one."""
    with files.reading(type(model).__name__, "CatBoost model", "train it again"):
        if not live.derives_from(model, "CatBoost"):
            raise ModelError(
                "this is not a model; use a CatBoostClassifier, CatBoostRegressor or CatBoostRanker"
            )
        if not model.is_fitted():
            raise ModelError("the model is not fitted yet; fit it first")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.cbm"
            model.save_model(str(path), format="cbm")
            return _ensemble(
                from_cbm(path.read_bytes()), live.derives_from(model, "CatBoostClassifier")
            )


def live_predictions(model: Any, sample: Sample) -> live.Predictions:
    """The model's own decisions and scores."""
    return live.Predictions.of(live_labels(model, sample), live_scores(model, sample))


def live_labels(model: Any, sample: Sample) -> Array:
    """The classes, (N,), that the live model itself gives the rows X."""
    predict = partial(model.predict, prediction_type="Class")
    return np.asarray(_predict(predict, sample)).reshape(-1)


def live_scores(model: Any, sample: Sample) -> Array:
    """The live model's own scores, (N,) or (N, K)."""
    predict = partial(model.predict, prediction_type="RawFormulaVal")
    scores, ensemble = np.asarray(_predict(predict, sample)), sample.ensemble
    if not ensemble.by_class:
        return scores.reshape(-1)
    if scores.shape[1] == len(ensemble.classes):
        return scores
    # Classes that no row of training had have a score of -inf, and are not read.
    return scores[:, np.isin(np.asarray(model.classes_), ensemble.classes)]


def _predict(predict: Any, sample: Sample) -> Any:
    """CatBoost takes categories from pandas frames, and not from those of Polars."""
    schema = sample.ensemble.schema
    if schema is not None and schema.categories and live.made_by(sample.given, "polars"):
        frame = sample.given.to_pandas(use_pyarrow_extension_array=False)
        sample = replace(sample, given=frame)
    return live.predict_on(predict, sample)


def load(path: Path) -> Any:
    """The model in a file as CatBoost loads it."""
    import catboost

    with path.open("rb") as file:
        kind = "cbm" if file.read(4) == MAGIC else "json"
    return catboost.CatBoost().load_model(str(path), format=kind)


def _ensemble(document: Document, classifier: bool = False) -> Ensemble:
    loss = _refuse_unsupported(document, classifier)
    document = scaled(document)
    splits = splits_of(document)
    trees, vectors = trees_of(document, splits)
    base = np.asarray(document.bias) + 0.0  # no -0
    schema = _inputs(document, splits)
    source = Source("catboost", _version(document), loss)
    # What the trees take: with a column for each statistic of a combination.
    inner = replace(schema, n_features=schema.n_features + len(splits.combined), dtype="float32")
    ensemble = _of_trees(document, trees, vectors, base, inner, loss, source)
    if not splits.combined:
        return ensemble
    made = combinations_of(document, splits.combined, schema)
    _ = made.native  # checks every array
    inner_models = ensemble.base_models
    assert isinstance(inner_models, (TreeModels, ClassTreeModels))
    models = CombinedTreeModels(inner_models, made)
    return replace(ensemble, base_models=models, schema=schema)


def _of_trees(
    document: Document,
    trees: Trees,
    vectors: Array,
    base: Array,
    schema: Schema,
    loss: str,
    source: Source,
) -> Ensemble:
    """The trees as an ensemble, with the columns of combinations as if rows had them."""
    of_values = loss in (*_SCORES, *_EXPONENTIALS)
    if len(base) > 1:
        return class_tree_ensemble(
            trees,
            schema,
            classes=np.empty(0) if of_values else _classes(document, len(base)),
            source=source,
            summation=Summation.FLOAT64_LATE,
            less_equal=True,
            truncates=False,
            start=base,
            leaf_vector=vectors,
            scale=document.scale,
            output=_OUTPUTS.get(loss, IDENTITY),
        )
    return tree_ensemble(
        trees,
        schema=schema,
        summation=Summation.FLOAT64_LATE,
        less_equal=True,
        truncates=False,
        base=float(base[0]),
        divisor=1.0,
        threshold=0.0 if of_values else _threshold(document, trees, float(base[0])),
        classes=np.empty(0) if of_values else _classes(document, 1),
        source=source,
        link=Link("none" if of_values else "logistic"),
        scale=document.scale,
        output=_OUTPUTS.get(loss, IDENTITY) if of_values else None,
    )


_OUTPUTS = {
    "MultiClass": Output("softmax by table"),
    "MultiClassOneVsAll": Output("logistic"),
    "Poisson": Output("table exponential"),
    "Tweedie": Output("table exponential"),
    "RMSEWithUncertainty": Output("mean and variance"),
}


def _refuse_unsupported(document: Document, classifier: bool) -> str:
    """The objective's name; ModelError where it is not known."""
    parameters = document.info.get("params") or {}
    loss = str((parameters.get("loss_function") or {}).get("type", "unknown"))
    n_outputs = document.leaf_values.shape[1]
    # Models that were added up have lost their objective; catboost.to_classifier says what they are.
    of_values = loss in (*_SCORES, *_EXPONENTIALS)
    if (
        loss not in (*_BINARY, *_BY_CLASS)
        and not of_values
        and not (classifier and loss == "unknown" and n_outputs == 1)
    ):
        hint = "; if it is one, pass catboost.to_classifier(model)" * (
            loss == "unknown" and n_outputs == 1
        )
        raise ModelError(f"the model's objective is {loss}; {_SUPPORTED}{hint}")
    if not len(document.sizes):
        raise ModelError("the model has no trees; train it for one round at least")
    if n_outputs != len(document.bias) or (
        not of_values and (n_outputs > 1) != (loss in _BY_CLASS)
    ):
        raise ModelError(
            f"the model's objective is {loss} with {n_outputs} outputs and {len(document.bias)} biases; "
            f"{_SUPPORTED}"
        )
    return loss


def _inputs(document: Document, splits: Splits) -> Schema:
    known = [(f.column, f.name) for f in document.floats]
    known += [(f.column, f.name) for f in document.others]
    columns = sorted(column for column, _ in known)
    if columns != list(range(len(columns))):
        raise ModelError("the model's features are not numbered from 0 without gaps")
    names = [name for _, name in sorted(known)]
    return Schema(
        n_features=len(columns),
        names=tuple(names) if names and all(names) and len(set(names)) == len(names) else None,
        # float64 holds every hash; the columns of combinations are made from it, in float32.
        dtype="float64" if splits.combined else "float32",
        categories=splits.categories,  # where there are none, the trees do not look
        arrays_hold_values=bool(splits.categories),
        unseen="invalid",
        hashed=bool(splits.categories),
        integers="float64",
        absent=ZERO,
    )


def _threshold(document: Document, trees: Trees, base: float) -> float:
    """The smallest score that CatBoost calls positive: it must exceed the log-odds of the model's
    own probability threshold."""
    stored = document.info.get("binclass_probability_threshold")
    probability = 0.5 if stored in (None, "") else float(str(stored))
    if not 0 < probability < 1:
        raise ModelError(f"the probability threshold is {probability}, not between 0 and 1")
    if probability == 0.5 and document.scale != 1:
        return float(np.nextafter(0.0, 1.0))
    if probability == 0.5:
        return smallest_sum_above_zero(trees.leaf_value, base)
    return float(np.nextafter(-math.log(1.0 / probability - 1.0), np.inf))


def _classes(document: Document, n_scores: int) -> Array:
    """The labels that its own predict gives, negative first, or in the order of the scores."""
    facts = document.info.get("class_params") or {}
    facts = facts if isinstance(facts, dict) else {}
    n_classes = max(2, n_scores)
    labels = facts.get("class_names") or None
    # Which names, or numbers, the scores are of: classes that no row of training had have none.
    scored = facts.get("class_to_label") if n_scores > 1 else None
    if scored:
        labels = [int(i) if labels is None else labels[int(i)] for i in scored]
    elif labels is None:
        labels = list(range(n_classes))
    if len(labels) != n_classes:
        raise ModelError(f"the model has {len(labels)} classes; {_SUPPORTED}")
    if any(not isinstance(label, (str, int, float)) for label in labels):
        raise ModelError("the model's class labels are neither text nor numbers")
    kind = {"Integer": "int64", "Float": "float64", "Boolean": "bool"}
    return np.array(labels, dtype=kind.get(str(facts.get("class_label_type")), object))


def _version(document: Document) -> str:
    text = str(document.info.get("catboost_version_info", ""))
    at = text.find("tags/v")
    return text[at + 6 :].split()[0] if at >= 0 else ""
