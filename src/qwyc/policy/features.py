"""FeatureUse: which features rows need along one order of the base models, and what those cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Pairs = tuple[
    npt.NDArray[Any], npt.NDArray[Any]
]  # base models (E,), and features that they look at


@dataclass(frozen=True, eq=False, repr=False)
class FeatureUse:
    """When each feature is first needed. A row that takes s base models needs the features whose `first`
    is below s, so a row that completes needs every feature that a base model looks at."""

    first: Ints  # (n_features,) step, from 0; n_models where no base model looks at the feature
    costs: Floats  # (n_features,) 0 where a feature costs nothing
    n_models: int

    @classmethod
    def of(
        cls,
        pairs: Pairs,
        order: npt.NDArray[np.int32],
        n_features: int,
        costs: Floats | None = None,
    ) -> FeatureUse:
        """From which base models look at which features; `costs` None is 0 for all."""
        step = np.empty(len(order), dtype=np.int64)
        step[order] = np.arange(len(order))
        first = np.full(n_features, len(order), dtype=np.int64)
        np.minimum.at(first, pairs[1], step[pairs[0]])
        return cls(first, np.zeros(n_features) if costs is None else costs, len(order))

    @property
    def used(self) -> npt.NDArray[np.bool_]:
        """Which features a base model looks at, (n_features,)."""
        return self.first < self.n_models

    @property
    def cost_by_step(self) -> Floats:
        """The cost of the features that each step is the first to need, (T,). It is added up as `Costs`
        adds parts up, to the same bits."""
        whole = np.bincount(self.first, weights=self.costs, minlength=self.n_models + 1)
        return np.asarray(whole[: self.n_models], dtype=np.float64)

    @property
    def full_cost(self) -> float:
        """What all features that a base model looks at cost."""
        return float(self.costs[self.used].sum())

    def rows_needing(self, stops: Sequence[int]) -> Ints:
        """How many rows need each feature, (n_features,), of which stops[s] took s + 1 base models."""
        return reaching(stops)[self.first]

    def mean_count(self, stops: Sequence[int]) -> float:
        """Features that a row needs on average."""
        return float(self.rows_needing(stops).sum() / np.sum(stops))

    def mean_cost(self, stops: Sequence[int]) -> float:
        """What the features that a row needs cost on average."""
        return float(self.rows_needing(stops) @ self.costs / np.sum(stops))


def reaching(stops: Sequence[int]) -> Ints:
    """How many rows take more than s base models, for s from 0 to T, (T + 1,)."""
    counts = np.asarray(stops, dtype=np.int64)
    return np.concatenate([np.cumsum(counts[::-1])[::-1], [0]])
