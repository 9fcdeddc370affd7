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
from qwyc.importers.catboost.document import MAGIC, Document, from_cbm, from_json, scaled
from qwyc.importers.catboost.trees import Splits, splits_of, trees_of
from qwyc.model.ensemble import Ensemble, Sample, Source
from qwyc.model.link import Link
from qwyc.model.trees import Summation, Trees, tree_ensemble
from qwyc.rows.schema import Schema
from qwyc.target.boundary import smallest_sum_above_zero

LIVE_KINDS = "CatBoost (CatBoostClassifier)"
FILE_KINDS = "CatBoost (.cbm, .json)"
_SUPPORTED = "supported are binary classifiers: Logloss, CrossEntropy and Focal"
_REMEDY = "save it again with model.save_model('model.cbm')"
_BINARY = ("Logloss", "CrossEntropy", "Focal")
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
    """The model in a `CatBoostClassifier`, or in a `CatBoost` with a binary objective."""
    with files.reading(type(model).__name__, "CatBoost model", "train it again"):
        if not live.derives_from(model, "CatBoost"):
            raise ModelError("this is not a model; take a CatBoostClassifier")
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
    """The live model's own scores, (N,)."""
    predict = partial(model.predict, prediction_type="RawFormulaVal")
    return np.asarray(_predict(predict, sample)).reshape(-1)


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
    trees = trees_of(document, splits)
    base = float(document.bias[0]) + 0.0  # no -0
    return tree_ensemble(
        trees,
        schema=_inputs(document, splits),
        summation=Summation.FLOAT64_LATE,
        less_equal=True,
        truncates=False,
        base=base,
        divisor=1.0,
        threshold=_threshold(document, trees, base),
        classes=_classes(document),
        source=Source("catboost", _version(document), loss),
        link=Link("logistic"),
    )


def _refuse_unsupported(document: Document, classifier: bool) -> str:
    """The objective's name; ModelError where the model is not a binary classifier of trees."""
    parameters = document.info.get("params") or {}
    loss = str((parameters.get("loss_function") or {}).get("type", "unknown"))
    if document.dimension > 1 or len(document.bias) > 1:
        raise ModelError(f"the model's objective is {loss} with several outputs; {_SUPPORTED}")
    # Models that were added up have lost their objective; catboost.to_classifier says what they are.
    if loss not in _BINARY and not (classifier and loss == "unknown"):
        hint = "; if it is one, pass catboost.to_classifier(model)" * (loss == "unknown")
        raise ModelError(f"the model's objective is {loss}; {_SUPPORTED}{hint}")
    if not len(document.sizes):
        raise ModelError("the model has no trees; train it for one round at least")
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
        dtype="float32",
        categories=splits.categories,  # where there are none, the trees do not look
        arrays_hold_values=bool(splits.categories),
        unseen="invalid",
        hashed=bool(splits.categories),
        integers="float64",
    )


def _threshold(document: Document, trees: Trees, base: float) -> float:
    """The smallest score that CatBoost calls positive: it must exceed the log-odds of the model's
    own probability threshold."""
    stored = document.info.get("binclass_probability_threshold")
    probability = 0.5 if stored in (None, "") else float(str(stored))
    if not 0 < probability < 1:
        raise ModelError(f"the probability threshold is {probability}, not between 0 and 1")
    if probability == 0.5:
        return smallest_sum_above_zero(trees.leaf_value, base)
    return float(np.nextafter(-math.log(1.0 / probability - 1.0), np.inf))


def _classes(document: Document) -> Array:
    """The labels that its own predict gives, negative first."""
    facts = document.info.get("class_params") or {}
    names = facts.get("class_names") if isinstance(facts, dict) else None
    if not names:
        return np.array([0, 1])
    if len(names) != 2:
        raise ModelError(f"the model has {len(names)} classes; {_SUPPORTED}")
    if any(not isinstance(name, (str, int, float)) for name in names):
        raise ModelError("the model's class labels are neither text nor numbers")
    kind = {"Integer": "int64", "Float": "float64", "Boolean": "bool"}
    return np.array(names, dtype=kind.get(str(facts.get("class_label_type")), object))


def _version(document: Document) -> str:
    text = str(document.info.get("catboost_version_info", ""))
    at = text.find("tags/v")
    return text[at + 6 :].split()[0] if at >= 0 else ""
