"""What users give to engines: a classifier, a model that is evaluated in full, or a file of one."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from qwyc.classifier import Classifier, load_any
from qwyc.distributed.adding import Adding
from qwyc.distributed.evaluating import PROBA, check_unseen_of, evaluated_columns, evaluating
from qwyc.distributed.shipping import Model, Parcel, digest, ensemble_of, pack
from qwyc.distributed.watching import Watched, watch_of
from qwyc.distributed.work import Deciding, added_columns
from qwyc.errors import OptionError
from qwyc.predictor import Predictor
from qwyc.rows.odd_values import ERROR, check_unseen

Given = Classifier | Predictor | Watched | str | os.PathLike[str]


def packed(classifier: Given, with_digest: bool, unseen: str) -> tuple[Model, Parcel]:
    """A classifier or model, or the one that a file holds now, and what is sent to workers."""
    if not isinstance(with_digest, bool):
        raise OptionError(f"digest must be True or False; got {with_digest!r}")
    current = loaded(classifier)
    if with_digest:
        digest(current)  # refuses one that has none
    if check_unseen(unseen) != ERROR:
        if isinstance(current, Predictor):
            check_unseen_of(unseen)
        ensemble_of(current).schema_of_values(unseen)  # refuses code
    parcel = pack(current)
    if isinstance(classifier, Watched):
        parcel = replace(parcel, watch=watch_of(classifier, current))
    return current, parcel


def loaded(classifier: Any) -> Model:
    """The classifier or model, from its file where a path is given."""
    found = classifier
    if isinstance(classifier, Watched):
        found = classifier.load()
    elif isinstance(classifier, (str, os.PathLike)):
        found = load_any(classifier)
    if not isinstance(found, (Classifier, Predictor)):
        raise OptionError(
            "a qwyc.Classifier, a qwyc.Predictor or the path of a file of one was expected; got "
            f"{type(classifier).__name__}: read a model with qwyc.read_model"
        )
    return found


def with_proba(output: str | None, proba: bool) -> bool:
    """Whether probabilities are asked for, by the option or by their names."""
    return proba or (isinstance(output, str) and output.startswith(f"{PROBA}_"))


def added_by(model: Model, with_digest: bool, unseen: str, proba: bool) -> tuple[str, ...]:
    """What is added to a row."""
    if isinstance(model, Predictor):
        return evaluated_columns(model, with_digest, proba)
    if proba:
        raise OptionError(
            "probabilities need every base model, and a classifier quits early: pass "
            "qwyc.Predictor.of(classifier.ensemble) instead, which is evaluated in full"
        )
    return added_columns(model.ensemble, with_digest, unseen)


def work_of(
    model: Model,
    features: tuple[str, ...],
    keep: tuple[str, ...],
    names: tuple[str, ...],
    added: tuple[str, ...],
    unseen: str,
    proba: bool,
) -> Adding:
    """What workers do for a classifier or a model."""
    if isinstance(model, Predictor):
        return evaluating(model, features, keep, names, added, proba)
    return Deciding(features, keep, names, added, unseen)
