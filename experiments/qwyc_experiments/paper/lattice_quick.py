"""Small lattice ensembles without TensorFlow, for quick runs.

Calibrators are fixed: rising lines through quantiles. A lattice is then linear in its vertices, so that
ridge regression of the centred labels on the interpolation weights of the vertices finds them. It takes
seconds and is no more than a sketch of training."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import qwyc

from .data import Data
from .lattice_shapes import JOINT, Calibration, Numbers, Shape, assemble, keypoints

Array = npt.NDArray[np.float64]
RIDGE = 10.0
MISSING_OUTPUT = 0.5


def fit(shape: Shape, training: str, data: Data) -> qwyc.Ensemble:
    """An ensemble on random features, trained jointly or independently."""
    calibrations = [calibration(column, shape) for column in data.X.T]
    calibrated = np.stack(
        [apply(each, column) for each, column in zip(calibrations, data.X.T, strict=True)], axis=1
    )
    rng = np.random.default_rng(0)
    D, T = data.X.shape[1], shape.lattices
    # A smaller ensemble has the first subsets of a larger one.
    subsets = np.array([np.sort(rng.choice(D, shape.inputs, replace=False)) for _ in range(T)])
    weights = [corner_weights(calibrated[:, subset]) for subset in subsets]  # T of (N, 2**d)
    target = centred(data.y)
    if training == JOINT:
        # The score is the mean of the lattices, so each has T times what it adds to the score.
        vertices = T * ridge(np.concatenate(weights, axis=1), target).reshape(T, -1)
    else:
        vertices = np.stack([ridge(each, target) for each in weights])
    own = [[calibrations[j] for j in subset] for subset in subsets]
    return assemble(Numbers(subsets, vertices.astype(np.float32), own), data, shape.negative)


def centred(y: npt.NDArray[np.int64]) -> Array:
    """Labels less their mean. The scores of weak lattices are near 0, so that a threshold of 0 calls about
    half of the rows negative."""
    return y - y.mean()


def calibration(column: npt.NDArray[np.float32], shape: Shape) -> Calibration:
    """A rising line through quantiles."""
    points = keypoints(column, shape.keypoints, every=shape.keypoints)
    outputs = np.linspace(0, 1, len(points), dtype=np.float32)
    return Calibration(points, outputs, MISSING_OUTPUT if shape.missing else None)


def apply(calibration: Calibration, column: npt.NDArray[np.float32]) -> Array:
    outputs: Array = np.interp(column, calibration.keypoints, calibration.outputs)
    return np.where(np.isnan(column), MISSING_OUTPUT, outputs)


def corner_weights(inputs: Array) -> Array:
    """Weights of the 2^d vertices in a multilinear interpolation, (N, 2^d), the first feature slowest."""
    weights = np.ones((len(inputs), 1))
    for i in range(inputs.shape[1]):
        sides = np.stack([1 - inputs[:, i], inputs[:, i]], axis=1)  # (N, 2)
        weights = (weights[:, :, None] * sides[:, None, :]).reshape(len(inputs), -1)
    return weights


def ridge(weights: Array, target: Array) -> Array:
    """The coefficients of a regression without intercept: the weights of a lattice sum to 1."""
    solved: Array = np.linalg.solve(
        weights.T @ weights + RIDGE * np.eye(weights.shape[1]), weights.T @ target
    )
    return solved
