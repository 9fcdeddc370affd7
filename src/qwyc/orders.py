"""Orders of the base models that are fixed before any threshold is fitted: the paper's baselines."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import OptionError
from qwyc.scores import ScoreMatrix
from qwyc.threads import thread_count

FIXED = ("natural", "random", "individual-mse", "greedy-mse")


def fixed_order(
    order: Any, matrix: ScoreMatrix, labels: Any, seed: int, threads: int | None
) -> npt.NDArray[np.int32]:
    """The order that `order` names, or the permutation that it is, (T,)."""
    T = matrix.values.shape[1]
    if not isinstance(order, str):
        return _permutation(order, T)
    if order == "natural":
        return np.arange(T, dtype=np.int32)
    if order == "random":
        return np.random.default_rng(seed).permutation(T).astype(np.int32)
    target = mse_target(matrix, labels, order)
    if order == "individual-mse":
        return individual_mse(matrix, target)
    return greedy_mse(matrix, target, thread_count(threads))


def mse_target(matrix: ScoreMatrix, labels: Any, order: str) -> npt.NDArray[np.float64]:
    """What the base models should add up to, (N,): the label as 0 or 1 for an average of votes, and
    as threshold - 1 or threshold + 1 for a sum; less the base."""
    if labels is None:
        raise OptionError(
            f"order={order!r} compares base models with the truth: pass labels, one per row; "
            "'joint' and 'natural' need none"
        )
    y = np.asarray(labels)
    if y.shape != matrix.full.shape:
        raise OptionError(
            f"labels must be {len(matrix.full)} values, one per row; got shape {y.shape}"
        )
    found = set(np.unique(y).tolist())
    if not (found <= {0, 1} or found <= {-1, 1}):
        raise OptionError(
            f"labels must be 0 and 1 (or -1 and 1, or booleans); got {sorted(found)[:5]}"
        )
    positive = y > 0
    if matrix.average:
        return positive.astype(np.float64) - matrix.base
    return np.where(positive, 1.0, -1.0) + (matrix.threshold - matrix.base)


def individual_mse(matrix: ScoreMatrix, target: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
    """Base models by their own mean squared error, best first; lowest index first on ties."""
    T = matrix.values.shape[1]
    scale = T if matrix.average else 1  # a vote over T is a vote again
    errors = [
        np.mean((scale * matrix.values[:, t].astype(np.float64) - target) ** 2) for t in range(T)
    ]
    return np.argsort(np.array(errors), kind="stable").astype(np.int32)


def greedy_mse(
    matrix: ScoreMatrix, target: npt.NDArray[np.float64], threads: int
) -> npt.NDArray[np.int32]:
    """Each time the base model that leaves the partial ensemble with the smallest mean squared error.

    With S the sum so far and a = T / r for an average (1 for a sum), the error of taking k is
    |a (S + f_k) - target|^2, so only inner products are needed: O(T^2) after one Gram matrix."""
    T = matrix.values.shape[1]
    gram = _native.gram(np.ascontiguousarray(matrix.values.T), threads)  # (T, T)
    with_target = np.array([np.sum(matrix.values[:, t] * target) for t in range(T)])
    own = np.diag(gram)
    with_sum = np.zeros(T)  # f_k . S
    unused = np.ones(T, dtype=bool)
    order = np.empty(T, dtype=np.int32)
    for r in range(T):
        a = T / (r + 1) if matrix.average else 1.0
        # |a S|^2 and -2 a S . target are the same for every k
        error = a * a * (2 * with_sum + own) - 2 * a * with_target
        order[r] = np.argmin(np.where(unused, error, np.inf))
        unused[order[r]] = False
        with_sum += gram[order[r]]
    return order


def _permutation(order: Any, n_models: int) -> npt.NDArray[np.int32]:
    try:
        permutation = np.asarray(order)
        sound = np.array_equal(np.sort(permutation), np.arange(n_models))
    except (TypeError, ValueError):
        sound = False
    if not sound:
        names = ", ".join(repr(name) for name in ("joint", *FIXED))
        raise OptionError(
            f"order must be one of {names}, or a permutation of 0 to {n_models - 1}; got {order!r}"
        )
    return permutation.astype(np.int32)
