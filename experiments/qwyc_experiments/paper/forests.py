"""Random forests whose trees vote with 0 or 1.

scikit-learn's forests average the class shares of leaves. The rules in `votes` are for votes, so every
leaf is turned into the class that its tree alone would predict. The number of trees is odd: there are no
ties."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from .data import Data, need

LEAF_ROWS = (1, 2, 5, 10)  # values of min_samples_leaf to choose from


@dataclass(frozen=True)
class ForestChoice:
    """Settings of the forest, and the share of validation rows that its votes decide wrongly."""

    min_samples_leaf: int
    error: float

    def __str__(self) -> str:
        return f"min_samples_leaf {self.min_samples_leaf}"


def odd(trees: int) -> int:
    """The same number of trees, or one more."""
    return trees | 1


def choose(data: Data, trees: int, done: Callable[[], None] = lambda: None) -> ForestChoice:
    """The settings with the fewest errors on the validation rows, trained on the others."""
    rest, found = ~data.validation, []
    for leaf in LEAF_ROWS:
        forest = _voting(data.X[rest], data.y[rest], odd(trees), leaf)
        wrong = forest.predict(data.X[data.validation]) != data.y[data.validation]
        found.append(ForestChoice(leaf, float(np.mean(wrong))))
        done()
    return min(found, key=lambda choice: choice.error)


def train(data: Data, trees: int, choice: ForestChoice) -> Any:
    """A forest of votes on all training rows; with one more tree where `trees` is even."""
    return _voting(data.X, data.y, odd(trees), choice.min_samples_leaf)


def describe(trees: int) -> str:
    """The full ensemble in words."""
    return f"random forest of scikit-learn, {odd(trees)} trees that vote"


def version() -> str:
    """Of the library."""
    return f"scikit-learn {need('sklearn', 'scikit-learn').__version__}"


def first_trees(forest: Any, trees: int) -> Any:
    """The forest that training with fewer trees gives: the first trees of the same seed."""
    smaller = copy(forest)
    smaller.estimators_ = forest.estimators_[: odd(trees)]
    smaller.n_estimators = len(smaller.estimators_)
    return smaller


def _voting(X: Any, y: Any, trees: int, leaf: int) -> Any:
    ensemble = need("sklearn.ensemble", "scikit-learn")
    forest = ensemble.RandomForestClassifier(
        trees, min_samples_leaf=leaf, random_state=0, n_jobs=-1
    ).fit(X, y)
    for estimator in forest.estimators_:
        shares = estimator.tree_.value  # (nodes, 1, 2), a view: writing changes the tree
        vote = np.argmax(shares[:, 0], axis=1)  # (nodes,) as the tree predicts: a tie is class 0
        shares[:, 0] = np.eye(2)[vote]
    return forest
