"""TensorFlow Lattice's calibration layers as calibrators, one for each unit. Numbers are float64 here,
whatever the model's dtype is."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.model.lattices.join import CalibratorPart
from qwyc.model.lattices.models import CalibratorKind

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

LARGEST_CODE = 2**24  # float32 holds every whole number up to this


def output_range(part: CalibratorPart) -> tuple[float, float]:
    """The least and the greatest output of a calibrator."""
    extra = [] if part.missing is None else [part.missing[1]]
    if part.kind == CalibratorKind.CATEGORICAL:
        extra.append(part.other)
    values = np.append(part.outputs, extra)
    return float(values.min()), float(values.max())


def weights(layer: Any, name: str) -> Array:
    """A layer's weights or constants as a NumPy array; ModelError where they are not finite numbers."""
    values = np.asarray(getattr(layer, name))
    if values.dtype not in (np.float32, np.float64):
        raise ModelError(
            f"the layer {layer.name!r} has weights of {values.dtype}; qwyc reads models of float32 and "
            "float64"
        )
    if not np.isfinite(values).all():
        raise ModelError(
            f"the layer {layer.name!r} has weights that are not finite; train the model again"
        )
    return values


def piecewise_linear(layer: Any, feature: int) -> list[CalibratorPart]:
    """A PWLCalibration layer, one calibrator for each of its units."""
    kernel = weights(layer, "kernel")  # (K, units): the first output, then what each piece adds
    if layer.is_cyclic:
        kernel = np.concatenate([kernel, -kernel[1:].sum(axis=0, keepdims=True)])
    starts, lengths = _pieces(layer, kernel.dtype)  # (units or 1, K - 1) each
    missing = None
    if layer.impute_missing and not np.isnan(layer.missing_input_value):  # no value equals NaN
        value = float(kernel.dtype.type(layer.missing_input_value))
        missing = value, weights(layer, "missing_output").reshape(-1)
    found = []
    for unit in range(layer.units):
        row = min(unit, len(starts) - 1)
        point, output = _curve(layer, starts[row], lengths[row], kernel[:, unit])
        special = None if missing is None else (missing[0], float(missing[1][unit]))
        found.append(
            CalibratorPart(CalibratorKind.PIECEWISE_LINEAR, feature, point, output, special)
        )
    return found


def categorical(layer: Any, feature: int) -> list[CalibratorPart]:
    """A CategoricalCalibration layer, one calibrator for each of its units."""
    kernel = weights(layer, "kernel").astype(np.float64)  # (buckets, units)
    default = None if layer.default_input_value is None else int(layer.default_input_value)
    if max(len(kernel), abs(default or 0)) > LARGEST_CODE:
        raise ModelError(
            f"the layer {layer.name!r} has category codes past {LARGEST_CODE:,}, which float32 does not "
            "hold exactly; use smaller codes"
        )
    # The default value goes to the last bucket, and a code without a bucket to 0.0.
    return [
        CalibratorPart(
            CalibratorKind.CATEGORICAL,
            feature,
            np.arange(len(kernel), dtype=np.float64),
            kernel[:, unit],
            None if default is None else (float(default), float(kernel[-1, unit])),
        )
        for unit in range(layer.units)
    ]


def _pieces(layer: Any, dtype: Any) -> tuple[Array, Array]:
    """Where the pieces start, and their lengths, as the layer computes them."""
    if layer.input_keypoints_type == "fixed":
        starts, lengths = weights(layer, "_interpolation_keypoints"), weights(layer, "_lengths")
        return starts[None, :], lengths[None, :]
    import tensorflow as tf  # the model is alive, so it has been imported

    shares = tf.nn.softmax(layer.interpolation_logits, axis=1)
    lengths = tf.multiply(shares, layer._keypoint_range)
    starts = tf.add(tf.cumsum(lengths, axis=1, exclusive=True), layer._keypoint_min)
    return np.asarray(starts, dtype), np.asarray(lengths, dtype)


def _curve(layer: Any, start: Array, length: Array, kernel: Array) -> tuple[Floats, Floats]:
    """Keypoints and outputs, of which every value between is interpolated as the layer does it.

    The layer adds up pieces, each of which rises from its start over its length. The rounded sum of both is
    not always the next start. It makes a difference where keypoints are close together for their size: a
    neighbouring float of the keypoint then becomes a keypoint as well, so that the outputs are right at
    every float."""
    real, wide = start.dtype.type, np.float64
    ends = start.astype(wide) + length.astype(wide)
    point = np.append(start, real(ends[-1]))  # (K,)
    if not (np.diff(point) > 0).all() or not (length > 0).all():
        raise ModelError(
            f"the layer {layer.name!r} has keypoints that are equal in {start.dtype}; use keypoints that "
            "are further apart"
        )

    def exact(x: Array) -> Floats:  # (n,) -> (n,)
        share = (x.astype(wide)[:, None] - start.astype(wide)) / length.astype(wide)
        result: Floats = np.clip(share, 0.0, 1.0) @ kernel[1:].astype(wide) + wide(kernel[0])
        return result

    beside = np.concatenate([point, ends.astype(start.dtype)])
    beside = np.unique([np.nextafter(beside, real(-np.inf)), np.nextafter(beside, real(np.inf))])
    # The largest partial sum: the layer itself has rounding errors of that size.
    scale = max(1.0, float(np.abs(np.cumsum(kernel.astype(wide))).max()))
    off = np.abs(np.interp(beside, point, exact(point)) - exact(beside))
    point = np.union1d(point, beside[off > np.finfo(real).eps / 2 * scale])
    return point.astype(wide), exact(point)
