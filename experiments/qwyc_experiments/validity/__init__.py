"""Does the promise hold as often as it says, on samples of every kind?

    python -m qwyc_experiments.validity [PART ...] [--scale 1]

The parts are the names in `__main__.PARTS`; without one, all of them run. Each repeats "fit, certify,
measure on rows that had no part in it" and prints how often the truth was beyond what was promised.
`--scale 0.1` takes a tenth of the repetitions."""

from __future__ import annotations

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

N_MODELS = 12


def world(
    rng: np.random.Generator, n: int, n_models: int = N_MODELS, shift: float = 0.0
) -> np.ndarray:
    """Rows (N, T) whose columns are the scores of T base models that share a cause. A `shift` below 0
    makes positives rare: -2.3 leaves about 1.7% of them."""
    return rng.normal(size=(n, 1)) + 1.5 * rng.normal(size=(n, n_models)) + shift


def column_models(n_models: int) -> list:
    """Base models that read their score from a column."""
    return [lambda X, t=t: X[:, t] for t in range(n_models)]


def print_table(console: Console, title: str, columns: list[str], rows: list[list[str]]) -> None:
    """A table of text; the first column is aligned left."""
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for i, name in enumerate(columns):
        table.add_column(name, justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def broken(shares: np.ndarray, limit: float) -> str:
    """How often a limit was exceeded."""
    n = int(np.sum(shares > limit))
    return f"{n} of {len(shares)} ({n / len(shares):.1%})"
