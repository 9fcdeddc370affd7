"""The outputs and scores that live premade models themselves give rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

BATCH = 8192  # rows at once, where lattices are small
LARGEST = 1 << 22  # values in the largest tensor of a batch
EAGER = 4  # up to so many batches are evaluated without making a graph first, which takes seconds
INT32 = np.iinfo(np.int32)


def outputs_and_scores(
    model: Any, calibration: Any, matrix: Array, columns: Sequence[int], largest: int
) -> tuple[Floats, Floats]:
    """The model's own outputs, (N,), and what it has before its output calibration, (N,). `columns` are
    those of the model's inputs in the matrix, (N, D)."""
    batch = int(np.clip(LARGEST // largest, 16, BATCH))
    parts = [
        _as_input(tensor, matrix[:, j]) for tensor, j in zip(model.inputs, columns, strict=True)
    ]
    if calibration is None:
        output = _evaluate(model, parts, batch)[0]
        return output, output
    keras_model = next(base for base in type(model).__mro__ if base.__name__ == "Model")
    both = keras_model(inputs=model.inputs, outputs=[model.outputs[0], calibration.input])
    output, score = _evaluate(both, parts, batch)
    return output, score


def _evaluate(model: Any, parts: list[Array], batch: int) -> list[Floats]:
    n = len(parts[0])
    if n > EAGER * batch:
        found = model.predict(parts, batch_size=batch, verbose=0)
        return [np.asarray(each, np.float64)[:, 0] for each in _listed(found)]
    by_batch = [
        _listed(model([part[i : i + batch] for part in parts], training=False))
        for i in range(0, max(n, 1), batch)
    ]
    return [
        np.concatenate([np.asarray(each, np.float64)[:, 0] for each in of_output])
        for of_output in zip(*by_batch, strict=True)
    ]


def _as_input(tensor: Any, column: Array) -> Array:
    """A column as an input of the model takes it, (N, 1). Codes are cut to int32; a value beyond it is
    in no bucket, and neither is the one that it becomes."""
    dtype = np.dtype(tensor.dtype.as_numpy_dtype)
    if dtype.kind == "i":
        column = np.clip(column.astype(np.float64), INT32.min, INT32.max)
    return np.ascontiguousarray(column.astype(dtype)[:, None])


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
