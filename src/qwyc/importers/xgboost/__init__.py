"""XGBoost: JSON and UBJSON model files, `Booster` and `XGBClassifier`.

The model document is read as it stands; XGBoost itself is not needed for that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.importers import files, live
from qwyc.importers.column_order import refuse_other_outputs
from qwyc.importers.flatten import flatten, flatten_vectors
from qwyc.importers.wire import ubjson
from qwyc.importers.xgboost.inputs import inputs
from qwyc.importers.xgboost.objective import (
    LINK,
    LOGISTIC,
    PROBABILITIES,
    SUPPORTED,
    TIES,
    VALUES,
    base_margins,
    refuse_unsupported,
    threshold,
)
from qwyc.importers.xgboost.trees import (
    REMEDY,
    in_parallel,
    leaf_size,
    leaf_vectors,
    node_table,
    trees_in_use,
    weighed,
)
from qwyc.model.class_trees import class_tree_ensemble
from qwyc.model.ensemble import Ensemble, Sample, Source
from qwyc.model.link import Link
from qwyc.model.trees import Summation, tree_ensemble
from qwyc.target.ties import BY_SCORES

LIVE_KINDS = (
    "XGBoost (Booster, XGBClassifier, XGBRegressor, XGBRanker, XGBRFClassifier, XGBRFRegressor)"
)
FILE_KINDS = "XGBoost (.json, .ubj)"
LOADING_ERROR = 0.0

Array = npt.NDArray[Any]
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
    with files.reading(str(path), "XGBoost model", REMEDY):
        head = content[:512].lstrip()
        if head[:1] != b"{":
            raise ModelError(
                "expected an XGBoost model in JSON or UBJSON, which starts with '{', but it starts "
                f"with {content[:8]!r}; load it with the version that wrote it and {REMEDY}"
            )
        is_json = head[1:].lstrip()[:1] in (b'"', b"}")
        document = json.loads(content) if is_json else ubjson.decode(content)
        # XGBClassifier.save_model leaves this mark, Booster.save_model does not.
        attributes = document["learner"].get("attributes") or {}
        return _ensemble(
            document,
            by_classifier="scikit_learn" in attributes,
            missing=float("nan"),
            as_values="regressor" in str(attributes.get("scikit_learn", "")),
        )


def read_live(model: Any) -> Ensemble:
    """The model in an `xgboost.Booster`, `XGBClassifier` or `XGBRFClassifier`."""
    kind = type(model).__name__
    with files.reading(kind, "XGBoost model", "train it again"):
        as_values = live.derives_from(model, "XGBRegressor") or live.derives_from(
            model, "XGBRanker"
        )
        if as_values or live.derives_from(model, "XGBClassifier"):
            try:
                booster = model.get_booster()
            except Exception as error:
                raise ModelError(f"the model is not fitted yet ({error}); fit it first") from None
            by_classifier, missing = True, float(np.float32(model.missing))
        elif live.derives_from(model, "Booster"):
            booster, by_classifier, missing = model, False, float("nan")
        else:
            raise ModelError(
                "this is not a model; use a Booster, XGBClassifier, XGBRegressor or XGBRanker"
            )
        document = ubjson.decode(bytes(booster.save_raw("ubj")))
        return _ensemble(
            document, by_classifier=by_classifier, missing=missing, as_values=as_values
        )


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


def live_labels(model: Any, sample: Sample) -> Array:
    """The classes, (N,), that the live model itself gives the rows X."""
    if live.derives_from(model, "XGBClassifier"):
        labels = np.asarray(live.predict_on(model.predict, sample))
        if labels.ndim == 1:
            return labels
        # Where multi:softprob has two classes, predict says for each whether it exceeds 0.5.
        outputs = np.asarray(live.predict_on(model.predict_proba, sample))
    else:
        outputs = np.asarray(live.predict_on(partial(_booster_outputs, model), sample))
    ensemble = sample.ensemble
    # A Booster gives probabilities (margins for logitraw, 0 or 1 for hinge); its classes are those
    # that XGBClassifier makes of them. multi:softmax gives classes.
    if outputs.ndim > 1:
        decided = outputs.argmax(axis=1)
    else:
        decided = (outputs if ensemble.by_class else outputs > 0.5).astype(np.intp)
    return np.asarray(ensemble.classes[decided])


def live_scores(model: Any, sample: Sample) -> Array:
    """The live model's own margins, (N,) or (N, K)."""
    if live.derives_from(model, "XGBClassifier"):
        return np.asarray(live.predict_on(partial(model.predict, output_margin=True), sample))
    return np.asarray(live.predict_on(partial(_booster_outputs, model, margin=True), sample))


def load(path: Path) -> Any:
    """The model in a file as XGBoost loads it: a classifier where one wrote it."""
    import xgboost

    booster = xgboost.Booster(model_file=str(path))
    if '"classifier"' not in (booster.attr("scikit_learn") or ""):  # JSON with the estimator's type
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


def _ensemble(
    document: Document, *, by_classifier: bool, missing: float, as_values: bool = False
) -> Ensemble:
    """The ensemble that `Booster.predict` evaluates or, `by_classifier`, an estimator's own `predict`:
    that one quits at the best iteration, and rounds the dart booster's sums differently. `as_values`: of a
    regressor, whose logistic outputs are values."""
    learner = document["learner"]
    booster = learner["gradient_booster"]
    objective = str(learner["objective"]["name"])
    parameters = learner["learner_model_param"]
    refuse_unsupported(objective, booster, parameters)
    of_values = as_values or objective in VALUES
    if as_values and objective in TIES:
        raise ModelError(f"a regressor with {objective} gives no values; use an XGBClassifier")
    output_of = PROBABILITIES[objective] if objective in PROBABILITIES else VALUES.get(objective)

    n_outputs = max(1, int(parameters.get("num_class", 0)), int(parameters.get("num_target", 1)))
    base = base_margins(objective, str(parameters["base_score"]), n_outputs)
    model = booster["gbtree"]["model"] if booster["name"] == "dart" else booster["model"]
    best = (learner.get("attributes") or {}).get("best_iteration") if by_classifier else None
    trees, output = trees_in_use(model, best, n_outputs)
    size = leaf_size(trees)
    if size not in (1, n_outputs) or (size > 1 and booster["name"] == "dart"):
        raise ModelError(
            f"the model's leaves are vectors of {size} numbers for {n_outputs} outputs of the "
            f"{booster['name']} booster; {SUPPORTED}"
        )
    table = node_table(trees)
    if booster["name"] == "dart":
        weight = np.asarray(booster["weight_drop"], dtype=np.float32)
        table = weighed(table, weight, base[output] if by_classifier else None)
    schema = inputs(learner, model.get("cats"), int(parameters["num_feature"]), missing)
    source = Source("xgboost", ".".join(str(v) for v in document["version"]), objective)
    if objective not in LOGISTIC or in_parallel(model):
        table = replace(table, weight=None)
    if n_outputs > 1:
        flat, vectors = flatten(table), None
        if size > 1:
            flat, vectors = flatten_vectors(table, leaf_vectors(trees, table, size))
        narrow = by_classifier and objective == "multi:softmax"  # as XGBClassifier.predict gives it
        classes = np.arange(n_outputs, dtype=np.int32 if narrow else np.int64)
        return class_tree_ensemble(
            flat,
            schema,
            classes=classes[:0] if of_values else classes,
            source=source,
            summation=Summation.FLOAT32,
            less_equal=False,
            truncates=False,
            start=base,
            tree_class=output if vectors is None else None,
            leaf_vector=vectors,
            ties=TIES.get(objective, BY_SCORES),
            output=output_of,
        )
    return tree_ensemble(
        flatten(table),
        schema=schema,
        summation=Summation.FLOAT32,
        less_equal=False,
        truncates=False,
        base=float(base[0]),
        divisor=1.0,
        threshold=0.0 if of_values else threshold(objective),
        link=LINK if objective in LOGISTIC and not of_values else Link("none"),
        classes=np.array([] if of_values else [0, 1]),
        source=source,
        weighs="curvature",
        output=output_of,
    )
