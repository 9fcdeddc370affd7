"""Checks of arguments that several functions share. Each returns a sound value, or raises an error that
says what was expected, what was passed and what to do."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError


def check_alpha(alpha: Any) -> float:
    """`alpha` as a share from 0 to below 1."""
    if not is_number(alpha):
        raise OptionError(f"alpha must be a number such as 0.005, which is 0.5%; got {alpha!r}")
    if not 0 <= alpha < 1:
        raise OptionError(
            f"alpha is a share, at least 0 and below 1 (0.005 is 0.5%); got {alpha!r}"
        )
    return float(alpha)


def is_number(value: Any) -> bool:
    """Whether it is a real number of Python's or NumPy's; neither bool nor complex is."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def check_choice(name: str, value: Any, allowed: Sequence[str]) -> str:
    """`value`, which must be one of `allowed`."""
    if not isinstance(value, str) or value not in allowed:
        choices = ", ".join(repr(a) for a in allowed)
        raise OptionError(f"{name} must be one of {choices}; got {value!r}")
    return value


def check_count(name: str, value: Any, *, least: int = 1, most: int | None = None) -> int:
    """`value` as a whole number from `least` to `most`."""
    count = None if isinstance(value, (bool, np.bool_)) else value
    try:
        count = operator.index(count)  # type: ignore[arg-type]
    except TypeError:
        count = None
    if count is None or count < least or (most is not None and count > most):
        upto = "" if most is None else f" and at most {most}"
        raise OptionError(f"{name} must be a whole number of at least {least}{upto}; got {value!r}")
    return int(count)


def check_number(name: str, value: Any, *, above: float = -np.inf) -> float:
    """`value` as a finite number greater than `above`."""
    try:
        number = float(value) if is_number(value) else float("nan")
    except OverflowError:  # a whole number beyond all floats
        number = float("inf")
    if not (np.isfinite(number) and number > above):
        bound = "" if above == -np.inf else f" above {above:g}"
        raise OptionError(f"{name} must be a finite number{bound}; got {value!r}")
    return number


def check_costs(costs: Any, n_models: int) -> npt.NDArray[np.float64]:
    """`costs` as (T,) positive numbers; None is 1 for every base model."""
    if costs is None:
        return np.ones(n_models)
    if isinstance(costs, str):
        raise OptionError(
            f'costs must be {n_models} numbers here; "measured" and "size" need a model to look at: '
            "pass them to qwyc.optimize, or use ensemble.costs"
        )
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


def allowed_disagreements(alpha: float, n_rows: int) -> int:
    """The largest whole number of rows that is at most a share `alpha` of `n_rows`."""
    b = int(check_alpha(alpha) * n_rows)
    while (b + 1) / n_rows <= alpha:  # alpha * n_rows may round either way
        b += 1
    while b / n_rows > alpha:
        b -= 1
    return b
