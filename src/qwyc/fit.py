"""fit_policy: from a score matrix to a policy. The algorithms themselves are native (native/fit.cpp)
and, as the paper writes them, in `reference.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import InputError, OptionError
from qwyc.policy import Policy
from qwyc.progress import ProgressOption, progress_reporter
from qwyc.scores import ScoreMatrix
from qwyc.threads import thread_count

ORDERS = ("joint", "natural", "random")
RULES = ("threshold",)
QUITS = ("both", "negative", "positive")


def fit_policy(
    scores: Any,
    *,
    alpha: float,
    order: str | Sequence[int] | npt.NDArray[Any] = "joint",
    rule: str = "threshold",
    quit: str = "both",
    threshold: float | None = None,
    costs: Any = None,
    seed: int = 0,
    threads: int | None = None,
    progress: ProgressOption = None,
) -> Policy:
    """Fit an order and thresholds on the scores of a sample.

    At most a share `alpha` of the rows *in this sample* is decided differently from the full
    ensemble; on new rows it will be more, since order and thresholds are fitted to these very rows.

    Parameters
    ----------
    scores : a ScoreMatrix, or any array (N, T) of per-model scores; the full score is their sum.
    alpha : share of the sample that may be decided differently, from 0 to below 1.
    order : "joint" (the paper's Algorithm 1), "natural", "random" (by `seed`), or a permutation.
    rule : "threshold" (Algorithm 2).
    quit : "both", "negative" (a filter: what is not rejected gets its full score) or "positive".
    threshold : the full decision is score >= threshold; None is the matrix's own, 0 for an array.
    costs : cost of each base model, (T,); None is 1 for all.
    """
    matrix = scores if isinstance(scores, ScoreMatrix) else ScoreMatrix.from_array(scores)
    N, T = matrix.values.shape
    if N == 0:
        raise InputError("scores have no rows; fitting needs a sample")
    check_choice("rule", rule, RULES)
    check_choice("quit", quit, QUITS)
    beta = check_threshold(matrix.threshold if threshold is None else threshold)
    c = check_costs(costs, T)
    fixed = _resolve_order(order, T, seed)  # (T,), or empty where Algorithm 1 chooses
    with progress_reporter(progress, "Fitting order and thresholds", T) as report:
        found, lower, upper = _native.fit_thresholds(
            np.ascontiguousarray(matrix.values.T),
            matrix.base,
            (matrix.full >= beta).view(np.uint8),
            c,
            fixed,
            allowed_disagreements(alpha, N),
            quit in ("both", "negative"),
            quit in ("both", "positive"),
            thread_count(threads),
            report,
        )
    return Policy(order=found, lower=lower, upper=upper, threshold=beta, costs=c)


def allowed_disagreements(alpha: float, n_rows: int) -> int:
    """The largest whole number of rows that is at most a share `alpha` of `n_rows`."""
    check_alpha(alpha)
    b = int(alpha * n_rows)
    while (b + 1) / n_rows <= alpha:  # alpha * n_rows may round either way
        b += 1
    while b / n_rows > alpha:
        b -= 1
    return b


def check_alpha(alpha: Any) -> float:
    """`alpha` as a float, or an error that says what it must be."""
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float, np.number)):
        raise OptionError(f"alpha must be a number such as 0.005; got {alpha!r}")
    if not 0 <= alpha < 1:
        raise OptionError(
            f"alpha is a share, at least 0 and below 1 (0.005 is 0.5%); got {alpha!r}"
        )
    return float(alpha)


def check_choice(name: str, value: Any, allowed: Sequence[str]) -> None:
    """Raise where `value` is not one of `allowed`."""
    if not isinstance(value, str) or value not in allowed:
        choices = ", ".join(repr(a) for a in allowed)
        raise OptionError(f"{name} must be one of {choices}; got {value!r}")


def check_threshold(threshold: Any) -> float:
    """`threshold` as a float, or an error that says what it must be."""
    try:
        value = float(threshold)
    except (TypeError, ValueError):
        value = float("nan")
    if not np.isfinite(value):
        raise OptionError(f"threshold must be a finite number; got {threshold!r}")
    return value


def check_costs(costs: Any, n_models: int) -> npt.NDArray[np.float64]:
    """`costs` as (T,) positive floats; None is 1 for every base model."""
    if costs is None:
        return np.ones(n_models)
    try:
        c = np.array(costs, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(f"costs must be {n_models} numbers, one per base model") from None
    if c.shape != (n_models,):
        raise OptionError(
            f"costs must be {n_models} numbers, one per base model; got shape {c.shape}"
        )
    if not (np.isfinite(c).all() and (c > 0).all()):
        raise OptionError("costs must be positive numbers")
    return c


def _resolve_order(order: Any, n_models: int, seed: int) -> npt.NDArray[np.int32]:
    if isinstance(order, str):
        check_choice("order", order, ORDERS)
        if order == "joint":
            return np.empty(0, dtype=np.int32)
        if order == "natural":
            return np.arange(n_models, dtype=np.int32)
        return np.random.default_rng(seed).permutation(n_models).astype(np.int32)
    try:
        permutation = np.asarray(order)
        sound = np.array_equal(np.sort(permutation), np.arange(n_models))
    except (TypeError, ValueError):
        sound = False
    if not sound:
        raise OptionError(
            f"order must be one of {', '.join(map(repr, ORDERS))}, or a permutation of "
            f"0 to {n_models - 1}; got {order!r}"
        )
    return permutation.astype(np.int32)
