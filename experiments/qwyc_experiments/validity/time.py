"""Rows in the order of time: is the share within alpha in the next window, with and without `order_by`?

At many points of the order, a classifier is made from the last rows and measured on the next ones. "Drift"
are simulated rows in which half of the base models rise while the others fall, and the reverse. "Covertype"
are rows in the order of its file, which is by place, seen by an XGBoost model that was trained on the first
of them. Nothing can promise what the next rows are like: `order_by` speaks for the latest window, and the
next rows are like it only if they change slowly."""

from __future__ import annotations

import warnings

import numpy as np
import xgboost
from rich.console import Console

import qwyc

from ..frontier import covertype_in_order
from . import N_MODELS, column_models, print_table, world

ALPHA, SAMPLE, NEXT = 0.01, 24_000, 4_000


def drift(rng: np.random.Generator, n: int) -> np.ndarray:
    """Rows (N, T) in which half of the base models rise while the others fall, and the reverse."""
    X, half = world(rng, n), N_MODELS // 2
    shift = np.sin(np.linspace(0, 12 * np.pi, n))[:, np.newaxis]
    X[:, :half] += shift
    X[:, half:] -= shift
    return X


def still(rng: np.random.Generator, n: int) -> np.ndarray:
    """Rows (N, T) that do not change."""
    return world(rng, n)


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
                    models,
                    rows,
                    alpha=ALPHA,
                    order_by=order,
                    repeats="independent",  # rows are scores here, and trees give equal ones
                    seed=seed,
                    progress=False,
                )
            done = fast.policy.apply(truth)
            differ = float(np.mean(done.label != truth.positive))
            found[name].append((differ, float(done.steps.mean())))
    return {name: np.array(values) for name, values in found.items()}


def ordered(console: Console, scale: float) -> None:
    """Rows that do not change, rows that drift, and a file in its own order."""
    simulated = {"the same all the time": still, "drift": drift}
    parts = {
        name: next_windows(draw(np.random.default_rng(0), 600_000), 0.0, 0.0, round(40 * scale))
        for name, draw in simulated.items()
    }
    X, y = covertype_in_order()
    model = xgboost.XGBClassifier(n_estimators=100, max_depth=6, learning_rate=0.2, n_jobs=2)
    model.fit(X[:100_000], y[:100_000])
    pool = qwyc.read_model(model).scores(X[100_000:])
    values = np.ascontiguousarray(pool.values)
    parts["Covertype"] = next_windows(values, pool.base, pool.threshold, round(40 * scale))
    rows = []
    for name, found in parts.items():
        for way, seen in found.items():
            share, models = seen.T
            above = f"{int(np.sum(share > ALPHA))} of {len(share)}"
            shown = f"{share.mean():.2%}", f"{share.max():.2%}", f"{models.mean():.1f}"
            rows.append([name, way, above, *shown])
    columns = ["rows", "taken as", "above alpha", "mean share", "largest", "base models"]
    title = f"The next {NEXT:,} rows, alpha = {ALPHA:.0%}, made from {SAMPLE:,} rows before them"
    print_table(console, title, columns, rows)
