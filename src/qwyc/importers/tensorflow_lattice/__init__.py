"""TensorFlow Lattice: live premade models, and lists of them that were trained independently.

A CalibratedLatticeEnsemble is read as its lattices, a CalibratedLattice as one, a CalibratedLinear as its
calibrated features. TensorFlow is not imported here: whoever has a live model has imported it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import metadata
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.importers import files
from qwyc.importers.live import Predictions, made_by
from qwyc.importers.tensorflow_lattice.decision import Decision, decision_of
from qwyc.importers.tensorflow_lattice.layers import SUPPORTED, Structure, structure_of
from qwyc.importers.tensorflow_lattice.live import outputs_and_scores
from qwyc.model.ensemble import Ensemble, Sample, Source
from qwyc.model.lattices.join import join, pack
from qwyc.model.lattices.models import LatticeModels, lattice_ensemble
from qwyc.rows.schema import Schema

LIVE_KINDS = (
    "TensorFlow Lattice (CalibratedLatticeEnsemble, CalibratedLattice, CalibratedLinear and "
    "lists of them)"
)
# Relative. TensorFlow computes in float32, in an order that depends on the machine and the batch.
TOLERANCE = 1e-5
ROUNDING = 1e-6  # the same, of the largest sum that there can be
LIBRARY = "tensorflow_lattice"
PREMADE = ("CalibratedLatticeEnsemble", "CalibratedLattice", "CalibratedLinear")
CLASSES = np.array([0, 1])

Array = npt.NDArray[Any]


def is_live(model: object) -> bool:
    """Whether `model` is an object of tensorflow_lattice, or a list with such an object in it."""
    return made_by(model, LIBRARY) or is_list(model)


def is_list(model: object) -> bool:
    """Whether `model` is a list with an object of tensorflow_lattice in it."""
    return isinstance(model, (list, tuple)) and any(made_by(item, LIBRARY) for item in model)


def read_live(model: Any) -> Ensemble:
    """The model, or the sum of the models in a list."""
    if not is_list(model):
        return _Member(model).ensemble
    members = _members(model)
    source = _source(f"sum of {len(members)} models")
    return join([member.ensemble for member in members], source=source)


def live_predictions(model: Any, sample: Sample) -> Predictions:
    """The decisions that follow from the live model's own outputs, or the sum over a list; and its scores:
    outputs, before an output calibration."""
    schema, models = sample.ensemble.schema, sample.ensemble.base_models
    assert schema is not None  # of a model that was read
    assert schema.names is not None
    place = {name: j for j, name in enumerate(schema.names)}
    matrix = np.asarray(sample.rows).astype(schema.dtype, copy=False)
    output, score, threshold = np.zeros(len(matrix)), np.zeros(len(matrix)), 0.0
    for member in _members(model) if is_list(model) else [_Member(model)]:
        found = member.structure
        columns = [place[name] for name in found.features]
        own = outputs_and_scores(
            member.model, found.output_calibration, matrix, columns, found.largest
        )
        output, score = output + own[0], score + own[1]
        threshold += member.decision.output
    positive = output >= threshold
    if sample.ensemble.link.kind == "piecewise":
        # On a level part of an output calibration, rounding decides rows whose scores are far apart.
        near = np.abs(output - threshold) <= TOLERANCE * max(1.0, abs(threshold))
        positive = np.where(near, score >= sample.ensemble.threshold, positive)
    # Rounding errors are relative to what is added up, which may cancel out in a score.
    assert isinstance(models, LatticeModels)
    return Predictions(
        labels=CLASSES[positive.astype(np.intp)],
        scores=score,
        tolerance=TOLERANCE,
        absolute=ROUNDING * models.native.total,
        ties=True,
    )


@dataclass(frozen=True, eq=False)
class _Member:
    """One premade model."""

    model: Any

    @cached_property
    def structure(self) -> Structure:
        kind = type(self.model)
        if kind.__module__ != f"{LIBRARY}.python.premade" or kind.__name__ not in PREMADE:
            raise ModelError(
                f"cannot read a {kind.__module__}.{kind.__qualname__}; {SUPPORTED}, and lists of them"
            )
        with files.reading(kind.__name__, "TensorFlow Lattice model", "build it again"):
            return structure_of(self.model)

    @cached_property
    def decision(self) -> Decision:
        return decision_of(self.model, self.structure.output_calibration)

    @cached_property
    def ensemble(self) -> Ensemble:
        structure, decision = self.structure, self.decision
        ensemble = lattice_ensemble(
            pack(structure.calibrators, structure.models, structure.dtype.name),
            Schema(
                n_features=len(structure.features),
                names=structure.features,
                dtype=structure.dtype.name,
                accepts_missing=False,  # NaN becomes NaN: what is missing is a number of the model's own
                own_missing=_own_missing(structure),
            ),
            base=structure.base,
            mean=structure.mean,
            threshold=decision.score,
            classes=CLASSES,
            source=_source(type(self.model).__name__),
            link=decision.link,
        )
        return replace(ensemble, doubt=decision.doubt)


def _members(models: Sequence[Any]) -> list[_Member]:
    """The members of a list; ModelError where one of them cannot be added to the others."""
    members = []
    for i, model in enumerate(models):
        if not made_by(model, LIBRARY):
            raise ModelError(
                f"item {i} of the list is a {type(model).__module__}.{type(model).__qualname__}, and "
                "others are models of TensorFlow Lattice; pass a list of one kind"
            )
        member = _Member(model)
        try:
            layer = member.structure.output_calibration
        except ModelError as error:
            raise ModelError(f"item {i} of the list: {error}") from None
        if layer is not None:
            raise ModelError(
                f"item {i} of the list has an output calibration, the layer {layer.name!r}: its scores "
                "are not what the model gives, so they cannot be added to those of others; train it "
                "with output_calibration=False, or pass it alone"
            )
        members.append(member)
    return members


def _own_missing(structure: Structure) -> tuple[tuple[int, float], ...]:
    """Columns, and the number that means missing there to all calibrators of the column that have one."""
    found: dict[int, set[float]] = {}
    for part in structure.calibrators:
        if part.missing is not None:
            found.setdefault(part.feature, set()).add(part.missing[0])
    return tuple((j, min(found[j])) for j in sorted(found) if len(found[j]) == 1)


def _source(kind: str) -> Source:
    try:
        version = metadata.version("tensorflow-lattice")
    except metadata.PackageNotFoundError:
        version = ""
    return Source("tensorflow-lattice", version, kind)
