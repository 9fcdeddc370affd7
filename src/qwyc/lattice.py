"""Lattices: build an ensemble of calibrated lattices from its numbers.

A lattice is a table of values that is interpolated between its entries. Its inputs are features, each
mapped by a calibrator to the range of the table first. `ensemble` puts lattices and linear terms together;
the result goes wherever a model does, such as `qwyc.optimize`. docs/lattices.md has an introduction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError
from qwyc.importers import read_model
from qwyc.model.ensemble import Ensemble
from qwyc.model.lattices.build import Build
from qwyc.model.lattices.join import join
from qwyc.model.lattices.members import (
    Calibrators,
    Categorical,
    Feature,
    Lattice,
    Linear,
    PiecewiseLinear,
    check_columns,
    numbers,
)
from qwyc.rows.schema import Category
from qwyc.runtime.arguments import check_choice, check_number

__all__ = ["Categorical", "Lattice", "Linear", "PiecewiseLinear", "ensemble"]

Array = npt.NDArray[np.float64]
PLAIN = (Lattice, Linear)


def ensemble(
    members: Sequence[Any],
    *,
    calibrators: Calibrators | None = None,
    features: int | Sequence[str] | None = None,
    weights: Sequence[float] | npt.NDArray[Any] | None = None,
    average: bool = False,
    base: float = 0.0,
    threshold: float | None = None,
    classes: Sequence[Any] = (0, 1),
    dtype: str = "float32",
    categories: Mapping[Feature, Sequence[Category]] | None = None,
) -> Ensemble:
    """An ensemble of lattices: `f(x) = base + sum of weights[t] * members[t](x)`, or base + their mean.

    members: `Lattice` and `Linear`; or ensembles of lattices, and live models that `qwyc.read_model` reads
        as such, which are put together: their features are united by name, or by position where they have
        no names.
    calibrators: shared by all members, as a mapping from feature to calibrator or a sequence with one per
        column (None: no calibrator). A member's own come first. The input of a lattice that has no
        calibrator is taken as it is. A calibrator that several members share is computed once per row.
    features: the number of columns, or their names in order. By default as many columns as are used, or the
        names that are used in order of their first use; rows must then be tables with these names.
    weights: one per member, by default 1.
    average: divide the sum of the members (but not the base) by their number.
    threshold: the smallest score that is decided as classes[1]; by default 0, and for members that are
        ensembles the sum (mean) of their own.
    classes: the negative and the positive label; those of the members where these are ensembles.
    dtype: "float32" or "float64": what rows and members are computed in; that of the members where these
        are ensembles.
    categories: the values of a feature with a `Categorical` calibrator by feature, in order of their codes.
        Tables then hold these values; arrays hold codes."""
    members = _members(members)
    factors = _weights(weights, len(members))
    base = check_number("base", base)
    if threshold is not None:
        threshold = check_number("threshold", threshold)
    if not isinstance(average, bool):
        raise OptionError(f"average must be True or False; got {average!r}")
    check_choice("dtype", dtype, ("float32", "float64"))
    if np.shape(classes) != (2,):
        raise OptionError(f"classes must be two labels, negative and positive; got {classes!r}")
    columns = check_columns(features)
    build = Build(calibrators, columns, np.asarray(classes), dtype, categories)
    if all(isinstance(member, PLAIN) for member in members):
        divisor = len(members) if average else 1
        return build(members, factors / divisor, base, average, threshold or 0.0)
    read = {i: read_model(m) for i, m in enumerate(members) if not isinstance(m, PLAIN)}
    own = _like(build, next(iter(read.values())))
    if len(read) < len(members):
        # The lattices and linear terms are one ensemble, whose weights are in it already.
        scale = factors / len(members) if average else factors
        plain = [i for i in range(len(members)) if i not in read]
        first = own([members[i] for i in plain], scale[plain], 0.0, False, 0.0, plain)
        ensembles = [first, *read.values()]
        return join(
            ensembles,
            weights=[1.0, *scale[list(read)].tolist()],
            base=base,
            threshold=threshold,
            features=columns,
        )
    return join(
        list(read.values()),
        weights=None if weights is None else factors.tolist(),
        average=average,
        base=base,
        threshold=threshold,
        features=columns,
    )


def _like(build: Build, first: Ensemble) -> Build:
    """The same options with the classes and the dtype of members that are ensembles."""
    labels, dtype = first.classes, "float32" if first.schema is None else first.schema.dtype
    if build.classes.tolist() not in ([0, 1], labels.tolist()):
        raise OptionError(
            f"classes are those of the members, {labels.tolist()}; got {build.classes.tolist()}"
        )
    if build.dtype not in ("float32", dtype):
        raise OptionError(f"the members are computed in {dtype}; got dtype={build.dtype!r}")
    return replace(build, classes=labels, dtype=dtype)


def _members(members: Any) -> list[Any]:
    if isinstance(members, (Lattice, Linear, Ensemble, str)) or not hasattr(members, "__iter__"):
        raise OptionError(f"members must be a list of lattices and linear terms; got {members!r}")
    listed = list(members)
    if not listed:
        raise OptionError("an ensemble needs at least one member; got none")
    return listed


def _weights(weights: Any, n: int) -> Array:
    if weights is None:
        return np.ones(n)
    factors = numbers("weights", weights)
    if len(factors) != n:
        raise OptionError(f"weights must be one per member, {n}; got {len(factors)}")
    return factors
