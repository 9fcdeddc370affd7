"""What an ensemble of lattices is made of: calibrators, lattices and linear terms, as users write them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError
from qwyc.rows.column_names import quoted_names
from qwyc.runtime.arguments import check_choice, check_number

Feature = int | str  # a column or a name
Array = npt.NDArray[np.float64]

MOST_INPUTS = 20  # of one lattice
MOST_VERTICES = 2**26  # of one lattice
MOST_SIZE = 2**24  # along one feature: float32 holds all places up to here


@dataclass(frozen=True, eq=False)
class PiecewiseLinear:
    """A calibrator that maps a number by straight lines between keypoints.

    `keypoints` rise; `outputs` are the values there. Numbers outside of the keypoints get the output at the
    nearest one. A value equal to `missing_value` (by default NaN) gets `missing_output`; without one,
    missing values are refused."""

    keypoints: Sequence[float] | npt.NDArray[Any]
    outputs: Sequence[float] | npt.NDArray[Any]
    missing_output: float | None = field(default=None, kw_only=True)
    missing_value: float = field(default=math.nan, kw_only=True)

    def __post_init__(self) -> None:
        points = numbers("keypoints", self.keypoints)
        outputs = numbers("outputs", self.outputs)
        if len(points) < 2 or len(points) != len(outputs):
            raise OptionError(
                "a piecewise-linear calibrator needs two keypoints or more and an output for each; got "
                f"{len(points)} keypoints and {len(outputs)} outputs"
            )
        if not (np.diff(points) > 0).all():
            k = int(np.argmin(np.diff(points) > 0))
            raise OptionError(
                f"keypoints must rise; keypoint {k} is {points[k]:g}, keypoint {k + 1} is {points[k + 1]:g}"
            )
        object.__setattr__(self, "keypoints", points)
        object.__setattr__(self, "outputs", outputs)
        _check_missing(self)


@dataclass(frozen=True, eq=False)
class Categorical:
    """A calibrator that maps a category by a table.

    `outputs[k]` is the value of category code k. Other codes get `other_output`. A value equal to
    `missing_value` (by default NaN) gets `missing_output`, or `other_output` where there is none."""

    outputs: Sequence[float] | npt.NDArray[Any]
    other_output: float = field(default=0.0, kw_only=True)
    missing_output: float | None = field(default=None, kw_only=True)
    missing_value: float = field(default=math.nan, kw_only=True)

    def __post_init__(self) -> None:
        outputs = numbers("outputs", self.outputs)
        if not len(outputs):
            raise OptionError(
                "a categorical calibrator needs an output for each category; got none"
            )
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(self, "other_output", check_number("other_output", self.other_output))
        _check_missing(self)
        if not math.isnan(self.missing_value) and self.missing_value != int(self.missing_value):
            raise OptionError(
                "missing_value of a categorical calibrator must be a whole number or NaN; got "
                f"{self.missing_value!r}"
            )


Calibrator = PiecewiseLinear | Categorical
Calibrators = Mapping[Any, Calibrator] | Sequence[Calibrator | None]


@dataclass(frozen=True, eq=False)
class Lattice:
    """A table of values over some features, interpolated between its entries.

    `vertices` has one axis per feature, or is flat with the first feature slowest; then `sizes` gives the
    length of each axis, 2 or more (by default 2). Calibrated features go from 0 to size - 1; what is
    outside is cut. `interpolation` is "hypercube" (multilinear, all corners of the cell) or "simplex"
    (one corner more than there are features; faster for many features). `calibrators` are this lattice's
    own, one per feature; None takes what `qwyc.lattice.ensemble` has for that feature."""

    features: Sequence[Feature]
    vertices: Any
    sizes: Sequence[int] | None = None
    interpolation: str = "hypercube"
    calibrators: Sequence[Calibrator | None] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        features = _features("a lattice", self.features)
        check_choice("interpolation", self.interpolation, ("hypercube", "simplex"))
        if len(features) > MOST_INPUTS:
            raise OptionError(
                f"a lattice has at most {MOST_INPUTS} features; got {len(features)}: use several lattices"
            )
        vertices = numbers("vertices", self.vertices, flat=False)
        sizes = _sizes(self.sizes, vertices, len(features))
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "vertices", vertices.ravel())
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "calibrators", _own("lattice", self.calibrators, features))


@dataclass(frozen=True, eq=False)
class Linear:
    """A weighted sum of calibrated features: constant + sum of weights[i] * feature i.

    Every feature needs a calibrator, the term's own or one of `qwyc.lattice.ensemble`: without one there
    would be no bound on what the term adds."""

    features: Sequence[Feature]
    weights: Sequence[float] | npt.NDArray[Any]
    constant: float = 0.0
    calibrators: Sequence[Calibrator | None] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        features = _features("a linear term", self.features)
        weights = numbers("weights", self.weights)
        if len(weights) != len(features):
            raise OptionError(
                f"a linear term needs a weight for each feature; got {len(weights)} weights for "
                f"{len(features)} features"
            )
        if len(features) > MOST_INPUTS:
            raise OptionError(
                f"a linear term has at most {MOST_INPUTS} features; got {len(features)}: use several"
            )
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "constant", check_number("constant", self.constant))
        object.__setattr__(self, "calibrators", _own("linear term", self.calibrators, features))


# ---- checks -----------------------------------------------------------------------------------


def numbers(name: str, values: Any, *, flat: bool = True) -> Array:
    """A copy of `values`, finite float64; (n,) if flat."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(f"{name} must be numbers; got {values!r}") from None
    except OverflowError:  # an integer
        raise OptionError(f"{name} must be finite in float64; an integer is too large") from None
    if flat and array.ndim != 1:
        raise OptionError(f"{name} must be a list of numbers; got shape {array.shape}")
    if not np.isfinite(array).all():
        at = np.argwhere(~np.isfinite(array))[0].tolist()
        raise OptionError(f"{name} must be finite; number {at if len(at) > 1 else at[0]} is not")
    array.flags.writeable = False
    return array


def _check_missing(calibrator: Calibrator) -> None:
    value, output = calibrator.missing_value, calibrator.missing_output
    if not (isinstance(value, float) and math.isnan(value)):
        value = check_number("missing_value", value)
        if output is None:
            raise OptionError("missing_value needs a missing_output")
    object.__setattr__(calibrator, "missing_value", float(value))
    if output is not None:
        object.__setattr__(calibrator, "missing_output", check_number("missing_output", output))


def _features(what: str, features: Any) -> tuple[Feature, ...]:
    if isinstance(features, (str, int, np.integer)):
        features = [features]
    try:
        listed = [
            f if isinstance(f, (str, bool)) else int(f) if f == int(f) else f for f in features
        ]
    except (TypeError, ValueError, OverflowError):
        raise OptionError(
            f"features of {what} must be columns or names; got {features!r}"
        ) from None
    if not listed:
        raise OptionError(f"{what} needs at least one feature; got none")
    for feature in listed:
        if isinstance(feature, bool) or not isinstance(feature, (int, str)):
            raise OptionError(f"features of {what} must be columns or names; got {feature!r}")
        if isinstance(feature, int) and feature < 0:
            raise OptionError(f"columns are counted from 0; got {feature}")
    return tuple(listed)


def check_columns(features: Any) -> int | tuple[str, ...] | None:
    """The columns that a user gives an ensemble: their number, or their names in order."""
    if features is None:
        return None
    if isinstance(features, (int, np.integer)) and not isinstance(features, bool):
        if features < 1:
            raise OptionError(f"features must be at least 1; got {features}")
        return int(features)
    if (
        isinstance(features, str)
        or not hasattr(features, "__iter__")
        or not all(isinstance(name, str) for name in features)
    ):
        raise OptionError(
            f"features must be the number of columns or their names; got {features!r}"
        )
    names = tuple(features)
    if not names:
        raise OptionError("features must have at least one name; got none")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise OptionError(
            f"features must be different names; got {quoted_names(repeated)} more than once"
        )
    return names


def _sizes(given: Any, vertices: Array, d: int) -> tuple[int, ...]:
    """The length of each axis of a table."""
    if given is None:
        sizes = vertices.shape if vertices.ndim == d and d > 1 else (2,) * d
        if d == 1 and vertices.ndim == 1:
            sizes = (len(vertices),)
    else:
        try:
            sizes = tuple(int(size) for size in given)
            if any(size != wanted for size, wanted in zip(sizes, given, strict=True)):
                raise ValueError
        except (TypeError, ValueError):
            raise OptionError(
                f"sizes must be whole numbers, one per feature; got {given!r}"
            ) from None
    if len(sizes) != d:
        raise OptionError(f"a lattice needs a size for each feature; got {len(sizes)} for {d}")
    if min(sizes) < 2:
        raise OptionError(f"sizes must be 2 or more; got {list(sizes)}")
    if max(sizes) > MOST_SIZE:
        raise OptionError(f"sizes must be at most {MOST_SIZE:,}; got {list(sizes)}")
    expected = math.prod(sizes)
    if expected > MOST_VERTICES:
        raise OptionError(
            f"a lattice has at most {MOST_VERTICES:,} vertices; sizes {list(sizes)} have more"
        )
    fits = vertices.shape == sizes or (vertices.ndim == 1 and vertices.size == expected)
    if not fits:
        raise OptionError(
            f"a lattice of sizes {list(sizes)} has {expected} vertices, flat or of shape {sizes}; got "
            f"shape {vertices.shape}"
        )
    return sizes


def _own(what: str, calibrators: Any, features: Sequence[Feature]) -> tuple[Any, ...] | None:
    """The calibrators of one member, one per feature."""
    if calibrators is None:
        return None
    if isinstance(calibrators, Mapping) or not hasattr(calibrators, "__len__"):
        raise OptionError(
            f"calibrators of a {what} must be a list, one per feature; got {calibrators!r}"
        )
    if len(calibrators) != len(features):
        raise OptionError(
            f"a {what} of {len(features)} features needs as many calibrators of its own; got "
            f"{len(calibrators)}"
        )
    for calibrator in calibrators:
        check_calibrator(calibrator)
    return tuple(calibrators)


def check_calibrator(calibrator: Any) -> None:
    if calibrator is not None and not isinstance(calibrator, (PiecewiseLinear, Categorical)):
        raise OptionError(
            f"a calibrator must be a PiecewiseLinear or a Categorical; got {calibrator!r}"
        )
