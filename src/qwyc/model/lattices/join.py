"""Lattices in parts: calibrators and base models one by one, packed into arrays; and several ensembles of
lattices put together as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError, OptionError
from qwyc.model.ensemble import Ensemble, Source
from qwyc.model.lattices.models import (
    CalibratorKind,
    Interpolation,
    LatticeArrays,
    LatticeModels,
    lattice_ensemble,
)
from qwyc.model.link import Link
from qwyc.rows.column_names import quoted_names
from qwyc.rows.schema import Category, Schema

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class CalibratorPart:
    """One calibrator; see `LatticeArrays`."""

    kind: CalibratorKind
    feature: int
    points: Array  # (K,)
    outputs: Array  # (K,)
    missing: tuple[float, float] | None = None  # the value that is missing, and its output
    other: float = 0.0


@dataclass(frozen=True, eq=False)
class ModelPart:
    """One base model; see `LatticeArrays`."""

    interpolation: Interpolation
    weight: float
    inputs: Sequence[int]  # (d,) calibrators, by their place in a list of `CalibratorPart`
    sizes: Sequence[int]  # (d,) 0 for linear
    vertices: Array  # (V,)


@np.errstate(over="ignore")  # the native core refuses what is not finite
def pack(
    calibrators: Sequence[CalibratorPart], models: Sequence[ModelPart], dtype: str
) -> LatticeArrays:
    """Arrays of these parts. Calibrators that are equal, bit for bit, are kept once; calibrators that no
    base model needs are left out."""
    kept: list[CalibratorPart] = []
    number: dict[Any, int] = {}  # of a calibrator that is kept, by its content
    place: dict[int, int] = {}  # the same by its place in `calibrators`: contents may be large
    for c in dict.fromkeys(c for model in models for c in model.inputs):
        place[c] = number.setdefault(_content(calibrators[c], dtype), len(kept))
        if place[c] == len(kept):
            kept.append(calibrators[c])
    inputs = [place[c] for model in models for c in model.inputs]
    missing = [part.missing or (0.0, 0.0) for part in kept]
    return LatticeArrays(
        calibrator_kind=np.array([part.kind for part in kept], np.uint8),
        calibrator_feature=np.array([part.feature for part in kept], np.int32),
        point_begin=_begins(len(part.points) for part in kept),
        point=_concatenated([part.points for part in kept], dtype),
        output=_concatenated([part.outputs for part in kept], dtype),
        has_missing=np.array([part.missing is not None for part in kept], np.uint8),
        missing_value=np.array([value for value, _ in missing], dtype),
        missing_output=np.array([output for _, output in missing], dtype),
        other_output=np.array([part.other for part in kept], dtype),
        interpolation=np.array([model.interpolation for model in models], np.uint8),
        weight=np.array([model.weight for model in models], np.float64),
        input_begin=_begins(len(model.inputs) for model in models),
        input=np.array(inputs, np.int32),
        size=np.array([size for model in models for size in model.sizes], np.int32),
        vertex_begin=_begins(len(model.vertices) for model in models),
        vertex=_concatenated([model.vertices for model in models], dtype),
    )


def unpack(arrays: LatticeArrays) -> tuple[list[CalibratorPart], list[ModelPart]]:
    """The parts of these arrays."""
    a = arrays
    calibrators = []
    for c in range(a.n_calibrators):
        points = slice(*a.point_begin[c : c + 2])
        missing = (float(a.missing_value[c]), float(a.missing_output[c]))
        calibrators.append(
            CalibratorPart(
                CalibratorKind(a.calibrator_kind[c]),
                int(a.calibrator_feature[c]),
                a.point[points],
                a.output[points],
                missing if a.has_missing[c] else None,
                float(a.other_output[c]),
            )
        )
    models = []
    for t in range(a.n_models):
        inputs = slice(*a.input_begin[t : t + 2])
        models.append(
            ModelPart(
                Interpolation(a.interpolation[t]),
                float(a.weight[t]),
                a.input[inputs].tolist(),
                a.size[inputs].tolist(),
                a.vertex[slice(*a.vertex_begin[t : t + 2])],
            )
        )
    return calibrators, models


def _content(part: CalibratorPart, dtype: str) -> tuple[Any, ...]:
    """What makes two calibrators equal."""
    numbers = [part.points, part.outputs, [part.other], part.missing or ()]
    return (part.kind, part.feature, *(np.asarray(n, dtype).tobytes() for n in numbers))


def _begins(lengths: Iterable[int]) -> npt.NDArray[np.int64]:
    return np.cumsum([0, *lengths], dtype=np.int64)


def _concatenated(arrays: Sequence[Array], dtype: str) -> Array:
    return np.concatenate(
        [np.asarray(array, dtype).ravel() for array in arrays] or [np.empty(0, dtype)]
    )


# ---- several ensembles as one -----------------------------------------------------------------


def join(
    ensembles: Sequence[Ensemble],
    *,
    weights: Sequence[float] | None = None,
    average: bool = False,
    base: float = 0.0,
    threshold: float | None = None,
    features: int | Sequence[str] | None = None,
    source: Source | None = None,
) -> Ensemble:
    """One ensemble of lattices: base + the sum, or the mean, of these ensembles, each times its weight.

    Columns are united by name, or by position where there are no names. Where the names of the members
    differ or have no order, and `features` gives none, rows must be tables with names. The
    threshold is by default the sum (mean) of the members' own."""
    if not ensembles:
        raise OptionError("there must be at least one member")
    for m, ensemble in enumerate(ensembles):
        _check_member(m, ensemble, ensembles[0])
    scale = np.ones(len(ensembles)) if weights is None else np.asarray(weights, np.float64)
    scale = scale / len(ensembles) if average else scale
    schema, columns = _joined_schema(ensembles, features)
    calibrators: list[CalibratorPart] = []
    models: list[ModelPart] = []
    for m, ensemble in enumerate(ensembles):
        theirs, parts = unpack(_lattices(ensemble).arrays)
        first = len(calibrators)
        calibrators += [replace(part, feature=columns[m][part.feature]) for part in theirs]
        models += [
            replace(part, weight=part.weight * scale[m], inputs=[first + c for c in part.inputs])
            for part in parts
        ]
    start = [float(w) * _lattices(e).start for w, e in zip(scale, ensembles, strict=True)]
    doubt = ""
    if threshold is None:
        doubt = next((ensemble.doubt for ensemble in ensembles if ensemble.doubt), "")
        threshold = float(sum(w * e.threshold for w, e in zip(scale, ensembles, strict=True)))
    joined = lattice_ensemble(
        pack(calibrators, models, schema.dtype),
        schema,
        base=base + sum(start),
        mean=average and len(models) == len(ensembles),
        threshold=threshold,
        classes=ensembles[0].classes,
        source=source or _joined_source(ensembles, average),
        link=_joined_link(ensembles, average and weights is None and base == 0),
    )
    return replace(joined, doubt=doubt)


def _lattices(ensemble: Ensemble) -> LatticeModels:
    models = ensemble.base_models
    assert isinstance(models, LatticeModels)  # _check_member
    return models


def _check_member(m: int, ensemble: Ensemble, first: Ensemble) -> None:
    """Refuse what cannot be put together with the first member."""
    schema, models = ensemble.schema, ensemble.base_models
    if not isinstance(models, LatticeModels) or schema is None or first.schema is None:
        raise ModelError(
            f"member {m} is {ensemble.description}; only ensembles of lattices can be put together"
        )
    if ensemble.transform is not None:
        raise ModelError(
            f"member {m} is behind the steps of a pipeline; put its last step together"
        )
    if ensemble.link.kind == "piecewise":
        raise ModelError(
            f"member {m} has an output calibration, so its score does not add up with others; train the "
            "members without it"
        )
    if ensemble.classes.tolist() != first.classes.tolist():
        raise ModelError(
            f"member {m} decides between {ensemble.classes.tolist()}, member 0 between "
            f"{first.classes.tolist()}; all members must have the same classes"
        )
    if schema.dtype != first.schema.dtype:
        raise ModelError(
            f"member {m} is computed in {schema.dtype}, member 0 in {first.schema.dtype}; all members must "
            "have the same dtype"
        )
    if not np.isnan(schema.missing) or schema.integers != first.schema.integers:
        raise ModelError(f"member {m} converts rows in a way of its own; it cannot be put together")


def _joined_source(ensembles: Sequence[Ensemble], average: bool) -> Source | None:
    """The library that all members come from."""
    first = ensembles[0].source
    same = first is not None and all(
        e.source is not None and e.source.library == first.library for e in ensembles
    )
    if first is None or not same:
        return None
    what = "mean" if average else "sum"
    return Source(first.library, first.version, f"{what} of {len(ensembles)} models")


def _joined_link(ensembles: Sequence[Ensemble], plain_mean: bool) -> Link:
    """The members' own link if it still holds: for a mean of scores that are probabilities, and for
    any sum of log-odds."""
    link = ensembles[0].link
    same = all(ensemble.link == link for ensemble in ensembles)
    return link if same and (plain_mean or link.kind == "logistic") else Link(kind="none")


def _joined_schema(
    ensembles: Sequence[Ensemble], features: int | Sequence[str] | None
) -> tuple[Schema, list[Sequence[int]]]:
    """The schema of all members, and for each member the columns that it has there."""
    schemas = [ensemble.schema for ensemble in ensembles if ensemble.schema is not None]
    names, n, by_name = _joined_names(schemas, features)
    columns: list[Sequence[int]] = [range(n)] * len(schemas)
    if names is not None and all(schema.names is not None for schema in schemas):
        place = {name: j for j, name in enumerate(names)}
        columns = [[place[name] for name in schema.names or ()] for schema in schemas]
    refused = set()
    for schema, own in zip(schemas, columns, strict=True):
        these = schema.must_have if schema.accepts_missing else range(schema.n_features)
        refused |= {own[j] for j in these}
    accepts_missing = any(schema.accepts_missing for schema in schemas)
    styled = [schema for schema in schemas if schema.categories] or schemas[:1]
    for schema in styled[1:]:
        if (schema.unseen, schema.arrays_hold_values, schema.hashed) != (
            styled[0].unseen,
            styled[0].arrays_hold_values,
            styled[0].hashed,
        ):
            raise ModelError("the members read categories in different ways")
    joined = Schema(
        n_features=n,
        names=None if names is None else tuple(names),
        dtype=schemas[0].dtype,
        categories=_joined_categories(ensembles, columns, names),
        arrays_hold_values=styled[0].arrays_hold_values,
        unseen=styled[0].unseen,
        hashed=styled[0].hashed,
        accepts_missing=accepts_missing,
        accepts_infinity=all(schema.accepts_infinity for schema in schemas),
        integers=schemas[0].integers,
        must_have=tuple(sorted(refused)) if accepts_missing else (),
        by_name=by_name,
        own_missing=_joined_missing(schemas, columns),
    )
    return joined, columns


def _joined_missing(
    schemas: Sequence[Schema], columns: Sequence[Sequence[int]]
) -> tuple[tuple[int, float], ...]:
    """The number that means missing in a column, where the members that have one agree."""
    found: dict[int, set[float]] = {}
    for schema, own in zip(schemas, columns, strict=True):
        for j, value in schema.own_missing:
            found.setdefault(own[j], set()).add(value)
    return tuple((j, min(found[j])) for j in sorted(found) if len(found[j]) == 1)


def _joined_names(
    schemas: Sequence[Schema], features: int | Sequence[str] | None
) -> tuple[Sequence[str] | None, int, bool]:
    """Names of columns, their number, and whether columns are found by name only."""
    named = [schema.names for schema in schemas if schema.names is not None]
    given = None if features is None or isinstance(features, int) else list(features)
    if named and len(named) < len(schemas):
        raise ModelError(
            "some members have feature names and some have none; give all of them names"
        )
    if not named:
        sizes = sorted({schema.n_features for schema in schemas})
        wanted = len(given) if given is not None else features
        if len(sizes) > 1 or (wanted is not None and wanted != sizes[0]):
            found = " and ".join(str(size) for size in sizes)
            expected = "the same number of columns" if wanted is None else f"{wanted} columns"
            raise ModelError(
                f"members without feature names must have {expected}; they have {found}"
            )
        return given, sizes[0], False
    united = list(dict.fromkeys(name for names in named for name in names))
    if given is not None:
        known = set(given)
        absent = [name for name in united if name not in known]
        if absent:
            raise ModelError(f"features does not name {quoted_names(absent)}, which members take")
        return given, len(given), False
    if isinstance(features, int) and features != len(united):
        raise ModelError(f"features is {features}; the members have {len(united)} different names")
    differ = any(names != named[0] for names in named)
    return united, len(united), differ or any(schema.by_name for schema in schemas)


def _joined_categories(
    ensembles: Sequence[Ensemble],
    columns: Sequence[Sequence[int]],
    names: Sequence[str] | None,
) -> dict[int, tuple[Category, ...]]:
    """The categories of every column that has some; members that read a column must agree."""
    joined: dict[int, tuple[Category, ...] | None] = {}  # None: numbers
    for ensemble, own in zip(ensembles, columns, strict=True):
        assert ensemble.schema is not None
        known = ensemble.schema.categories
        for j in sorted({int(j) for j in _lattices(ensemble).arrays.calibrator_feature} | {*known}):
            if joined.setdefault(own[j], known.get(j)) != known.get(j):
                name = own[j] if names is None else names[own[j]]
                raise ModelError(f"the members have different categories in column {name!r}")
    return {j: values for j, values in sorted(joined.items()) if values is not None}
