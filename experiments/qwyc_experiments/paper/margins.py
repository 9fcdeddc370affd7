"""LightGBM's models, and its own early exit, `pred_early_stop`.

For two classes LightGBM adds up the raw scores of the trees in training order. The average that it boosts
from is part of the first tree's leaves. After every `pred_early_stop_freq` trees it stops where 2 |score|
is above `pred_early_stop_margin`, and returns the score so far (prediction_early_stop.cpp and
gbdt_prediction.cpp in its source)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import qwyc

from .data import Data, need
from .setting import Setting

LEAVES = (7, 15, 31)  # values of num_leaves to choose from


@dataclass(frozen=True)
class LightGBMChoice:
    """Settings of LightGBM, and their logarithmic loss on the validation rows."""

    learning_rate: float
    num_leaves: int
    loss: float

    def __str__(self) -> str:
        return f"learning rate {self.learning_rate:g}, num_leaves {self.num_leaves}"


def steps(setting: Setting) -> int:
    """How many settings `choose` tries."""
    return len(setting.learning_rates) * len(LEAVES)


def choose(
    data: Data, setting: Setting, done: Callable[[], None] = lambda: None
) -> dict[int, LightGBMChoice]:
    """For every size, the full ensemble's included, the settings with the least validation loss.

    Boosting adds trees one after the other, so one model gives the loss at every size."""
    best: dict[int, LightGBMChoice] = {}
    rest, truth = ~data.validation, data.y[data.validation]
    for rate in setting.learning_rates:
        for leaves in LEAVES:
            model = _classifier(setting.models, LightGBMChoice(rate, leaves, 0.0))
            model.fit(data.X[rest], data.y[rest], categorical_feature=_categories(data))
            for size in (*setting.sizes, setting.models):
                share = model.predict_proba(data.X[data.validation], num_iteration=size)  # (N, 2)
                likelihood = share[np.arange(len(truth)), truth]
                loss = -float(np.mean(np.log(np.maximum(likelihood, 1e-15))))
                if size not in best or loss < best[size].loss:
                    best[size] = LightGBMChoice(rate, leaves, loss)
            done()
    return best


def train(data: Data, trees: int, setting: Setting, choice: LightGBMChoice) -> Any:
    """An ensemble of so many trees on all training rows."""
    model = _classifier(trees, choice)
    return model.fit(data.X, data.y, categorical_feature=_categories(data))


def describe(setting: Setting) -> str:
    """The full ensemble in words."""
    return f"LightGBM, {setting.models} trees"


def version() -> str:
    """Of the library."""
    return f"LightGBM {need('lightgbm', 'lightgbm').__version__}"


def early_stop_policies(
    scores: qwyc.ScoreMatrix, margins: Sequence[float], freq: int
) -> list[tuple[float, qwyc.Policy]]:
    """LightGBM's rule for margins, from cautious to bold, checked after every `freq` trees.

    Of the scores only the number of trees and the threshold are used: nothing is fitted."""
    if freq < 1:
        raise qwyc.OptionError(f"freq must be at least 1; got {freq}")
    T = scores.values.shape[1]
    checked = np.arange(1, T + 1) % freq == 0  # (T,)
    policies = []
    for margin in sorted(margins, reverse=True):
        half = np.where(checked, margin / 2, np.inf)
        order = np.arange(T, dtype=np.int32)
        policy = qwyc.Policy(order, -half, half, scores.threshold, np.ones(T))
        policies.append((float(margin), policy))
    return policies


def _categories(data: Data) -> list[int]:
    return [column for column, kind in enumerate(data.types) if kind == "c"]


def _classifier(trees: int, choice: LightGBMChoice) -> Any:
    lightgbm = need("lightgbm", "lightgbm")
    return lightgbm.LGBMClassifier(
        n_estimators=trees,
        learning_rate=choice.learning_rate,
        num_leaves=choice.num_leaves,
        random_state=0,
        verbose=-1,
    )
