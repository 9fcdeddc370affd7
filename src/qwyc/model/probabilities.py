"""What a source's own `predict` and `predict_proba` give. Every base model is evaluated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError
from qwyc.model.class_trees import ClassTreeModels
from qwyc.model.ensemble import Ensemble
from qwyc.model.link import Link
from qwyc.model.output import IDENTITY, Output
from qwyc.model.trees import Summation, TreeModels
from qwyc.target.ties import Ties


def values_of(
    ensemble: Ensemble, scores: npt.NDArray[np.float64], *, threads: int | None = None
) -> npt.NDArray[Any]:
    """The values, (N,) or (N, K), that a model of values gives for its full scores."""
    return (ensemble.output or IDENTITY).values(scores, ensemble.base_models.ties, threads)


def full_scores(
    ensemble: Ensemble, X: Any, *, threads: int | None = None
) -> npt.NDArray[np.float64]:
    """The full scores, (N,) or (N, K). Tables are read where they lie."""
    return ensemble.run(X, ensemble.full_runner, threads=threads)[2]


def class_probabilities(
    ensemble: Ensemble,
    X: Any,
    *,
    threads: int | None = None,
    scores: npt.NDArray[np.float64] | None = None,
) -> npt.NDArray[Any]:
    """The probability of every class, (N, n_classes), bit for bit as the source's `predict_proba` gives
    it. OptionError where the source has none, or where it is not known to the last bit. `scores` are the
    full scores of X, where they are known already."""
    output, models = probability_output(ensemble), ensemble.base_models
    if output is None:
        assert isinstance(models, TreeModels)
        return full_scores(_of_both_shares(ensemble, models), X, threads=threads)
    if scores is None:
        scores = full_scores(ensemble, X, threads=threads)
    given = output.values(scores, models.ties, threads)
    if given.ndim == 2:
        return given
    both = np.empty((len(given), 2), dtype=given.dtype)
    both[:, 0], both[:, 1] = 1 - given, given
    return both


def probability_output(ensemble: Ensemble) -> Output | None:
    """How the source makes probabilities of full scores; None where they are shares of two classes, each
    a sum of its own."""
    if not ensemble.has_classes:
        raise OptionError(
            f"a model of {ensemble.description} gives values, not probabilities: use predict"
        )
    if ensemble.is_isolation_forest:
        raise OptionError("an isolation forest has no probabilities: use score_samples")
    models = ensemble.base_models
    if isinstance(models, TreeModels) and models.summation == Summation.SHARES:
        return None
    return output_of(ensemble)


def probability_dtype(ensemble: Ensemble) -> str:
    """The dtype of probabilities. OptionError where the source has none."""
    output = probability_output(ensemble)
    return "float64" if output is None else output.dtype


def output_of(ensemble: Ensemble) -> Output:
    """How the source makes probabilities of full scores."""
    if ensemble.output is not None:
        return ensemble.output
    link, source = ensemble.link, ensemble.source
    known = (
        source is None or source.library in _EXACT or (source.library, link.kind) in _EXACT_KINDS
    )
    if known and not ensemble.by_class:
        if link.kind == "logistic" and link.form in _FORMS:
            return Output(_FORMS[link.form], link.dtype, link.scale)
        if link.kind == "identity":
            return Output("identity", link.dtype)
    raise OptionError(
        f"the source of {ensemble.description} gives no probabilities, or it is not known how it rounds "
        "them to the last bit: use score_full"
    )


@dataclass(frozen=True)
class SingleOutput:
    """From full scores (N,) to the one output of each row, (N,), in the source's own type: the probability
    of the positive class, or the value."""

    output: Output
    ties: Ties

    def __call__(
        self, scores: npt.NDArray[np.float64], threads: int | None = 1
    ) -> npt.NDArray[Any]:
        found = self.output.values(scores, self.ties, threads)
        return found if found.ndim == 1 else np.ascontiguousarray(found[:, 1])


def single_output(ensemble: Ensemble) -> SingleOutput:
    """How the source makes one output of a full score; OptionError where it has several, or none."""
    models = ensemble.base_models
    if ensemble.by_class:
        what = f"{len(ensemble.classes)} classes" if ensemble.has_classes else "several targets"
        raise OptionError(
            f"a tolerance is for models with one output; {ensemble.description} has {what}: leave out "
            "tolerance, or evaluate in full with qwyc.read_model"
        )
    output = output_of(ensemble) if ensemble.has_classes else ensemble.output or IDENTITY
    if output.kind in ("path length", "halving"):  # of isolation forests; the latter falls
        raise OptionError(
            f"a tolerance is for probabilities and values, and {ensemble.description} gives anomaly "
            "scores: leave out tolerance, or evaluate in full with qwyc.read_model"
        )
    return SingleOutput(output, models.ties)


# Libraries whose probabilities follow from the link to the last bit, and kinds of links of others.
_EXACT = ("xgboost", "lightgbm", "catboost", "scikit-learn")
_EXACT_KINDS = (("ydf", "logistic"), ("treelite", "logistic"))

# Outputs by the form of a logistic link.
_FORMS = {"plain": "logistic", "softmax": "numpy softmax of halves"}


def _of_both_shares(ensemble: Ensemble, models: TreeModels) -> Ensemble:
    """The same trees, whose leaves hold the shares of both classes."""
    cached: Ensemble | None = ensemble.__dict__.get("_both_shares")
    if cached is None:
        trees = models.trees
        vectors = np.column_stack([trees.leaf_other, trees.leaf_value])
        none = np.empty(0)
        both = ClassTreeModels(
            replace(trees, leaf_value=none, leaf_other=none, leaf_weight=none),
            np.empty(0, np.int32),
            np.ascontiguousarray(vectors),
            np.arange(trees.n_trees + 1, dtype=np.int64),
            models.n_features,
            Summation.FLOAT64,
            models.less_equal,
            models.truncates,
            np.zeros(2),
            models.divisor,
        )
        cached = replace(ensemble, base_models=both, threshold=0.0, link=Link("none"))
        ensemble.__dict__["_both_shares"] = cached  # made again where it is lost
    return cached
