"""From calibrators, lattices and linear terms to an Ensemble: columns, shared calibrators, categories."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError
from qwyc.model.ensemble import Ensemble
from qwyc.model.lattices.join import CalibratorPart, ModelPart, pack
from qwyc.model.lattices.members import (
    Calibrator,
    Calibrators,
    Categorical,
    Feature,
    Lattice,
    Linear,
    check_calibrator,
)
from qwyc.model.lattices.models import CalibratorKind, Interpolation, lattice_ensemble
from qwyc.model.link import Link
from qwyc.rows.column_names import quoted_names
from qwyc.rows.schema import Category, Schema

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Build:
    """What an ensemble of `Lattice` and `Linear` is built with."""

    calibrators: Calibrators | None
    features: int | tuple[str, ...] | None  # as `check_columns` gives them
    classes: npt.NDArray[Any]
    dtype: str
    categories: Mapping[Feature, Sequence[Category]] | None

    def __call__(
        self,
        members: Sequence[Lattice | Linear],
        weights: Array,
        base: float,
        mean: bool,
        threshold: float,
        numbers: Sequence[int] | None = None,
    ) -> Ensemble:
        """The ensemble of these members, each times its weight; messages call them by `numbers`."""
        columns = Columns.of(members, self.features)
        shared = _shared(self.calibrators, columns)
        parts: list[CalibratorPart] = []
        place: dict[Any, int] = {}  # in `parts`, by column and calibrator
        models = []
        for t, member in enumerate(members):
            inputs, number = [], t if numbers is None else numbers[t]
            for i, feature in enumerate(member.features):
                column = columns.index(feature, f"member {number}")
                own = None if member.calibrators is None else member.calibrators[i]
                calibrator = own if own is not None else shared.get(column)
                key = (column, _size(member, i) if calibrator is None else id(calibrator))
                if key not in place:
                    place[key] = len(parts)
                    parts.append(_part(member, number, i, column, calibrator))
                inputs.append(place[key])
            models.append(_model_part(member, float(weights[t]), inputs))
        categories = _categories(self.categories, parts, columns)
        schema = Schema(
            n_features=columns.n,
            names=columns.names,
            dtype=self.dtype,
            categories=categories,
            unseen="invalid",  # so that it gets other_output
            must_have=_must_have(parts),
            by_name=columns.by_name,
        )
        for part in parts:
            _check_in(self.dtype, part, columns)
        return lattice_ensemble(
            pack(parts, models, self.dtype),
            schema,
            base=base,
            mean=mean,
            threshold=threshold,
            classes=self.classes,
            link=Link(kind="none"),
        )


@dataclass(frozen=True)
class Columns:
    """The columns of rows."""

    n: int
    names: tuple[str, ...] | None
    by_name: bool  # the order is that of first use, which no array follows

    @classmethod
    def of(
        cls, members: Sequence[Lattice | Linear], given: int | tuple[str, ...] | None
    ) -> Columns:
        used = list(dict.fromkeys(f for member in members for f in member.features))
        if given is None:
            kinds = {isinstance(feature, str) for feature in used}
            if len(kinds) > 1:
                raise OptionError(
                    "some features are names and some are columns; pass features, the names in order"
                )
            if kinds == {True}:
                return cls(len(used), tuple(str(name) for name in used), by_name=True)
            return cls(max(int(column) for column in used) + 1, None, by_name=False)
        if isinstance(given, int):
            return cls(given, None, by_name=False)
        return cls(len(given), given, by_name=False)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: j for j, name in enumerate(self.names or ())}

    def index(self, feature: Any, where: str) -> int:
        """The column of a feature."""
        if isinstance(feature, str):
            if self.names is None:
                raise OptionError(
                    f"{where} takes the feature {feature!r}, but columns have no names; pass features, "
                    "the names in order"
                )
            if feature not in self._places:
                raise OptionError(
                    f"{where} takes the feature {feature!r}, which is not one of the columns "
                    f"{quoted_names(self.names)}"
                )
            return self._places[feature]
        if self.by_name:
            raise OptionError(f"{where} takes column {feature}, but columns are known by name")
        if not 0 <= feature < self.n:
            raise OptionError(f"{where} takes column {feature}; the columns are 0 to {self.n - 1}")
        return int(feature)

    def name(self, column: int) -> str:
        """A column as messages name it."""
        return str(column) if self.names is None else repr(self.names[column])


def _shared(calibrators: Any, columns: Columns) -> dict[int, Calibrator]:
    """The calibrators that all members share, by column."""
    if calibrators is None:
        return {}
    if isinstance(calibrators, Mapping):
        items = [(columns.index(f, "calibrators"), c) for f, c in calibrators.items()]
    elif isinstance(calibrators, Sequence) and not isinstance(calibrators, str):
        if columns.by_name:
            raise OptionError(
                "calibrators must be a mapping by name, since the columns have no order; or pass features"
            )
        if len(calibrators) != columns.n:
            raise OptionError(
                f"calibrators must be one per column, {columns.n}; got {len(calibrators)}"
            )
        items = list(enumerate(calibrators))
    else:
        raise OptionError(
            "calibrators must be a mapping by feature, or a sequence with one per column; got "
            f"{calibrators!r}"
        )
    for _, calibrator in items:
        check_calibrator(calibrator)
    return {column: calibrator for column, calibrator in items if calibrator is not None}


def _size(member: Lattice | Linear, i: int) -> int:
    return member.sizes[i] if isinstance(member, Lattice) and member.sizes is not None else 0


# ---- parts ------------------------------------------------------------------------------------


def _part(
    member: Lattice | Linear, number: int, i: int, column: int, calibrator: Calibrator | None
) -> CalibratorPart:
    """The calibrator of one input of a member."""
    if calibrator is None:
        if isinstance(member, Linear):
            raise OptionError(
                f"member {number} is linear, and its feature {member.features[i]!r} has no calibrator; "
                "without one there is no bound on what it adds: give it a PiecewiseLinear"
            )
        ends = np.array([0.0, _size(member, i) - 1.0])
        return CalibratorPart(CalibratorKind.PIECEWISE_LINEAR, column, ends, ends)
    missing = None
    if calibrator.missing_output is not None:
        missing = (calibrator.missing_value, calibrator.missing_output)
    outputs = np.asarray(calibrator.outputs)
    if isinstance(calibrator, Categorical):
        codes = np.arange(len(outputs), dtype=np.float64)
        kind, other = CalibratorKind.CATEGORICAL, calibrator.other_output
        return CalibratorPart(kind, column, codes, outputs, missing, other)
    points = np.asarray(calibrator.keypoints)
    return CalibratorPart(CalibratorKind.PIECEWISE_LINEAR, column, points, outputs, missing)


def _model_part(member: Lattice | Linear, weight: float, inputs: list[int]) -> ModelPart:
    if isinstance(member, Linear):
        parameters = np.append(member.weights, member.constant)
        return ModelPart(Interpolation.LINEAR, weight, inputs, [0] * len(inputs), parameters)
    kind = Interpolation[member.interpolation.upper()]
    return ModelPart(kind, weight, inputs, list(member.sizes or ()), np.asarray(member.vertices))


def _check_in(dtype: str, part: CalibratorPart, columns: Columns) -> None:
    """Refuse keypoints that are no longer different in float32."""
    if part.kind == CalibratorKind.PIECEWISE_LINEAR:
        with np.errstate(over="ignore"):
            points = part.points.astype(dtype)
        if not (np.isfinite(points).all() and (np.diff(points) > 0).all()):
            raise OptionError(
                f"keypoints of column {columns.name(part.feature)} are equal or not finite in {dtype}; use "
                'dtype="float64", or keypoints that are further apart'
            )


def _must_have(parts: Sequence[CalibratorPart]) -> tuple[int, ...]:
    """The columns in which NaN has no output."""
    numeric = [part for part in parts if part.kind == CalibratorKind.PIECEWISE_LINEAR]
    refused = {p.feature for p in numeric if p.missing is None or not math.isnan(p.missing[0])}
    return tuple(sorted(refused))


def _categories(
    given: Any, parts: Sequence[CalibratorPart], columns: Columns
) -> dict[int, tuple[Category, ...]]:
    """The categories of columns, by column."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise OptionError(f"categories must be a mapping from feature to its values; got {given!r}")
    found: dict[int, tuple[Category, ...]] = {}
    for feature, values in given.items():
        column = columns.index(feature, "categories")
        name = columns.name(column)
        listed = [value.item() if isinstance(value, np.generic) else value for value in values]
        if not all(value is None or isinstance(value, (str, int, float)) for value in listed):
            raise OptionError(
                f"categories of column {name} must be text or numbers; got {listed!r}"
            )
        if len(set(listed)) != len(listed):
            raise OptionError(f"categories of column {name} must be different; got {listed!r}")
        readers = [part for part in parts if part.feature == column]
        if not readers or any(part.kind != CalibratorKind.CATEGORICAL for part in readers):
            raise OptionError(
                f"categories of column {name} need a Categorical calibrator there, in every member"
            )
        for part in readers:
            if len(part.outputs) != len(listed):
                raise OptionError(
                    f"column {name} has {len(listed)} categories, and a calibrator with "
                    f"{len(part.outputs)} outputs; they must be as many"
                )
            if part.missing is not None and part.missing[0] == -1:
                raise OptionError(
                    f"missing_value of column {name} is -1, which is the code of unknown categories; leave "
                    "it out, since a missing category in a table is NaN"
                )
        found[column] = tuple(listed)
    return found
