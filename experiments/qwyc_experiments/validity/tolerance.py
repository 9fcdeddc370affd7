"""Outputs within a tolerance: how often more of them are off than was promised.

Rows are drawn from a known distribution. One model of two classes and one regression are trained on some of
them; each repetition draws a sample of others, and what it makes is measured on 100,000 more. It fits and
certifies once, and takes the policy for every (alpha, confidence) from the path with `at`."""

from __future__ import annotations

from typing import Any

import numpy as np
import xgboost
from rich.console import Console

import qwyc

from .independent import show

ALPHAS, CONFIDENCES = (0.005, 0.01, 0.02), (0.9, 0.95)
ROWS = 2_500
TREES = 30


def draw(seed: int, n: int) -> np.ndarray:
    """Rows, (n, 6)."""
    return np.random.default_rng(seed).normal(size=(n, 6)).astype(np.float32)


def models() -> dict[str, tuple[Any, float]]:
    """A model of each kind, and a tolerance for it: a probability, and a tenth of a deviation or so."""
    X = draw(10**6, 4_000)
    signal = 2 * X[:, 0] + X[:, 1] * X[:, 2] + X[:, 3] ** 2 + draw(10**6 + 1, 4_000)[:, 0]
    options = {"n_estimators": TREES, "max_depth": 4, "n_jobs": 1}
    return {
        "probabilities": (xgboost.XGBClassifier(**options).fit(X, signal > 1), 0.05),
        "values": (xgboost.XGBRegressor(**options).fit(X, signal), 0.4),
    }


def delivered(
    model: Any, tolerance: float, repetitions: int, n_rows: int = ROWS, population: int = 100_000
) -> dict:
    """The share of the population that is off (repetitions,) for every (alpha, confidence)."""
    everyone = draw(10**6 + 2, population)
    exact = qwyc.read_model(model)
    outputs = exact.predict_proba(everyone)[:, 1] if exact.has_classes else exact.predict(everyone)
    shares: dict = {(a, c): [] for a in ALPHAS for c in CONFIDENCES}
    for seed in range(repetitions):
        made = qwyc.optimize(
            model,
            draw(seed, n_rows),
            tolerance=tolerance,
            alpha=ALPHAS[-1],
            seed=seed,
            evaluation="quit",
            progress=False,
        )
        assert made.choices is not None  # the policy was chosen from a path
        measured: dict = {}  # members that several settings choose are measured once
        for (alpha, confidence), found in shares.items():
            chosen = made.at(alpha=alpha, confidence=confidence)
            k = made.choices.index_of(chosen.policy)
            if k not in measured:
                gap = np.abs(chosen.decide(everyone).score - outputs)
                measured[k] = float(np.mean(gap > tolerance))
            found.append(measured[k])
    return {key: np.array(found) for key, found in shares.items()}


def limits(console: Console, scale: float) -> None:
    """Both kinds of output."""
    for name, (model, tolerance) in models().items():
        found = delivered(model, tolerance, max(1, round(100 * scale)))
        show(f"Known truth, {name} within {tolerance}, {ROWS:,} rows a time", found, console)
