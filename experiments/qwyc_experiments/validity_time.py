"""Does the promise hold in the next window of time, with and without `order_by`?

    python -m qwyc_experiments.validity_time [--starts 40]

Rows come in an order. At many points of it, a classifier is made from the last rows and measured on the
next ones. "Drift" are simulated rows whose decisions become harder and easier again. "Covertype" are rows
in the order of its file, which is by place, seen by an XGBoost model that was trained on the first of them.
Nothing can promise what the next rows are like: `order_by` speaks for the latest window, and the next rows
are like it only if they change slowly.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np
import xgboost
from rich import box
from rich.console import Console
from rich.table import Table

import qwyc

from .frontier import covertype_in_order
from .validity import column_models, world

ALPHA, SAMPLE, NEXT, N_MODELS = 0.01, 24_000, 4_000, 12


def drift(rng: np.random.Generator, n: int) -> np.ndarray:
    """Rows (N, T) in which half of the base models lose touch with the others, and find it again."""
    X = world(rng, n, N_MODELS)
    noise = 1 - np.cos(np.linspace(0, 6 * np.pi, n))
    X[:, : N_MODELS // 2] += noise[:, None] * rng.normal(size=(n, N_MODELS // 2))
    return X


def still(rng: np.random.Generator, n: int) -> np.ndarray:
    """Rows (N, T) that do not change."""
    return world(rng, n, N_MODELS)


def next_windows(values: np.ndarray, base: float, threshold: float, starts: int) -> dict:
    """For rows counted as exchangeable, and in their order: the share of the next window that differs and
    base models per row, (starts, 2) each."""
    models = qwyc.BaseModels(column_models(values.shape[1]), base=base, threshold=threshold)
    found: dict = {"exchangeable": [], "order_by": []}
    for seed, begin in enumerate(np.linspace(0, len(values) - SAMPLE - NEXT, starts).astype(int)):
        rows, later = values[begin : begin + SAMPLE], values[begin + SAMPLE :][:NEXT]
        truth = qwyc.ScoreMatrix.from_array(later, base=base, threshold=threshold)
        for name, order in (("exchangeable", None), ("order_by", np.arange(SAMPLE))):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", qwyc.QwycWarning)
                fast = qwyc.optimize(
                    models, rows, alpha=ALPHA, order_by=order, seed=seed, progress=False
                )
            done = fast.policy.apply(truth)
            differ = float(np.mean(done.label != truth.positive))
            found[name].append((differ, float(done.steps.mean())))
    return {name: np.array(values) for name, values in found.items()}


def main() -> None:
    """Run all parts and print their table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=40)
    parser.add_argument("--covertype", type=int, default=12)
    options = parser.parse_args()
    table = Table(
        title=f"alpha {ALPHA:.0%}: made from {SAMPLE:,} rows, measured on the next {NEXT:,}",
        box=box.SIMPLE_HEAD,
        title_justify="left",
    )
    for name in ("rows", "sample taken as", "above alpha", "mean share", "largest", "base models"):
        table.add_column(name, justify="right")
    simulated: dict[str, Callable] = {"still": still, "drift": drift}
    parts = {
        name: next_windows(draw(np.random.default_rng(0), 600_000), 0.0, 0.0, options.starts)
        for name, draw in simulated.items()
    }
    if options.covertype:
        X, y = covertype_in_order()
        model = xgboost.XGBClassifier(n_estimators=100, max_depth=6, learning_rate=0.2, n_jobs=2)
        model.fit(X[:100_000], y[:100_000])
        pool = qwyc.read_model(model).scores(X[100_000:])
        values = np.ascontiguousarray(pool.values)
        parts["Covertype"] = next_windows(values, pool.base, pool.threshold, options.covertype)
    for name, found in parts.items():
        for way, seen in found.items():
            share, models = seen.T
            table.add_row(
                name,
                way,
                f"{int(np.sum(share > ALPHA))} of {len(share)}",
                f"{share.mean():.2%}",
                f"{share.max():.2%}",
                f"{models.mean():.1f}",
            )
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
