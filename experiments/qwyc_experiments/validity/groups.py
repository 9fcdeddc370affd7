"""Rows in groups: does the promise hold for rows of new groups, and what does counting groups cost?

Groups are drawn from a known distribution. Rows of a group are alike (equal), nearly alike or unlike (drawn
independently), and groups have 1, 5, 20, 40 rows or an unequal number, which is larger where decisions are
harder. Each repetition optimises with `groups` and is measured on 40,000 new groups, of which each counts
by its rows. "Rows counted" is the same sample without `groups`, on the first repetitions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from rich.console import Console

import qwyc

from . import broken, column_models, print_table, world

ALPHA, N_MODELS, NEW_GROUPS = 0.05, 8, 40_000
REPETITIONS, WITHOUT_GROUPS = 500, 50
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


def repeat(setting: Setting, repetitions: int, without: int) -> tuple[np.ndarray, np.ndarray]:
    """The share of new rows that differ and base models per row, (repetitions, 2), with `groups`, and
    without them on the first of the samples."""
    X, weight = setting.population(np.random.default_rng(10**6))
    truth, models = qwyc.ScoreMatrix.from_array(X), column_models(N_MODELS)

    def delivered(rows: np.ndarray, groups: np.ndarray | None, seed: int) -> tuple[float, float]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", qwyc.QwycWarning)
            fast = qwyc.optimize(
                models,
                rows,
                alpha=ALPHA,
                groups=groups,
                repeats="independent",  # equal rows are what is tried here
                seed=seed,
                progress=False,
            )
        done = fast.policy.apply(truth)
        differ = float(np.average(done.label != truth.positive, weights=weight))
        return differ, float(np.average(done.steps, weights=weight))

    counted, alone = [], []
    for seed in range(repetitions):
        rows, group = setting.sample(np.random.default_rng(seed))
        counted.append(delivered(rows, group, seed))
        if seed < without:
            alone.append(delivered(rows, None, seed))
    return np.array(counted), np.array(alone)


def counted(console: Console, scale: float) -> None:
    """Groups of every kind."""
    rows = []
    for setting in settings():
        n, without = round(REPETITIONS * scale), max(round(WITHOUT_GROUPS * scale), 1)
        (shares, steps), (alone, alone_steps) = (
            found.T for found in repeat(setting, max(n, 1), without)
        )
        rows.append(
            [
                f"{setting.rows or '1 to 40'}, {setting.likeness}",
                f"{setting.groups:,}",
                broken(shares, ALPHA),
                f"{shares.mean():.2%}",
                f"{steps.mean():.2f}",
                broken(alone, ALPHA),
                f"{alone_steps.mean():.2f}",
            ]
        )
        console.print("  ".join(rows[-1]))
    columns = ["rows a group", "groups", "broken", "delivered, mean", "base models"]
    columns += ["rows counted: broken", "base models"]
    title = f"Rows in groups, alpha = {ALPHA:.0%} at 95%; 5% may be broken; {N_MODELS} base models"
    print_table(console, title, columns, rows)
