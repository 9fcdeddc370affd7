"""Orders of the base models for many classes that are fixed before any threshold is fitted."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.policy.fit.lead_problem import LeadProblem
from qwyc.policy.fit.orders import RIDGE, WEIGHT_WIDTH, Order, most_correlated, permutation
from qwyc.runtime.arguments import check_choice

LEAD_ORDERS = ("joint", "auto", "natural", "random", "correlation")


def lead_order(
    problem: LeadProblem, order: Order, *, seed: int, names: tuple[str, ...] = LEAD_ORDERS
) -> npt.NDArray[np.int32]:
    """The order "natural", "random" or "correlation", or the permutation that it is, (T,). `names` are
    those that a user may give."""
    T = problem.n_models
    if not isinstance(order, str):
        return permutation(order, T, names)
    check_choice("order", order, names)
    if order == "random":
        return np.random.default_rng(seed).permutation(T).astype(np.int32)
    return lead_correlation(problem) if order == "correlation" else np.arange(T, dtype=np.int32)


def lead_correlation(
    problem: LeadProblem, *, weight_width: float = WEIGHT_WIDTH, ridge: float = RIDGE
) -> npt.NDArray[np.int32]:
    """The order by correlation of two classes, on each row's own pair: the class that wins in full against
    the runner-up.

    A row counts once with either sign, so that means are 0 and neither class of a pair comes first. Rows
    whose pair is close in full weigh more."""
    first, second = _first_two(problem.full)
    rows = np.arange(problem.n_rows)
    distance = problem.full[rows, first] - problem.full[rows, second]
    spread = float(np.sqrt(np.mean(distance**2))) or 1.0  # of the distances with either sign
    weight = np.exp(-(distance - distance.min()) / (weight_width * spread))
    weight /= weight.sum()
    pairs = np.empty((problem.n_models, problem.n_rows))
    for t in range(problem.n_models):
        of_model = problem.matrix.values[:, t]
        pairs[t] = of_model[rows, first].astype(np.float64) - of_model[rows, second]
    C = _native.gram(pairs, None, np.sqrt(weight), problem.cores)
    return most_correlated(C, problem.costs, ridge)


def _first_two(
    full: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The classes with the largest and the second largest full score of each row, (N,) each."""
    first = np.argmax(full, axis=1)
    others = full.copy()
    others[np.arange(len(full)), first] = -np.inf
    return first, np.argmax(others, axis=1)
