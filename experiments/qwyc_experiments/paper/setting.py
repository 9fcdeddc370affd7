"""What is varied in an experiment, in full and in the small version that the tests run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """The sizes and knobs of one run."""

    trees: int  # base models of the full ensemble, T
    depth: int
    rows: int | None  # use only so many training and test rows; None is all
    alphas: tuple[float, ...]  # of Algorithms 1 and 2
    gammas: tuple[float, ...]  # of Fan's rule
    bin_widths: tuple[float, ...]  # of Fan's rule, in deviations of the full score
    seeds: tuple[int, ...]  # of the random orders
    sizes: tuple[int, ...]  # of the smaller ensembles
    learning_rates: tuple[float, ...]
    min_child_weights: tuple[float, ...]


def setting_for(depth: int, *, reduced: bool) -> Setting:
    """The paper's 500 trees, or a version that takes seconds."""
    if reduced:
        return Setting(
            trees=40,
            depth=min(depth, 4),
            rows=3000,
            alphas=(0.0, 0.005, 0.02),
            gammas=(0.5, 1.0, 2.0, 4.0),
            bin_widths=(0.01, 0.1),
            seeds=(0, 1),
            sizes=(5, 10, 20),
            learning_rates=(0.05, 0.2),
            min_child_weights=(1.0,),
        )
    return Setting(
        trees=500,
        depth=depth,
        rows=None,
        alphas=(0.0, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.04),
        gammas=(0.5, 0.75, 1.0, 1.25, 1.375, 1.5, 1.625, 1.75, 2.0, 2.25, 2.5, 3.0, 4.0, 6.0),
        bin_widths=(0.001, 0.01, 0.1),
        seeds=(0, 1, 2, 3, 4),
        sizes=(5, 10, 20, 40, 80, 160, 320),
        learning_rates=(0.02, 0.03, 0.05, 0.1, 0.2, 0.5),
        min_child_weights=(1.0, 10.0),
    )
