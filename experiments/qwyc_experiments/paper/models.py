"""The ensembles: chosen on validation rows, then trained on all training rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .data import Data, need
from .setting import Setting


@dataclass(frozen=True)
class Choice:
    """Settings of XGBoost, and their logarithmic loss on the validation rows."""

    learning_rate: float
    min_child_weight: float
    loss: float

    def __str__(self) -> str:
        return f"learning rate {self.learning_rate:g}, min_child_weight {self.min_child_weight:g}"


def strongest_features(
    data: Data, count: int, *, depth: int = 9, ranked: bool = False
) -> list[int]:
    """Columns with the largest total gain of a model on the training rows without the validation rows, in
    their own order; or `ranked`, the strongest first."""
    fitted = _classifier(data, 100, depth, Choice(0.1, 1.0, 0.0))
    fitted.fit(data.X[~data.validation], data.y[~data.validation])
    gain = fitted.get_booster().get_score(importance_type="total_gain")  # by "f0", "f1", ...
    total = np.array([gain.get(f"f{k}", 0.0) for k in range(data.X.shape[1])])  # (D,)
    strongest: list[int] = np.argsort(-total, kind="stable")[:count].tolist()
    return strongest if ranked else sorted(strongest)


def steps(setting: Setting) -> int:
    """How many settings `choose` tries."""
    return len(setting.learning_rates) * len(setting.min_child_weights)


def choose(data: Data, setting: Setting, done: Callable[[], None]) -> dict[int, Choice]:
    """For every size, the full ensemble's included, the settings with the least validation loss.

    Boosting adds trees one after the other, so one run gives the loss at every size."""
    sizes = (*setting.sizes, setting.models)
    best: dict[int, Choice] = {}
    rest = ~data.validation
    for rate in setting.learning_rates:
        for weight in setting.min_child_weights:
            model = _classifier(data, setting.models, setting.depth, Choice(rate, weight, 0.0))
            model.fit(
                data.X[rest],
                data.y[rest],
                eval_set=[(data.X[data.validation], data.y[data.validation])],
                verbose=False,
            )
            losses = model.evals_result()["validation_0"]["logloss"]  # after each tree
            for size in sizes:
                if size not in best or losses[size - 1] < best[size].loss:
                    best[size] = Choice(rate, weight, float(losses[size - 1]))
            done()
    return best


def train(data: Data, trees: int, setting: Setting, choice: Choice) -> Any:
    """An ensemble of so many trees on all training rows."""
    return _classifier(data, trees, setting.depth, choice).fit(data.X, data.y)


def _classifier(data: Data, trees: int, depth: int, choice: Choice) -> Any:
    xgboost = need("xgboost", "xgboost-cpu")
    return xgboost.XGBClassifier(
        n_estimators=trees,
        max_depth=depth,
        learning_rate=choice.learning_rate,
        min_child_weight=choice.min_child_weight,
        enable_categorical=True,
        feature_types=list(data.types),
        eval_metric="logloss",
        random_state=0,
    )


def describe(setting: Setting) -> str:
    """The full ensemble in words."""
    return f"XGBoost, {setting.models} trees of depth at most {setting.depth}"


def version() -> str:
    """Of the library."""
    return f"XGBoost {need('xgboost', 'xgboost-cpu').__version__}"
