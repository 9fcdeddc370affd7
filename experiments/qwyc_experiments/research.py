"""Variants of the default method against it, chosen on some rows and reported on others.

    python -m qwyc_experiments.research STUDY ... [--half select|report] [--seeds 2] [--cache FOLDER]

Every data set is cut in two for good. A variant is chosen on "select" rows and its figure read on "report"
rows: other rows, and a model trained on other rows, so nothing is chosen on rows that are reported. In
each half and for each seed the model is trained on one part, the policies are fitted on a second (10,000
rows at most) and measured on a third. Each line is a variant's mean cost over the default's at 0.1, 0.25,
0.5 and 1% of test decisions changed: the geometric mean over pairs and seeds; below 1 is better.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import qwyc

from .frontier import Pair, pairs
from .levels import LEVELS, at_level
from .variants import (
    Case,
    backward_order,
    bagged,
    by_cost,
    by_ratio,
    first_models,
    first_rows,
    joint_order,
    order_of,
    path_of,
    points_of,
    portfolio,
    smoothed,
    with_costs,
)

HALVES = ("select", "report")
TREES, FIT_ROWS, TEST_ROWS = 300, 10_000, 30_000


def case_of(name: str, pair: Pair, half: str, seed: int, cache: Path) -> Case:
    """Train, score, and keep the scores."""
    load, make, quit, n_train = pair
    file = cache / f"{name} {half} {seed}.npz"
    if not file.exists():
        X, y = load(0)
        rows = np.arange(HALVES.index(half), len(X), 2)
        rows = rows[np.random.default_rng(1000 + seed).permutation(len(rows))]
        n_train = min(n_train // 2, 40_000)
        ensemble = qwyc.read_model(make(seed).fit(X[rows[:n_train]], y[rows[:n_train]]))
        rest = X[rows[n_train:]]
        n_fit = min(FIT_ROWS, len(rest) // 2)
        fit, test = ensemble.scores(rest[:n_fit]), ensemble.scores(rest[n_fit:][:TEST_ROWS])
        about = {"base": fit.base, "threshold": fit.threshold, "average": fit.average}
        arrays = {"fit": fit.values, "fit_full": fit.full, "test": test.values}
        np.savez(file, **arrays, test_full=test.full, **about)
    kept = np.load(file)

    def matrix(part: str) -> qwyc.ScoreMatrix:
        values = np.asfortranarray(kept[part])
        base, threshold = float(kept["base"]), float(kept["threshold"])
        return qwyc.ScoreMatrix(
            values, base, threshold, kept[f"{part}_full"], bool(kept["average"])
        )

    fit = matrix("fit")
    return Case(fit, matrix("test"), quit, np.ones(fit.values.shape[1]))


Variant = Callable[[Case], qwyc.Path]


def study(name: str) -> tuple[Callable[[Case], Case], dict[str, Variant]]:
    """What a study does to every case, and its variants; "default" comes first."""

    def same(case: Case) -> Case:
        return case

    default: dict[str, Variant] = {"default": path_of}

    def constants(**by_name: Any) -> Variant:
        return lambda case: path_of(case, **by_name)

    def order(**by_name: Any) -> Variant:
        return lambda case: path_of(case, order_of(case, **by_name))

    ridge: dict[str, Variant] = {"ridge 0.1": order(ridge=0.1)}
    share = {
        f"forecast {s:.0%} of the penalty": constants(forecast_share=s)
        for s in (0.0, 0.25, 0.75, 0.9, 1.0)
    }
    several: list[Callable[[Case], np.ndarray]] = [
        order_of,
        lambda case: order_of(case, weight_width=0.2),
        lambda case: order_of(case, weight_width=0.8),
        backward_order,
        joint_order,
    ]
    studies: dict[str, tuple[Callable[[Case], Case], dict[str, Variant]]] = {
        "order": (
            same,
            {f"width {w}": order(weight_width=w) for w in (0.15, 0.25, 0.6, 1.0)}
            | {f"ridge {r}": order(ridge=r) for r in (0.0, 0.1, 0.6, 1.5)}
            | {"backward": lambda case: path_of(case, backward_order(case))},
        ),
        "order-2": (
            same,
            {
                f"width {w}, ridge {r}": order(weight_width=w, ridge=r)
                for w, r in ((0.4, 0.05), (0.4, 0.15), (0.3, 0.1), (0.2, 0.1), (0.2, 0.2))
            }
            | {"backward, ridge 0.1": lambda case: path_of(case, backward_order(case, 0.1))},
        ),
        "penalty": (same, share),
        "ridge": (same, ridge),
        "sweeps": (
            same,
            {"4 first sweeps": constants(first_sweeps=4), "2 per penalty": constants(sweeps=2)},
        ),
        "thresholds": (
            same,
            {
                "mean of 3 steps": lambda case: smoothed(path_of(case), 1),
                "mean of 7 steps": lambda case: smoothed(path_of(case), 3),
                "median of 5 fits": lambda case: bagged(case, 5),
            },
        ),
    }
    for spread in (0.5, 1.0):
        studies[f"costs-{spread}"] = (
            lambda case, spread=spread: with_costs(case, spread),
            {
                f"gain over cost^{power}": lambda case, power=power: path_of(
                    case, by_cost(case, power)
                )
                for power in (0.0, 0.5, 0.75, 1.5)
            }
            | {"log of what is left over cost": lambda case: path_of(case, by_ratio(case))},
        )
    for n in (1000, 3000):
        studies[f"rows-{n}"] = (lambda case, n=n: first_rows(case, n), share)
        studies[f"ridge-rows-{n}"] = (lambda case, n=n: first_rows(case, n), ridge)
    for n in (10, 20, 50):
        few = {"backward": lambda case: path_of(case, backward_order(case))}
        few["ridge 0"] = order(ridge=0.0)
        few["width 0.25"] = order(weight_width=0.25)
        few["width 1.0"] = order(weight_width=1.0)
        few["Algorithm 1's order"] = lambda case: path_of(case, joint_order(case))
        few["5 orders, inner hold-out"] = lambda case: portfolio(case, several)
        studies[f"models-{n}"] = (lambda case, n=n: first_models(case, n), few | share)
    change, variants = studies[name]
    return change, default | variants


def main() -> None:
    """Run studies on one half; print a table for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("studies", nargs="+")
    parser.add_argument("--half", choices=HALVES, default="select")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=None, help="words in the names of pairs")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    console = Console(width=110)
    chosen = {
        name: pair
        for name, pair in pairs(TREES).items()
        if options.only is None or any(word in name for word in options.only)
    }
    for name in options.studies:
        change, variants = study(name)
        costs: dict[str, list[list[float]]] = {variant: [] for variant in variants}
        for pair in chosen:
            for seed in range(options.seeds):
                case = change(case_of(pair, chosen[pair], options.half, seed, options.cache))
                for variant, make in variants.items():
                    points = points_of(make(case), case.test)
                    costs[variant].append([at_level(points, level) for level in LEVELS])
        show(console, f"{name}, {options.half} rows", costs)


def show(console: Console, title: str, costs: dict[str, list[list[float]]]) -> None:
    """Ratios to the default at every level; their mean over levels and how often a run is cheaper."""
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for column in (
        "cost over the default's",
        *[f"{level:.2%}" for level in LEVELS],
        "all",
        "cheaper",
    ):
        table.add_column(column, justify="left" if column.startswith("cost") else "right")
    base = np.log(np.array(costs["default"]))  # (runs, levels)
    for variant, found in costs.items():
        ratio = np.log(np.array(found)) - base
        mean = np.exp([*np.nanmean(ratio, axis=0), np.nanmean(ratio)])
        won = f"{np.sum(ratio < 0)} of {ratio.size}"
        if variant == "default":
            models = np.exp(np.nanmean(base, axis=0))
            table.add_row("default, base models", *[f"{m:.1f}" for m in models], "", "")
            continue
        table.add_row(variant, *[f"{m:.3f}" for m in mean], won)
    console.print(table)


if __name__ == "__main__":
    main()
