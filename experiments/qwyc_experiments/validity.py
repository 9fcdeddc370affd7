"""Does alpha hold on new rows as often as the confidence says, and how much of it is used?

    python -m qwyc_experiments.validity [--repetitions 400] [--grouped 60] [--real 100] [--tight 10]

Known truth: rows drawn from a distribution, policies measured on 200,000 other draws. Real data: one
model's scores on a large pool of rows, all of them new to the model, taken as the whole population;
each repetition draws its sample from the pool and is measured on all of it. Each repetition fits and
certifies once and takes the policy for every (alpha, confidence) from the path, as `at` does.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import xgboost
from rich import box
from rich.console import Console
from rich.table import Table

import qwyc

from .frontier import covertype

ALPHAS, CONFIDENCES = (0.001, 0.005, 0.01), (0.9, 0.95, 0.99)


def world(rng: np.random.Generator, n: int, n_models: int = 12) -> np.ndarray:
    """Rows (N, T) whose columns are the scores of T base models that share a cause."""
    return rng.normal(size=(n, 1)) + 1.5 * rng.normal(size=(n, n_models))


def column_models(n_models: int) -> list:
    """Base models that read their score from a column."""
    return [lambda X, t=t: X[:, t] for t in range(n_models)]


def repeat(
    draw, population: qwyc.ScoreMatrix, n_models: int, n_rows: int, repetitions: int
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


def grouped(truth: qwyc.ScoreMatrix, n_rows: int, repetitions: int) -> np.ndarray:
    """Delivered disagreement (repetitions,) where 40 rows to a group are nearly equal, 2% at 95%."""
    shares = []
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        group = np.repeat(np.arange(n_rows // 40), 40)
        X = world(rng, n_rows // 40)[group] + 0.01 * rng.normal(size=(len(group), 12))
        fast = qwyc.optimize(
            column_models(12), X, alpha=0.02, groups=group, seed=seed, progress=False
        )
        shares.append(float(np.mean(fast.policy.apply(truth).label != truth.positive)))
    return np.array(shares)


def show(title: str, delivered: dict, console: Console) -> None:
    """One row per (alpha, confidence)."""
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for name in ("alpha", "confidence", "broken", "allowed", "delivered, mean", "largest"):
        table.add_column(name, justify="right")
    for (alpha, confidence), shares in delivered.items():
        broken = int(np.sum(shares > alpha))
        table.add_row(
            f"{alpha:.2%}",
            f"{confidence:.0%}",
            f"{broken} of {len(shares)} ({broken / len(shares):.1%})",
            f"{1 - confidence:.0%}",
            f"{shares.mean():.3%}",
            f"{shares.max():.3%}",
        )
    console.print(table)


def main() -> None:
    """Run all parts and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--real", type=int, default=100)
    parser.add_argument("--tight", type=int, default=10)
    parser.add_argument("--grouped", type=int, default=60)
    parser.add_argument("--rows", type=int, default=12_000)
    options = parser.parse_args()
    console = Console(width=100)
    started = time.perf_counter()

    truth = qwyc.ScoreMatrix.from_array(world(np.random.default_rng(10**6), 200_000))
    if options.repetitions:
        delivered = repeat(
            lambda seed, n: world(np.random.default_rng(seed), n),
            truth,
            12,
            options.rows,
            options.repetitions,
        )
        show(f"Known truth, {options.rows:,} rows a time", delivered, console)

    if options.grouped:
        delivered = {(0.02, 0.95): grouped(truth, options.rows, options.grouped)}
        show("Known truth, 40 nearly equal rows to a group", delivered, console)

    if options.real or options.tight:
        X, y = covertype()
        model = xgboost.XGBClassifier(n_estimators=100, max_depth=6, learning_rate=0.2, n_jobs=2)
        model.fit(X[:100_000], y[:100_000])
        pool = qwyc.read_model(model).scores(X[100_000:])
        values = np.ascontiguousarray(pool.values)

        def draw(seed: int, n: int) -> np.ndarray:
            rows = np.random.default_rng(seed).choice(len(values), size=n, replace=False)
            return values[rows]

        if options.real:
            delivered = repeat(draw, pool, 100, options.rows, options.real)
            show(f"Covertype, {options.rows:,} rows a time", delivered, console)
        if options.tight:
            delivered = repeat(draw, pool, 100, 100_000, options.tight)
            show("Covertype, 100,000 rows a time", delivered, console)
    console.print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
