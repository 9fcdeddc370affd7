"""How much is run: everything, enough to see the picture, or enough to see that it works."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """One run's sizes."""

    name: str
    trees: int
    forest_depth: int
    rows: int  # in the largest batch, drawn from the test rows
    batches: tuple[int, ...]
    seconds: float  # for each contestant with a large batch
    small_seconds: float  # and with a small one
    growth_rows: int
    growth: dict[str, tuple[int, ...]]
    cpu_time: bool = False  # of batches on one thread, for a busy machine


FULL = Sizes(
    name="full",
    trees=500,
    forest_depth=14,
    rows=100_000,
    batches=(1, 16, 256, 100_000),
    seconds=1.5,
    small_seconds=0.35,
    growth_rows=10_000,
    growth={
        "trees": (50, 150, 500, 1500, 5000),
        "depth": (3, 5, 8, 12, 16),
        "features": (10, 30, 100, 300, 1000),
    },
)
QUICK = Sizes(
    name="quick",
    trees=100,
    forest_depth=8,
    rows=20_000,
    batches=(1, 16, 256, 20_000),
    seconds=0.5,
    small_seconds=0.15,
    growth_rows=5_000,
    growth={"trees": (50, 200), "depth": (3, 8), "features": (10, 100)},
)
TINY = Sizes(
    name="tiny",
    trees=20,
    forest_depth=4,
    rows=2_000,
    batches=(1, 16, 2_000),
    seconds=0.01,
    small_seconds=0.01,
    growth_rows=1_000,
    growth={"trees": (10, 20), "depth": (3,), "features": (10,)},
)
SIZES = {sizes.name: sizes for sizes in (FULL, QUICK, TINY)}
