"""How far the greedy joint order is from the best order, where the best can be found.

    python -m qwyc_experiments.brute_force [--instances 400]

All T! orders, each with the thresholds of Algorithm 2, which at alpha = 0 are the best that an order can
have: letting more rows quit at a step never keeps a row from quitting later. The ratio is the mean cost
under Algorithm 1's order divided by the best mean cost.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import qwyc


def pipeline_instance(rng: np.random.Generator, n_rows: int, n_models: int) -> np.ndarray:
    """Scores (N, T) as in the paper's PIPELINE: a base model says 0 about most rows, and about the
    others the side that they are on, so what it lets quit does not depend on what ran before."""
    side = np.where(rng.random(n_rows) < 0.5, 1.0, -1.0)
    speaks = rng.random((n_rows, n_models)) < rng.uniform(0.1, 0.7, n_models)
    silent = ~speaks.any(axis=1)
    speaks[silent, rng.integers(n_models, size=silent.sum())] = True
    return side[:, None] * speaks


def general_instance(rng: np.random.Generator, n_rows: int, n_models: int) -> np.ndarray:
    """Scores (N, T) of base models that agree more or less with a common cause."""
    return rng.normal(size=(n_rows, 1)) + rng.normal(size=(n_rows, n_models))


def cost(scores: np.ndarray, order, costs: np.ndarray) -> float:
    """Mean cost of deciding the rows without a disagreement in this order."""
    policy = qwyc.fit_policy(scores, alpha=0.0, order=order, costs=costs, threads=1)
    return policy.mean_cost(policy.apply(scores, threads=1).steps)


def best_cost(scores: np.ndarray, costs: np.ndarray) -> float:
    """The smallest mean cost over all orders."""
    orders = itertools.permutations(range(scores.shape[1]))
    return min(cost(scores, order, costs) for order in orders)


def main() -> None:
    """Sample instances of both kinds and print how the ratio is distributed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=400)
    options = parser.parse_args()
    table = Table(title="Cost of the joint order over the best", box=box.SIMPLE_HEAD)
    table.add_column("instances")
    for name in ("T", "optimal", "mean", "95%", "99%", "worst"):
        table.add_column(name, justify="right")
    for kind in (pipeline_instance, general_instance):
        for n_models in (3, 4, 5, 6):
            rng = np.random.default_rng(n_models)
            ratios = []
            for _ in range(options.instances):
                scores = kind(rng, int(rng.integers(5, 40)), n_models)
                costs = rng.choice([1.0, 2.0, 4.0], n_models)
                ratios.append(cost(scores, "joint", costs) / best_cost(scores, costs))
            table.add_row(
                kind.__name__.removesuffix("_instance"),
                str(n_models),
                f"{np.mean(np.array(ratios) < 1 + 1e-12):.0%}",
                f"{np.mean(ratios):.3f}",
                f"{np.percentile(ratios, 95):.3f}",
                f"{np.percentile(ratios, 99):.3f}",
                f"{max(ratios):.3f}",
            )
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
