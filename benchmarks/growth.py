"""How the cost of a row grows with the number of trees, their depth and the number of features.

One thread, one batch. All models are XGBoost's. Trees and depth: UCI Adult; with more trees the
learning rate is lower, as one would train. Features: made-up rows in which every feature says a little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import peers
from .cache import Trained, trained
from .cases import LEARNING_RATE, TRAINING_ROWS, adult, train_xgboost
from .contest import Case, contest
from .sizes import Sizes

TREES = 300  # where it is not trees that grow
DEPTH = 5
MADE_UP_ROWS = 32_000  # a third each for training, optimising and testing


@dataclass(frozen=True)
class Point:
    """One contestant on one model."""

    axis: str  # "trees", "depth" or "features"
    value: int
    contestant: str
    microseconds: float  # per row
    mean_models: float
    disagreement: float


def growth(sizes: Sizes, report: Callable[[str], object]) -> Iterator[list[Point]]:
    """Every axis and value; everyone's points on one model at a time."""
    for axis, values in sizes.growth.items():
        for value in values:
            report(f"{axis} {value:,}")
            yield measured(axis, value, sizes)


def measured(axis: str, value: int, sizes: Sizes) -> list[Point]:
    """One model."""
    most = min(TREES, 3 * sizes.trees)
    if axis == "features":
        model = trained(train_made_up, trees=most, features=value)
        rows, _ = made_up(value)
        third = MADE_UP_ROWS // 3
        sample, test = rows[third : 2 * third], rows[2 * third :]
    else:
        trees, depth = (value, DEPTH) if axis == "trees" else (most, value)
        rate = min(0.1, 500 * LEARNING_RATE / trees)
        model = trained(train_xgboost, trees=trees, depth=depth, learning_rate=rate)
        rows, _, test = adult()
        sample = rows[TRAINING_ROWS:]
    return points(axis, value, model, sample, test[: sizes.growth_rows], sizes)


def points(
    axis: str, value: int, model: Trained, sample: Any, test: Any, sizes: Sizes
) -> list[Point]:
    """Everyone on one model, answers checked."""
    own = model.model.predict(test).astype(bool)
    contestants = (peers.xgboost, peers.onnx_runtime)
    case = Case(f"{axis} {value}", "", model, sample, test, own, "XGBoost", contestants)
    one_batch = replace(sizes, rows=len(test), batches=(len(test),), seconds=sizes.seconds / 4)
    result = contest(case, one_batch, (1,))
    return [
        Point(
            axis,
            value,
            line.contestant,
            line.microseconds,
            result.mean_models,
            result.disagreement,
        )
        for line in result.lines[1]
    ]


def made_up(features: int) -> tuple[Any, Any]:
    """Rows (32,000, features) float32 and labels from all features and some products of two."""
    rng = np.random.default_rng(features)
    rows = rng.normal(size=(MADE_UP_ROWS, features)).astype(np.float32)
    weight = rng.normal(size=features) / np.sqrt(1 + np.arange(features))
    signal = rows @ weight + rows[:, 0] * rows[:, 1] - rows[:, 2] * rows[:, 3]
    noise = 0.3 * rng.normal(size=MADE_UP_ROWS) * signal.std()
    return rows, (signal + noise > np.quantile(signal, 0.7)).astype(int)


def train_made_up(trees: int, features: int) -> Any:
    """XGBoost on a third of the made-up rows."""
    xgboost, _ = peers.library("xgboost", "xgboost-cpu")
    rows, label = made_up(features)
    third = MADE_UP_ROWS // 3
    model = xgboost.XGBClassifier(n_estimators=trees, max_depth=DEPTH, learning_rate=0.1)
    return model.fit(rows[:third], label[:third])
