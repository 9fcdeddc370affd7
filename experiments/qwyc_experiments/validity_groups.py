"""Does the promise hold where rows come in groups, and what does counting groups cost?

    python -m qwyc_experiments.validity_groups [--repetitions 500]

Groups are drawn from a known distribution: rows of a group are alike (equal), nearly alike or unlike (drawn
independently), and groups have 1, 5, 20, 40 rows or an unequal number, which is larger where decisions are
harder. Each repetition optimises with `groups` and is measured on 100,000 new groups, of which each counts
by its rows. "Rows counted" is the same sample without `groups`, on the first repetitions.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import qwyc

from .validity import column_models, world

ALPHA, CONFIDENCE, N_MODELS = 0.05, 0.95, 8
NEW_GROUPS = 100_000
LIKENESS = {"alike": 0.0, "nearly alike": 0.3, "unlike": None}  # noise around the group's own row


@dataclass(frozen=True)
class Setting:
    """One kind of groups."""

    rows: int | None  # rows of a group; None: from 1 to 40
    likeness: str
    groups: int  # in the sample

    def sizes(self, rng: np.random.Generator, centre: np.ndarray) -> np.ndarray:
        """Rows of each group, (G,)."""
        if self.rows is not None:
            return np.full(len(centre), self.rows)
        hard = np.abs(centre.sum(axis=1)) < 4
        return np.where(hard, rng.integers(10, 41, len(centre)), rng.integers(1, 11, len(centre)))

    def sample(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Rows (N, T) and the group of each, (N,)."""
        centre = world(rng, self.groups, N_MODELS)
        group = np.repeat(np.arange(self.groups), self.sizes(rng, centre))
        return self._rows(rng, centre, group), group

    def population(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """One row of each of many groups, and the number of rows that it stands for."""
        centre = world(rng, NEW_GROUPS, N_MODELS)
        return self._rows(rng, centre, np.arange(NEW_GROUPS)), self.sizes(rng, centre)

    def _rows(self, rng: np.random.Generator, centre: np.ndarray, group: np.ndarray) -> np.ndarray:
        noise = LIKENESS[self.likeness]
        if noise is None:
            return world(rng, len(group), N_MODELS)
        return centre[group] + noise * rng.normal(size=(len(group), N_MODELS))


def settings() -> Iterator[Setting]:
    """Every kind of groups that is tried."""
    yield Setting(1, "unlike", 1200)
    for rows, groups in ((5, 500), (20, 240), (40, 240), (None, 800)):
        for likeness in LIKENESS:
            yield Setting(rows, likeness, groups)


@dataclass(frozen=True)
class Result:
    """What repetitions delivered."""

    delivered: np.ndarray  # (repetitions,) share of new rows that differ
    models: float  # base models per row, on average
    rows_broken: int  # the same without groups
    rows_models: float
    rows_repetitions: int

    @property
    def broken(self) -> int:
        """How many promises were broken."""
        return int(np.sum(self.delivered > ALPHA))


def repeat(setting: Setting, repetitions: int, against: int) -> Result:
    """Optimise and measure again and again."""
    X, weight = setting.population(np.random.default_rng(10**6))
    truth = qwyc.ScoreMatrix.from_array(X)
    models = column_models(N_MODELS)

    def delivered(fast: qwyc.Classifier) -> tuple[float, float]:
        decisions = fast.policy.apply(truth)
        differ = decisions.label != truth.positive
        return float(np.average(differ, weights=weight)), float(
            np.average(decisions.steps, weights=weight)
        )

    counted, alone = [], []
    for seed in range(repetitions):
        rows, group = setting.sample(np.random.default_rng(seed))
        options = {"alpha": ALPHA, "confidence": CONFIDENCE, "seed": seed, "progress": False}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", qwyc.QwycWarning)
            counted.append(delivered(qwyc.optimize(models, rows, groups=group, **options)))
            if seed < against:
                alone.append(delivered(qwyc.optimize(models, rows, **options)))
    shares, steps = np.array(counted).T
    rows_shares, rows_steps = np.array(alone).reshape(-1, 2).T
    return Result(
        shares,
        float(steps.mean()),
        int(np.sum(rows_shares > ALPHA)),
        float(rows_steps.mean()) if len(rows_steps) else float("nan"),
        len(rows_steps),
    )


def show(results: dict[Setting, Result], console: Console) -> None:
    """One line per setting."""
    table = Table(
        title=f"At most {ALPHA:.0%} at {CONFIDENCE:.0%}; {N_MODELS} base models",
        box=box.SIMPLE_HEAD,
        title_justify="left",
    )
    for name in (
        "rows a group", "rows", "groups", "broken", "delivered", "base models", "rows counted: broken",
        "base models",
    ):  # fmt: skip
        table.add_column(name, justify="right")
    for setting, result in results.items():
        n, m = len(result.delivered), result.rows_repetitions
        table.add_row(
            "1 to 40" if setting.rows is None else str(setting.rows),
            setting.likeness,
            f"{setting.groups:,}",
            f"{result.broken} of {n} ({result.broken / n:.1%})",
            f"{result.delivered.mean():.2%}",
            f"{result.models:.2f}",
            f"{result.rows_broken} of {m}",
            f"{result.rows_models:.2f}",
        )
    console.print(table)


def run(
    repetitions: int, against: int, report: Callable[[Setting, Result], None] = lambda s, r: None
) -> dict[Setting, Result]:
    """Every setting."""
    results = {}
    for setting in settings():
        results[setting] = repeat(setting, repetitions, against)
        report(setting, results[setting])
    return results


def main() -> None:
    """Run all settings and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--against", type=int, default=100)
    options = parser.parse_args()
    console, started = Console(width=120), time.perf_counter()
    show(run(options.repetitions, options.against), console)
    console.print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
