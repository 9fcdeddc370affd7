"""Independent rows: what 0.1.0 promised already.

Known truth: rows drawn from a distribution, policies measured on 200,000 other draws. Real data: one
model's scores on a large pool of rows, all of them new to the model, taken as the whole population; each
repetition draws its sample from the pool and is measured on all of it. Each repetition fits and certifies
once and takes the policy for every (alpha, confidence) from the path, as `at` does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xgboost
from rich.console import Console

import qwyc

from ..frontier import covertype
from . import N_MODELS, broken, column_models, print_table, world

ALPHAS, CONFIDENCES = (0.001, 0.005, 0.01), (0.9, 0.95, 0.99)
ROWS = 12_000


def repeat(
    draw: Callable[[int, int], np.ndarray],
    population: qwyc.ScoreMatrix,
    n_models: int,
    n_rows: int,
    repetitions: int,
) -> dict:
    """Delivered disagreement (repetitions,) for every (alpha, confidence)."""
    delivered: dict = {(a, c): [] for a in ALPHAS for c in CONFIDENCES}
    models = column_models(n_models)
    for seed in range(repetitions):
        X = draw(seed, n_rows)
        base = qwyc.BaseModels(models, base=population.base, threshold=population.threshold)
        fast = qwyc.optimize(base, X, alpha=ALPHAS[-1], seed=seed, progress=False)
        measured: dict = {}  # members that several settings choose are measured once
        for (alpha, confidence), shares in delivered.items():
            policy = fast.at(alpha=alpha, confidence=confidence).policy
            k = fast.choices.path.index_of(policy)
            if k not in measured:
                label = policy.apply(population).label
                measured[k] = float(np.mean(label != population.positive))
            shares.append(measured[k])
    return {key: np.array(shares) for key, shares in delivered.items()}


def show(title: str, delivered: dict, console: Console) -> None:
    """One row per (alpha, confidence)."""
    columns = ["alpha", "confidence", "broken", "allowed", "delivered, mean", "largest"]
    rows = [
        [
            f"{alpha:.2%}",
            f"{confidence:.0%}",
            broken(shares, alpha),
            f"{1 - confidence:.0%}",
            f"{shares.mean():.3%}",
            f"{shares.max():.3%}",
        ]
        for (alpha, confidence), shares in delivered.items()
    ]
    print_table(console, title, columns, rows)


def known(console: Console, scale: float) -> None:
    """Rows of a known distribution."""
    truth = qwyc.ScoreMatrix.from_array(world(np.random.default_rng(10**6), 200_000))
    delivered = repeat(
        lambda seed, n: world(np.random.default_rng(seed), n),
        truth,
        N_MODELS,
        ROWS,
        round(400 * scale),
    )
    show(f"Known truth, {ROWS:,} rows a time", delivered, console)


def real(console: Console, scale: float) -> None:
    """Rows of Covertype that the model was not trained on."""
    X, y = covertype()
    model = xgboost.XGBClassifier(n_estimators=100, max_depth=6, learning_rate=0.2, n_jobs=2)
    model.fit(X[:100_000], y[:100_000])
    pool = qwyc.read_model(model).scores(X[100_000:])
    values = np.ascontiguousarray(pool.values)

    def draw(seed: int, n: int) -> np.ndarray:
        rows = np.random.default_rng(seed).choice(len(values), size=n, replace=False)
        return values[rows]

    for n_rows, repetitions in ((ROWS, 100), (100_000, 10)):
        delivered = repeat(draw, pool, 100, n_rows, max(1, round(repetitions * scale)))
        show(f"Covertype, {n_rows:,} rows a time", delivered, console)
