"""The lattice ensembles of the stand-ins: stored, trained anew where the rows differ, or small ones.

Stored models were made by `python -m qwyc_experiments.paper.lattice_training`."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache
from typing import Any

import qwyc

from ..internals import lattice_ensemble, pack, unpack
from . import lattice_quick, stored
from .data import Data
from .lattice_shapes import (
    INDEPENDENT,
    QUICK,
    QUICK_SIZES,
    SHAPES,
    SIZES,
    TRAININGS,
    subsets_are_random,
)

__all__ = ["SIZES", "TRAININGS", "describe", "full", "sizes", "smaller"]


def sizes(name: str, quick: bool) -> tuple[int, ...]:
    """The sizes of the smaller ensembles."""
    return (QUICK_SIZES if quick else SIZES)[name]


def full(name: str, training: str, data: Data, quick: bool) -> qwyc.Ensemble:
    """The ensemble of an experiment, "rw1" or "rw2", trained "joint" or "independent".

    Its threshold is that of the experiment. `quick` fits a small one without TensorFlow."""
    _check(name, training)
    shapes = QUICK if quick else SHAPES
    return smaller(name, training, shapes[name].lattices, data, quick)


def smaller(name: str, training: str, size: int, data: Data, quick: bool) -> qwyc.Ensemble:
    """An ensemble of `size` lattices that was trained as the full one was, with its own threshold."""
    _check(name, training)
    if quick:
        return lattice_quick.fit(replace(QUICK[name], lattices=size), training, data)
    shape = SHAPES[name]
    if training == INDEPENDENT and subsets_are_random(shape) and size < shape.lattices:
        # Base models are trained apart from each other and their features are drawn one after the other,
        # so training fewer of them gives exactly the first of the large ensemble.
        return first(_stored_or_trained(name, training, shape.lattices, data), size)
    return _stored_or_trained(name, training, size, data)


def describe(name: str, training: str, size: int | None = None) -> dict[str, Any]:
    """What the index says of a stored model, by default the full ensemble: settings, versions, seconds
    of training and validation losses. Empty where nothing is stored."""
    entry = stored.read_index().get(_key(name, training, size or SHAPES[name].lattices), {})
    return {what: entry[what] for what in entry if what not in ("ranges", "scores")}


def first(ensemble: qwyc.Ensemble, count: int) -> qwyc.Ensemble:
    """The mean of the first base models, with the same threshold."""
    calibrators, models = unpack(ensemble.base_models.arrays)
    kept = [replace(model, weight=1 / count) for model in models[:count]]
    return lattice_ensemble(
        pack(calibrators, kept, ensemble.schema.dtype),
        ensemble.schema,
        base=0.0,
        mean=True,
        threshold=ensemble.threshold,
        classes=ensemble.classes,
    )


def _check(name: str, training: str) -> None:
    if name not in SHAPES or training not in TRAININGS:
        raise qwyc.OptionError(
            f"there are lattice ensembles of {' and '.join(SHAPES)}, {' and '.join(TRAININGS)}; got "
            f"{name!r}, {training!r}"
        )


def _key(name: str, training: str, size: int) -> str:
    # A single base model is trained alike either way, and stored once.
    return stored.key(name, INDEPENDENT if size == 1 else training, size)


@cache  # training takes minutes
def _stored_or_trained(name: str, training: str, size: int, data: Data) -> qwyc.Ensemble:
    key = _key(name, training, size)
    entry = stored.read_index().get(key)
    if entry is not None and entry["rows"] == stored.rows_digest(data):
        return stored.load(entry)
    if entry is None:
        why = f"there is no stored model {key} in {stored.FOLDER} (packages have none; a checkout does)"
    else:
        why = (
            f"the stored model {key} was trained on other rows than these, some of which may be test rows "
            "now, so it is not used"
        )
    from . import lattice_training  # needs TensorFlow Lattice to train, not to import

    try:
        lattice_training.tensorflow()
    except qwyc.MissingDependencyError as error:
        raise qwyc.MissingDependencyError(
            f"{why}. Training it anew needs TensorFlow Lattice ({error}); or use the data files that it "
            "was trained on (QWYC_DATA)"
        ) from None
    warnings.warn(f"{why}; it is trained anew, which takes minutes", qwyc.QwycWarning, stacklevel=3)
    shape = replace(SHAPES[name], lattices=size)
    return lattice_training.train(shape, training, data, lattice_training.PLANS[name])[0]
