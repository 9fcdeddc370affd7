"""Training lattices with TensorFlow Lattice: the graph of an ensemble, and its fit to rows.

One class serves both kinds of training. A base model is a lattice with calibrators of its own, and the
score is the mean of the base models: the defaults of TensorFlow Lattice's CalibratedLatticeEnsemble. A
jointly trained ensemble minimises the logistic loss of that mean. Independently trained base models each
minimise their own loss. They are trained in one graph on the sum of these losses: no parameter is shared,
so the gradient of the sum with respect to a base model's parameters is that of its own loss, and Adam works
parameter by parameter. The result is that of training them one by one on the same mini-batches.

Interpolation is multilinear ("hypercube"). TensorFlow Lattice computes a weight for each of the 2^d
vertices of every row and lattice. Here the weights of the first and of the second half of the inputs are
computed apart, and the vertices stand between them in a matrix product. The result is the same, in a small
part of the time. It also takes less time than simplex interpolation, which has to sort."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .files import need
from .lattice_shapes import Calibration, Numbers

MISSING = -1e9  # stands for NaN, which TensorFlow Lattice does not take
INITIAL = 2.0  # vertices start at random in -INITIAL .. INITIAL
PREDICT = 4096  # rows at once


@cache
def tensorflow() -> tuple[Any, Any, Any]:
    """TensorFlow, TensorFlow Lattice and the Keras that it uses."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    package = "qwyc[lattice]"
    tf = need("tensorflow", package)
    return tf, need("tensorflow_lattice", package), need("tf_keras", package)


@dataclass(frozen=True)
class Fit:
    """Settings of Adam. Both learning rates fall to 0 along half a cosine.

    Outputs of calibrators are in 0 .. 1; vertices have no bounds, so that they need a larger rate. `rate`
    is that of a lattice's share in the score. The score of a joint ensemble is the mean of T lattices, so
    its vertices have T times that rate: what it learns in one step does not depend on its size."""

    rate: float
    calibrator_rate: float
    epochs: int
    batch: int


class Graph:
    """An ensemble of lattices in TensorFlow.

    points: keypoints of each feature. subsets: (T, d) features. missing: calibrators have an output for
    missing values. joint: the loss is that of the mean."""

    def __init__(
        self,
        points: list[npt.NDArray[np.float32]],
        subsets: npt.NDArray[np.int64],
        *,
        missing: bool,
        joint: bool,
        seed: int,
    ) -> None:
        _, tfl, keras = tensorflow()
        keras.utils.set_random_seed(seed)
        self.points, self.subsets, self.missing, self.joint = points, subsets, missing, joint
        T, d = subsets.shape
        flat = subsets.ravel()
        # Of feature j: the inputs (t, i) of lattices that take it, as positions t * d + i.
        self.uses = [np.flatnonzero(flat == j) for j in range(len(points))]
        self.calibrators = {
            j: tfl.layers.PWLCalibration(
                input_keypoints=points[j],
                units=len(self.uses[j]),
                output_min=0.0,
                output_max=1.0,
                impute_missing=missing,
                missing_input_value=MISSING if missing else None,
            )
            for j in range(len(points))
            if len(self.uses[j])
        }
        self.lattice = tfl.layers.Lattice(
            [2] * d,
            units=T,
            clip_inputs=False,
            kernel_initializer=tfl.lattice_layer.RandomMonotonicInitializer(
                [2] * d, -INITIAL, INITIAL
            ),
        )
        for layer in self.calibrators.values():
            layer.build((None, 1))
        self.lattice.build((None, T, d) if T > 1 else (None, d))
        self.gathered = np.argsort(np.concatenate(self.uses), kind="stable")
        calibrating = [v for each in self.calibrators.values() for v in each.trainable_variables]
        self.optimizers = [(keras.optimizers.Adam(), calibrating)]
        self.optimizers += [(keras.optimizers.Adam(), [self.lattice.kernel])]
        for optimizer, part in self.optimizers:
            optimizer.build(part)
        self.initial = [(v, v.numpy()) for v in (*calibrating, self.lattice.kernel)]

    def scores(self, rows: Any) -> Any:
        """Every lattice on every row, (B, T), from rows (B, D) without NaN."""
        tf, _, _ = tensorflow()
        T, d = self.subsets.shape
        calibrated = tf.concat(
            [layer(rows[:, j : j + 1]) for j, layer in self.calibrators.items()], axis=1
        )
        inputs = tf.gather(tf.transpose(calibrated), self.gathered)  # (T * d, B)
        inputs = tf.reshape(inputs, (T, d, -1))
        low = (d + 1) // 2
        kernel = tf.reshape(tf.transpose(self.lattice.kernel), (T, 2**low, 2 ** (d - low)))
        first, second = corner_weights(inputs[:, :low]), corner_weights(inputs[:, low:])
        return tf.transpose(tf.reduce_sum(tf.matmul(first, kernel) * second, axis=-1))

    def loss(self, rows: Any, label: Any) -> Any:
        """The mean logistic loss of the ensemble, or the sum of those of its base models."""
        tf, _, _ = tensorflow()
        scores = self.scores(rows)
        if self.joint:
            scores = tf.reduce_mean(scores, axis=1, keepdims=True)
        labels = tf.broadcast_to(label[:, None], tf.shape(scores))
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=scores)
        return tf.reduce_sum(tf.reduce_mean(losses, axis=0))

    def fit(
        self,
        X: npt.NDArray[np.float32],
        y: npt.NDArray[Any],
        fit: Fit,
        *,
        seed: int,
        done: Callable[[int], None] = lambda epoch: None,
    ) -> None:
        """Train on rows in an order drawn anew for each epoch; the rest of a last batch is left out.

        Every fit starts from the initial weights: the graph is compiled once for all settings."""
        rows, label = without_nan(X), y.astype(np.float32)
        batch = min(fit.batch, len(rows))
        steps = len(rows) // batch
        scale = len(self.subsets) if self.joint else 1
        self._reset()
        rng = np.random.default_rng(seed)
        for epoch in range(fit.epochs):
            order = rng.permutation(len(rows))
            for k in range(steps):
                left = (1 + np.cos(np.pi * (epoch * steps + k) / (fit.epochs * steps))) / 2
                rates = (fit.calibrator_rate * left, fit.rate * scale * left)
                for (optimizer, _), rate in zip(self.optimizers, rates, strict=True):
                    optimizer.learning_rate.assign(rate)
                some = order[k * batch : (k + 1) * batch]
                self._step(rows[some], label[some])
            done(epoch)

    def _reset(self) -> None:
        """Back to the initial weights, with optimisers that have seen nothing."""
        tf, _, _ = tensorflow()
        for optimizer, _ in self.optimizers:
            for variable in optimizer.variables:
                variable.assign(tf.zeros_like(variable))
        for variable, value in self.initial:
            variable.assign(value)

    @cached_property
    def _step(self) -> Any:
        """One step of both optimisers on a batch."""
        tf, _, _ = tensorflow()
        parts = [part for _, part in self.optimizers]

        @tf.function(jit_compile=True)
        def step(rows: Any, label: Any) -> None:
            with tf.GradientTape() as tape:
                loss = self.loss(rows, label)
            for (optimizer, part), slopes in zip(
                self.optimizers, tape.gradient(loss, parts), strict=True
            ):
                optimizer.apply_gradients(zip(slopes, part, strict=True))

        return step

    @cached_property
    def _scores(self) -> Any:
        tf, _, _ = tensorflow()
        return tf.function(self.scores, jit_compile=True)

    def predict(self, X: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Scores of every lattice, (N, T)."""
        rows = without_nan(X)
        padded = np.resize(rows, (-(-len(rows) // PREDICT) * PREDICT, rows.shape[1]))
        parts = [
            self._scores(padded[i : i + PREDICT]).numpy() for i in range(0, len(padded), PREDICT)
        ]
        return np.concatenate(parts)[: len(rows)]

    def numbers(self) -> Numbers:
        """The trained numbers, as qwyc takes them."""
        T, d = self.subsets.shape
        by_feature = {j: self._calibrations(j) for j in self.calibrators}
        vertices = np.ascontiguousarray(self.lattice.kernel.numpy().T)
        inputs = {
            p: c for j, all_ in by_feature.items() for p, c in zip(self.uses[j], all_, strict=True)
        }
        own = [[inputs[t * d + i] for i in range(d)] for t in range(T)]
        return Numbers(self.subsets, vertices, own)

    def _calibrations(self, j: int) -> list[Calibration]:
        """The calibrators of a feature: one, or one for each of its uses."""
        layer = self.calibrators[j]
        outputs = np.clip(np.cumsum(layer.kernel.numpy(), axis=0), 0, 1)  # (K, units)
        missing = layer.missing_output.numpy()[0] if self.missing else [None] * outputs.shape[1]
        return [
            Calibration(self.points[j], column, None if at is None else float(at))
            for column, at in zip(outputs.T, missing, strict=True)
        ]


def corner_weights(inputs: Any) -> Any:
    """Weights of the 2^k corners in a multilinear interpolation, (T, B, 2^k), from inputs (T, k, B)."""
    tf, _, _ = tensorflow()
    T, k = inputs.shape[0], inputs.shape[1]
    weights = tf.ones_like(inputs[:, 0, :, None])  # (T, B, 1)
    for i in range(k):
        sides = tf.stack([1 - inputs[:, i], inputs[:, i]], axis=-1)  # (T, B, 2)
        weights = tf.reshape(weights[..., None] * sides[:, :, None], (T, -1, 2 ** (i + 1)))
    return weights


def without_nan(X: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return np.where(np.isnan(X), np.float32(MISSING), X)
