"""Rows and labels from a seeded generator: a nonlinear teacher with interactions, and noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .shapes import Shape

PAIRS_PER_FEATURE = 2


@dataclass(frozen=True)
class Data:
    """Disjoint rows, (N, features) float32, and the labels of the first."""

    training: Any
    label: Any  # (training_rows,) float32, 0 or 1
    policy: Any
    test: Any


def make_data(shape: Shape) -> Data:
    """The rows of an ensemble. No row is in two parts: each is drawn anew."""
    random = np.random.default_rng(shape.seed)
    counts = (shape.training_rows, shape.policy_rows, shape.test_rows)
    rows = random.normal(size=(sum(counts), shape.features)).astype(np.float32)
    rows[:, ::3] = np.exp(rows[:, ::3])  # a third of the columns is skewed
    score = teacher(rows, random)
    noisy = shape.sharpness * score + random.logistic(size=len(rows))
    label = noisy > np.quantile(noisy, 1 - shape.positive)
    training, policy, test = np.split(rows, np.cumsum(counts)[:-1])
    return Data(training, label[: len(training)].astype(np.float32), policy, test)


def teacher(rows: Any, random: np.random.Generator) -> Any:
    """A waved main effect of every column and products of pairs, (N,), of unit variance."""
    features = rows.shape[1]
    ranks = rows.argsort(axis=0).argsort(axis=0) / len(rows)  # in [0, 1)
    waves = np.sin(ranks * random.uniform(1, 5, features) + random.uniform(0, 6, features))
    score = waves @ random.normal(size=features)
    for _ in range(PAIRS_PER_FEATURE * features):
        i, j = random.choice(features, 2, replace=False)
        score += random.normal() * (ranks[:, i] - 0.5) * waves[:, j] * 2
    return (score - score.mean()) / score.std()
