"""Lattices on rows: calibrated values, scores, full scores and bounds. Twin of the native lattices.

`models` is anything with the fields of `qwyc.model.lattices.LatticeModels`; rows are (N, n_features) of the
dtype of its arrays, called Real here. Every rounding is the one that the native core makes."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from qwyc.model.lattices.models import LatticeModels

Array = npt.NDArray[Any]

CATEGORICAL = 1
SIMPLEX, LINEAR = 1, 2
INNER = 3  # inputs of a hypercube that are interpolated by weights; the others are halved


def fma(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once, in the dtype of the arguments."""
    a, b, c = np.broadcast_arrays(a, b, c)
    if a.dtype == np.float32:
        return _fma32(a, b, c)
    assert a.dtype == b.dtype == c.dtype == np.float64
    return np.frompyfunc(_fma64, 3, 1)(a, b, c).astype(np.float64)


def _fma32(a: Array, b: Array, c: Array) -> Array:
    """The product of two float32 is exact in float64. The sum is rounded to odd there, so that the cast to
    float32 rounds as if it saw the exact sum."""
    assert b.dtype == c.dtype == np.float32
    product, wide = a.astype(np.float64) * b, c.astype(np.float64)
    total = product + wide
    part = total - product
    error = (product - (total - part)) + (wide - part)  # TwoSum: total + error is exact
    even = (np.ascontiguousarray(total).view(np.int64) & 1) == 0
    odd = np.where((error != 0) & even, np.nextafter(total, np.copysign(np.inf, error)), total)
    result: Array = odd.astype(np.float32)
    return result


def _fma64(a: float, b: float, c: float) -> float:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    return float(exact) if exact else a * b + c  # the sum of floats has the right sign of zero


def clamp(x: Array, low: Any, high: Any) -> Array:
    """x cut to low .. high; NaN stays NaN."""
    x = np.where(x < low, low, x)
    return np.where(x > high, high, x)


# ---- calibrators ------------------------------------------------------------------------------


def calibrated(models: LatticeModels, rows: Array) -> Array:
    """Every calibrator on every row, (N, C)."""
    arrays = models.arrays
    out = np.empty((len(rows), len(arrays.calibrator_kind)), arrays.vertex.dtype)
    for c in range(out.shape[1]):
        out[:, c] = calibrate(models, c, rows[:, arrays.calibrator_feature[c]])
    return out


def calibrate(models: LatticeModels, c: int, x: Array) -> Array:
    """Calibrator c on values x, (N,)."""
    arrays = models.arrays
    x = x.astype(arrays.vertex.dtype)
    points, outputs = _points(models, c)
    if arrays.calibrator_kind[c] == CATEGORICAL:
        x = np.trunc(x)
        known = (x >= 0) & (x < len(outputs))
        at = np.where(known, x, 0).astype(np.int64)
        result = np.where(known, outputs[at], arrays.other_output[c])
    else:
        result = _piecewise_linear(x, points, outputs)
    if arrays.has_missing[c]:
        missing = arrays.missing_value[c]
        absent = np.isnan(x) if np.isnan(missing) else x == missing
        result = np.where(absent, arrays.missing_output[c], result)
    return result


def _points(models: LatticeModels, c: int) -> tuple[Array, Array]:
    here = slice(*models.arrays.point_begin[c : c + 2])
    return models.arrays.point[here], models.arrays.output[here]


def _piecewise_linear(x: Array, points: Array, outputs: Array) -> Array:
    x = np.where(x > points[0], x, points[0])  # NaN too
    x = np.where(x < points[-1], x, points[-1])
    k = np.searchsorted(points[1:], x, side="right")  # (N,) keypoints from the second on, up to x
    slope = np.append(np.diff(outputs) / np.diff(points), points.dtype.type(0))  # (K,)
    return clamp(fma(x - points[k], slope[k], outputs[k]), outputs.min(), outputs.max())


def calibrator_range(models: LatticeModels, c: int) -> tuple[Any, Any]:
    """The least and the largest output of calibrator c."""
    arrays, outputs = models.arrays, _points(models, c)[1]
    if arrays.calibrator_kind[c] == CATEGORICAL:
        outputs = np.append(outputs, arrays.other_output[c])
    if arrays.has_missing[c]:
        outputs = np.append(outputs, arrays.missing_output[c])
    return outputs.min(), outputs.max()


# ---- base models ------------------------------------------------------------------------------


def lattice_values(models: LatticeModels, rows: Array) -> Array:
    """Every base model on every row before it is weighted, (N, T)."""
    arrays, inputs = models.arrays, calibrated(models, rows)  # (N, C)
    values = np.empty((len(rows), len(arrays.interpolation)), arrays.vertex.dtype)
    for t in range(values.shape[1]):
        own, sizes, vertices = _parts(models, t)
        if arrays.interpolation[t] == LINEAR:
            values[:, t] = _linear(inputs[:, own], vertices)
            continue
        interpolate = _simplex if arrays.interpolation[t] == SIMPLEX else _hypercube
        value = interpolate(inputs[:, own], sizes, vertices)
        values[:, t] = clamp(value, vertices.min(), vertices.max())
    return values


def _parts(models: LatticeModels, t: int) -> tuple[Array, Array, Array]:
    """The inputs, their sizes and the vertices of base model t."""
    arrays = models.arrays
    inputs = slice(*arrays.input_begin[t : t + 2])
    vertices = slice(*arrays.vertex_begin[t : t + 2])
    return arrays.input[inputs], arrays.size[inputs], arrays.vertex[vertices]


def _cells(inputs: Array, sizes: Array) -> tuple[Array, Array, Array]:
    """The first vertex of each row's cell, (N,), the place in the cell, (N, d), and the strides, (d,)."""
    strides = np.append(np.cumprod(sizes[:0:-1].astype(np.int64))[::-1], 1)  # (d,)
    z = clamp(inputs, inputs.dtype.type(0), (sizes - 1).astype(inputs.dtype))
    corner = np.minimum(np.trunc(z), (sizes - 2).astype(inputs.dtype))
    return corner.astype(np.int64) @ strides, z - corner, strides


def _hypercube(inputs: Array, sizes: Array, vertices: Array) -> Array:
    first, r, strides = _cells(inputs, sizes)
    one, d = inputs.dtype.type(1), len(sizes)
    inner = min(INNER, d)
    weights = [np.ones(len(inputs), inputs.dtype)]
    for i in range(inner):
        weights = [w * side for w in weights for side in (one - r[:, i], r[:, i])]
    near, far = _corners(strides[:inner]), _corners(strides[inner:])
    values = []  # by outer corner, (N,) each
    for b in far:
        value = weights[0] * vertices[first + b]
        for w, a in zip(weights[1:], near[1:], strict=True):
            value = fma(w, vertices[first + a + b], value)
        values.append(value)
    for i in range(inner, d):
        half = len(values) // 2
        low, high = values[:half], values[half:]
        values = [fma(r[:, i], h - v, v) for v, h in zip(low, high, strict=True)]
    return values[0]


def _corners(strides: Array) -> list[int]:
    """Offsets of the corners of a cell; the bit of the first input is the highest."""
    offsets = [0]
    for stride in strides:
        offsets = [offset + side for offset in offsets for side in (0, int(stride))]
    return offsets


def _simplex(inputs: Array, sizes: Array, vertices: Array) -> Array:
    at, r, strides = _cells(inputs, sizes)
    order = np.argsort(-r, axis=1, kind="stable")  # (N, d)
    falling = np.take_along_axis(r, order, axis=1)
    falling = np.concatenate([falling, np.zeros((len(r), 1), r.dtype)], axis=1)  # (N, d + 1)
    value = (r.dtype.type(1) - falling[:, 0]) * vertices[at]
    for k in range(r.shape[1]):
        at = at + strides[order[:, k]]
        value = fma(falling[:, k] - falling[:, k + 1], vertices[at], value)
    return value


def _linear(inputs: Array, parameters: Array) -> Array:
    value = np.full(len(inputs), parameters[-1])
    for i in range(inputs.shape[1]):
        value = fma(parameters[i], inputs[:, i], value)
    return value


# ---- scores -----------------------------------------------------------------------------------


def weighted(models: LatticeModels, t: int, value: Array) -> Array:
    """Values of base model t times its weight, before the grid."""
    return (value.astype(np.float64) * models.arrays.weight[t]).astype(models.arrays.vertex.dtype)


def raw_bounds(models: LatticeModels) -> tuple[Array, Array]:
    """The least and the largest score of every base model before the grid, (T,) each."""
    arrays = models.arrays
    bounds = np.empty((2, len(arrays.interpolation)))
    for t in range(bounds.shape[1]):
        own, _, vertices = _parts(models, t)
        ends = np.array([vertices.min(), vertices.max()])
        if arrays.interpolation[t] == LINEAR:
            ranges = np.array([calibrator_range(models, c) for c in own])  # (d, 2)
            rising = (vertices[:-1] >= 0)[:, None]
            ranges = np.where(rising, ranges, ranges[:, ::-1])
            ends = _linear(np.ascontiguousarray(ranges.T), vertices)
        scores = weighted(models, t, ends)
        bounds[:, t] = scores.min(), scores.max()
    return bounds[0], bounds[1]


def total(models: LatticeModels) -> float:
    """No running sum is larger in size."""
    least, most = raw_bounds(models)
    largest = abs(float(models.start))
    for t in range(len(least)):
        largest += max(abs(float(least[t])), abs(float(most[t])))
    return largest


def grid(models: LatticeModels) -> float:
    """The grid's step q, a power of two such that all sums of its multiples are exact in float64."""
    largest = total(models)
    if largest == 0:
        return 2.0**-51
    mantissa, exponent = np.frexp(largest)  # 0.5 <= mantissa < 1
    return float(2.0 ** (int(exponent) - (mantissa == 0.5) - 51))


def on_grid(models: LatticeModels, scores: Any) -> Array:
    """Scores rounded to the grid, float64."""
    shift = 1.5 * 2.0**52 * grid(models)
    rounded: Array = (np.asarray(scores, np.float64) + shift) - shift
    return rounded


def bounds(models: LatticeModels) -> tuple[Array, Array]:
    """The least and the largest score of every base model, (T,) each."""
    least, most = raw_bounds(models)
    return on_grid(models, least), on_grid(models, most)


def base(models: LatticeModels) -> float:
    """What the running sum starts from."""
    return float(on_grid(models, models.start))


def lattice_scores(models: LatticeModels, rows: Array) -> Array:
    """What every base model adds to the running sum, (N, T) Real."""
    values = lattice_values(models, rows)
    scores = np.empty_like(values)
    for t in range(values.shape[1]):
        scores[:, t] = on_grid(models, weighted(models, t, values[:, t]))
    return scores


def lattice_full_score(models: LatticeModels, scores: Array) -> Array:
    """The full scores, (N,), from scores (N, T)."""
    full = np.full(len(scores), base(models))
    for t in range(scores.shape[1]):
        full += scores[:, t]
    return full
